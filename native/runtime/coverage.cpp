// Are the pieces of a partition disjoint, and do they cover the parent? Always computed from the points.
#include "runtime/coverage.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "runtime/intervals.hpp"

namespace burnish::runtime {

namespace {

// Number of cells of the grid spanned by all rectangle faces, and their positions per dimension.
struct Grid {
    std::vector<std::vector<int64_t>> cuts;   // ascending, distinct
    int64_t cells = 1;                        // saturates
};

Grid grid_of(int dim, std::span<const Space> spaces) {
    Grid grid;
    grid.cuts.resize(static_cast<size_t>(dim));
    for (int d = 0; d < dim; ++d) {
        auto &cuts = grid.cuts[static_cast<size_t>(d)];
        for (const Space &space : spaces) {
            if (space->is_empty()) continue;
            cuts.push_back(space->bounds().lo[d]);
            cuts.push_back(space->bounds().hi[d]);
        }
        std::ranges::sort(cuts);
        const auto repeated = std::ranges::unique(cuts);
        cuts.erase(repeated.begin(), repeated.end());
        if (__builtin_mul_overflow(grid.cells, static_cast<int64_t>(cuts.size()), &grid.cells))
            grid.cells = std::numeric_limits<int64_t>::max();
    }
    return grid;
}

int64_t row_count(const IndexSpace &space) {
    if (!space.dense()) return static_cast<int64_t>(space.intervals().size());
    const Rect &r = space.bounds();
    const Rect &root = space.root();
    int d = r.dim - 1;
    while (d > 0 && r.lo[d] == root.lo[d] && r.hi[d] == root.hi[d]) --d;
    int64_t rows = 1;
    for (int i = 0; i < d; ++i) rows *= r.hi[i] - r.lo[i];
    return rows;
}

// How many rectangles cover each grid cell: +-1 at the corners, then a running sum along each dimension.
Coverage grid_coverage(int dim, const Grid &grid, std::span<const Space> spaces) {
    std::array<size_t, kMaxDim> step{};
    size_t size = 1;
    for (int d = dim - 1; d >= 0; --d) {
        step[d] = size;
        size *= grid.cuts[static_cast<size_t>(d)].size();
    }
    std::vector<int32_t> count(size);
    for (const Space &space : spaces) {
        if (space->is_empty()) continue;
        std::array<std::array<size_t, 2>, kMaxDim> face{};
        for (int d = 0; d < dim; ++d) {
            const auto &cuts = grid.cuts[static_cast<size_t>(d)];
            const auto at = [&](int64_t x) {
                return static_cast<size_t>(std::ranges::lower_bound(cuts, x) - cuts.begin()) * step[d];
            };
            face[d] = {at(space->bounds().lo[d]), at(space->bounds().hi[d])};
        }
        for (unsigned corner = 0; corner < 1u << dim; ++corner) {
            size_t at = 0;
            int sign = 1;
            for (int d = 0; d < dim; ++d) {
                const unsigned upper = corner >> d & 1;
                at += face[d][upper];
                if (upper) sign = -sign;
            }
            count[at] += sign;
        }
    }
    for (int d = 0; d < dim; ++d) {
        const size_t extent = grid.cuts[static_cast<size_t>(d)].size();
        for (size_t i = 0; i < size; ++i)
            if (i / step[d] % extent) count[i] += count[i - step[d]];
    }
    Coverage result;
    for (size_t i = 0; i < size; ++i) {
        if (count[i] == 0) continue;   // among them all cells past the last cut of a dimension
        result.disjoint = result.disjoint && count[i] == 1;
        int64_t volume = 1;
        for (int d = 0; d < dim; ++d) {
            const auto &cuts = grid.cuts[static_cast<size_t>(d)];
            const size_t at = i / step[d] % cuts.size();
            volume *= cuts[at + 1] - cuts[at];
        }
        result.volume += volume;
    }
    return result;
}

// Whether the hulls of the spaces, as linear positions, are apart: the common case of contiguous pieces.
bool hulls_apart(std::span<const Space> spaces) {
    IntervalList hulls;
    for (const Space &space : spaces)
        if (!space->is_empty()) hulls.push_back({space->intervals().front().lo, space->intervals().back().hi});
    std::ranges::sort(hulls, {}, &Interval::lo);
    for (size_t i = 1; i < hulls.size(); ++i)
        if (hulls[i].lo < hulls[i - 1].hi) return false;
    return true;
}

Coverage interval_coverage(std::span<const Space> spaces, int64_t rows) {
    int64_t lo = std::numeric_limits<int64_t>::max(), hi = 0;
    for (const Space &space : spaces) {
        if (space->is_empty()) continue;
        lo = std::min(lo, space->intervals().front().lo);
        hi = std::max(hi, space->intervals().back().hi);
    }
    Coverage result;
    if (hi <= lo) return result;
    if (hulls_apart(spaces)) {
        for (const Space &space : spaces) result.volume += space->volume();
        return result;
    }
    if (bitmap_pays(hi - lo, rows)) {
        Bitmap seen(lo, hi - lo);
        for (const Space &space : spaces) {
            if (space->is_empty()) continue;
            int64_t fresh = 0;
            for (const Interval &run : space->intervals()) fresh += seen.add(run);
            result.disjoint = result.disjoint && fresh == space->volume();
            result.volume += fresh;
        }
        return result;
    }
    IntervalList all;
    all.reserve(static_cast<size_t>(rows));
    for (const Space &space : spaces) all.insert(all.end(), space->intervals().begin(), space->intervals().end());
    std::ranges::sort(all, {}, &Interval::lo);
    int64_t reached = lo;
    for (const Interval &run : all) {
        result.disjoint = result.disjoint && run.lo >= reached;
        result.volume += std::max<int64_t>(0, run.hi - std::max(run.lo, reached));
        reached = std::max(reached, run.hi);
    }
    return result;
}

}  // namespace

Coverage coverage(std::span<const Space> spaces) {
    if (spaces.empty()) return {};
    const int dim = spaces[0]->root().dim;
    int64_t rows = 0;
    bool all_dense = true;
    for (const Space &space : spaces) {
        rows += row_count(*space);
        all_dense = all_dense && space->dense();
    }
    if (all_dense && dim > 1) {
        const Grid grid = grid_of(dim, spaces);
        if (grid.cells <= std::max<int64_t>(1 << 12, 4 * rows)) return grid_coverage(dim, grid, spaces);
    }
    return interval_coverage(spaces, rows);
}

}  // namespace burnish::runtime
