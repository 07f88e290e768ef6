// When to look for repeats, on which window, and on which thread.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "tracing/loops.hpp"
#include "tracing/recognizer.hpp"

namespace burnish::tracing {

// Ruler function: at the j-th multiple of f the last f * (lowest set bit of j) positions, at most `limit`. Short
// repeats are seen early, long ones later, O(n log n) positions in all.
inline uint64_t ruler_window(uint64_t position, uint64_t ruler, uint64_t limit) {
    const uint64_t j = position / ruler, window = ruler * (j & (~j + 1));
    return window < limit ? window : limit;
}

// Runs jobs in order; each job's result is taken in the order of submission.
class Finder {
public:
    virtual ~Finder() = default;
    virtual void submit(Window window) = 0;
    virtual uint64_t finished() = 0;          // results that wait to be taken
    virtual std::vector<Found> take() = 0;    // the oldest one
    virtual FinderStats stats() const = 0;
};

std::unique_ptr<Finder> make_synchronous_finder(const FindOptions &options);

}  // namespace burnish::tracing
