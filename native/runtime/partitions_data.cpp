// Partitions by data: by_color, image, preimage. Each is a gather and one bucketing pass, never point-by-point sets.
#include <algorithm>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/coverage.hpp"
#include "runtime/intervals.hpp"
#include "runtime/ispace.hpp"
#include "runtime/parallel.hpp"

namespace burnish::runtime {

namespace {

std::atomic<int> build_limit{0};

constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

int64_t total_volume(std::span<const Space> spaces) {
    int64_t total = 0;
    for (const Space &space : spaces) total += space->volume();
    return total;
}

Pieces classified(const Space &parent, std::vector<Space> spaces) {
    const Coverage found = coverage(spaces);
    return {std::move(spaces), found.disjoint, found.volume == parent->volume()};
}

std::vector<Space> spaces_of(const Rect &root, std::vector<IntervalList> lists) {
    std::vector<Space> spaces(lists.size());
    int64_t work = 0;
    for (const IntervalList &list : lists) work += static_cast<int64_t>(list.size());
    parallel_for(lists.size(), work, [&](size_t c) { spaces[c] = space_of(root, std::move(lists[c])); });
    return spaces;
}

// ---- bucketing points by color ----

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

// The intervals of each color among the points of one part of the parent, in two passes: count, then place. Both write
// unconditionally, since colors that change at random defeat branch prediction.
template <class Color>
class ColorRuns {
   public:
    ColorRuns(const IndexSpace &parent, const Color *colors, int64_t n_colors, int64_t first, int64_t last)
        : parent_(parent), colors_(colors), first_(first), last_(last), next_(static_cast<size_t>(n_colors) + 1) {}

    // Counts the intervals per color, into next_[color + 1]; returns the lowest rank of a bad color, or kNone.
    int64_t count() {
        const auto n_slots = static_cast<uint64_t>(next_.size());
        int64_t bad = kNone;
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
    int64_t place(Interval *const *data) {
        int64_t colored = 0;
        next_[0] = 0;
        each_stretch(parent_, first_, last_, [&](Interval ranks, int64_t shift) {
            for (int64_t r = ranks.lo; r < ranks.hi;) {
                const Color color = colors_[r];
                const int64_t begin = r++;
                while (r < ranks.hi && colors_[r] == color) ++r;
                const auto slot = static_cast<size_t>(color + 1);
                data[slot][next_[slot]] = {begin + shift, r + shift};
                next_[slot] += slot != 0;
                colored += slot != 0 ? r - begin : 0;
            }
        });
        return colored;
    }

   private:
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
    std::vector<int64_t> bad(parts.size(), kNone);
    parallel_for(parts.size(), n, [&](size_t t) { bad[t] = parts[t].count(); });
    if (const int64_t r = *std::ranges::min_element(bad); r != kNone)
        throw std::out_of_range("point " + std::to_string(r) + " has color " + std::to_string(colors[r]) +
                                ", outside -1.." + std::to_string(n_colors - 1));

    std::vector<IntervalList> lists(static_cast<size_t>(n_colors));
    std::vector<Interval *> data(lists.size() + 1);
    for (size_t c = 0; c < lists.size(); ++c) {
        int64_t at = 0;
        for (ColorRuns<Color> &part : parts) {
            const int64_t runs = part.runs(c);
            part.start(c, at);
            at += runs;
        }
        lists[c].resize(static_cast<size_t>(at));
        data[c + 1] = lists[c].data();
    }
    std::atomic<int64_t> colored{0};
    parallel_for(parts.size(), n, [&](size_t t) {
        Interval discarded;
        std::vector<Interval *> mine = data;
        mine[0] = &discarded;
        colored += parts[t].place(mine.data());
    });
    // Disjoint because each point has been given to at most one list.
    return {spaces_of(parent->root(), std::move(lists)), true, colored == n};
}

// ---- following pointers ----

struct Survey {
    int64_t count = 0;              // pointers other than -1
    int64_t min = kNone, max = -1;
    int64_t bad = kNone;            // lowest position of a value outside the root
};

Survey survey(IntervalView positions, std::span<const int64_t> pointer, int64_t volume) {
    Survey found;
    for (const Interval &run : positions) {
        for (int64_t l = run.lo; l < run.hi; ++l) {
            const int64_t v = pointer[static_cast<size_t>(l)];
            if (static_cast<uint64_t>(v) + 1 > static_cast<uint64_t>(volume)) [[unlikely]] {
                found.bad = std::min(found.bad, l);
                continue;
            }
            const bool counts = v >= 0;
            found.count += counts;
            found.min = std::min(found.min, counts ? v : found.min);
            found.max = std::max(found.max, v);
        }
    }
    return found;
}

template <class Visit>
void each_pointer(IntervalView positions, std::span<const int64_t> pointer, Visit visit) {
    for (const Interval &run : positions)
        for (int64_t l = run.lo; l < run.hi; ++l)
            if (const int64_t v = pointer[static_cast<size_t>(l)]; v >= 0) visit(l, v);
}

void check_length(std::span<const int64_t> pointer, const Rect &root) {
    if (static_cast<int64_t>(pointer.size()) != root.volume())
        throw std::invalid_argument("the pointer array has " + std::to_string(pointer.size()) + " values for " +
                                    std::to_string(root.volume()) + " points");
}

IntervalList followed(IntervalView positions, std::span<const int64_t> pointer, const Survey &found) {
    const int64_t range = found.max - found.min + 1;
    if (bitmap_pays(range, found.count)) {
        Bitmap bits(found.min, range);
        each_pointer(positions, pointer, [&](int64_t, int64_t v) { bits.set(v); });
        return bits.intervals();
    }
    std::vector<int64_t> values;
    values.reserve(static_cast<size_t>(found.count));
    each_pointer(positions, pointer, [&](int64_t, int64_t v) { values.push_back(v); });
    return intervals_of(values, found.min, found.max);
}

// The positions that point to each value, grouped by value: a counting sort where the range of values allows a table.
class Inverse {
   public:
    Inverse(IntervalView positions, std::span<const int64_t> pointer, const Survey &found)
        : min_(found.min), table_(found.max - found.min < 8 * found.count + 1024) {
        if (table_) {
            counting_sort(positions, pointer, found);
        } else {
            pairs_.reserve(static_cast<size_t>(found.count));
            each_pointer(positions, pointer, [&](int64_t l, int64_t v) { pairs_.emplace_back(v, l); });
            std::ranges::sort(pairs_);
        }
    }

    // Positions whose values lie in the list, in no useful order.
    std::vector<int64_t> of(IntervalView values) const {
        std::vector<int64_t> out;
        if (table_) {
            const auto end = static_cast<int64_t>(start_.size()) - 1;
            for (const Interval &run : values) {
                const int64_t lo = std::clamp<int64_t>(run.lo - min_, 0, end), hi = std::clamp<int64_t>(run.hi - min_, 0, end);
                out.insert(out.end(), position_.begin() + start_[static_cast<size_t>(lo)],
                           position_.begin() + start_[static_cast<size_t>(hi)]);
            }
            return out;
        }
        auto at = pairs_.begin();
        for (const Interval &run : values) {
            at = std::lower_bound(at, pairs_.end(), std::pair{run.lo, int64_t{0}});
            for (; at != pairs_.end() && at->first < run.hi; ++at) out.push_back(at->second);
        }
        return out;
    }

   private:
    void counting_sort(IntervalView positions, std::span<const int64_t> pointer, const Survey &found) {
        start_.resize(static_cast<size_t>(found.max - found.min + 3));   // one slot early, so that placing ends in place
        each_pointer(positions, pointer, [&](int64_t, int64_t v) { ++start_[static_cast<size_t>(v - min_ + 2)]; });
        for (size_t i = 1; i < start_.size(); ++i) start_[i] += start_[i - 1];
        position_.resize(static_cast<size_t>(found.count));
        each_pointer(positions, pointer, [&](int64_t l, int64_t v) {
            position_[static_cast<size_t>(start_[static_cast<size_t>(v - min_ + 1)]++)] = l;
        });
        start_.pop_back();
    }

    int64_t min_;
    bool table_;
    std::vector<int64_t> start_, position_;                // table: positions of value v at [start[v - min], start[v - min + 1])
    std::vector<std::pair<int64_t, int64_t>> pairs_;       // otherwise: (value, position), sorted
};

// Preimage of disjoint pieces: every point of the source gets the color of what it points to.
Pieces preimage_disjoint(std::span<const Space> pieces, std::span<const int64_t> pointer, const Space &source,
                         const Survey &found) {
    const int64_t range = found.max - found.min + 1;
    // One more entry in front: what -1 points to.
    std::vector<int32_t> owner(static_cast<size_t>(range) + 1, -1);
    int32_t *const at = owner.data() + 1 - found.min;
    parallel_for(pieces.size(), range, [&](size_t c) {
        for (const Interval &run : pieces[c]->intervals())
            for (int64_t v = std::max(run.lo, found.min), hi = std::min(run.hi, found.max + 1); v < hi; ++v)
                at[v] = static_cast<int32_t>(c);
    });
    const int64_t n = source->volume();
    const auto color = std::make_unique_for_overwrite<int32_t[]>(static_cast<size_t>(n));
    const auto threads = static_cast<int64_t>(threads_for(n));
    parallel_for(static_cast<size_t>(threads), n, [&](size_t t) {
        const auto part = static_cast<int64_t>(t);
        each_stretch(*source, n / threads * part, part + 1 == threads ? n : n / threads * (part + 1),
                     [&](Interval ranks, int64_t shift) {
                         for (int64_t r = ranks.lo; r < ranks.hi; ++r)
                             color[static_cast<size_t>(r)] = at[std::max(pointer[static_cast<size_t>(r + shift)], found.min - 1)];
                     });
    });
    return bucket(source, color.get(), static_cast<int64_t>(pieces.size()));
}

Pieces preimage_aliased(std::span<const Space> pieces, std::span<const int64_t> pointer, const Space &source,
                        const Survey &found) {
    const Inverse inverse(source->intervals(), pointer, found);
    std::vector<IntervalList> lists(pieces.size());
    parallel_for(pieces.size(), found.count, [&](size_t c) {
        std::vector<int64_t> positions = inverse.of(pieces[c]->intervals());
        if (positions.empty()) return;
        const auto [min, max] = std::ranges::minmax(positions);
        lists[c] = intervals_of(positions, min, max);
    });
    return classified(source, spaces_of(source->root(), std::move(lists)));
}

}  // namespace

void set_build_threads(int n) { build_limit = std::max(0, n); }

int build_threads() {
    static const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    const int limit = build_limit.load(std::memory_order_relaxed);
    return limit > 0 ? limit : cores;
}

Pieces by_color(const Space &parent, std::span<const int64_t> colors, int64_t n_colors) {
    if (n_colors < 0) throw std::invalid_argument("a number of colors is negative");
    if (static_cast<int64_t>(colors.size()) != parent->volume())
        throw std::invalid_argument("there are " + std::to_string(colors.size()) + " colors for " +
                                    std::to_string(parent->volume()) + " points");
    return bucket(parent, colors.data(), n_colors);
}

Pieces image(std::span<const Space> pieces, std::span<const int64_t> pointer, const Space &target) {
    if (pieces.empty()) return classified(target, {});
    check_length(pointer, pieces[0]->root());
    std::vector<Space> spaces(pieces.size());
    std::vector<int64_t> bad(pieces.size(), kNone);
    parallel_for(pieces.size(), total_volume(pieces), [&](size_t c) {
        const IntervalView positions = pieces[c]->intervals();
        const Survey found = survey(positions, pointer, target->root().volume());
        bad[c] = found.bad;
        IntervalList runs;
        if (found.count > 0 && found.bad == kNone) runs = followed(positions, pointer, found);
        spaces[c] = intersection(space_of(target->root(), std::move(runs)), target);
    });
    if (const int64_t first = *std::ranges::min_element(bad); first != kNone)
        throw PointerError{first, pointer[static_cast<size_t>(first)]};
    return classified(target, std::move(spaces));
}

Pieces preimage(std::span<const Space> pieces, std::span<const int64_t> pointer, const Space &source) {
    if (pieces.empty()) return classified(source, {});
    check_length(pointer, source->root());
    const Survey found = survey(source->intervals(), pointer, pieces[0]->root().volume());
    if (found.bad != kNone) throw PointerError{found.bad, pointer[static_cast<size_t>(found.bad)]};
    if (found.count == 0)
        return classified(source, std::vector<Space>(pieces.size(), IndexSpace::empty(source->root())));
    const bool table = found.max - found.min < 8 * found.count + 1024 && pieces.size() < (size_t{1} << 31);
    return table && coverage(pieces).disjoint ? preimage_disjoint(pieces, pointer, source, found)
                                              : preimage_aliased(pieces, pointer, source, found);
}

}  // namespace burnish::runtime
