// Suffix array and longest common prefixes of integer strings.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "tracing/token.hpp"

namespace burnish::tracing {

// Suffix array of `text`, whose values lie in [0, alphabet). Induced sorting (SA-IS; Nong, Zhang, Chan 2009): O(n)
// time, O(n + alphabet) memory. A suffix that is a prefix of another sorts first. At most 2^31 - 2 symbols.
std::vector<int32_t> suffix_array(std::span<const int32_t> text, int32_t alphabet);

// lcp[i] = length of the common prefix of the suffixes array[i] and array[i + 1]; the last entry is 0.
// Kasai, Lee, Arimura, Arikawa, Park 2001: O(n).
std::vector<int32_t> common_prefixes(std::span<const int32_t> text, std::span<const int32_t> array);

// Replaces each value by its rank among the distinct values of `tokens` (order preserving); returns the number of
// distinct values. Suffix arrays of the ranks and of the values are equal.
int32_t rank_tokens(std::span<const Token> tokens, std::vector<int32_t> &ranks);
int32_t rank_tokens(std::span<const uint64_t> tokens, std::vector<int32_t> &ranks);

}  // namespace burnish::tracing
