// Partitions by geometry: block, restrict, ghost, by_spaces. Those by data (by_color, image, preimage) are in
// partitions_data.cpp.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "runtime/coverage.hpp"
#include "runtime/intervals.hpp"
#include "runtime/ispace.hpp"

namespace burnish::runtime {

namespace {

Pieces classified(const Space &parent, std::vector<Space> spaces) {
    const Coverage found = coverage(spaces);
    return {std::move(spaces), found.disjoint, found.volume == parent->volume()};
}

int64_t color_count(std::span<const int64_t> colors) {
    int64_t n = 1;
    for (const int64_t k : colors) {
        if (k < 0) throw std::invalid_argument("a number of colors is negative");
        if (__builtin_mul_overflow(n, k, &n)) throw std::length_error("too many colors");
    }
    return n;
}

// Calls visit(color) for each color in row-major order.
template <class Visit>
void each_color(std::span<const int64_t> colors, Visit visit) {
    std::vector<int64_t> color(colors.size(), 0);
    for (int64_t left = color_count(colors); left > 0; --left) {
        visit(std::span<const int64_t>(color));
        for (size_t d = colors.size(); d-- > 0;) {
            if (++color[d] < colors[d]) break;
            color[d] = 0;
        }
    }
}

// c * n / k without overflow.
int64_t share(int64_t c, int64_t n, int64_t k) {
    return static_cast<int64_t>(static_cast<__int128>(c) * n / k);
}

// The points of ranks [lo, hi) of a sparse space.
Space by_rank(const IndexSpace &parent, size_t &i, int64_t &before, int64_t lo, int64_t hi) {
    const IntervalView all = parent.intervals();
    IntervalList out;
    while (lo < hi) {
        const int64_t length = all[i].hi - all[i].lo;
        const int64_t take = std::min(hi, before + length);
        out.push_back({all[i].lo + (lo - before), all[i].lo + (take - before)});
        lo = take;
        if (take == before + length) {
            before += length;
            ++i;
        }
    }
    return space_of(parent.root(), std::move(out));
}

// [lo, hi) clipped to [from, to), or taken modulo that range: at most two intervals.
std::vector<Interval> grown(int64_t lo, int64_t hi, int64_t width, int64_t from, int64_t to, bool wrap) {
    const int64_t extent = to - from;
    width = std::min(width, extent);
    lo -= width;
    hi += width;
    if (!wrap) return {{std::max(lo, from), std::min(hi, to)}};
    if (hi - lo >= extent) return {{from, to}};
    std::vector<Interval> out;
    if (lo < from) {
        out.push_back({lo + extent, to});
        lo = from;
    }
    if (hi > to) {
        out.push_back({from, hi - extent});
        hi = to;
    }
    out.push_back({lo, hi});
    return out;
}

// The rectangles that make up an interval of linear positions, largest pieces first split off at the outer dimensions.
template <class Visit>
void each_box(const Rect &root, Interval run, Visit visit) {
    while (run.lo < run.hi) {
        int64_t stride = 1;   // grow the slab while the run covers whole ones
        int d = root.dim - 1;
        while (d > 0) {
            const int64_t slab = stride * (root.hi[d] - root.lo[d]);
            if (run.lo % slab != 0 || run.hi - run.lo < slab) break;
            stride = slab;
            --d;
        }
        int64_t row = run.lo / stride;   // position in units of `stride`; dimension d varies
        const int64_t extent = root.hi[d] - root.lo[d];
        const int64_t first = d > 0 ? row % extent : row;
        const int64_t last = std::min(first + (run.hi - run.lo) / stride, extent);
        Rect box = root;
        box.lo[d] = root.lo[d] + first;
        box.hi[d] = root.lo[d] + last;
        row /= extent;
        for (int outer = d - 1; outer >= 0; --outer) {
            const int64_t n = root.hi[outer] - root.lo[outer];
            box.lo[outer] = root.lo[outer] + row % n;
            box.hi[outer] = box.lo[outer] + 1;
            row /= n;
        }
        visit(box);
        run.lo += (last - first) * stride;
    }
}

Space halo(const Space &parent, const Space &piece, std::span<const int64_t> width, bool wrap) {
    const Rect &root = parent->root();
    const Rect &within = parent->bounds();
    if (piece->is_empty()) return piece;
    IntervalList rows;
    const auto grow = [&](const Rect &box) {
        std::array<std::vector<Interval>, kMaxDim> spans;
        size_t combinations = 1;
        for (int d = 0; d < root.dim; ++d) {
            spans[d] = grown(box.lo[d], box.hi[d], width[static_cast<size_t>(d)], within.lo[d], within.hi[d], wrap);
            combinations *= spans[d].size();
        }
        for (size_t c = 0; c < combinations; ++c) {
            Rect r = box;
            size_t rest = c;
            for (int d = 0; d < root.dim; ++d) {
                const Interval &span = spans[d][rest % spans[d].size()];
                rest /= spans[d].size();
                r.lo[d] = span.lo;
                r.hi[d] = span.hi;
            }
            append_rows(root, r, rows);
        }
    };
    if (piece->dense()) {
        grow(piece->bounds());
    } else {
        for (const Interval &run : piece->intervals()) each_box(root, run, grow);
    }
    return intersection(space_of(root, sorted(std::move(rows))), parent);
}

}  // namespace

Pieces by_spaces(const Space &parent, std::vector<Space> spaces) {
    for (size_t c = 0; c < spaces.size(); ++c)
        if (!covers(*parent, *spaces[c]))
            throw std::out_of_range("the set of color " + std::to_string(c) + " is not inside the parent");
    return classified(parent, std::move(spaces));
}

Pieces block(const Space &parent, std::span<const int64_t> colors) {
    const Rect &root = parent->root();
    std::vector<Space> spaces;
    if (parent->dense()) {
        if (colors.empty() || colors.size() > static_cast<size_t>(root.dim))
            throw std::invalid_argument("block takes 1 to as many color dimensions as the region has");
        const Rect &all = parent->bounds();
        each_color(colors, [&](std::span<const int64_t> color) {
            Rect r = all;
            for (size_t d = 0; d < color.size(); ++d) {
                const int64_t n = all.hi[d] - all.lo[d];
                r.lo[d] = all.lo[d] + share(color[d], n, colors[d]);
                r.hi[d] = all.lo[d] + share(color[d] + 1, n, colors[d]);
            }
            spaces.push_back(IndexSpace::rect(root, r));
        });
    } else {
        if (colors.size() != 1) throw std::invalid_argument("block of a sparse region takes one color dimension");
        size_t i = 0;
        int64_t before = 0;
        each_color(colors, [&](std::span<const int64_t> color) {
            spaces.push_back(by_rank(*parent, i, before, share(color[0], parent->volume(), colors[0]),
                                     share(color[0] + 1, parent->volume(), colors[0])));
        });
    }
    return classified(parent, std::move(spaces));
}

Pieces restrict(const Space &parent, std::span<const int64_t> colors, std::span<const int64_t> transform,
                std::span<const int64_t> extent, std::span<const int64_t> offset) {
    const Rect &root = parent->root();
    const auto dim = static_cast<size_t>(root.dim);
    if (transform.size() != dim * colors.size() || extent.size() != dim || offset.size() != dim)
        throw std::invalid_argument("restrict takes a transform of dim x color dim, an extent and an offset of dim");
    std::vector<Space> spaces;
    each_color(colors, [&](std::span<const int64_t> color) {
        Rect r = root;
        for (size_t d = 0; d < dim; ++d) {
            int64_t lo = offset[d];
            for (size_t k = 0; k < color.size(); ++k) lo += transform[d * color.size() + k] * color[k];
            r.lo[d] = lo;
            r.hi[d] = lo + extent[d];
        }
        spaces.push_back(intersection(IndexSpace::rect(root, r), parent));
    });
    return classified(parent, std::move(spaces));
}

Pieces ghost(const Space &parent, std::span<const Space> pieces, std::span<const int64_t> width, bool wrap,
             bool include_self) {
    if (width.size() != static_cast<size_t>(parent->root().dim) || std::ranges::any_of(width, [](int64_t w) { return w < 0; }))
        throw std::invalid_argument("ghost takes one width >= 0 per dimension");
    std::vector<Space> spaces;
    spaces.reserve(pieces.size());
    for (const Space &piece : pieces) {
        const Space around = halo(parent, piece, width, wrap);
        spaces.push_back(include_self ? around : difference(around, piece));
    }
    return classified(parent, std::move(spaces));
}

}  // namespace burnish::runtime
