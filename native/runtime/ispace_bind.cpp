// burnish._native.ispace: the index-space algebra as Python objects, for tests, debugging and region algebra.
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>

#include "bind.hpp"
#include "runtime/ispace.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace burnish::runtime {

namespace {

using In = nb::ndarray<const int64_t, nb::c_contig, nb::device::cpu>;
using Ints = std::vector<int64_t>;

// nanobind holds shared_ptr<T>; spaces are immutable, so Python sees them through shared_ptr<IndexSpace>.
using PySpace = std::shared_ptr<IndexSpace>;

PySpace out(const Space &space) { return std::const_pointer_cast<IndexSpace>(space); }
Space in(const PySpace &space) { return space; }

std::span<const int64_t> view(const In &array) { return {array.data(), array.size()}; }

Rect rect_of(const Ints &lo, const Ints &hi) {
    if (lo.size() != hi.size() || lo.empty() || lo.size() > kMaxDim)
        throw std::invalid_argument("lo and hi need 1 to 4 coordinates each, as many of one as of the other");
    Rect r;
    r.dim = static_cast<int>(lo.size());
    for (size_t d = 0; d < kMaxDim; ++d) {
        r.lo[d] = d < lo.size() ? lo[d] : 0;
        r.hi[d] = d < hi.size() ? hi[d] : 1;
    }
    return r;
}

nb::tuple rect_out(const Rect &r) {
    const Ints lo(r.lo.begin(), r.lo.begin() + r.dim), hi(r.hi.begin(), r.hi.begin() + r.dim);
    return nb::make_tuple(nb::tuple(nb::cast(lo)), nb::tuple(nb::cast(hi)));
}

// An (n, columns) int64 array that owns its data.
nb::object array_out(const int64_t *data, size_t n, size_t columns) {
    auto *copy = new int64_t[n * columns + 1];
    std::copy(data, data + n * columns, copy);
    nb::capsule owner(copy, [](void *p) noexcept { delete[] static_cast<int64_t *>(p); });
    if (columns == 1) return nb::cast(nb::ndarray<nb::numpy, int64_t>(copy, {n}, owner));
    return nb::cast(nb::ndarray<nb::numpy, int64_t>(copy, {n, columns}, owner));
}

void same_root(const Space &a, const Space &b) {
    if (!(a->root() == b->root())) throw std::invalid_argument("the spaces belong to different roots");
}

std::vector<Space> in(const std::vector<PySpace> &spaces) {
    std::vector<Space> list(spaces.begin(), spaces.end());
    for (const Space &space : list) {
        if (!space) throw std::invalid_argument("a list of spaces contains None");
        same_root(list[0], space);
    }
    return list;
}

nb::tuple pieces_out(const Pieces &pieces) {
    nb::list spaces;
    for (const Space &space : pieces.spaces) spaces.append(nb::cast(out(space)));
    return nb::make_tuple(spaces, pieces.disjoint, pieces.complete);
}

template <class Build>
nb::tuple built(Build build) {
    Pieces pieces;
    try {
        nb::gil_scoped_release unlocked;
        pieces = build();
    } catch (const PointerError &error) {
        throw nb::index_error(
            ("pointer[" + std::to_string(error.position) + "] = " + std::to_string(error.value) + " is outside the target")
                .c_str());
    }
    return pieces_out(pieces);
}

Space sparse_of(const Rect &root, const In &intervals) {
    if (intervals.ndim() != 2 || intervals.shape(1) != 2) throw std::invalid_argument("intervals must have shape (n, 2)");
    std::vector<Interval> list;
    for (size_t i = 0; i < intervals.shape(0); ++i) list.push_back({intervals.data()[2 * i], intervals.data()[2 * i + 1]});
    return IndexSpace::sparse(root, std::move(list));
}

void bind_space(nb::module_ &m) {
    nb::class_<IndexSpace>(m, "Space", "An immutable set of integer points of a root rectangle.")
        .def_prop_ro("dense", &IndexSpace::dense)
        .def_prop_ro("root", [](const IndexSpace &s) { return rect_out(s.root()); })
        .def_prop_ro("bounds", [](const IndexSpace &s) { return rect_out(s.bounds()); })
        .def_prop_ro("volume", &IndexSpace::volume)
        .def("__len__", &IndexSpace::volume)
        .def("intervals",
             [](const IndexSpace &s) {
                 const auto runs = s.intervals();
                 return array_out(reinterpret_cast<const int64_t *>(runs.data()), runs.size(), 2);
             }, "Maximal runs of linear positions, int64 of shape (n, 2), half open, ascending.")
        .def("linear_points",
             [](const IndexSpace &s) {
                 const auto points = s.linear_points();
                 return array_out(points.data(), points.size(), 1);
             }, "All linear positions, ascending int64.")
        .def("__contains__", &IndexSpace::contains)
        .def("rank", &IndexSpace::rank, "linear"_a, "Rank of a linear position among the points; -1 if absent.")
        .def("__eq__", [](const IndexSpace &a, const IndexSpace &b) { return a.root() == b.root() && equal(a, b); },
             nb::is_operator())
        .def("__hash__", [](const IndexSpace &s) {
            return nb::hash(nb::make_tuple(s.volume(), rect_out(s.bounds()), rect_out(s.root())));
        })
        .def("__repr__", [](const IndexSpace &s) {
            return nb::str("Space({} points, {}, bounds={})").format(s.volume(), s.dense() ? "dense" : "sparse", rect_out(s.bounds()));
        });
    m.def("rect", [](const Ints &root_lo, const Ints &root_hi, const Ints &lo, const Ints &hi) {
        return out(IndexSpace::rect(rect_of(root_lo, root_hi), rect_of(lo, hi)));
    }, "root_lo"_a, "root_hi"_a, "lo"_a, "hi"_a, "The rectangle [lo, hi) clipped to the root [root_lo, root_hi).");
    m.def("sparse", [](const Ints &root_lo, const Ints &root_hi, const In &intervals) {
        return out(sparse_of(rect_of(root_lo, root_hi), intervals));
    }, "root_lo"_a, "root_hi"_a, "intervals"_a, "Sorted, disjoint, nonadjacent half-open intervals of linear positions.");
    m.def("points", [](const Ints &root_lo, const Ints &root_hi, const In &linear) {
        const auto all = view(linear);
        return out(IndexSpace::points(rect_of(root_lo, root_hi), {all.begin(), all.end()}));
    }, "root_lo"_a, "root_hi"_a, "linear"_a, "Linear positions in any order, duplicates allowed.");
}

void bind_algebra(nb::module_ &m) {
    const auto query = [&m](const char *name, auto ask, const char *doc) {
        m.def(name, [ask](const PySpace &a, const PySpace &b) {
            same_root(a, b);
            nb::gil_scoped_release unlocked;
            return ask(*a, *b);
        }, "a"_a, "b"_a, doc);
    };
    query("intersects", [](const IndexSpace &a, const IndexSpace &b) { return intersects(a, b); }, "Whether a point is in both.");
    query("covers", [](const IndexSpace &a, const IndexSpace &b) { return covers(a, b); }, "Whether b is a subset of a.");
    query("overlap_volume", [](const IndexSpace &a, const IndexSpace &b) { return overlap_volume(a, b); }, "Points in both.");
    const auto operation = [&m](const char *name, Space (*apply)(const Space &, const Space &)) {
        m.def(name, [apply](const PySpace &a, const PySpace &b) {
            same_root(a, b);
            nb::gil_scoped_release unlocked;
            return out(apply(a, b));
        }, "a"_a, "b"_a);
    };
    operation("intersection", &intersection);
    operation("difference", &difference);
    operation("unite", &unite);
    m.def("unite_all", [](const Ints &root_lo, const Ints &root_hi, const std::vector<PySpace> &spaces) {
        const auto list = in(spaces);
        const Rect root = rect_of(root_lo, root_hi);
        if (!list.empty()) same_root(list[0], IndexSpace::empty(root));
        nb::gil_scoped_release unlocked;
        return out(unite_all(root, list));
    }, "root_lo"_a, "root_hi"_a, "spaces"_a);
    m.def("runs", [](const PySpace &whole, const PySpace &part) {
        same_root(whole, part);
        const auto found = runs(*whole, *part);
        return array_out(reinterpret_cast<const int64_t *>(found.data()), found.size(), 3);
    }, "whole"_a, "part"_a, "(packed, linear, length) of each run of `part` inside `whole`, int64 of shape (n, 3).");
}

void bind_builders(nb::module_ &m) {
    m.def("set_build_threads", &set_build_threads, "n"_a, "Upper bound on builder threads; 0 = one per core.");
    m.def("block", [](const PySpace &parent, const Ints &colors) {
        return built([&] { return block(in(parent), colors); });
    }, "parent"_a, "colors"_a);
    m.def("restrict", [](const PySpace &parent, const Ints &colors, const Ints &transform, const Ints &extent, const Ints &offset) {
        return built([&] { return restrict(in(parent), colors, transform, extent, offset); });
    }, "parent"_a, "colors"_a, "transform"_a, "extent"_a, "offset"_a, "`transform` is dim x color dim, row-major, flat.");
    m.def("ghost", [](const PySpace &parent, const std::vector<PySpace> &pieces, const Ints &width, bool wrap, bool include_self) {
        const auto list = in(pieces);
        if (!list.empty()) same_root(in(parent), list[0]);
        return built([&] { return ghost(in(parent), list, width, wrap, include_self); });
    }, "parent"_a, "pieces"_a, "width"_a, "wrap"_a, "include_self"_a);
    m.def("by_color", [](const PySpace &parent, const In &colors, int64_t n) {
        return built([&] { return by_color(in(parent), view(colors), n); });
    }, "parent"_a, "colors"_a, "n_colors"_a);
    m.def("by_spaces", [](const PySpace &parent, const std::vector<PySpace> &spaces) {
        auto list = in(spaces);
        if (!list.empty()) same_root(in(parent), list[0]);
        return built([&] { return by_spaces(in(parent), std::move(list)); });
    }, "parent"_a, "spaces"_a);
    m.def("image", [](const std::vector<PySpace> &pieces, const In &pointer, const PySpace &target) {
        const auto list = in(pieces);
        return built([&] { return image(list, view(pointer), in(target)); });
    }, "pieces"_a, "pointer"_a, "target"_a);
    m.def("preimage", [](const std::vector<PySpace> &pieces, const In &pointer, const PySpace &source) {
        const auto list = in(pieces);
        return built([&] { return preimage(list, view(pointer), in(source)); });
    }, "pieces"_a, "pointer"_a, "source"_a);
}

}  // namespace

BURNISH_BIND(ispace) {
    m.doc() = "Index-space algebra and partition builders; builders return (spaces, disjoint, complete).";
    bind_space(m);
    bind_algebra(m);
    bind_builders(m);
}

}  // namespace burnish::runtime
