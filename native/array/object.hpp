// The array type: a root and a geometry. Views share the root.
#pragma once
#include <Python.h>

#include "plan.hpp"

namespace burnish::array {

struct ArrayObject {
    PyObject_HEAD
    ArrayRoot *root;
    const Geometry *geom;
    bool scalar;  // result of a full reduction or a single element: immutable, as NumPy's scalars are
    PyObject *weakrefs;
};

struct ArrayTypes {
    PyTypeObject *array, *ufunc;
    PyObject *from_numpy;   // from_numpy(x): an array of the same contents; for operands and assigned values
    PyObject *set_special;  // set_special(array, key, value): assignment through masks
    PyObject *get_special;  // get_special(array, key): what an index with arrays gives
    PyObject *matmul;       // matmul(a, b)
    PyObject *show;         // show(array, repr)
};
ArrayTypes &array_types();
bool make_array_types(PyObject *module);

inline bool is_array(PyObject *o) { return Py_TYPE(o) == array_types().array; }
inline ArrayObject *as_array_object(PyObject *o) { return reinterpret_cast<ArrayObject *>(o); }

PyObject *new_array(ArrayRoot *root, const Geometry *geom, bool scalar = false);  // takes over one reference of the root
PyObject *new_view(ArrayObject *of, const Geometry *geom);                        // shares the root

Context *array_context();  // null with an exception set

PyObject *to_numpy(ArrayObject *a);  // waits; a copy (of the shape ()) for 0-d arrays

// Indexing by integers, slices, None and Ellipsis. 1: done, 0: the key has arrays in it, -1: error set.
// `element`: all axes were indexed by integers.
int basic_index(ArrayObject *a, PyObject *key, const Geometry **out, bool *element);
PyObject *array_subscript(PyObject *self, PyObject *key);
int array_assign_subscript(PyObject *self, PyObject *key, PyObject *value);

}  // namespace burnish::array
