// Partitions by data: by_color, image, preimage. Each is one gather and one bucketing pass; never point-by-point sets.
#include <algorithm>
#include <limits>
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

// Runs of equal color >= 0 along the parent's points, restricted to ranks [first, last). Calls emit(color, lo, hi) with
// linear positions. Throws for a color that does not exist.
template <class Emit>
void color_runs(const IndexSpace &parent, std::span<const int64_t> colors, int64_t n_colors, int64_t first, int64_t last,
                Emit emit) {
    int64_t rank = 0;
    for (const Interval &run : parent.intervals()) {
        const int64_t length = run.hi - run.lo;
        const int64_t shift = run.lo - rank;   // from rank to linear position
        const int64_t stop = std::min(rank + length, last);
        for (int64_t r = std::max(rank, first); r < stop;) {
            const int64_t color = colors[static_cast<size_t>(r)];
            if (color < -1 || color >= n_colors)
                throw std::out_of_range("point " + std::to_string(r) + " has color " + std::to_string(color) +
                                        ", outside -1.." + std::to_string(n_colors - 1));
            const int64_t start = r++;
            while (r < stop && colors[static_cast<size_t>(r)] == color) ++r;
            if (color >= 0) emit(color, start + shift, r + shift);
        }
        rank += length;
        if (rank >= last) break;
    }
}

// Gathers pointer[l] over a set of positions: first their range, then the values.
struct Gathered {
    int64_t count = 0;                     // pointers other than -1
    int64_t min = kNone, max = -1;
    int64_t bad = kNone;                   // lowest position of a value outside the root
};

Gathered survey(IntervalView positions, std::span<const int64_t> pointer, int64_t volume) {
    Gathered g;
    for (const Interval &run : positions) {
        for (int64_t l = run.lo; l < run.hi; ++l) {
            const int64_t v = pointer[static_cast<size_t>(l)];
            if (v == -1) continue;
            if (v < 0 || v >= volume) {
                g.bad = std::min(g.bad, l);
                continue;
            }
            ++g.count;
            g.min = std::min(g.min, v);
            g.max = std::max(g.max, v);
        }
    }
    return g;
}

template <class Visit>
void each_pointer(IntervalView positions, std::span<const int64_t> pointer, Visit visit) {
    for (const Interval &run : positions)
        for (int64_t l = run.lo; l < run.hi; ++l)
            if (const int64_t v = pointer[static_cast<size_t>(l)]; v != -1) visit(l, v);
}

void check_length(std::span<const int64_t> pointer, const Rect &root) {
    if (static_cast<int64_t>(pointer.size()) != root.volume())
        throw std::invalid_argument("the pointer array has " + std::to_string(pointer.size()) + " values for " +
                                    std::to_string(root.volume()) + " points");
}

Pieces classified(const Space &parent, std::vector<Space> spaces) {
    const Coverage found = coverage(spaces);
    return {std::move(spaces), found.disjoint, found.volume == parent->volume()};
}

int64_t total_volume(std::span<const Space> spaces) {
    int64_t total = 0;
    for (const Space &space : spaces) total += space->volume();
    return total;
}

}  // namespace

void set_build_threads(int n) { build_limit = std::max(0, n); }

int build_threads() {
    const int limit = build_limit;
    return limit > 0 ? limit : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

Pieces by_color(const Space &parent, std::span<const int64_t> colors, int64_t n_colors) {
    if (n_colors < 0) throw std::invalid_argument("a number of colors is negative");
    if (static_cast<int64_t>(colors.size()) != parent->volume())
        throw std::invalid_argument("there are " + std::to_string(colors.size()) + " colors for " +
                                    std::to_string(parent->volume()) + " points");
    std::vector<IntervalList> lists(static_cast<size_t>(n_colors));
    int64_t colored = 0;
    color_runs(*parent, colors, n_colors, 0, parent->volume(), [&](int64_t color, int64_t lo, int64_t hi) {
        append(lists[static_cast<size_t>(color)], lo, hi);
        colored += hi - lo;
    });
    Pieces pieces;
    for (IntervalList &list : lists) pieces.spaces.push_back(IndexSpace::sparse(parent->root(), std::move(list)));
    pieces.disjoint = true;   // each point was given to at most one list
    pieces.complete = colored == parent->volume();
    return pieces;
}

Pieces image(std::span<const Space> pieces, std::span<const int64_t> pointer, const Space &target) {
    if (pieces.empty()) return classified(target, {});
    check_length(pointer, pieces[0]->root());
    const int64_t volume = target->root().volume();
    std::vector<Space> spaces(pieces.size());
    std::vector<int64_t> bad(pieces.size(), kNone);
    parallel_for(pieces.size(), total_volume(pieces), [&](size_t c) {
        const IntervalView positions = pieces[c]->intervals();
        const Gathered g = survey(positions, pointer, volume);
        bad[c] = g.bad;
        if (g.bad != kNone || g.count == 0) {
            spaces[c] = IndexSpace::empty(target->root());
            return;
        }
        IntervalList runs;
        if (const int64_t range = g.max - g.min + 1; bitmap_pays(range, g.count)) {
            Bitmap bits(g.min, range);
            each_pointer(positions, pointer, [&](int64_t, int64_t v) { bits.set(v); });
            runs = bits.intervals();
        } else {
            std::vector<int64_t> values;
            values.reserve(static_cast<size_t>(g.count));
            each_pointer(positions, pointer, [&](int64_t, int64_t v) { values.push_back(v); });
            runs = intervals_of(values, g.min, g.max);
        }
        spaces[c] = intersection(IndexSpace::sparse(target->root(), std::move(runs)), target);
    });
    if (const int64_t first = *std::ranges::min_element(bad); first != kNone)
        throw PointerError{first, pointer[static_cast<size_t>(first)]};
    return classified(target, std::move(spaces));
}

namespace {

// Preimage of disjoint pieces: one lookup of the owner of every pointer's target.
std::vector<IntervalList> by_owner(std::span<const Space> pieces, std::span<const int64_t> pointer, const Space &source,
                                   const Gathered &g) {
    std::vector<int32_t> owner(static_cast<size_t>(g.max - g.min + 1), -1);
    for (size_t c = 0; c < pieces.size(); ++c)
        for (const Interval &run : pieces[c]->intervals())
            for (int64_t v = std::max(run.lo, g.min); v < std::min(run.hi, g.max + 1); ++v)
                owner[static_cast<size_t>(v - g.min)] = static_cast<int32_t>(c);
    std::vector<IntervalList> lists(pieces.size());
    each_pointer(source->intervals(), pointer, [&](int64_t l, int64_t v) {
        if (const int32_t c = owner[static_cast<size_t>(v - g.min)]; c >= 0) append(lists[static_cast<size_t>(c)], l, l + 1);
    });
    return lists;
}

// In general: sort (value, position) once; each piece then collects the positions of the values it holds.
std::vector<IntervalList> by_sorted_values(std::span<const Space> pieces, std::span<const int64_t> pointer,
                                           const Space &source, const Gathered &g) {
    std::vector<std::pair<int64_t, int64_t>> pairs;
    pairs.reserve(static_cast<size_t>(g.count));
    each_pointer(source->intervals(), pointer, [&](int64_t l, int64_t v) { pairs.emplace_back(v, l); });
    std::ranges::sort(pairs);
    std::vector<IntervalList> lists(pieces.size());
    parallel_for(pieces.size(), g.count, [&](size_t c) {
        std::vector<int64_t> positions;
        auto at = pairs.begin();
        for (const Interval &run : pieces[c]->intervals()) {
            at = std::lower_bound(at, pairs.end(), std::pair{run.lo, int64_t{0}});
            for (; at != pairs.end() && at->first < run.hi; ++at) positions.push_back(at->second);
        }
        if (positions.empty()) return;
        const auto [min, max] = std::ranges::minmax(positions);
        lists[c] = intervals_of(positions, min, max);
    });
    return lists;
}

}  // namespace

Pieces preimage(std::span<const Space> pieces, std::span<const int64_t> pointer, const Space &source) {
    if (pieces.empty()) return classified(source, {});
    check_length(pointer, source->root());
    const Gathered g = survey(source->intervals(), pointer, pieces[0]->root().volume());
    if (g.bad != kNone) throw PointerError{g.bad, pointer[static_cast<size_t>(g.bad)]};
    std::vector<IntervalList> lists(pieces.size());
    if (g.count > 0) {
        const bool table = g.max - g.min < 8 * g.count + 1024 && pieces.size() < (size_t{1} << 31);
        lists = table && coverage(pieces).disjoint ? by_owner(pieces, pointer, source, g)
                                                   : by_sorted_values(pieces, pointer, source, g);
    }
    std::vector<Space> spaces;
    for (IntervalList &list : lists) spaces.push_back(IndexSpace::sparse(source->root(), std::move(list)));
    return classified(source, std::move(spaces));
}

}  // namespace burnish::runtime
