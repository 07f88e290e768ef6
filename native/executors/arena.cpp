#include "executors/arena.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

namespace burnish::executors {

namespace {

// Size classes: multiples of 64 with four steps per doubling, so at most 25 % of a small block is unused.
struct SizeClasses {
    std::vector<uint32_t> bytes;
    SizeClasses() {
        for (uint32_t b = 64; b <= 512; b += 64) bytes.push_back(b);
        for (uint32_t base = 512; base < Arena::small_limit; base *= 2)
            for (uint32_t k = 1; k <= 4; ++k) bytes.push_back(base + k * base / 4);
    }
    uint32_t of(uint64_t n) const {
        return static_cast<uint32_t>(std::lower_bound(bytes.begin(), bytes.end(), n) - bytes.begin());
    }
};
const SizeClasses classes;

uint64_t round_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

std::string mib(uint64_t bytes) {
    return bytes < (1 << 20) ? std::to_string(bytes) + " B" : std::to_string(bytes >> 20) + " MiB";
}

}  // namespace

Arena::Arena(int fd, uint64_t capacity, bool owner)
    : fd_(fd), owner_(owner), capacity_(round_up(std::max<uint64_t>(capacity, 1), slab_bytes)), limit_(capacity_) {}

Arena::Arena(uint64_t capacity, uint64_t limit, uint64_t retain) : Arena(-1, capacity, true) {
    if (limit) limit_ = std::min(limit, capacity_);
    retain_ = retain;
    fd_ = memfd_create("burnish-arena", MFD_CLOEXEC);
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
    if (ftruncate(fd_, static_cast<off_t>(capacity_)) != 0) {
        int code = errno;
        close(fd_);
        throw std::system_error(code, std::generic_category(), "reserving an arena of " + mib(capacity_));
    }
    map();
    slabs_.resize(capacity_ / slab_bytes);
    partial_.resize(classes.bytes.size());
    insert_extent(0, capacity_, 0);
}

std::unique_ptr<Arena> Arena::attach(int fd, uint64_t capacity) {
    std::unique_ptr<Arena> arena(new Arena(fd, capacity, false));
    arena->map();
    return arena;
}

void Arena::map() {
    void *p = mmap(nullptr, capacity_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd_, 0);
    if (p == MAP_FAILED) {
        int code = errno;
        close(fd_);
        fd_ = -1;
        throw std::system_error(code, std::generic_category(), "mapping an arena of " + mib(capacity_));
    }
    base_ = static_cast<std::byte *>(p);
}

Arena::~Arena() {
    if (base_) munmap(base_, capacity_);
    if (fd_ >= 0) close(fd_);
}

void Arena::fail(uint64_t bytes) const {
    if (used_ + bytes > limit_)
        throw ArenaFull("shared memory is full: " + mib(bytes) + " asked for, " + mib(used_) + " of " + mib(limit_) +
                        " in use");
    throw ArenaFull("shared memory is fragmented: no free extent of " + mib(bytes) + " in " + mib(capacity_) +
                    " of address space, " + mib(used_) + " in use");
}

void Arena::count(uint64_t bytes) {
    used_ += bytes;
    peak_ = std::max(peak_, used_);
    ++blocks_;
}

uint64_t Arena::alloc(uint64_t bytes, uint64_t align) {
    if (!owner_) throw std::logic_error("only the driver allocates in an arena");
    if (!std::has_single_bit(align) || align > slab_bytes)
        throw std::invalid_argument("alignment must be a power of two up to 1 MiB");
    std::unique_lock lock(mutex_);
    if (bytes <= small_limit && align <= 64) return alloc_small(classes.of(bytes));
    if (bytes > capacity_) fail(bytes);
    uint64_t size = round_up(std::max<uint64_t>(bytes, 1), page);
    if (used_ + size > limit_) fail(size);
    uint64_t offset = take_pages(size, std::max(align, page));
    large_.emplace(offset, size);
    count(size);
    return offset;
}

uint64_t Arena::alloc_small(uint32_t size_class) {
    uint64_t size = classes.bytes[size_class];
    if (used_ + size > limit_) fail(size);
    auto &partial = partial_[size_class];
    uint32_t slots = static_cast<uint32_t>(slab_bytes / size);
    while (!partial.empty()) {
        Slab &slab = *slabs_[partial.back()];
        if (slab.live < slots) break;
        slab.listed = false;
        partial.pop_back();
    }
    if (partial.empty()) {
        uint64_t index = take_pages(slab_bytes, slab_bytes) / slab_bytes;
        slabs_[index] = std::make_unique<Slab>();
        slabs_[index]->size_class = size_class;
        slabs_[index]->taken.resize(slots);
        slabs_[index]->listed = true;
        partial.push_back(index);
    }
    uint64_t index = partial.back();
    Slab &slab = *slabs_[index];
    uint32_t slot;
    if (slab.free_slots.empty()) {
        slot = slab.bump++;
    } else {
        slot = slab.free_slots.back();
        slab.free_slots.pop_back();
    }
    slab.taken[slot] = true;
    ++slab.live;
    count(size);
    return index * slab_bytes + slot * size;
}

// Best fit; an extent that only fits without its alignment is passed over.
uint64_t Arena::take_pages(uint64_t bytes, uint64_t align) {
    for (auto it = by_size_.lower_bound({bytes, 0}); it != by_size_.end(); ++it) {
        auto [size, start] = *it;
        uint64_t at = round_up(start, align);
        if (at + bytes > start + size) continue;
        Extent extent = extents_.at(start);
        by_size_.erase(it);
        extents_.erase(start);
        dirty_free_ -= extent.dirty;
        uint64_t taken = std::min(extent.dirty, bytes), rest = extent.dirty - taken;
        uint64_t before = at - start, after = start + size - at - bytes;
        if (before) insert_extent(start, before, std::min(rest, before));
        if (after) insert_extent(at + bytes, after, rest - std::min(rest, before));
        return at;
    }
    fail(bytes);
}

void Arena::insert_extent(uint64_t offset, uint64_t bytes, uint64_t dirty) {
    auto next = extents_.lower_bound(offset);
    if (next != extents_.end() && next->first == offset + bytes) {
        bytes += next->second.bytes;
        dirty += next->second.dirty;
        dirty_free_ -= next->second.dirty;
        by_size_.erase({next->second.bytes, next->first});
        next = extents_.erase(next);
    }
    if (next != extents_.begin()) {
        auto prev = std::prev(next);
        if (prev->first + prev->second.bytes == offset) {
            offset = prev->first;
            bytes += prev->second.bytes;
            dirty += prev->second.dirty;
            dirty_free_ -= prev->second.dirty;
            by_size_.erase({prev->second.bytes, prev->first});
            extents_.erase(prev);
        }
    }
    extents_.emplace(offset, Extent{bytes, dirty});
    by_size_.emplace(bytes, offset);
    dirty_free_ += dirty;
}

void Arena::punch(uint64_t offset, uint64_t bytes) {
    if (fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                  static_cast<off_t>(bytes)) != 0)
        throw std::system_error(errno, std::generic_category(), "returning shared memory");
}

// Pages go back outside the lock: while they do, the extent is in no list and nobody else can get it.
void Arena::give_pages(uint64_t offset, uint64_t bytes, std::unique_lock<std::mutex> &lock) {
    if (bytes < punch_from || dirty_free_ + bytes <= retain_) return insert_extent(offset, bytes, bytes);
    lock.unlock();
    punch(offset, bytes);
    lock.lock();
    insert_extent(offset, bytes, 0);
}

void Arena::free(uint64_t offset) {
    std::unique_lock lock(mutex_);
    if (auto it = large_.find(offset); it != large_.end()) {
        uint64_t bytes = it->second;
        large_.erase(it);
        used_ -= bytes;
        --blocks_;
        return give_pages(offset, bytes, lock);
    }
    free_small(offset, lock);
}

void Arena::free_small(uint64_t offset, std::unique_lock<std::mutex> &lock) {
    uint64_t index = offset / slab_bytes;
    Slab *slab = index < slabs_.size() ? slabs_[index].get() : nullptr;
    uint64_t size = slab ? classes.bytes[slab->size_class] : 1, slot = offset % slab_bytes / size;
    if (!slab || offset % slab_bytes % size || slot >= slab->taken.size() || !slab->taken[slot])
        throw std::invalid_argument("no live block of the arena starts at " + std::to_string(offset));
    slab->taken[slot] = false;
    slab->free_slots.push_back(static_cast<uint32_t>(slot));
    --slab->live;
    used_ -= size;
    --blocks_;
    auto &partial = partial_[slab->size_class];
    if (slab->live == 0 && partial.size() > 1 && slab->listed) {  // the last slab of a class stays, against thrashing
        partial.erase(std::find(partial.begin(), partial.end(), index));
        slabs_[index].reset();
        return give_pages(index * slab_bytes, slab_bytes, lock);
    }
    if (!slab->listed) {
        slab->listed = true;
        partial.push_back(index);
    }
}

uint64_t Arena::block_bytes(uint64_t offset) const {
    std::lock_guard lock(mutex_);
    if (auto it = large_.find(offset); it != large_.end()) return it->second;
    uint64_t index = offset / slab_bytes;
    if (index < slabs_.size() && slabs_[index]) return classes.bytes[slabs_[index]->size_class];
    throw std::invalid_argument("no live block of the arena starts at " + std::to_string(offset));
}

ArenaStats Arena::stats() const {
    std::lock_guard lock(mutex_);
    return {capacity_, limit_, used_, peak_, dirty_free_, blocks_};
}

void Arena::trim() {
    std::lock_guard lock(mutex_);
    for (auto &[offset, extent] : extents_) {
        if (!extent.dirty) continue;
        punch(offset, extent.bytes);
        dirty_free_ -= extent.dirty;
        extent.dirty = 0;
    }
}

}  // namespace burnish::executors
