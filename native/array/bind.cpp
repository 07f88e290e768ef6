#include "bind.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <stdexcept>
#include <thread>

#include "elementwise.hpp"
#include "kernels.hpp"
#include "numpy_api.hpp"
#include "philox.hpp"
#include "reduce.hpp"
#include "runtime/pytypes.hpp"

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

void apply_loop(const object &ufunc, const std::vector<int> &types, const std::vector<object> &operands) {
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

// ---- arrays ----
using Ints = std::vector<int64_t>;

object steal(PyObject *o) {
    if (!o) throw burnish::nb::python_error();
    return burnish::nb::steal(o);
}

Context &context() {
    Context *c = array_context();
    if (!c) throw burnish::nb::python_error();
    return *c;
}

ArrayObject *array_arg(const object &o) {
    if (!is_array(o.ptr())) throw burnish::nb::type_error("expected a bn array");
    return as_array_object(o.ptr());
}

object empty(const Ints &shape, int type) {
    const Geometry *g = whole_geometry(type, shape);
    Context &c = context();
    ArrayRoot *root = take_root(c, g->of, c.site_here());
    return steal(root ? new_array(root, g) : nullptr);
}

// A C-contiguous NumPy array's values. Nobody uses the root yet, so they are stored at once.
object from_numpy(const object &o, bool scalar) {
    auto *a = as_array(o);
    if (!PyArray_IS_C_CONTIGUOUS(a)) throw std::invalid_argument("expected a C-contiguous array");
    object made = empty(Ints(PyArray_DIMS(a), PyArray_DIMS(a) + PyArray_NDIM(a)), PyArray_TYPE(a));
    ArrayObject *x = as_array_object(made.ptr());
    x->scalar = scalar;
    std::memcpy(x->root->root->memory.data, PyArray_DATA(a), static_cast<size_t>(PyArray_NBYTES(a)));
    return made;
}

object view(const object &a, const Ints &shape, const Ints &strides, int64_t bytes_from_start) {
    ArrayObject *x = array_arg(a);
    if (shape.size() > kMaxAxes) throw std::invalid_argument("bn arrays have at most 8 axes");
    return steal(new_view(x, geometry(x->geom->of, shape, strides.data(), x->geom->offset + bytes_from_start)));
}

object copy_of(const object &a, int type) {
    ArrayObject *x = array_arg(a);
    return steal(copy_array(context(), x->root, x->geom, type, x->scalar));
}

void assign_all(const object &to, const object &value) {
    ArrayObject *x = array_arg(to);
    if (!assign(context(), x->root, x->geom, value.ptr())) throw burnish::nb::python_error();
}

// where(mask, yes, no) and masked_copy(mask, value): one of our own loops, into `out`.
void select_into(const std::string &name, const std::vector<object> &inputs, const object &out) {
    ArrayObject *x = array_arg(out);
    const Operation *op = add_operation(name, nullptr, static_cast<int>(inputs.size()));
    Inputs in;
    for (const auto &o : inputs) {
        const int understood = in.add(o.ptr());
        if (understood == 0) throw burnish::nb::type_error("cannot use this argument with bn arrays");
        if (understood < 0) throw burnish::nb::python_error();
    }
    steal(burnish::array::apply(context(), *op, in.operands, in.n, {x->root, x->geom}));
}

object reduce_axes(const std::string &name, const object &a, int first, int last, int type) {
    const Operation *op = find_operation(name.c_str());
    if (!op) throw std::invalid_argument("unknown ufunc " + name);
    return steal(reduce_array(context(), *op, array_arg(a), first, last, type));
}

object matmul(const object &a, const object &b) {
    return steal(multiply_matrices(context(), *find_operation("matmul"), array_arg(a), array_arg(b)));
}

object roll(const object &a, const Ints &shifts) {
    ArrayObject *x = array_arg(a);
    if (static_cast<int>(shifts.size()) != x->geom->ndim || shifts.empty() || shifts.size() > 4) throw std::invalid_argument("one shift for each of up to 4 axes");
    return steal(roll_array(context(), x, shifts));
}

object random_array(std::pair<uint64_t, uint64_t> key, uint64_t call, int kind, int64_t low, uint64_t range, int64_t n) {
    Draw draw{.key = {key.first, key.second}, .call = call, .distribution = static_cast<Distribution>(kind), .low = low, .range = range};
    return steal(draw_random(context(), draw, n));
}

// The region of an array that is its root in C order.
object region_of(const object &a) {
    ArrayObject *x = array_arg(a);
    if (!x->geom->whole) throw std::invalid_argument("not a whole array");
    return steal(burnish::runtime::region_object(x->root->root->region));
}

object make_ufunc_named(const std::string &name, const object &ufunc, int nin) {
    return steal(make_ufunc(add_operation(name, ufunc.ptr(), nin)));
}

void register_front_end(burnish::nb::dict d) {
    auto take = [&](const char *name) { return burnish::nb::borrow(d[name]).release().ptr(); };
    ArrayTypes &t = array_types();
    t.from_numpy = take("from_numpy");
    t.set_special = take("set_special");
    t.get_special = take("get_special");
    t.matmul = take("matmul");
    t.show = take("show");
}

burnish::nb::dict pool_counters() {
    const PoolStats s = pool_stats();
    burnish::nb::dict d;
    d["live_bytes"] = s.live_bytes;
    d["pooled_bytes"] = s.pooled_bytes;
    d["made"] = s.made;
    d["reused"] = s.reused;
    return d;
}

}  // namespace

BURNISH_BIND(array) {
    if (!import_numpy() || !make_array_types(m.ptr())) throw burnish::nb::python_error();
    m.def("empty", &empty);
    m.def("from_numpy", &from_numpy);
    m.def("to_numpy", [](const object &a) { return steal(to_numpy(array_arg(a))); });
    m.def("view", &view);
    m.def("copy_of", &copy_of);
    m.def("assign", &assign_all);
    m.def("select", &select_into);
    m.def("reduce_axes", &reduce_axes);
    m.def("matmul", &matmul);
    m.def("roll", &roll);
    m.def("random_array", &random_array);
    m.def("region_of", &region_of);
    m.def("is_scalar", [](const object &a) { return array_arg(a)->scalar; });
    m.def("set_scalar", [](const object &a) { array_arg(a)->scalar = true; });
    m.def("is_whole", [](const object &a) { return array_arg(a)->geom->whole; });
    m.def("make_ufunc", &make_ufunc_named);
    m.def("register_front_end", &register_front_end);
    m.def("pool_counters", &pool_counters);
    m.def("empty_pool", &empty_pool);
    m.def("has_loop", [](const object &ufunc, const std::vector<int> &types) { return find_loop(ufunc.ptr(), types).has_value(); });
    m.def("apply", &apply_loop);
    m.def("copy", &copy);
    m.def("reduce", &reduce);
    m.def("leaves", &leaves);
    m.def("reduce_leaves", &reduce_leaves);
    m.def("random", &random_block);
}
