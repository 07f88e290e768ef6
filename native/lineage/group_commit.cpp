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

DirectorySink::DirectorySink(std::string directory, std::string tail, bool durable_on_sync,
                             uint64_t segment_bytes)
    : directory_(std::move(directory)),
      path_(std::move(tail)),
      durable_on_sync_(durable_on_sync),
      segment_bytes_(segment_bytes) {
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
    if (fd_ >= 0) {
        sync();
        ::close(fd_);
    }
    path_ = directory_ + name;
    fd_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0) fail("creating", path_);
    if (durable_on_sync_) sync_directory(directory_);
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
}

void DirectorySink::sync() {
    if (durable_on_sync_ && fd_ >= 0 && fdatasync(fd_) != 0) fail("syncing", path_);
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
    Lock lock(mutex_);
    progress_.wait(lock, [&] { return buffer_.size() < queue_bytes || !error_.empty() || closing_; });
    return put(kind, flags, payload, lock);
}

uint64_t GroupCommit::try_append(Kind kind, uint8_t flags, std::span<const std::byte> payload) {
    Lock lock(mutex_);
    return buffer_.size() < queue_bytes ? put(kind, flags, payload, lock) : 0;
}

uint64_t GroupCommit::put(Kind kind, uint8_t flags, std::span<const std::byte> payload, Lock &lock) {
    check(payload);
    auto now = Clock::now();
    if (buffer_.empty()) oldest_ = now;
    append_frame(buffer_, kind, flags, next_, payload);
    uint64_t lsn = next_++;
    bool due = buffer_.size() >= group_bytes || now - oldest_ >= group_age;
    if (!armed_ || (due && !sink_->quick())) {
        armed_ = true;
        work_.notify_one();
    }
    if (due && sink_->quick() && !busy_) write_group(lock);
    return lsn;
}

// Runs `work` outside the lock, alone in the sink. Returns false, with error_ set for everybody, if it threw: what
// could not be written may not be followed by anything.
template <class Work>
bool GroupCommit::alone(Lock &lock, Work work) {
    busy_ = true;
    lock.unlock();
    std::string error;
    try {
        work();
    } catch (const std::exception &e) {
        error = std::string("the lineage log cannot be written: ") + e.what();
    }
    lock.lock();
    busy_ = false;
    if (error_.empty()) error_ = error;
    progress_.notify_all();
    return error.empty();
}

void GroupCommit::write_group(Lock &lock) {
    std::swap(buffer_, writing_);
    uint64_t first = first_buffered_;
    first_buffered_ = next_;
    if (alone(lock, [&] { sink_->write(first, writing_); })) ++groups_;
    writing_.clear();
}

void GroupCommit::sync_group(Lock &lock) {
    uint64_t last = first_buffered_ - 1;
    if (alone(lock, [&] { sink_->sync(); })) durable_ = last;
}

void GroupCommit::flush(uint64_t upto) {
    Lock lock(mutex_);
    if (upto == 0 || upto >= next_) upto = next_ - 1;
    while (durable_ < upto) {
        if (!error_.empty()) throw std::runtime_error(error_);
        if (busy_)
            progress_.wait(lock);
        else if (first_buffered_ <= upto)
            write_group(lock);
        else
            sync_group(lock);
    }
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
    const auto period = sink_->quick() ? linger : group_age;
    Lock lock(mutex_);
    for (;;) {
        armed_ = durable_ + 1 < next_;
        if (!armed_ && closing_) return;
        if (!armed_) work_.wait(lock, [&] { return armed_ || closing_; });
        bool full = buffer_.size() >= group_bytes;
        if (!closing_ && !full) work_.wait_for(lock, period);
        progress_.wait(lock, [&] { return !busy_; });
        if (!error_.empty()) return;
        if (!buffer_.empty()) write_group(lock);
        progress_.wait(lock, [&] { return !busy_; });
        if (error_.empty() && durable_ + 1 < first_buffered_) sync_group(lock);
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
