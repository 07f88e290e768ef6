#include "lineage/group_commit.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace burnish::lineage {

namespace {

[[noreturn]] void fail(const char *what, const std::string &path) {
    throw std::system_error(errno, std::generic_category(), std::string(what) + " " + path);
}

void sync_directory(const std::string &path) {
    int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) fail("opening", path);
    int rc = fsync(fd);
    ::close(fd);
    if (rc != 0) fail("syncing", path);
}

}  // namespace

DirectorySink::DirectorySink(std::string directory, std::string tail, bool sync, uint64_t segment_bytes)
    : directory_(std::move(directory)), path_(std::move(tail)), sync_(sync), segment_bytes_(segment_bytes) {
    if (path_.empty()) return;
    fd_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd_ < 0) fail("opening", path_);
    off_t end = lseek(fd_, 0, SEEK_END);
    if (end < 0) fail("seeking in", path_);
    bytes_ = static_cast<uint64_t>(end);
}

DirectorySink::~DirectorySink() {
    if (fd_ >= 0) ::close(fd_);
}

void DirectorySink::open_segment(uint64_t first_lsn) {
    char name[32];
    std::snprintf(name, sizeof name, "/%020llu.log", static_cast<unsigned long long>(first_lsn));
    if (fd_ >= 0) ::close(fd_);
    path_ = directory_ + name;
    fd_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0) fail("creating", path_);
    if (sync_) sync_directory(directory_);
    bytes_ = 0;
}

void DirectorySink::write(uint64_t first_lsn, std::span<const std::byte> frames) {
    if (fd_ < 0 || bytes_ >= segment_bytes_) open_segment(first_lsn);
    while (!frames.empty()) {
        ssize_t n = ::write(fd_, frames.data(), frames.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail("writing", path_);
        frames = frames.subspan(static_cast<size_t>(n));
        bytes_ += static_cast<uint64_t>(n);
    }
    if (sync_ && fdatasync(fd_) != 0) fail("syncing", path_);
}

GroupCommit::GroupCommit(std::unique_ptr<Sink> sink, uint64_t next_lsn)
    : sink_(std::move(sink)), next_(next_lsn), first_buffered_(next_lsn), durable_(next_lsn - 1) {
    sigset_t all, before;  // signals are for the program's own threads
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

GroupCommit::~GroupCommit() {
    try {
        close();
    } catch (const std::exception &) {
    }
}

void GroupCommit::check(std::span<const std::byte> payload) const {
    if (payload.size() > UINT32_MAX) throw std::length_error("a lineage record is limited to 4 GiB");
    if (!error_.empty()) throw std::runtime_error(error_);
    if (closing_) throw std::logic_error("the lineage log is closed");
}

uint64_t GroupCommit::append(Kind kind, uint8_t flags, std::span<const std::byte> payload) {
    std::unique_lock lock(mutex_);
    written_.wait(lock, [&] { return buffer_.size() < queue_bytes || !error_.empty() || closing_; });
    check(payload);
    return put(kind, flags, payload, lock);
}

uint64_t GroupCommit::try_append(Kind kind, uint8_t flags, std::span<const std::byte> payload) {
    std::unique_lock lock(mutex_);
    check(payload);
    return buffer_.size() < queue_bytes ? put(kind, flags, payload, lock) : 0;
}

uint64_t GroupCommit::put(Kind kind, uint8_t flags, std::span<const std::byte> payload,
                          std::unique_lock<std::mutex> &lock) {
    bool first = buffer_.empty(), small = buffer_.size() < group_bytes;
    append_frame(buffer_, kind, flags, next_, payload);
    uint64_t lsn = next_++;
    bool wake = first || (small && buffer_.size() >= group_bytes);
    lock.unlock();
    if (wake) work_.notify_one();
    return lsn;
}

void GroupCommit::flush(uint64_t upto) {
    std::unique_lock lock(mutex_);
    if (upto == 0 || upto >= next_) upto = next_ - 1;
    if (durable_ < upto && error_.empty()) {
        urgent_ = true;
        work_.notify_one();
    }
    written_.wait(lock, [&] { return durable_ >= upto || !error_.empty(); });
    if (durable_ < upto) throw std::runtime_error(error_);
}

void GroupCommit::close() {
    {
        std::lock_guard lock(mutex_);
        closing_ = true;
    }
    work_.notify_one();
    if (thread_.joinable()) thread_.join();
    if (!error_.empty()) throw std::runtime_error(error_);
}

void GroupCommit::run() {
    std::unique_lock lock(mutex_);
    for (;;) {
        work_.wait(lock, [&] { return closing_ || !buffer_.empty(); });
        if (buffer_.empty()) return;
        auto late = std::chrono::steady_clock::now() + std::chrono::microseconds(group_us);
        work_.wait_until(lock, late, [&] { return closing_ || urgent_ || buffer_.size() >= group_bytes; });
        std::swap(buffer_, writing_);
        urgent_ = false;
        uint64_t first = first_buffered_, last = next_ - 1;
        first_buffered_ = next_;
        lock.unlock();
        std::string error;
        try {
            sink_->write(first, writing_);
        } catch (const std::exception &e) {
            error = std::string("the lineage log cannot be written: ") + e.what();
        }
        writing_.clear();
        lock.lock();
        if (!error.empty()) error_ = error;
        if (error_.empty()) durable_ = last, ++groups_;
        written_.notify_all();
        if (!error_.empty()) return;  // what could not be written may not be followed by anything
    }
}

uint64_t GroupCommit::durable() const {
    std::lock_guard lock(mutex_);
    return durable_;
}

uint64_t GroupCommit::next_lsn() const {
    std::lock_guard lock(mutex_);
    return next_;
}

uint64_t GroupCommit::groups() const {
    std::lock_guard lock(mutex_);
    return groups_;
}

}  // namespace burnish::lineage
