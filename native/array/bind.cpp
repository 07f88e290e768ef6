#include "bind.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <thread>

#include "elementwise.hpp"
#include "numpy_api.hpp"
#include "philox.hpp"
#include "reduce.hpp"

using namespace burnish::array;
using burnish::nb::object;

namespace {

PyArrayObject *as_array(const object &o) {
    if (!PyArray_Check(o.ptr())) throw std::invalid_argument("expected a numpy array");
    auto *a = reinterpret_cast<PyArrayObject *>(o.ptr());
    if (PyArray_NDIM(a) > kMaxAxes) throw std::invalid_argument("more than 8 axes");
    return a;
}

char *data(const object &o) { return static_cast<char *>(PyArray_DATA(as_array(o))); }

// Axes [first, last) of an array, for operand `k` of an iteration.
void set_operand(Iteration &it, int k, PyArrayObject *a, int first, int last) {
    for (int d = first; d < last; ++d) {
        it.shape[d - first] = PyArray_DIM(a, d);
        it.strides[k][d - first] = PyArray_STRIDE(a, d);
    }
}

// All operands have the output's shape, or were broadcast to it by NumPy (stride 0).
Iteration over(const std::vector<object> &operands) {
    Iteration it{.operands = static_cast<int>(operands.size())};
    for (int k = 0; k < it.operands; ++k) {
        auto *a = as_array(operands[k]);
        it.axes = PyArray_NDIM(a);
        set_operand(it, k, a, 0, it.axes);
    }
    return it;
}

// Runs `work` on a thread that Python has never seen, without the GIL.
template <class Work>
void on_foreign_thread(Work &&work) {
    burnish::nb::gil_scoped_release release;
    std::thread(std::forward<Work>(work)).join();
}

Loop loop_or_throw(const object &ufunc, const std::vector<int> &types) {
    auto loop = find_loop(ufunc.ptr(), types);
    if (!loop) throw std::invalid_argument("the ufunc has no numeric loop for these types");
    return *loop;
}

void apply(const object &ufunc, const std::vector<int> &types, const std::vector<object> &operands) {
    Elementwise op{.loop = loop_or_throw(ufunc, types), .over = over(operands)};
    std::vector<int> stored;
    char *base[kMaxOperands];
    for (size_t k = 0; k < operands.size(); ++k) {
        stored.push_back(PyArray_TYPE(as_array(operands[k])));
        base[k] = data(operands[k]);
    }
    set_types(op, stored, types);
    op.over.simplify(op.over.operands - 1);
    on_foreign_thread([&] { op.run(base); });
}

void copy(const object &from, const object &to) {
    const int a = PyArray_TYPE(as_array(from)), b = PyArray_TYPE(as_array(to));
    Copy op{.over = over({from, to}), .cast = find_cast(a, b), .size = item_size(a)};
    op.over.simplify(1);
    on_foreign_thread([&] { op.run(data(from), data(to)); });
}

// Reduces axes [first, last) of `in` with a binary ufunc on NumPy type `type`.
Reduction reduction(const object &ufunc, int type, const object &in, int first, int last) {
    auto *a = as_array(in);
    const int stored = PyArray_TYPE(a), ndim = PyArray_NDIM(a);
    Reduction r;
    r.loop = loop_or_throw(ufunc, {type, type, type});
    r.item = item_size(type);
    r.cast = find_cast(stored, type);
    r.outer = {.axes = first, .operands = 2};
    set_operand(r.outer, 0, a, 0, first);
    r.sequence = {.axes = last - first, .operands = 1};
    set_operand(r.sequence, 0, a, first, last);
    r.inner = {.axes = ndim - last, .operands = 2};
    set_operand(r.inner, 0, a, last, ndim);
    return r;
}

void reduce(const object &ufunc, int type, const object &in, int first, int last, const object &out) {
    Reduction r = reduction(ufunc, type, in, first, last);
    auto *o = as_array(out);
    set_operand(r.outer, 1, o, 0, first);
    for (int d = 0; d < r.inner.axes; ++d) r.inner.strides[1][d] = PyArray_STRIDE(o, first + d);
    r.prepare();
    on_foreign_thread([&] { r.run(data(in), data(out)); });
}

int64_t leaves(const object &ufunc, int type, const object &in, int last) {
    Reduction r = reduction(ufunc, type, in, 0, last);
    r.prepare();
    return r.leaves();
}

void reduce_leaves(const object &ufunc, int type, const object &in, int last, int64_t begin, int64_t end,
                   const object &partials) {
    Reduction r = reduction(ufunc, type, in, 0, last);
    r.prepare();
    on_foreign_thread([&] { r.run_leaves(data(in), data(partials), begin, end); });
}

void random_block(std::pair<uint64_t, uint64_t> key, uint64_t call, int kind, int64_t low, uint64_t range, int64_t first,
            const object &out) {
    Draw draw{.key = {key.first, key.second}, .call = call, .distribution = static_cast<Distribution>(kind), .low = low, .range = range};
    const int64_t n = PyArray_SIZE(as_array(out));
    on_foreign_thread([&] { fill_random(draw, first, first + n, data(out)); });
}

}  // namespace

BURNISH_BIND(array) {
    if (!import_numpy()) throw burnish::nb::python_error();
    m.def("has_loop", [](const object &ufunc, const std::vector<int> &types) { return find_loop(ufunc.ptr(), types).has_value(); });
    m.def("apply", &apply);
    m.def("copy", &copy);
    m.def("reduce", &reduce);
    m.def("leaves", &leaves);
    m.def("reduce_leaves", &reduce_leaves);
    m.def("random", &random_block);
}
