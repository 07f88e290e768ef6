// Which recent positions a trace covers.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace burnish::tracing {

// Bit sets over the last `capacity` positions.
class Coverage {
public:
    enum Flag : uint8_t {
        issued,    // through a template
        complete,  // part of a complete instance or capture; separators
        begins,    // first op of an instance that was issued through its template
    };

    explicit Coverage(uint64_t capacity) : words_(std::bit_ceil(capacity / 64 + 2)), mask_(words_.size() - 1) {}

    // Positions are added in order, without flags.
    void extend(uint64_t position) {
        if (position % 64 == 0) words_[position / 64 & mask_] = {};
    }
    void mark(uint64_t position, Flag flag) { words_[position / 64 & mask_][flag] |= uint64_t{1} << position % 64; }
    void mark(uint64_t first, uint64_t last, Flag flag) {
        for_words(first, last, [&](uint64_t word, uint64_t bits) { words_[word & mask_][flag] |= bits; });
    }
    uint64_t count(uint64_t first, uint64_t last, Flag flag) const { return count(first, last, flag, flag); }
    // Positions with one or both flags.
    uint64_t count(uint64_t first, uint64_t last, Flag a, Flag b) const {
        uint64_t n = 0;
        for_words(first, last, [&](uint64_t word, uint64_t bits) {
            const auto &w = words_[word & mask_];
            n += static_cast<uint64_t>(std::popcount((w[a] | w[b]) & bits));
        });
        return n;
    }

private:
    template <class F>
    static void for_words(uint64_t first, uint64_t last, F visit) {
        while (first < last) {
            const uint64_t end = std::min(last, (first / 64 + 1) * 64), length = end - first;
            visit(first / 64, (length == 64 ? ~uint64_t{0} : (uint64_t{1} << length) - 1) << first % 64);
            first = end;
        }
    }

    std::vector<std::array<uint64_t, 3>> words_;
    uint64_t mask_;
};

}  // namespace burnish::tracing
