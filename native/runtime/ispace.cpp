#include "runtime/ispace.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/intervals.hpp"

namespace burnish::runtime {

namespace {

constexpr int64_t kMaxVolume = int64_t{1} << 62;

Rect normalized(Rect r) {
    for (int d = r.dim; d < kMaxDim; ++d) {
        r.lo[d] = 0;
        r.hi[d] = 1;
    }
    return r;
}

Coord strides(const Rect &root) {
    Coord stride{};
    int64_t step = 1;
    for (int d = root.dim - 1; d >= 0; --d) {
        stride[d] = step;
        step *= root.hi[d] - root.lo[d];
    }
    return stride;
}

Coord coordinates(const Rect &root, int64_t linear) {
    Coord x{};
    for (int d = root.dim - 1; d > 0; --d) {
        const int64_t extent = root.hi[d] - root.lo[d];
        x[d] = root.lo[d] + linear % extent;
        linear /= extent;
    }
    x[0] = root.lo[0] + linear;
    return x;
}

bool overlap(const Rect &a, const Rect &b) {
    for (int d = 0; d < a.dim; ++d)
        if (a.hi[d] <= b.lo[d] || b.hi[d] <= a.lo[d]) return false;
    return true;
}

bool inside(const Rect &outer, const Rect &r) {
    for (int d = 0; d < r.dim; ++d)
        if (r.lo[d] < outer.lo[d] || outer.hi[d] < r.hi[d]) return false;
    return true;
}

Rect clip(const Rect &a, const Rect &b) {
    Rect r = a;
    for (int d = 0; d < a.dim; ++d) {
        r.lo[d] = std::max(a.lo[d], b.lo[d]);
        r.hi[d] = std::min(a.hi[d], b.hi[d]);
    }
    return r;
}

// The last dimension in which the rectangle does not span the root: below it, positions are contiguous.
int split_dim(const Rect &root, const Rect &r) {
    int d = root.dim - 1;
    while (d > 0 && r.lo[d] == root.lo[d] && r.hi[d] == root.hi[d]) --d;
    return d;
}

// The bounding box of sorted intervals.
Rect bounding_box(const Rect &root, IntervalView runs) {
    const int last = root.dim - 1;
    const int64_t width = root.hi[last] - root.lo[last];
    Rect box = root;   // inclusive until the end
    box.lo = box.hi = coordinates(root, runs.front().lo);
    int64_t row = 0, row_end = 0;   // linear positions of the current row; most runs stay inside it
    for (const Interval &run : runs) {
        if (run.lo >= row_end || run.hi > row_end) {
            const Coord first = coordinates(root, run.lo), final = coordinates(root, run.hi - 1);
            bool crossed = false;   // a run that crosses a row boundary touches both ends of every dimension below
            for (int d = 0; d < root.dim; ++d) {
                box.lo[d] = std::min(box.lo[d], crossed ? root.lo[d] : first[d]);
                box.hi[d] = std::max(box.hi[d], crossed ? root.hi[d] - 1 : final[d]);
                crossed = crossed || first[d] != final[d];
            }
            row = run.hi - 1 - (final[last] - root.lo[last]);
            row_end = row + width;
        } else {
            box.lo[last] = std::min(box.lo[last], root.lo[last] + (run.lo - row));
            box.hi[last] = std::max(box.hi[last], root.lo[last] + (run.hi - 1 - row));
        }
    }
    for (int d = 0; d < root.dim; ++d) ++box.hi[d];
    return normalized(box);
}

// The union of two rectangles if that is a rectangle.
std::optional<Rect> joined(const Rect &a, const Rect &b) {
    int differing = -1;
    for (int d = 0; d < a.dim; ++d) {
        if (a.lo[d] == b.lo[d] && a.hi[d] == b.hi[d]) continue;
        if (differing >= 0) return std::nullopt;
        differing = d;
    }
    if (differing < 0) return a;
    const int d = differing;
    if (a.hi[d] < b.lo[d] || b.hi[d] < a.lo[d]) return std::nullopt;
    Rect r = a;
    r.lo[d] = std::min(a.lo[d], b.lo[d]);
    r.hi[d] = std::max(a.hi[d], b.hi[d]);
    return r;
}

// a minus an overlapping b if that is a nonempty rectangle.
std::optional<Rect> trimmed(const Rect &a, const Rect &b) {
    int cut = -1;
    for (int d = 0; d < a.dim; ++d) {
        if (b.lo[d] <= a.lo[d] && a.hi[d] <= b.hi[d]) continue;
        if (cut >= 0) return std::nullopt;
        cut = d;
    }
    if (cut < 0) return std::nullopt;
    const int d = cut;
    Rect r = a;
    if (b.lo[d] <= a.lo[d]) {
        r.lo[d] = b.hi[d];
    } else if (a.hi[d] <= b.hi[d]) {
        r.hi[d] = b.lo[d];
    } else {
        return std::nullopt;
    }
    return r;
}

// Publishes a lazily computed value; of several threads the first wins.
template <class T, class Make>
const T &published(std::atomic<const T *> &slot, Make make) {
    if (const T *known = slot.load(std::memory_order_acquire)) return *known;
    auto mine = std::make_unique<const T>(make());
    const T *expected = nullptr;
    if (slot.compare_exchange_strong(expected, mine.get(), std::memory_order_acq_rel)) return *mine.release();
    return *expected;
}

}  // namespace

int64_t Rect::volume() const {
    for (int d = 0; d < dim; ++d)
        if (hi[d] <= lo[d]) return 0;
    int64_t v = 1;
    for (int d = 0; d < dim; ++d) {
        int64_t extent;
        if (__builtin_sub_overflow(hi[d], lo[d], &extent) || __builtin_mul_overflow(v, extent, &v) || v > kMaxVolume)
            throw std::length_error("an index space has at most 2^62 points");
    }
    return v;
}

// ---- construction ----

void append_rows(const Rect &root, const Rect &r, IntervalList &out) {
    const Coord stride = strides(root);
    const int k = split_dim(root, r);
    int64_t count = 1;
    for (int d = 0; d < k; ++d) count *= r.hi[d] - r.lo[d];
    const int64_t length = (r.hi[k] - r.lo[k]) * stride[k];
    int64_t at = 0;
    for (int d = 0; d <= k; ++d) at += (r.lo[d] - root.lo[d]) * stride[d];
    Coord x = r.lo;
    for (int64_t i = 0; i < count; ++i) {
        out.push_back({at, at + length});
        for (int d = k - 1; d >= 0; --d) {   // odometer
            at += stride[d];
            if (++x[d] < r.hi[d]) break;
            at -= (r.hi[d] - r.lo[d]) * stride[d];
            x[d] = r.lo[d];
        }
    }
}

struct IndexSpaceAccess {
    static std::shared_ptr<IndexSpace> make(const Rect &root) {
        struct Made : IndexSpace {};   // opens the private constructor to make_shared
        auto space = std::make_shared<Made>();
        space->root_ = normalized(root);
        return space;
    }

    static const std::vector<int64_t> &ranks_before(const IndexSpace &space) { return space.ranks_before(); }

    static Space dense(const Rect &root, const Rect &clipped) {
        auto space = make(root);
        space->volume_ = clipped.volume();
        space->bounds_ = normalized(clipped);
        if (space->volume_ == 0) {
            space->bounds_.lo = space->bounds_.hi = space->root_.lo;
            space->bounds_ = normalized(space->bounds_);
            return space;
        }
        const Coord stride = strides(root);
        const int k = split_dim(root, clipped);
        for (int d = 0; d < k; ++d) space->one_run_ = space->one_run_ && clipped.hi[d] - clipped.lo[d] == 1;
        if (space->one_run_) {
            for (int d = 0; d <= k; ++d) space->run_.lo += (clipped.lo[d] - root.lo[d]) * stride[d];
            space->run_.hi = space->run_.lo + space->volume_;
        }
        return space;
    }

    static Space canonical(const Rect &root, IntervalList runs) {
        if (runs.empty()) return IndexSpace::empty(root);
        const Rect box = bounding_box(root, runs);
        int64_t volume = 0;
        for (const Interval &run : runs) volume += run.hi - run.lo;
        if (box.volume() == volume) return dense(root, box);
        auto space = make(root);
        space->bounds_ = box;
        space->dense_ = space->one_run_ = false;
        space->volume_ = volume;
        space->sparse_ = std::move(runs);
        return space;
    }
};

Space space_of(const Rect &root, IntervalList runs) { return IndexSpaceAccess::canonical(root, std::move(runs)); }

Space IndexSpace::rect(const Rect &root, const Rect &r) {
    if (root.dim < 1 || root.dim > kMaxDim || r.dim != root.dim)
        throw std::invalid_argument("a rectangle has 1 to 4 dimensions, as many as its root");
    return IndexSpaceAccess::dense(root, clip(r, root));
}

Space IndexSpace::empty(const Rect &root) {
    Rect none = root;
    none.hi = none.lo;
    return rect(root, none);
}

Space IndexSpace::sparse(const Rect &root, std::vector<Interval> intervals) {
    int64_t end = -1;   // the first interval may start at 0, later ones not where the previous one ends
    for (const Interval &run : intervals) {
        if (run.lo <= end || run.hi <= run.lo)
            throw std::invalid_argument("intervals must be nonempty, ascending, disjoint and nonadjacent");
        end = run.hi;
    }
    if (end > root.volume()) throw std::out_of_range("interval ends at " + std::to_string(end) + ", outside the root");
    return space_of(root, std::move(intervals));
}

Space IndexSpace::points(const Rect &root, std::vector<int64_t> linear) {
    if (linear.empty()) return empty(root);
    const auto [min, max] = std::minmax_element(linear.begin(), linear.end());
    const int64_t lo = *min, hi = *max;
    if (lo < 0 || hi >= root.volume())
        throw std::out_of_range("point " + std::to_string(lo < 0 ? lo : hi) + " is outside the root");
    return space_of(root, intervals_of(linear, lo, hi));
}

IndexSpace::~IndexSpace() {
    delete rows_.load();
    delete ranks_.load();
}

// ---- queries on one space ----

std::span<const Interval> IndexSpace::intervals() const {
    if (!dense_) return sparse_;
    if (volume_ == 0) return {};
    if (one_run_) return {&run_, 1};
    return published(rows_, [this] {
        IntervalList rows;
        append_rows(root_, bounds_, rows);
        return rows;
    });
}

const std::vector<int64_t> &IndexSpace::ranks_before() const {
    return published(ranks_, [this] {
        std::vector<int64_t> before(sparse_.size());
        int64_t sum = 0;
        for (size_t i = 0; i < before.size(); ++i) {
            before[i] = sum;
            sum += sparse_[i].hi - sparse_[i].lo;
        }
        return before;
    });
}

int64_t IndexSpace::rank(int64_t linear) const {
    if (volume_ == 0 || linear < 0 || linear >= root_.volume()) return -1;
    if (one_run_) return run_.lo <= linear && linear < run_.hi ? linear - run_.lo : -1;
    if (dense_) {
        const Coord x = coordinates(root_, linear);
        int64_t at = 0;
        for (int d = 0; d < root_.dim; ++d) {
            if (x[d] < bounds_.lo[d] || x[d] >= bounds_.hi[d]) return -1;
            at = at * (bounds_.hi[d] - bounds_.lo[d]) + (x[d] - bounds_.lo[d]);
        }
        return at;
    }
    const auto after = std::upper_bound(sparse_.begin(), sparse_.end(), linear,
                                        [](int64_t x, const Interval &run) { return x < run.hi; });
    if (after == sparse_.end() || linear < after->lo) return -1;
    return ranks_before()[static_cast<size_t>(after - sparse_.begin())] + (linear - after->lo);
}

bool IndexSpace::contains(int64_t linear) const {
    if (dense_) return rank(linear) >= 0;
    const auto after = std::upper_bound(sparse_.begin(), sparse_.end(), linear,
                                        [](int64_t x, const Interval &run) { return x < run.hi; });
    return after != sparse_.end() && after->lo <= linear;
}

std::vector<int64_t> IndexSpace::linear_points() const {
    std::vector<int64_t> out;
    out.reserve(static_cast<size_t>(volume_));
    for (const Interval &run : intervals())
        for (int64_t x = run.lo; x < run.hi; ++x) out.push_back(x);
    return out;
}

// ---- algebra: rectangles where both sides are dense, else merges of interval lists ----

bool intersects(const IndexSpace &a, const IndexSpace &b) {
    if (a.is_empty() || b.is_empty() || !overlap(a.bounds(), b.bounds())) return false;
    if (a.dense() && b.dense()) return true;
    if (a.dense() && inside(a.bounds(), b.bounds())) return true;
    if (b.dense() && inside(b.bounds(), a.bounds())) return true;
    return intersects(a.intervals(), b.intervals());
}

bool covers(const IndexSpace &a, const IndexSpace &b) {
    if (b.is_empty()) return true;
    if (b.volume() > a.volume() || !inside(a.bounds(), b.bounds())) return false;
    return a.dense() || covers(a.intervals(), b.intervals());
}

bool equal(const IndexSpace &a, const IndexSpace &b) {
    // One representation per set: a sparse space is never a rectangle.
    if (a.dense() != b.dense() || a.volume() != b.volume() || !(a.bounds() == b.bounds())) return false;
    return a.dense() || std::ranges::equal(a.intervals(), b.intervals());
}

int64_t overlap_volume(const IndexSpace &a, const IndexSpace &b) {
    if (a.is_empty() || b.is_empty() || !overlap(a.bounds(), b.bounds())) return 0;
    if (a.dense() && b.dense()) return clip(a.bounds(), b.bounds()).volume();
    if (a.dense() && inside(a.bounds(), b.bounds())) return b.volume();
    if (b.dense() && inside(b.bounds(), a.bounds())) return a.volume();
    return overlap_volume(a.intervals(), b.intervals());
}

Space intersection(const Space &a, const Space &b) {
    if (a == b) return a;
    if (a->is_empty() || b->is_empty() || !overlap(a->bounds(), b->bounds())) return IndexSpace::empty(a->root());
    if (a->dense() && inside(a->bounds(), b->bounds())) return b;
    if (b->dense() && inside(b->bounds(), a->bounds())) return a;
    if (a->dense() && b->dense()) return IndexSpaceAccess::dense(a->root(), clip(a->bounds(), b->bounds()));
    return space_of(a->root(), intersection(a->intervals(), b->intervals()));
}

Space difference(const Space &a, const Space &b) {
    if (a->is_empty() || b->is_empty() || !overlap(a->bounds(), b->bounds())) return a;
    if (a == b || (b->dense() && inside(b->bounds(), a->bounds()))) return IndexSpace::empty(a->root());
    if (a->dense() && b->dense())
        if (const auto rest = trimmed(a->bounds(), b->bounds())) return IndexSpaceAccess::dense(a->root(), *rest);
    return space_of(a->root(), difference(a->intervals(), b->intervals()));
}

Space unite(const Space &a, const Space &b) {
    if (a == b || b->is_empty() || (a->dense() && inside(a->bounds(), b->bounds()))) return a;
    if (a->is_empty() || (b->dense() && inside(b->bounds(), a->bounds()))) return b;
    if (a->dense() && b->dense())
        if (const auto both = joined(a->bounds(), b->bounds())) return IndexSpaceAccess::dense(a->root(), *both);
    return space_of(a->root(), unite(a->intervals(), b->intervals()));
}

Space unite_all(const Rect &root, std::span<const Space> spaces) {
    std::vector<IntervalView> lists;
    const Space *only = nullptr;
    for (const Space &space : spaces) {
        if (space->is_empty()) continue;
        if (space->volume() == root.volume()) return space;
        only = &space;
        lists.push_back(space->intervals());
    }
    if (lists.empty()) return IndexSpace::empty(root);
    if (lists.size() == 1) return *only;
    return space_of(root, unite_all(std::move(lists)));
}

std::vector<Run> runs(const IndexSpace &whole, const IndexSpace &part) {
    if (!covers(whole, part)) throw std::invalid_argument("runs: the part is not a subset of the whole");
    std::vector<Run> out;
    const IntervalView mine = part.intervals();
    out.reserve(mine.size());
    if (whole.dense()) {
        for (const Interval &run : mine) out.push_back({whole.rank(run.lo), run.lo, run.hi - run.lo});
        return out;
    }
    // Intervals are maximal, so each one of the part lies in exactly one of the whole.
    const IntervalView all = whole.intervals();
    const std::vector<int64_t> &before = IndexSpaceAccess::ranks_before(whole);
    size_t i = 0;
    for (const Interval &run : mine) {
        i = skip_to(all, i, run.lo);
        out.push_back({before[i] + (run.lo - all[i].lo), run.lo, run.hi - run.lo});
    }
    return out;
}

}  // namespace burnish::runtime
