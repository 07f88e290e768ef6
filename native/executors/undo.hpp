// recovery="retry": what a task is about to change in place is copied first, and copied back if its worker dies.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "executors/arena.hpp"
#include "executors/message.hpp"

namespace burnish::executors {

// The copy is made and kept by the driver's thread, which waits for the worker anyway: nothing is half-saved when a
// worker dies. Call save() before the request, restore() after a death, release() once the outcome is known.
class Undo {
public:
    explicit Undo(Arena &arena) : arena_(arena) {}
    ~Undo() { release(); }
    Undo(const Undo &) = delete;
    Undo &operator=(const Undo &) = delete;

    // Pieces may overlap each other. Throws ArenaFull, leaving nothing saved.
    void save(std::span<const ArrayDesc> pieces);
    void restore() const;
    void release();
    uint64_t bytes() const { return bytes_; }

private:
    Arena &arena_;
    std::vector<ArrayDesc> pieces_;
    uint64_t block_ = 0, bytes_ = 0;
    bool held_ = false;
};

// Copies a strided piece to (pack) or from (unpack) a contiguous buffer in row-major order.
void pack(const Arena &arena, const ArrayDesc &piece, std::byte *to);
void unpack(const Arena &arena, const ArrayDesc &piece, const std::byte *from);
uint64_t packed_bytes(const ArrayDesc &piece);

// Throws std::out_of_range unless every element lies in the arena.
void check_inside(const Arena &arena, const ArrayDesc &piece);

}  // namespace burnish::executors
