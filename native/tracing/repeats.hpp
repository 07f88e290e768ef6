// Non-overlapping repeated substrings of a token string.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace burnish::tracing {

// text[start, end) occurs at every position of `starts` (ascending, pairwise disjoint, at least two).
struct Repeat {
    int32_t start, end;
    std::vector<int32_t> starts;
};

// Repeats chosen greedily from longest to shortest, positions of one class never overlap those of another
// (method of specs/tracing section 4, after Yadav et al., ASPLOS 2025). O(n log n) for n tokens.
std::vector<Repeat> find_repeats(std::span<const uint64_t> tokens, int32_t min_length);

// The same with values in [0, alphabet) whose order is that of the tokens.
std::vector<Repeat> find_repeats_ranked(std::span<const int32_t> text, int32_t alphabet, int32_t min_length);

}  // namespace burnish::tracing
