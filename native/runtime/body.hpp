// What the ways of running a body share.
#pragma once
#include "context.hpp"

namespace burnish::runtime {

struct Gil {
    PyGILState_STATE state = PyGILState_Ensure();
    ~Gil() { PyGILState_Release(state); }
};

// Buffers of one task, allocated and filled with identities when its body starts. False when memory is out, or with a
// Python exception set.
bool prepare_buffers(TaskRecord *t);
// The buffer of one field of one reducing argument.
ReduceBuffer *buffer_for(TaskRecord *t, size_t arg, int field);
// Whether the body gets an object with one attribute per field, even for one field.
bool names_fields(const Param &p);
// Turns the raised Python exception into the task's failure. GIL held.
RecordState fail_python(Context &context, TaskRecord *t);
// The color as messages show it; None for a single launch.
PyObject *launch_color(const TaskRecord *t);

RecordState run_native_body(Context &context, TaskRecord *t);
// Check mode: runs the native body of `t` on the data of the given list of arrays. GIL held; null with an exception set.
PyObject *call_native(TaskRecord *t, PyObject *arrays, PyObject *values);

}  // namespace burnish::runtime
