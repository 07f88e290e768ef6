// What all processes of a run write into: how many tasks were executed, and when each ran, if asked.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace burnish::taskbench {

struct Record {
    int64_t start, end;  // nanoseconds of CLOCK_MONOTONIC, which all processes of a machine share
    int64_t step, point;
    int32_t graph, thread;
};

// A memory map of a file (or of nothing, for one process). Counters are spread over cache lines, a thread always
// adds to the same one, so that counting costs a few ns and threads do not meet.
class Ledger {
public:
    static std::shared_ptr<Ledger> create(const std::string &path, int64_t capacity);  // "" for this process only
    static std::shared_ptr<Ledger> attach(const std::string &path);
    ~Ledger();
    Ledger(const Ledger &) = delete;
    Ledger &operator=(const Ledger &) = delete;

    void add() const { slots_[slot()].count.fetch_add(1, std::memory_order_relaxed); }
    int64_t executed() const;
    void reset() const;  // to no task executed and no record

    int64_t capacity() const { return capacity_; }
    void record(const Record &record) const;  // dropped when full
    std::vector<Record> records() const;
    const std::string &path() const { return path_; }

private:
    struct alignas(64) Slot {
        std::atomic<int64_t> count;
    };
    static constexpr int slot_count = 64;  // the last one counts records
    static int slot();
    Ledger(std::string path, void *memory, size_t bytes, int64_t capacity);

    std::string path_;
    void *memory_;
    size_t bytes_;
    Slot *slots_;
    Record *records_;
    int64_t capacity_;
};

int64_t now_ns();

}  // namespace burnish::taskbench
