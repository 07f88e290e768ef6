// What task bodies see: NumPy views of regions, packed copies of sparse ones, objects with one attribute per field.
#pragma once
#include <Python.h>

#include "context.hpp"

namespace burnish::runtime {

// Python classes that the front end registers once.
struct PythonTypes {
    PyObject *sparse_field = nullptr;  // SparseField(index, values, node)
    PyObject *fields_view = nullptr;   // fields_view(names) -> class with guarded attributes
    PyObject *on_failure = nullptr;    // on_failure(exception, info, color, code, offset) -> exception
    PyObject *wrap_body = nullptr;     // check mode: wrap_body(info, args, color, regions, body) runs it with guards
    PyObject *native_failure = nullptr;  // native_failure(info, status, message, exception): raises
};
PythonTypes &python_types();

// Python objects cached on a region node; valid while the node lives. Touched with the GIL held only.
struct NodeViews {
    std::vector<PyObject *> read_only, writable;  // by field, dense nodes
    std::vector<std::pair<std::vector<std::pair<int, Privilege>>, PyObject *>> structs;
    PyObject *index = nullptr;                    // ascending linear (1-D) or coordinate ids of a sparse node
    ~NodeViews();
};

// New references; null with an exception set.
PyObject *dense_view(RegionNode *node, int field, bool writable);
// A root without points keeps the extents it was made with.
inline const Rect &shown_bounds(const RegionNode *node) {
    return node == node->root->region ? node->root->bounds : node->space->bounds();
}
PyObject *new_view(Root *root, int field, const Rect &r, bool writable);
PyObject *buffer_view(ReduceBuffer *buffer, int field);
PyObject *sparse_index(RegionNode *node);
PyObject *packed_copy(RegionNode *node, int field, bool writable);
void scatter_packed(RegionNode *node, int field, const void *packed);
void gather_packed(RegionNode *node, int field, void *packed);

// An array that a running body was given, and what it shows.
struct Placed {
    PyObject *array;
    RegionNode *node;
    int field;
};
// The Python body that this thread is running, if any.
struct BodyFrame {
    TaskRecord *record;
    std::vector<Placed> extra;  // buffers and packed copies made for this run
    BodyFrame *outer;
};
BodyFrame *current_frame();
Placed place_of(PyObject *array);  // node is null if it is no argument of the running task

}  // namespace burnish::runtime
