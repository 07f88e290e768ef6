#pragma once
#include <cstdint>
#include <span>

#include "runtime/ispace.hpp"

namespace burnish::runtime {

struct Coverage {
    bool disjoint = true;   // no point is in two of the spaces
    int64_t volume = 0;     // of their union
};

// O(n log n) in the number of intervals, or of rectangles where counting on the grid of their faces costs less.
Coverage coverage(std::span<const Space> spaces);

}  // namespace burnish::runtime
