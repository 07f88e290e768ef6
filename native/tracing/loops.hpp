// From repeated strings of a window to candidates: loop bodies in normal form.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tracing/history.hpp"
#include "tracing/trie.hpp"

namespace burnish::tracing {

// Smallest p such that text[i] == text[i - p] for all i >= p (Knuth, Morris, Pratt). text must not be empty.
int32_t shortest_period(std::span<const int32_t> text);

// Start of the lexicographically least rotation (Booth 1980, in the two-pointer form). O(n).
int32_t least_rotation(std::span<const int32_t> text);

// What a finder job looks at: positions [first, last) of the history.
struct Window {
    uint64_t first = 0, last = 0;
    std::vector<std::shared_ptr<const Block>> blocks;
};

struct FindOptions {
    uint32_t min_length = 4;
    uint32_t max_length = kNone;
    uint32_t short_loop = 32;  // a loop body shorter than this is taken several times
};

// A candidate found in a window.
struct Found {
    NormalForm form;
    bool loop = false;       // occurs back to back
    uint32_t remainder = 0;  // length of the fewest loop bodies that make a candidate, if fewer than in `form`
    uint64_t root_hash = 0;  // of the least rotation of the loop body's signatures
    uint32_t occurrences = 0;
};

std::vector<Found> find_loops(const Window &window, const FindOptions &options);

}  // namespace burnish::tracing
