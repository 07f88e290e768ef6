// The writing end of a lineage log: records are framed into a buffer and written in groups by one thread.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "lineage/frame.hpp"

namespace burnish::lineage {

// Where groups go. write() returns when the group is durable, or throws with a one-line reason.
class Sink {
public:
    virtual ~Sink() = default;
    virtual void write(uint64_t first_lsn, std::span<const std::byte> frames) = 0;
};

// Segments `<first lsn, 20 digits>.log` in a directory, each at most about segment_bytes.
class DirectorySink : public Sink {
public:
    // tail: path of the segment to go on with, or empty. sync: fdatasync each group (survives power loss), else the
    // group is with the system (survives the death of this process).
    DirectorySink(std::string directory, std::string tail, bool sync, uint64_t segment_bytes);
    ~DirectorySink() override;
    void write(uint64_t first_lsn, std::span<const std::byte> frames) override;

private:
    void open_segment(uint64_t first_lsn);
    std::string directory_, path_;
    bool sync_;
    uint64_t segment_bytes_, bytes_ = 0;
    int fd_ = -1;
};

// A group is written once it has 64 KiB or its first record is 2 ms old, or as soon as somebody waits for it.
// Appending never waits for the disk, except when more than 16 MiB are queued. Thread-safe; needs no GIL.
class GroupCommit {
public:
    static constexpr size_t group_bytes = 64 * 1024, queue_bytes = 16 << 20;
    static constexpr int group_us = 2000;

    GroupCommit(std::unique_ptr<Sink> sink, uint64_t next_lsn);
    ~GroupCommit();  // writes what is left; errors are lost, so close() first
    GroupCommit(const GroupCommit &) = delete;
    GroupCommit &operator=(const GroupCommit &) = delete;

    uint64_t append(Kind kind, uint8_t flags, std::span<const std::byte> payload);  // returns its lsn
    // Returns 0 where append would wait; so callers may keep the GIL, which a sink in Python needs.
    uint64_t try_append(Kind kind, uint8_t flags, std::span<const std::byte> payload);
    void flush(uint64_t upto);  // returns when all records up to `upto` are durable; 0 = all so far
    void close();
    uint64_t durable() const;
    uint64_t next_lsn() const;
    uint64_t groups() const;

private:
    void run();
    void check(std::span<const std::byte> payload) const;
    uint64_t put(Kind kind, uint8_t flags, std::span<const std::byte> payload, std::unique_lock<std::mutex> &lock);

    std::unique_ptr<Sink> sink_;
    mutable std::mutex mutex_;
    std::condition_variable work_, written_;
    std::vector<std::byte> buffer_, writing_;
    uint64_t next_, first_buffered_, durable_, groups_ = 0;
    bool urgent_ = false, closing_ = false;
    std::string error_;
    std::thread thread_;
};

}  // namespace burnish::lineage
