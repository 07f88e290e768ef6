// Sorted lists of disjoint, nonadjacent intervals: the linear merges behind the index-space algebra, and the ways
// to make such lists from unordered points. Internal to native/runtime.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/ispace.hpp"

namespace burnish::runtime {

using IntervalView = std::span<const Interval>;
using IntervalList = std::vector<Interval>;

// First index >= i whose interval ends after `x` (galloping, so short lists skip through long ones).
size_t skip_to(IntervalView a, size_t i, int64_t x);

bool intersects(IntervalView a, IntervalView b);
bool covers(IntervalView a, IntervalView b);   // b is a subset of a
int64_t overlap_volume(IntervalView a, IntervalView b);
IntervalList intersection(IntervalView a, IntervalView b);
IntervalList difference(IntervalView a, IntervalView b);
IntervalList unite(IntervalView a, IntervalView b);
IntervalList unite_all(std::vector<IntervalView> lists);   // O(total log k), or O(total + range / 64) when that is less

// Appends [lo, hi), joined to the last interval where it touches it. Ascending use only.
inline void append(IntervalList &list, int64_t lo, int64_t hi) {
    if (!list.empty() && lo <= list.back().hi) {
        if (hi > list.back().hi) list.back().hi = hi;
    } else {
        list.push_back({lo, hi});
    }
}

// A set of positions of [base, base + range) as bits.
class Bitmap {
   public:
    Bitmap(int64_t base, int64_t range) : base_(base), words_(static_cast<size_t>((range + 63) / 64)) {}

    void set(int64_t x) {
        const auto u = static_cast<uint64_t>(x - base_);
        words_[u >> 6] |= uint64_t{1} << (u & 63);
    }
    bool test(int64_t x) const {
        const auto u = static_cast<uint64_t>(x - base_);
        return (words_[u >> 6] >> (u & 63)) & 1;
    }
    int64_t add(Interval run);   // sets the run's bits; how many of them were new
    IntervalList intervals() const;

   private:
    int64_t base_;
    std::vector<uint64_t> words_;
};

// Whether a bitmap over `range` positions is cheaper than sorting `items` of them.
inline bool bitmap_pays(int64_t range, int64_t items) { return range / 256 <= items; }

void radix_sort(std::vector<int64_t> &values, int64_t min, int64_t max);
// The set of the values, any order, duplicates allowed; all in [min, max]. Destroys `values`.
IntervalList intervals_of(std::vector<int64_t> &values, int64_t min, int64_t max);

// Nonempty intervals in any order, overlapping or not, as a list.
IntervalList sorted(IntervalList runs);
// The rows of a nonempty rectangle inside the root, ascending, contiguous ones joined; appended.
void append_rows(const Rect &root, const Rect &r, IntervalList &out);

// The space of a list known to be canonical and inside the root.
Space space_of(const Rect &root, IntervalList runs);

}  // namespace burnish::runtime
