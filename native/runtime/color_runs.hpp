// Points given colors in root order, turned into one interval list per color. Internal to native/runtime.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "runtime/intervals.hpp"
#include "runtime/ispace.hpp"
#include "runtime/parallel.hpp"

namespace burnish::runtime {

inline std::vector<Space> spaces_of(const Rect &root, std::vector<IntervalList> lists) {
    std::vector<Space> spaces(lists.size());
    int64_t work = 0;
    for (const IntervalList &list : lists) work += static_cast<int64_t>(list.size());
    parallel_for(lists.size(), work, [&](size_t c) { spaces[c] = space_of(root, std::move(lists[c])); });
    return spaces;
}

// Calls visit(ranks, shift) for every stretch of ranks [first, last) whose points are consecutive in the root;
// position = rank + shift.
template <class Visit>
void each_stretch(const IndexSpace &parent, int64_t first, int64_t last, Visit visit) {
    int64_t rank = 0;
    for (const Interval &run : parent.intervals()) {
        const int64_t length = run.hi - run.lo;
        const Interval ranks{std::max(rank, first), std::min(rank + length, last)};
        if (ranks.lo < ranks.hi) visit(ranks, run.lo - rank);
        rank += length;
        if (rank >= last) break;
    }
}

constexpr int64_t kNoRank = std::numeric_limits<int64_t>::max();

// The intervals of each color among the points of one part of the parent, in two passes: count, then place. Both write
// unconditionally, since colors that change at random defeat branch prediction.
template <class Color>
class ColorRuns {
   public:
    ColorRuns(const IndexSpace &parent, const Color *colors, int64_t n_colors, int64_t first, int64_t last)
        : parent_(parent), colors_(colors), first_(first), last_(last), next_(static_cast<size_t>(n_colors) + 1) {}

    // Counts the intervals per color, into next_[color + 1]; returns the lowest rank of a bad color, or kNoRank.
    int64_t count() {
        const auto n_slots = static_cast<uint64_t>(next_.size());
        int64_t bad = kNoRank;
        each_stretch(parent_, first_, last_, [&](Interval ranks, int64_t) {
            int64_t before = -2;
            for (int64_t r = ranks.lo; r < ranks.hi; ++r) {
                const int64_t color = colors_[r];
                const auto slot = static_cast<uint64_t>(color) + 1;
                if (slot >= n_slots) [[unlikely]] {
                    bad = std::min(bad, r);
                    continue;
                }
                next_[slot] += color != before;
                before = color;
            }
        });
        return bad;
    }
    int64_t runs(size_t color) const { return next_[color + 1]; }

    // Where this part's first interval of a color goes.
    void start(size_t color, int64_t at) { next_[color + 1] = at; }

    // Writes the intervals; `data[color + 1]` is the array of the color, `data[0]` one discarded interval.
    // Returns the number of points that have a color.
    int64_t place(Interval *const *data, bool short_runs) {
        int64_t colored = 0;
        next_[0] = 0;
        each_stretch(parent_, first_, last_, [&](Interval ranks, int64_t shift) {
            colored += short_runs ? place_points(ranks, shift, data) : place_runs(ranks, shift, data);
        });
        return colored;
    }

   private:
    int64_t place_runs(Interval ranks, int64_t shift, Interval *const *data) {
        int64_t colored = 0;
        for (int64_t r = ranks.lo; r < ranks.hi;) {
            const Color color = colors_[r];
            const int64_t begin = r++;
            while (r < ranks.hi && colors_[r] == color) ++r;
            const auto slot = static_cast<size_t>(color + 1);
            data[slot][next_[slot]] = {begin + shift, r + shift};
            next_[slot] += slot != 0;
            colored += slot != 0 ? r - begin : 0;
        }
        return colored;
    }

    // The same without a branch per run: each point rewrites the interval that it extends.
    int64_t place_points(Interval ranks, int64_t shift, Interval *const *data) {
        int64_t *const next = next_.data();
        int64_t colored = 0, begin = 0;
        size_t before = next_.size();
        for (int64_t r = ranks.lo; r < ranks.hi; ++r) {
            const auto slot = static_cast<size_t>(colors_[r] + 1);
            const bool fresh = slot != before, counts = slot != 0;
            begin = select(fresh, r + shift, begin);
            const int64_t at = next[slot] - (counts & !fresh);
            data[slot][at] = {begin, r + shift + 1};
            next[slot] = at + counts;
            before = slot;
            colored += counts;
        }
        return colored;
    }

    const IndexSpace &parent_;
    const Color *colors_;
    int64_t first_, last_;
    std::vector<int64_t> next_;
};

// Points of equal color, -1 = none; parts of the parent in parallel, cut where the color changes.
template <class Color>
Pieces bucket(const Space &parent, const Color *colors, int64_t n_colors) {
    const int64_t n = parent->volume();
    const auto threads = static_cast<int64_t>(threads_for(n));
    std::vector<ColorRuns<Color>> parts;
    for (int64_t t = 0, from = 0; t < threads; ++t) {
        int64_t to = t + 1 == threads ? n : std::max(from, n / threads * (t + 1));
        while (to > from && to < n && colors[to] == colors[to - 1]) ++to;
        parts.emplace_back(*parent, colors, n_colors, from, to);
        from = to;
    }
    std::vector<int64_t> bad(parts.size(), kNoRank);
    parallel_for(parts.size(), n, [&](size_t t) { bad[t] = parts[t].count(); });
    if (const int64_t r = *std::ranges::min_element(bad); r != kNoRank)
        throw std::out_of_range("point " + std::to_string(r) + " has color " + std::to_string(colors[r]) +
                                ", outside -1.." + std::to_string(n_colors - 1));

    std::vector<IntervalList> lists(static_cast<size_t>(n_colors));
    std::vector<Interval *> data(lists.size() + 1);
    int64_t runs_in_all = 0;
    for (size_t c = 0; c < lists.size(); ++c) {
        int64_t at = 0;
        for (ColorRuns<Color> &part : parts) {
            const int64_t runs = part.runs(c);
            part.start(c, at);
            at += runs;
        }
        lists[c].resize(static_cast<size_t>(at));
        runs_in_all += at;
        data[c + 1] = lists[c].data();
    }
    std::atomic<int64_t> colored{0};
    parallel_for(parts.size(), n, [&](size_t t) {
        Interval discarded;
        std::vector<Interval *> mine = data;
        mine[0] = &discarded;
        colored += parts[t].place(mine.data(), runs_in_all > n / 8);
    });
    // Disjoint because each point has been given to at most one list.
    return {spaces_of(parent->root(), std::move(lists)), true, colored == n};
}

}  // namespace burnish::runtime
