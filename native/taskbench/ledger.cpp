#include "ledger.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace burnish::taskbench {

namespace {

[[noreturn]] void fail(const std::string &what) { throw std::system_error(errno, std::generic_category(), what); }

size_t bytes_for(int64_t capacity) { return 64 * 64 + static_cast<size_t>(capacity) * sizeof(Record); }

void *map(int file, size_t bytes) {
    const int flags = MAP_SHARED | (file < 0 ? MAP_ANONYMOUS : 0);
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
    const int error = errno;
    if (file >= 0) close(file);
    errno = error;
    if (memory == MAP_FAILED) fail("map ledger");
    return memory;
}

}  // namespace

int64_t now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

Ledger::Ledger(std::string path, void *memory, size_t bytes, int64_t capacity)
    : path_(std::move(path)), memory_(memory), bytes_(bytes), slots_(static_cast<Slot *>(memory)),
      records_(reinterpret_cast<Record *>(slots_ + slot_count)), capacity_(capacity) {}

Ledger::~Ledger() { munmap(memory_, bytes_); }

std::shared_ptr<Ledger> Ledger::create(const std::string &path, int64_t capacity) {
    const size_t bytes = bytes_for(capacity);
    int file = -1;
    if (!path.empty()) {
        file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) fail(path);
    }
    return std::shared_ptr<Ledger>(new Ledger(path, map(file, bytes), bytes, capacity));
}

std::shared_ptr<Ledger> Ledger::attach(const std::string &path) {
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0) fail(path);
    const auto bytes = static_cast<size_t>(status.st_size);
    const auto capacity = static_cast<int64_t>((bytes - bytes_for(0)) / sizeof(Record));
    return std::shared_ptr<Ledger>(new Ledger(path, map(file, bytes), bytes, capacity));
}

int Ledger::slot() {
    static std::atomic<int> next{0};
    thread_local const int own = (next.fetch_add(1) + getpid()) % (slot_count - 1);
    return own;
}

int64_t Ledger::executed() const {
    int64_t sum = 0;
    for (int i = 0; i + 1 < slot_count; ++i) sum += slots_[i].count.load(std::memory_order_relaxed);
    return sum;
}

void Ledger::reset() const {
    for (int i = 0; i < slot_count; ++i) slots_[i].count.store(0, std::memory_order_relaxed);
}

void Ledger::record(const Record &record) const {
    const int64_t at = slots_[slot_count - 1].count.fetch_add(1, std::memory_order_relaxed);
    if (at < capacity_) records_[at] = record;
}

std::vector<Record> Ledger::records() const {
    const int64_t count = std::min(capacity_, slots_[slot_count - 1].count.load());
    return {records_, records_ + count};
}

}  // namespace burnish::taskbench
