// The last ops of the program, in blocks that finder jobs share with the launching thread without copying.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tracing/token.hpp"

namespace burnish::tracing {

// 64 consecutive positions (ops and separators). Written by the launching thread only, read-only once full.
struct Block {
    static constexpr uint32_t kSize = 64;
    std::array<Token, kSize> signature;
    std::array<uint64_t, kSize + 1> operand;  // stream position of the first operand of each op
    uint64_t separators = 0;                  // bit mask
    std::vector<uint32_t> roots;              // operands of all ops of the block

    std::span<const uint32_t> operands(uint32_t i) const {
        return {roots.data() + (operand[i] - operand[0]), static_cast<size_t>(operand[i + 1] - operand[i])};
    }
    bool separator(uint32_t i) const { return separators >> i & 1; }
};

// One position of the stream. `operand` counts the operands of all ops before.
struct OpView {
    Token signature;
    uint64_t operand = 0;
    std::span<const uint32_t> roots;
    bool separator = false;
};

class History {
public:
    explicit History(uint64_t capacity) {
        blocks_.resize(std::bit_ceil(capacity / Block::kSize + 2));
        open_block();
    }

    uint64_t size() const { return size_; }  // positions seen so far
    uint64_t operands() const { return operands_; }
    uint64_t oldest() const {  // first position that is still kept
        const uint64_t kept = (blocks_.size() - 1) * Block::kSize;
        return size_ > kept ? (size_ - kept + Block::kSize - 1) / Block::kSize * Block::kSize : 0;
    }

    void append(const Token &signature, std::span<const uint32_t> roots) {
        const uint32_t i = slot();
        current_->signature[i] = signature;
        current_->roots.insert(current_->roots.end(), roots.begin(), roots.end());
        close_op(i, roots.size());
    }

    void append_separator() {
        const uint32_t i = slot();
        current_->signature[i] = Token{};
        current_->separators |= uint64_t{1} << i;
        close_op(i, 0);
    }

    OpView at(uint64_t position) const {
        const Block &b = *blocks_[position / Block::kSize & (blocks_.size() - 1)];
        const uint32_t i = position % Block::kSize;
        return {b.signature[i], b.operand[i], b.operands(i), b.separator(i)};
    }

    // The last `length` positions: shared full blocks and a copy of the one being filled.
    std::vector<std::shared_ptr<const Block>> share(uint64_t length) const {
        std::vector<std::shared_ptr<const Block>> shared;
        if (length == 0) return shared;
        for (uint64_t b = (size_ - length) / Block::kSize; b * Block::kSize < size_; ++b) {
            const auto &block = blocks_[b & (blocks_.size() - 1)];
            if ((b + 1) * Block::kSize <= size_) {
                shared.push_back(block);
            } else {
                shared.push_back(std::make_shared<const Block>(*block));
            }
        }
        return shared;
    }

private:
    uint32_t slot() const { return size_ % Block::kSize; }

    void close_op(uint32_t i, size_t arity) {
        operands_ += arity;
        current_->operand[i + 1] = operands_;
        ++size_;
        if (i + 1 == Block::kSize) open_block();
    }

    void open_block() {
        auto &place = blocks_[size_ / Block::kSize & (blocks_.size() - 1)];
        if (!place || place.use_count() > 1) place = std::make_shared<Block>();  // a job may still read the old one
        std::atomic_thread_fence(std::memory_order_acquire);                       // its last reads come before ours
        current_ = place.get();
        current_->separators = 0;
        current_->roots.clear();
        current_->operand[0] = operands_;
    }

    std::vector<std::shared_ptr<Block>> blocks_;
    Block *current_ = nullptr;
    uint64_t size_ = 0, operands_ = 0;
};

// Distance, in operand positions, to the previous use of the same root (0: none known). Two op sequences are
// isomorphic iff signatures and distances are equal, where distances that reach before the start count as 0
// (Baker 1993, parameterized matching).
class LastUse {
public:
    LastUse() : table_(1024) {}

    // Looks up and records the use of `root` at operand position `position`; uses before `horizon` may be forgotten.
    uint32_t distance(uint32_t root, uint64_t position, uint64_t horizon) {
        Entry *e = find(root);
        if (e->stamp == 0) {
            if (2 * ++used_ > table_.size()) {
                forget(horizon);
                e = find(root);
                ++used_;
            }
            *e = {position + 1, root};
            return 0;
        }
        const uint64_t d = position + 1 - e->stamp;
        e->stamp = position + 1;
        return d < kNone ? static_cast<uint32_t>(d) : 0;
    }

private:
    struct Entry {
        uint64_t stamp = 0;  // position + 1; 0: free
        uint32_t root = 0;
    };

    Entry *find(uint32_t root) {
        const size_t mask = table_.size() - 1;
        size_t h = (root * 0x9E3779B97F4A7C15ull) >> 20 & mask;
        while (table_[h].stamp != 0 && table_[h].root != root) h = (h + 1) & mask;
        return &table_[h];
    }

    void forget(uint64_t horizon) {
        std::vector<Entry> kept;
        for (const Entry &e : table_)
            if (e.stamp > horizon) kept.push_back(e);
        const size_t size = std::max(table_.size(), std::bit_ceil(4 * (kept.size() + 1)));
        table_.assign(size, Entry{});
        for (const Entry &e : kept) *find(e.root) = e;
        used_ = kept.size();
    }

    std::vector<Entry> table_;
    size_t used_ = 0;
};

}  // namespace burnish::tracing
