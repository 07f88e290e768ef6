#include "executors/undo.hpp"

#include <algorithm>
#include <cstring>

namespace burnish::executors {

namespace {

struct Dim {
    int64_t extent, stride;
};

// Dimensions of extent 1 go, and neighbours that are contiguous with each other merge; what remains is the loop nest
// around a memcpy of `run` bytes.
struct Nest {
    std::array<Dim, max_dims> dims;
    uint32_t n = 0;
    uint64_t run;

    explicit Nest(const ArrayDesc &piece) : run(piece.item_bytes) {
        for (uint32_t i = 0; i < piece.ndim; ++i) {
            if (piece.shape[i] == 1) continue;
            Dim d{piece.shape[i], piece.strides[i]};
            if (n && dims[n - 1].stride == d.stride * d.extent)
                dims[n - 1] = {dims[n - 1].extent * d.extent, d.stride};
            else
                dims[n++] = d;
        }
        if (n && dims[n - 1].stride == static_cast<int64_t>(run)) run *= static_cast<uint64_t>(dims[--n].extent);
    }
};

template <class Copy>
void walk(const Nest &nest, uint32_t level, std::byte *at, Copy &copy) {
    if (level == nest.n) return copy(at, nest.run);
    for (int64_t i = 0; i < nest.dims[level].extent; ++i) walk(nest, level + 1, at + i * nest.dims[level].stride, copy);
}

template <class Copy>
void each_run(const Arena &arena, const ArrayDesc &piece, Copy copy) {
    if (packed_bytes(piece) == 0) return;
    walk(Nest(piece), 0, arena.at(piece.offset), copy);
}

}  // namespace

uint64_t packed_bytes(const ArrayDesc &piece) {
    uint64_t n = piece.item_bytes;
    for (uint32_t i = 0; i < piece.ndim; ++i) n *= static_cast<uint64_t>(piece.shape[i]);
    return n;
}

void pack(const Arena &arena, const ArrayDesc &piece, std::byte *to) {
    each_run(arena, piece, [&](std::byte *at, uint64_t n) {
        std::memcpy(to, at, n);
        to += n;
    });
}

void unpack(const Arena &arena, const ArrayDesc &piece, const std::byte *from) {
    each_run(arena, piece, [&](std::byte *at, uint64_t n) {
        std::memcpy(at, from, n);
        from += n;
    });
}

void check_inside(const Arena &arena, const ArrayDesc &piece) {
    __int128 low = piece.offset, high = piece.offset;
    for (uint32_t i = 0; i < piece.ndim; ++i) {
        if (piece.shape[i] < 0) throw std::out_of_range("an array has a negative extent");
        if (piece.shape[i] == 0) return;
        (piece.strides[i] < 0 ? low : high) += static_cast<__int128>(piece.shape[i] - 1) * piece.strides[i];
    }
    if (low < 0 || high + piece.item_bytes > arena.capacity())
        throw std::out_of_range("an array reaches outside the shared memory");
}

void Undo::save(std::span<const ArrayDesc> pieces) {
    release();
    uint64_t total = 0;
    for (const auto &piece : pieces) total += packed_bytes(piece);
    if (!total) return;
    block_ = arena_.alloc(total);
    held_ = true;
    bytes_ = total;
    pieces_.assign(pieces.begin(), pieces.end());
    std::byte *to = arena_.at(block_);
    for (const auto &piece : pieces_) {
        pack(arena_, piece, to);
        to += packed_bytes(piece);
    }
}

void Undo::restore() const {
    const std::byte *from = arena_.at(block_);
    for (const auto &piece : pieces_) {
        unpack(arena_, piece, from);
        from += packed_bytes(piece);
    }
}

void Undo::release() {
    if (held_) arena_.free(block_);
    held_ = false;
    bytes_ = 0;
    pieces_.clear();
}

}  // namespace burnish::executors
