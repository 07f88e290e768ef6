// burnish._native.reduce: folding of reduction buffers on raw bytes, for tests and debugging.
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <stdexcept>
#include <string>

#include "bind.hpp"
#include "runtime/reduce.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace burnish::runtime {

namespace {

using Bytes = nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstBytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using RunArray = nb::ndarray<const int64_t, nb::shape<-1, 3>, nb::c_contig, nb::device::cpu>;

Fold fold_of(const std::string &op) {
    const auto found = fold_named(op);
    if (!found) throw std::invalid_argument("no reduction is called '" + op + "'; there are + * min max & |");
    return *found;
}

ElementType type_of(int type_num, int itemsize, int64_t inner) {
    if (itemsize < 1 || inner < 1) throw std::invalid_argument("itemsize and inner must be positive");
    return {type_num, itemsize, inner};
}

int64_t points_in(size_t bytes, ElementType type) {
    if (bytes % static_cast<size_t>(type.bytes()) != 0) throw std::invalid_argument("the bytes are not a whole number of points");
    return static_cast<int64_t>(bytes) / type.bytes();
}

std::span<const Run> runs_of(const RunArray &array, int64_t packed_points, int64_t root_points) {
    const std::span<const Run> runs(reinterpret_cast<const Run *>(array.data()), array.shape(0));
    for (const Run &run : runs)
        if (run.length < 0 || run.packed < 0 || run.linear < 0 || run.packed > packed_points - run.length ||
            run.linear > root_points - run.length)
            throw std::out_of_range("a run leaves its array");
    return runs;
}

}  // namespace

BURNISH_BIND(reduce) {
    m.doc() = "Reduction kernels; arrays as uint8 views, element type as NumPy type number, itemsize and inner count.";
    m.def("defined", [](const std::string &op, int type_num, int itemsize) {
        return fold_kernel(fold_of(op), type_of(type_num, itemsize, 1)) != nullptr;
    }, "op"_a, "type_num"_a, "itemsize"_a);
    m.def("fold", [](const std::string &op, int type_num, int itemsize, int64_t inner, Bytes dst, ConstBytes src) {
        const ElementType type = type_of(type_num, itemsize, inner);
        if (dst.size() != src.size()) throw std::invalid_argument("dst and src differ in size");
        fold(fold_of(op), type, dst.data(), src.data(), points_in(dst.size(), type));
    }, "op"_a, "type_num"_a, "itemsize"_a, "inner"_a, "dst"_a, "src"_a, "dst = op(dst, src), in place.");
    m.def("fill_identity", [](const std::string &op, int type_num, int itemsize, int64_t inner, Bytes dst) {
        const ElementType type = type_of(type_num, itemsize, inner);
        fill_identity(fold_of(op), type, dst.data(), points_in(dst.size(), type));
    }, "op"_a, "type_num"_a, "itemsize"_a, "inner"_a, "dst"_a);
    m.def("fold_runs", [](const std::string &op, int type_num, int itemsize, int64_t inner, Bytes root, ConstBytes packed, RunArray runs) {
        const ElementType type = type_of(type_num, itemsize, inner);
        const auto checked = runs_of(runs, points_in(packed.size(), type), points_in(root.size(), type));
        fold_runs(fold_of(op), type, root.data(), packed.data(), checked);
    }, "op"_a, "type_num"_a, "itemsize"_a, "inner"_a, "root"_a, "packed"_a, "runs"_a);
    m.def("gather_runs", [](Bytes packed, ConstBytes root, RunArray runs, int point_bytes) {
        const ElementType type = type_of(0, point_bytes, 1);
        const auto checked = runs_of(runs, points_in(packed.size(), type), points_in(root.size(), type));
        gather_runs(packed.data(), root.data(), checked, point_bytes);
    }, "packed"_a, "root"_a, "runs"_a, "point_bytes"_a);
    m.def("scatter_runs", [](Bytes root, ConstBytes packed, RunArray runs, int point_bytes) {
        const ElementType type = type_of(0, point_bytes, 1);
        const auto checked = runs_of(runs, points_in(packed.size(), type), points_in(root.size(), type));
        scatter_runs(root.data(), packed.data(), checked, point_bytes);
    }, "root"_a, "packed"_a, "runs"_a, "point_bytes"_a);
}

}  // namespace burnish::runtime
