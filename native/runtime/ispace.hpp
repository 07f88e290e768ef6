// Index spaces: finite sets of integer points of a root rectangle, as a rectangle or as sorted disjoint intervals
// of the row-major linearization of the root's bounds; and the algebra on them. Immutable once built.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace burnish::runtime {

constexpr int kMaxDim = 4;
using Coord = std::array<int64_t, kMaxDim>;

// Half open per dimension: lo[d] <= x < hi[d]; empty if any hi <= lo. Unused dimensions are [0, 1).
struct Rect {
    int dim = 1;
    Coord lo{}, hi{};
    int64_t volume() const;   // 0 if empty; throws std::length_error beyond 2^62 points
    bool empty() const { return volume() == 0; }
    bool operator==(const Rect &) const = default;
};

// Half-open interval of linear positions.
struct Interval {
    int64_t lo, hi;
    bool operator==(const Interval &) const = default;
};

class IndexSpace;
using Space = std::shared_ptr<const IndexSpace>;

class IndexSpace {
   public:
    // `root` is the bounding rectangle that fixes the linearization; every space of one root shares it.
    static Space rect(const Rect &root, const Rect &r);                       // clipped to root
    static Space sparse(const Rect &root, std::vector<Interval> intervals);   // sorted disjoint nonadjacent; becomes a rect if it is one
    static Space points(const Rect &root, std::vector<int64_t> linear);       // any order, duplicates allowed
    static Space empty(const Rect &root);

    bool dense() const { return dense_; }
    const Rect &root() const { return root_; }
    const Rect &bounds() const { return bounds_; }      // the rectangle if dense, else the bounding box
    int64_t volume() const { return volume_; }
    bool is_empty() const { return volume_ == 0; }
    // Runs of consecutive linear positions in order (computed for dense spaces: one per row, merged where contiguous). Cached, thread-safe.
    std::span<const Interval> intervals() const;
    bool contains(int64_t linear) const;
    // Rank of a linear position among the points of this space in row-major order; -1 if absent. O(log intervals).
    int64_t rank(int64_t linear) const;
    // All linear positions in ascending order (for SparseField.index).
    std::vector<int64_t> linear_points() const;

    IndexSpace(const IndexSpace &) = delete;
    IndexSpace &operator=(const IndexSpace &) = delete;
    ~IndexSpace();

   private:
    friend struct IndexSpaceAccess;
    IndexSpace() = default;
    const std::vector<int64_t> &ranks_before() const;   // sparse: number of points before each interval

    Rect root_, bounds_;
    bool dense_ = true;
    bool one_run_ = true;              // dense and contiguous: `run_` is the only interval
    int64_t volume_ = 0;
    Interval run_{0, 0};
    std::vector<Interval> sparse_;     // sparse only
    mutable std::atomic<const std::vector<Interval> *> rows_{nullptr};   // dense of several rows, on demand
    mutable std::atomic<const std::vector<int64_t> *> ranks_{nullptr};   // sparse, on demand
};

// The operands of every operation share one root (the caller's duty; not checked on these hot paths).
bool intersects(const IndexSpace &a, const IndexSpace &b);   // rectangles: no allocation
bool covers(const IndexSpace &a, const IndexSpace &b);       // b is a subset of a
bool equal(const IndexSpace &a, const IndexSpace &b);
int64_t overlap_volume(const IndexSpace &a, const IndexSpace &b);
Space intersection(const Space &a, const Space &b);
Space difference(const Space &a, const Space &b);            // a rectangle when the result is one
Space unite(const Space &a, const Space &b);
Space unite_all(const Rect &root, std::span<const Space> spaces);   // k-way, O(total log k)

// How the points of `part` (a subset of `whole`) lie inside the packed row-major array of `whole` and in the root:
// run i copies `length` points from packed position `packed` to linear root position `linear`. Ascending.
struct Run {
    int64_t packed, linear, length;
};
std::vector<Run> runs(const IndexSpace &whole, const IndexSpace &part);

// ---- partitions: one space per color, colors in row-major order of the color space ----
struct Pieces {
    std::vector<Space> spaces;
    bool disjoint = false, complete = false;   // computed, w.r.t. the parent
};
// Upper bound on the threads that by_color, image and preimage use for large inputs; 0 = one per core of this process.
void set_build_threads(int n);
// Parent dense: [c*n/k, (c+1)*n/k) per dimension (fewer color dimensions split the leading ones); sparse: by rank, 1-D colors.
Pieces block(const Space &parent, std::span<const int64_t> colors);
// color c -> Rect(T @ c + offset, + extent) clipped to parent; transform is dim x cdim row-major.
Pieces restrict(const Space &parent, std::span<const int64_t> colors, std::span<const int64_t> transform,
                std::span<const int64_t> extent, std::span<const int64_t> offset);
// Each piece grown by width per dimension (all points within that distance of one of its points: for a rectangle, the
// grown rectangle), clipped to or wrapped around the parent's bounds; include_self=false removes the piece itself.
Pieces ghost(const Space &parent, std::span<const Space> pieces, std::span<const int64_t> width, bool wrap, bool include_self);
// `colors[i]` is the color of the parent's i-th point (rank order), -1 = none. throws std::out_of_range with the rank in the message
Pieces by_color(const Space &parent, std::span<const int64_t> colors, int64_t n_colors);
// Computes disjoint/complete; throws std::out_of_range naming the first color that is not inside the parent.
Pieces by_spaces(const Space &parent, std::vector<Space> spaces);
// pointer[l] for every linear position l of the source root; -1 ignored. throws PointerError{source position, value} for the lowest
// position whose value is outside the target's root; values inside the root but not in the target are dropped.
struct PointerError {
    int64_t position, value;
};
Pieces image(std::span<const Space> pieces, std::span<const int64_t> pointer, const Space &target);
// preimage's target is the root of the pieces; with no pieces there is none, and nothing is checked.
Pieces preimage(std::span<const Space> pieces, std::span<const int64_t> pointer, const Space &source);

}  // namespace burnish::runtime
