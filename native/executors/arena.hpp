// One sparse memfd that holds all data which tasks in worker processes touch. The driver allocates; workers only map it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

namespace burnish::executors {

// The arena cannot serve a request; what() is one line with the sizes.
class ArenaFull : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct ArenaStats {
    uint64_t capacity;  // bytes of address space
    uint64_t limit;     // most bytes in blocks at once
    uint64_t used;      // bytes in live blocks, rounded up to their size class
    uint64_t peak;      // largest `used` so far
    uint64_t retained;  // bytes of free memory that still hold pages
    uint64_t blocks;    // live blocks
};

// Blocks are named by their offset, which means the same place in every process. Contents of a new block are undefined.
// Bookkeeping lives on the owner's heap, so a task that writes astray cannot break the allocator. Thread-safe.
class Arena {
public:
    static constexpr uint64_t page = 4096;
    static constexpr uint64_t slab_bytes = 1 << 20;       // small blocks are cut from slabs of this size
    static constexpr uint64_t small_limit = 32 * 1024;    // larger blocks are whole pages
    static constexpr uint64_t punch_from = 1 << 20;       // free extents from this size on can give their pages back

    // capacity: address space, rounded up to 1 MiB; limit: at most this many bytes in live blocks (0 = capacity);
    // retain: free memory that may keep its pages, so that buffers which come and go do not fault again.
    explicit Arena(uint64_t capacity, uint64_t limit = 0, uint64_t retain = 256ull << 20);
    // A worker's view of the arena behind `fd` (taken over); alloc and free are errors there.
    static std::unique_ptr<Arena> attach(int fd, uint64_t capacity);
    ~Arena();
    Arena(const Arena &) = delete;
    Arena &operator=(const Arena &) = delete;

    // align: a power of two up to 1 MiB; every block is aligned to at least 64 bytes. bytes = 0 is a block as well.
    uint64_t alloc(uint64_t bytes, uint64_t align = 64);
    void free(uint64_t offset);
    uint64_t block_bytes(uint64_t offset) const;  // usable size of a live block

    std::byte *at(uint64_t offset) const { return base_ + offset; }
    std::byte *base() const { return base_; }
    bool contains(const void *p) const {
        auto *b = static_cast<const std::byte *>(p);
        return b >= base_ && b < base_ + capacity_;
    }
    uint64_t offset_of(const void *p) const { return static_cast<const std::byte *>(p) - base_; }
    int fd() const { return fd_; }
    bool owner() const { return owner_; }
    uint64_t capacity() const { return capacity_; }
    ArenaStats stats() const;
    void trim();  // give all pages of free memory back to the system

private:
    struct Slab {
        uint32_t size_class;
        uint32_t live = 0;
        uint32_t bump = 0;                // slots never handed out start here
        std::vector<uint32_t> free_slots;
        std::vector<bool> taken;
        bool listed = false;              // in partial_[size_class]
    };
    struct Extent {
        uint64_t bytes;
        uint64_t dirty;  // at most this many of them hold pages
    };
    Arena(int fd, uint64_t capacity, bool owner);
    void map();
    uint64_t alloc_small(uint32_t size_class);
    void free_small(uint64_t offset, std::unique_lock<std::mutex> &lock);
    uint64_t take_pages(uint64_t bytes, uint64_t align);
    void give_pages(uint64_t offset, uint64_t bytes, std::unique_lock<std::mutex> &lock);
    void insert_extent(uint64_t offset, uint64_t bytes, uint64_t dirty);
    void punch(uint64_t offset, uint64_t bytes);
    void count(uint64_t bytes);
    [[noreturn]] void fail(uint64_t bytes) const;

    int fd_ = -1;
    bool owner_ = true;
    std::byte *base_ = nullptr;
    uint64_t capacity_, limit_, retain_ = 0;
    mutable std::mutex mutex_;
    std::map<uint64_t, Extent> extents_;                    // free extents by offset
    std::set<std::pair<uint64_t, uint64_t>> by_size_;       // (bytes, offset) of the same extents
    std::unordered_map<uint64_t, uint64_t> large_;          // live page blocks: offset -> bytes
    std::vector<std::unique_ptr<Slab>> slabs_;              // by offset / slab_bytes
    std::vector<std::vector<uint64_t>> partial_;            // per size class: slabs that may have room
    uint64_t used_ = 0, peak_ = 0, dirty_free_ = 0, blocks_ = 0;
};

}  // namespace burnish::executors
