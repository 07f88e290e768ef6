// Partitions by data: by_color, image, preimage. Each is a gather and one bucketing pass, never point-by-point sets.
#include <algorithm>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/color_runs.hpp"
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

// Numbers the values that occur: value - min where their range allows tables, else the rank among the distinct ones.
class Slots {
   public:
    Slots(IntervalView positions, std::span<const int64_t> pointer, const Survey &found) : min_(found.min) {
        size_ = found.max - found.min + 1;
        if (size_ <= 8 * found.count + 1024) return;
        distinct_.reserve(static_cast<size_t>(found.count));
        each_pointer(positions, pointer, [&](int64_t, int64_t v) { distinct_.push_back(v); });
        radix_sort(distinct_, found.min, found.max);
        distinct_.erase(std::unique(distinct_.begin(), distinct_.end()), distinct_.end());
        size_ = static_cast<int64_t>(distinct_.size());
    }
    int64_t size() const { return size_; }
    int64_t at(int64_t value) const { return distinct_.empty() ? value - min_ : rank(value); }

    // Calls visit(first, end) with the slots of each interval of values, where there are any.
    template <class Visit>
    void each(IntervalView values, Visit visit) const {
        for (const Interval &run : values) {
            const int64_t first = distinct_.empty() ? std::max<int64_t>(run.lo - min_, 0) : rank(run.lo);
            const int64_t end = distinct_.empty() ? std::min(run.hi - min_, size_) : rank(run.hi);
            if (first < end) visit(first, end);
        }
    }

   private:
    int64_t rank(int64_t value) const {
        return std::lower_bound(distinct_.begin(), distinct_.end(), value) - distinct_.begin();
    }
    int64_t min_, size_;
    std::vector<int64_t> distinct_;
};

// Preimage of disjoint pieces: every point of the source gets the color of what it points to.
Pieces preimage_disjoint(std::span<const Space> pieces, std::span<const int64_t> pointer, const Space &source,
                         const Slots &slots) {
    std::vector<int32_t> owner(static_cast<size_t>(slots.size()), -1);
    parallel_for(pieces.size(), slots.size(), [&](size_t c) {
        slots.each(pieces[c]->intervals(), [&](int64_t first, int64_t end) {
            std::fill(owner.begin() + first, owner.begin() + end, static_cast<int32_t>(c));
        });
    });
    const int64_t n = source->volume();
    const auto color = std::make_unique_for_overwrite<int32_t[]>(static_cast<size_t>(n));
    const auto threads = static_cast<int64_t>(threads_for(n));
    parallel_for(static_cast<size_t>(threads), n, [&](size_t t) {
        const auto part = static_cast<int64_t>(t);
        const int64_t from = n / threads * part, to = part + 1 == threads ? n : n / threads * (part + 1);
        each_stretch(*source, from, to, [&](Interval ranks, int64_t shift) {
            for (int64_t r = ranks.lo; r < ranks.hi; ++r) {
                const int64_t v = pointer[static_cast<size_t>(r + shift)];
                color[static_cast<size_t>(r)] = v < 0 ? -1 : owner[static_cast<size_t>(slots.at(v))];
            }
        });
    });
    return bucket(source, color.get(), static_cast<int64_t>(pieces.size()));
}

// The colors of the pieces that hold each slot.
class Holders {
   public:
    Holders(std::span<const Space> pieces, const Slots &slots) : start_(static_cast<size_t>(slots.size()) + 2) {
        // Counted one slot late, so that filling leaves every start in its place.
        const auto each = [&](auto visit) {
            for (size_t c = 0; c < pieces.size(); ++c)
                slots.each(pieces[c]->intervals(), [&](int64_t first, int64_t end) {
                    for (int64_t slot = first; slot < end; ++slot) visit(c, static_cast<size_t>(slot));
                });
        };
        each([&](size_t, size_t slot) { ++start_[slot + 2]; });
        for (size_t i = 1; i < start_.size(); ++i) start_[i] += start_[i - 1];
        color_.resize(static_cast<size_t>(start_.back()));
        each([&](size_t c, size_t slot) { color_[static_cast<size_t>(start_[slot + 1]++)] = static_cast<int32_t>(c); });
    }
    // Calls visit(position, color) for every holder of every pointed-to value, in the order of the positions. In blocks:
    // the tables are larger than the caches, so their lines are asked for well before the branches that depend on them.
    template <class Visit>
    void each(IntervalView positions, std::span<const int64_t> pointer, const Slots &slots, Visit visit) const {
        constexpr size_t kBlock = 128;
        int64_t position[kBlock];
        size_t slot[kBlock], first[kBlock], last[kBlock], n = 0;
        const auto flush = [&] {
            for (size_t i = 0; i < n; ++i) {
                first[i] = static_cast<size_t>(start_[slot[i]]);
                last[i] = static_cast<size_t>(start_[slot[i] + 1]);
            }
            for (size_t i = 0; i < n; ++i) __builtin_prefetch(color_.data() + first[i]);
            for (size_t i = 0; i < n; ++i)
                for (size_t at = first[i]; at < last[i]; ++at) visit(position[i], static_cast<size_t>(color_[at]));
            n = 0;
        };
        each_pointer(positions, pointer, [&](int64_t l, int64_t v) {
            position[n] = l;
            slot[n] = static_cast<size_t>(slots.at(v));
            if (++n == kBlock) flush();
        });
        flush();
    }

   private:
    std::vector<int64_t> start_;
    std::vector<int32_t> color_;
};

// Preimage in general: the points of the source in order, each appended to the list of every color that it reaches.
// Counted first, so that the lists are written once and in place.
Pieces preimage_aliased(std::span<const Space> pieces, std::span<const int64_t> pointer, const Space &source,
                        const Slots &slots) {
    const Holders holders(pieces, slots);
    std::vector<int64_t> end(pieces.size(), -1), runs(pieces.size(), 0);   // of the last interval; intervals so far
    const auto each = [&](auto visit) {
        holders.each(source->intervals(), pointer, slots, [&](int64_t l, size_t c) {
            const bool fresh = end[c] != l;
            end[c] = l + 1;
            runs[c] += fresh;
            visit(c, l, fresh);
        });
    };
    each([](size_t, int64_t, bool) {});
    std::vector<IntervalList> lists(pieces.size());
    for (size_t c = 0; c < lists.size(); ++c) lists[c].resize(static_cast<size_t>(runs[c]));
    std::ranges::fill(end, -1);
    std::ranges::fill(runs, 0);
    each([&](size_t c, int64_t l, bool fresh) {
        Interval &run = lists[c][static_cast<size_t>(runs[c] - 1)];
        run.lo = fresh ? l : run.lo;
        run.hi = l + 1;
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
    if (pieces.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
        throw std::length_error("too many colors");
    const Slots slots(source->intervals(), pointer, found);
    return coverage(pieces).disjoint ? preimage_disjoint(pieces, pointer, source, slots)
                                     : preimage_aliased(pieces, pointer, source, slots);
}

}  // namespace burnish::runtime
