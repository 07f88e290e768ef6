// Basic indexing: integers, slices, None and Ellipsis make views.
#include "object.hpp"
#include "numpy_api.hpp"
#include "ufunc.hpp"

namespace burnish::array {

namespace {

bool has_arrays(PyObject *item) {
    return is_array(item) || PyArray_Check(item) || PyList_Check(item) || PyBool_Check(item);
}

struct View {
    std::array<int64_t, kMaxAxes> shape, strides;
    int64_t offset;
    int ndim = 0, axis = 0;  // made so far; next axis of the array
    bool element = true;

    bool push(int64_t n, int64_t stride) {
        if (ndim == kMaxAxes) {
            PyErr_Format(PyExc_IndexError, "bn arrays have at most %d axes", kMaxAxes);
            return false;
        }
        shape[ndim] = n;
        strides[ndim++] = stride;
        return true;
    }
};

bool take_item(const Geometry &g, PyObject *item, int rest, View &v) {
    if (item == Py_None) {
        v.element = false;
        return v.push(1, 0);
    }
    if (item == Py_Ellipsis) {
        v.element = false;
        for (int left = g.ndim - v.axis - rest; left > 0; --left, ++v.axis)
            if (!v.push(g.shape[v.axis], g.strides[v.axis])) return false;
        return true;
    }
    const int64_t extent = g.shape[v.axis], stride = g.strides[v.axis];
    if (PySlice_Check(item)) {
        Py_ssize_t start, stop, step;
        if (PySlice_Unpack(item, &start, &stop, &step) < 0) return false;
        const Py_ssize_t n = PySlice_AdjustIndices(extent, &start, &stop, step);
        v.element = false;
        if (n) v.offset += start * stride;
        ++v.axis;
        return v.push(n, stride * step);
    }
    if (!PyIndex_Check(item)) {
        PyErr_SetString(PyExc_IndexError, "bn arrays are indexed by integers, slices, None, Ellipsis and boolean masks");
        return false;
    }
    Py_ssize_t i = PyNumber_AsSsize_t(item, PyExc_IndexError);
    if (i == -1 && PyErr_Occurred()) return false;
    if (i < -extent || i >= extent) {
        PyErr_Format(PyExc_IndexError, "index %zd is out of bounds for axis %d with size %lld", i, v.axis, static_cast<long long>(extent));
        return false;
    }
    v.offset += (i < 0 ? i + extent : i) * stride;
    ++v.axis;
    return true;
}

}  // namespace

int basic_index(ArrayObject *a, PyObject *key, const Geometry **out, bool *element) {
    const Geometry &g = *a->geom;
    PyObject *const *items = &key;
    Py_ssize_t n = 1;
    if (PyTuple_Check(key)) {
        items = &PyTuple_GET_ITEM(key, 0);
        n = PyTuple_GET_SIZE(key);
    }
    int used = 0, ellipses = 0;
    for (Py_ssize_t i = 0; i < n; ++i) {
        if (has_arrays(items[i])) return 0;
        ellipses += items[i] == Py_Ellipsis;
        used += items[i] != Py_None && items[i] != Py_Ellipsis;
    }
    if (ellipses > 1) {
        PyErr_SetString(PyExc_IndexError, "an index can only have a single ellipsis ('...')");
        return -1;
    }
    if (used > g.ndim) {
        PyErr_Format(PyExc_IndexError, "too many indices for array: array is %d-dimensional, but %d were indexed", g.ndim, used);
        return -1;
    }
    View v;
    v.offset = g.offset;
    int rest = used;
    for (Py_ssize_t i = 0; i < n; ++i) {
        if (items[i] != Py_None && items[i] != Py_Ellipsis) --rest;
        if (!take_item(g, items[i], rest, v)) return -1;
    }
    for (; v.axis < g.ndim; ++v.axis) {
        v.element = false;
        if (!v.push(g.shape[v.axis], g.strides[v.axis])) return -1;
    }
    *element = v.element;
    *out = geometry(g.of, {v.shape.data(), static_cast<size_t>(v.ndim)}, v.strides.data(), v.offset);
    return 1;
}

PyObject *array_subscript(PyObject *self, PyObject *key) {
    ArrayObject *a = as_array_object(self);
    const Geometry *g;
    bool element;
    const int basic = basic_index(a, key, &g, &element);
    if (basic < 0) return nullptr;
    if (basic == 0) return PyObject_CallFunctionObjArgs(array_types().get_special, self, key, nullptr);
    if (!element) return new_view(a, g);
    Context *c = array_context();  // a single element is a value, not a view
    return c ? copy_array(*c, a->root, g, g->of->type, true) : nullptr;
}

int array_assign_subscript(PyObject *self, PyObject *key, PyObject *value) {
    ArrayObject *a = as_array_object(self);
    if (!value) {
        PyErr_SetString(PyExc_ValueError, "cannot delete array elements");
        return -1;
    }
    if (a->scalar) {
        PyErr_SetString(PyExc_TypeError, "a scalar result does not support item assignment");
        return -1;
    }
    const Geometry *g;
    bool element;
    const int basic = basic_index(a, key, &g, &element);
    if (basic < 0) return -1;
    if (basic == 0) {
        PyObject *done = PyObject_CallFunctionObjArgs(array_types().set_special, self, key, value, nullptr);
        Py_XDECREF(done);
        return done ? 0 : -1;
    }
    Context *c = array_context();
    return c && assign(*c, a->root, g, value) ? 0 : -1;
}

}  // namespace burnish::array
