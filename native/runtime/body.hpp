// What the ways of running a body share.
#pragma once
#include "context.hpp"

namespace burnish::runtime {

struct Gil {
    PyGILState_STATE state = PyGILState_Ensure();
    ~Gil() { PyGILState_Release(state); }
};

// Buffers of one task, allocated and filled with identities when its body starts. Throws when memory is out.
bool prepare_buffers(TaskRecord *t);
// The buffer of one field of one reducing argument.
ReduceBuffer *buffer_for(TaskRecord *t, size_t arg, int field);
// Whether the body gets an object with one attribute per field, even for one field.
bool names_fields(const Param &p);
// Turns the raised Python exception into the task's failure. GIL held.
RecordState fail_python(Context &context, TaskRecord *t);

}  // namespace burnish::runtime
