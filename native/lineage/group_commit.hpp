// The writing end of a lineage log: records are framed into a buffer and written in groups.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "lineage/frame.hpp"

namespace burnish::lineage {

// Where groups go. Both members throw with a one-line reason; they are never called by two threads at once.
class Sink {
public:
    virtual ~Sink() = default;
    virtual void write(uint64_t first_lsn, std::span<const std::byte> frames) = 0;
    virtual void sync() {}  // returns when everything written is durable
    // Whether write() is quick enough (a few microseconds) for the thread that appends.
    virtual bool quick() const { return false; }
};

// Segments `<first lsn, 20 digits>.log` in a directory, each at most about segment_bytes.
class DirectorySink : public Sink {
public:
    // tail: path of the segment to go on with, or empty. durable_on_sync: fdatasync (survives power loss); otherwise a
    // group is durable once it is with the system (survives the death of this process).
    DirectorySink(std::string directory, std::string tail, bool durable_on_sync, uint64_t segment_bytes);
    ~DirectorySink() override;
    void write(uint64_t first_lsn, std::span<const std::byte> frames) override;
    void sync() override;
    bool quick() const override { return true; }

private:
    void open_segment(uint64_t first_lsn);
    std::string directory_, path_;
    bool durable_on_sync_;
    uint64_t segment_bytes_, bytes_ = 0;
    int fd_ = -1;
};

// When a group is written and made durable:
//  * as soon as somebody waits for it in flush(), by that thread;
//  * at the append that finds 64 KiB buffered or the first buffered record 2 ms old: the appending thread writes it
//    if the sink is quick (waking another thread costs ten times more), without making it durable;
//  * by a thread of its own that looks after 50 ms (2 ms for sinks that are not quick) as long as something is not
//    durable yet, and sleeps otherwise.
// Thread-safe; needs no GIL.
class GroupCommit {
public:
    static constexpr size_t group_bytes = 64 * 1024, queue_bytes = 16 << 20;
    static constexpr std::chrono::microseconds group_age{2000}, linger{50000};

    GroupCommit(std::unique_ptr<Sink> sink, uint64_t next_lsn);
    ~GroupCommit();  // writes what is left; errors are lost, so close() first
    GroupCommit(const GroupCommit &) = delete;
    GroupCommit &operator=(const GroupCommit &) = delete;

    // Returns the record's lsn. Waits only while more than 16 MiB are queued.
    uint64_t append(Kind kind, uint8_t flags, std::span<const std::byte> payload);
    // Returns 0 where append would wait; so callers may keep the GIL, which a sink in Python needs.
    uint64_t try_append(Kind kind, uint8_t flags, std::span<const std::byte> payload);
    void flush(uint64_t upto);  // returns when all records up to `upto` are durable; 0 = all so far
    void close();
    uint64_t durable() const;
    uint64_t next_lsn() const;
    uint64_t groups() const;

private:
    using Clock = std::chrono::steady_clock;
    using Lock = std::unique_lock<std::mutex>;
    void run();
    void check(std::span<const std::byte> payload) const;
    uint64_t put(Kind kind, uint8_t flags, std::span<const std::byte> payload, Lock &lock);
    void write_group(Lock &lock);
    void sync_group(Lock &lock);
    template <class Work>
    bool alone(Lock &lock, Work work);

    std::unique_ptr<Sink> sink_;
    mutable std::mutex mutex_;
    std::condition_variable work_, progress_;
    std::vector<std::byte> buffer_, writing_;
    Clock::time_point oldest_;  // when the first record of buffer_ came
    uint64_t next_, first_buffered_, durable_, groups_ = 0;
    bool busy_ = false;         // some thread is in the sink
    bool armed_ = false;        // the own thread looks by the clock
    bool closing_ = false;
    std::string error_;
    std::thread thread_;
};

}  // namespace burnish::lineage
