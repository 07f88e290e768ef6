#include "object.hpp"

#include <structmember.h>

#include <cstring>

#include "numpy_api.hpp"
#include "runtime/pytypes.hpp"
#include "ufunc.hpp"

namespace burnish::array {

ArrayTypes &array_types() {
    static ArrayTypes types{};
    return types;
}

Context *array_context() {
    Context *c = runtime::context_or_start();
    return c && runtime::check_thread(c) ? c : nullptr;
}

PyObject *new_array(ArrayRoot *root, const Geometry *geom, bool scalar) {
    auto *a = PyObject_New(ArrayObject, array_types().array);
    if (!a) {
        runtime::release_root(root->root);
        return nullptr;
    }
    a->root = root;
    a->geom = geom;
    a->scalar = scalar;
    a->weakrefs = nullptr;
    return reinterpret_cast<PyObject *>(a);
}

PyObject *new_view(ArrayObject *of, const Geometry *geom) {
    ++of->root->root->refs;
    return new_array(of->root, geom);
}

namespace {

void array_dealloc(PyObject *self) {
    ArrayObject *a = as_array_object(self);
    if (a->weakrefs) PyObject_ClearWeakRefs(self);
    runtime::release_root(a->root->root);
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

bool raise_failure(runtime::Failure *failure) {
    failure->reported = true;
    PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(failure->exception)), failure->exception);
    return false;
}

// Waits for the writers of `node`; the caller reads and then closes the access.
runtime::TaskRecord *open_for_reading(Context &c, RegionNode *node) {
    c.tracer().separator();
    runtime::TaskRecord *t = c.open_host(node, Privilege::Read, 1);
    const bool ok = c.wait_host(t);
    runtime::Failure *failure = t->poisoned.load() ? t->failure.load() : c.first_failure();
    if (ok && !failure) return t;
    c.close_host(t);
    if (ok) raise_failure(failure);
    return nullptr;
}

PyObject *view_of_memory(ArrayObject *a) {
    const Geometry &g = *a->geom;
    return PyArray_New(&PyArray_Type, g.ndim, const_cast<npy_intp *>(reinterpret_cast<const npy_intp *>(g.shape.data())), g.of->type,
                       const_cast<npy_intp *>(reinterpret_cast<const npy_intp *>(g.strides.data())),
                       a->root->root->memory.data + g.offset, 0, 0, nullptr);
}

// The element of an array of size 1, as a Python number.
PyObject *item(PyObject *self) {
    ArrayObject *a = as_array_object(self);
    if (a->geom->size != 1) {
        PyErr_SetString(PyExc_TypeError, "only arrays of one element can be converted to Python scalars");
        return nullptr;
    }
    PyObject *copy = to_numpy(a);
    if (!copy) return nullptr;
    auto *n = reinterpret_cast<PyArrayObject *>(copy);
    PyObject *value = PyArray_GETITEM(n, static_cast<const char *>(PyArray_DATA(n)));
    Py_DECREF(copy);
    return value;
}

template <PyObject *convert(PyObject *)>
PyObject *converted(PyObject *self) {
    PyObject *value = item(self);
    if (!value) return nullptr;
    PyObject *result = convert(value);
    Py_DECREF(value);
    return result;
}

PyObject *array_index(PyObject *self) {
    const ArrayObject *a = as_array_object(self);
    if (a->geom->ndim || !PyTypeNum_ISINTEGER(a->geom->of->type)) {
        PyErr_SetString(PyExc_TypeError, "only integer scalar arrays can be converted to a scalar index");
        return nullptr;
    }
    return converted<PyNumber_Index>(self);
}

int array_bool(PyObject *self) {
    if (as_array_object(self)->geom->size > 1 || as_array_object(self)->geom->size == 0) {
        PyErr_SetString(PyExc_ValueError, as_array_object(self)->geom->size
                                              ? "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"
                                              : "The truth value of an empty array is ambiguous. Use `array.size > 0` to check that an array is not empty.");
        return -1;
    }
    PyObject *value = item(self);
    if (!value) return -1;
    const int truth = PyObject_IsTrue(value);
    Py_DECREF(value);
    return truth;
}

// ---- number slots ----
constexpr const char *kOperators[] = {
    "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "power", "left_shift", "right_shift",
    "bitwise_and", "bitwise_or", "bitwise_xor", "negative", "positive", "absolute", "invert",
    "less", "less_equal", "equal", "not_equal", "greater", "greater_equal", "square", "sqrt", "reciprocal"};
enum Slot {
    kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kRemainder, kPower, kLeftShift, kRightShift,
    kAnd, kOr, kXor, kNegative, kPositive, kAbsolute, kInvert,
    kLess, kLessEqual, kEqual, kNotEqual, kGreater, kGreaterEqual, kSquare, kSqrt, kReciprocal, kOperatorCount};
const Operation *g_operator[kOperatorCount];

template <Slot S>
PyObject *binary(PyObject *a, PyObject *b) { return binary_slot(*g_operator[S], a, b); }
template <Slot S>
PyObject *inplace(PyObject *a, PyObject *b) { return inplace_slot(*g_operator[S], a, b); }
template <Slot S>
PyObject *unary(PyObject *a) { return unary_slot(*g_operator[S], a); }

// NumPy's shortcuts for powers by Python numbers.
const Operation *power_shortcut(PyObject *a, PyObject *b) {
    if (!is_array(a)) return nullptr;
    const int type = as_array_object(a)->geom->of->type;
    double exponent;
    if (PyFloat_CheckExact(b)) exponent = PyFloat_AS_DOUBLE(b);
    else if (PyLong_CheckExact(b)) exponent = PyLong_AsDouble(b);
    else return nullptr;
    const bool inexact = PyTypeNum_ISFLOAT(type) || PyTypeNum_ISCOMPLEX(type);
    if (exponent == -1.0 && PyErr_Occurred()) PyErr_Clear();
    if (!inexact) return exponent == 2.0 && PyLong_CheckExact(b) && PyTypeNum_ISINTEGER(type) ? g_operator[kSquare] : nullptr;
    if (exponent == 1.0) return g_operator[kPositive];
    if (exponent == 2.0) return g_operator[kSquare];
    if (exponent == -1.0) return g_operator[kReciprocal];
    if (exponent == 0.5) return g_operator[kSqrt];
    return nullptr;
}

PyObject *array_power(PyObject *a, PyObject *b, PyObject *modulus) {
    if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
    if (const Operation *shortcut = power_shortcut(a, b)) return unary_slot(*shortcut, a);
    return binary_slot(*g_operator[kPower], a, b);
}
PyObject *array_inplace_power(PyObject *a, PyObject *b, PyObject *) {
    const Operation *shortcut = power_shortcut(a, b);
    if (!shortcut) return inplace_slot(*g_operator[kPower], a, b);
    PyObject *value = unary_slot(*shortcut, a);
    if (!value || as_array_object(a)->scalar) return value;
    Context *c = array_context();
    const bool ok = c && assign(*c, as_array_object(a)->root, as_array_object(a)->geom, value);
    Py_DECREF(value);
    return ok ? Py_NewRef(a) : nullptr;
}

PyObject *array_matmul(PyObject *a, PyObject *b) { return PyObject_CallFunctionObjArgs(array_types().matmul, a, b, nullptr); }

PyObject *array_compare(PyObject *a, PyObject *b, int op) {
    static constexpr Slot slots[] = {kLess, kLessEqual, kEqual, kNotEqual, kGreater, kGreaterEqual};
    return binary_slot(*g_operator[slots[op]], a, b);
}

Py_ssize_t array_length(PyObject *self) {
    const Geometry &g = *as_array_object(self)->geom;
    if (g.ndim) return g.shape[0];
    PyErr_SetString(PyExc_TypeError, "len() of unsized object");
    return -1;
}

PyObject *array_item_at(PyObject *self, Py_ssize_t i) {
    PyObject *key = PyLong_FromSsize_t(i);
    PyObject *result = key ? array_subscript(self, key) : nullptr;
    Py_XDECREF(key);
    return result;
}

PyObject *array_iter(PyObject *self) {
    if (as_array_object(self)->geom->ndim) return PySeqIter_New(self);
    PyErr_SetString(PyExc_TypeError, "iteration over a 0-d array");
    return nullptr;
}

PyObject *array_repr(PyObject *self) { return PyObject_CallFunction(array_types().show, "Oi", self, 1); }
PyObject *array_str(PyObject *self) { return PyObject_CallFunction(array_types().show, "Oi", self, 0); }

// ---- attributes ----
PyObject *ints(std::span<const int64_t> values) {
    PyObject *t = PyTuple_New(static_cast<Py_ssize_t>(values.size()));
    for (size_t i = 0; t && i < values.size(); ++i) PyTuple_SET_ITEM(t, i, PyLong_FromLongLong(values[i]));
    return t;
}
const Geometry &geom(PyObject *self) { return *as_array_object(self)->geom; }
PyObject *get_shape(PyObject *self, void *) { return ints(geom(self).dims()); }
PyObject *get_strides(PyObject *self, void *) { return ints({geom(self).strides.data(), static_cast<size_t>(geom(self).ndim)}); }
PyObject *get_ndim(PyObject *self, void *) { return PyLong_FromLong(geom(self).ndim); }
PyObject *get_size(PyObject *self, void *) { return PyLong_FromLongLong(geom(self).size); }
PyObject *get_dtype(PyObject *self, void *) { return Py_NewRef(geom(self).of->descr); }
PyObject *get_itemsize(PyObject *self, void *) { return PyLong_FromLongLong(geom(self).of->item); }
PyObject *get_nbytes(PyObject *self, void *) { return PyLong_FromLongLong(geom(self).of->item * geom(self).size); }
PyObject *get_transposed(PyObject *self, void *) {
    const Geometry &g = geom(self);
    std::array<int64_t, kMaxAxes> shape, strides;
    for (int a = 0; a < g.ndim; ++a) {
        shape[a] = g.shape[g.ndim - 1 - a];
        strides[a] = g.strides[g.ndim - 1 - a];
    }
    return new_view(as_array_object(self), geometry(g.of, {shape.data(), static_cast<size_t>(g.ndim)}, strides.data(), g.offset));
}
PyObject *array_item(PyObject *self, PyObject *) { return item(self); }

PyGetSetDef array_getset[] = {{"shape", get_shape, nullptr, "Extents of the axes.", nullptr},
                              {"strides", get_strides, nullptr, "Bytes between neighbours along each axis.", nullptr},
                              {"ndim", get_ndim, nullptr, "Number of axes.", nullptr},
                              {"size", get_size, nullptr, "Number of elements.", nullptr},
                              {"dtype", get_dtype, nullptr, "NumPy dtype of the elements.", nullptr},
                              {"itemsize", get_itemsize, nullptr, "Bytes of one element.", nullptr},
                              {"nbytes", get_nbytes, nullptr, "Bytes of all elements.", nullptr},
                              {"T", get_transposed, nullptr, "View with the axes reversed.", nullptr},
                              {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef array_methods[] = {{"item", array_item, METH_NOARGS, "The only element as a Python number; waits for it."},
                               {nullptr, nullptr, 0, nullptr}};
PyMemberDef array_members[] = {{"__weaklistoffset__", T_PYSSIZET, offsetof(ArrayObject, weakrefs), READONLY, nullptr},
                               {nullptr, 0, 0, 0, nullptr}};

PyType_Slot array_slots[] = {
    {Py_tp_dealloc, (void *)array_dealloc}, {Py_tp_hash, (void *)PyObject_HashNotImplemented},
    {Py_tp_richcompare, (void *)array_compare}, {Py_tp_repr, (void *)array_repr}, {Py_tp_str, (void *)array_str},
    {Py_tp_iter, (void *)array_iter}, {Py_tp_getset, array_getset}, {Py_tp_methods, array_methods}, {Py_tp_members, array_members},
    {Py_mp_length, (void *)array_length}, {Py_mp_subscript, (void *)array_subscript}, {Py_mp_ass_subscript, (void *)array_assign_subscript},
    {Py_sq_item, (void *)array_item_at}, {Py_sq_length, (void *)array_length},
    {Py_nb_bool, (void *)array_bool}, {Py_nb_float, (void *)converted<PyNumber_Float>}, {Py_nb_int, (void *)converted<PyNumber_Long>},
    {Py_nb_index, (void *)array_index},
    {Py_nb_add, (void *)binary<kAdd>}, {Py_nb_subtract, (void *)binary<kSubtract>}, {Py_nb_multiply, (void *)binary<kMultiply>},
    {Py_nb_true_divide, (void *)binary<kDivide>}, {Py_nb_floor_divide, (void *)binary<kFloorDivide>},
    {Py_nb_remainder, (void *)binary<kRemainder>}, {Py_nb_power, (void *)array_power}, {Py_nb_lshift, (void *)binary<kLeftShift>},
    {Py_nb_rshift, (void *)binary<kRightShift>}, {Py_nb_and, (void *)binary<kAnd>}, {Py_nb_or, (void *)binary<kOr>},
    {Py_nb_xor, (void *)binary<kXor>}, {Py_nb_matrix_multiply, (void *)array_matmul},
    {Py_nb_negative, (void *)unary<kNegative>}, {Py_nb_positive, (void *)unary<kPositive>}, {Py_nb_absolute, (void *)unary<kAbsolute>},
    {Py_nb_invert, (void *)unary<kInvert>},
    {Py_nb_inplace_add, (void *)inplace<kAdd>}, {Py_nb_inplace_subtract, (void *)inplace<kSubtract>},
    {Py_nb_inplace_multiply, (void *)inplace<kMultiply>}, {Py_nb_inplace_true_divide, (void *)inplace<kDivide>},
    {Py_nb_inplace_floor_divide, (void *)inplace<kFloorDivide>}, {Py_nb_inplace_remainder, (void *)inplace<kRemainder>},
    {Py_nb_inplace_power, (void *)array_inplace_power}, {Py_nb_inplace_lshift, (void *)inplace<kLeftShift>},
    {Py_nb_inplace_rshift, (void *)inplace<kRightShift>}, {Py_nb_inplace_and, (void *)inplace<kAnd>},
    {Py_nb_inplace_or, (void *)inplace<kOr>}, {Py_nb_inplace_xor, (void *)inplace<kXor>},
    {0, nullptr}};
PyType_Spec array_spec = {"burnish.runtime.array.ndarray", sizeof(ArrayObject), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, array_slots};

}  // namespace

PyObject *to_numpy(ArrayObject *a) {
    runtime::TaskRecord *t = nullptr;
    if (Context *c = runtime::current()) {
        if (!runtime::check_thread(c)) return nullptr;
        t = open_for_reading(*c, a->root->node(a->geom->rect));
        if (!t) return nullptr;
    }
    PyObject *view = view_of_memory(a);
    PyObject *copy = view ? PyArray_NewCopy(reinterpret_cast<PyArrayObject *>(view), NPY_CORDER) : nullptr;
    Py_XDECREF(view);
    if (t) runtime::current()->close_host(t);
    return copy;
}

bool make_array_types(PyObject *module) {
    PyObject *numpy = PyImport_ImportModule("numpy");
    if (!numpy) return false;
    for (int s = 0; s < kOperatorCount; ++s) {
        PyObject *ufunc = PyObject_GetAttrString(numpy, kOperators[s]);
        if (!ufunc) return false;
        PyObject *nin = PyObject_GetAttrString(ufunc, "nin");
        g_operator[s] = add_operation(kOperators[s], ufunc, static_cast<int>(PyLong_AsLong(nin)));
        Py_XDECREF(nin);
        Py_DECREF(ufunc);
    }
    Py_DECREF(numpy);
    struct {
        PyTypeObject *&slot;
        PyType_Spec *spec;
        const char *name;
    } all[] = {{array_types().array, &array_spec, "ndarray"}, {array_types().ufunc, &ufunc_spec, "ufunc"}};
    for (auto &t : all) {
        t.slot = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(t.spec));
        if (!t.slot || PyModule_AddObjectRef(module, t.name, reinterpret_cast<PyObject *>(t.slot)) < 0) return false;
    }
    return true;
}

}  // namespace burnish::array
