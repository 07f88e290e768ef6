// The hot Python types, written against the C API: Region, Partition, Projection, projected argument, Task, Future.
// Regions, partitions and futures are base classes; the front end registers the Python subclasses to instantiate.
#pragma once
#include <Python.h>

#include "context.hpp"
#include "op.hpp"

namespace burnish::runtime {

struct RegionObject {
    PyObject_HEAD
    RegionNode *node;
};

struct ProjectionObject {
    PyObject_HEAD
    uint64_t uid;
    int rank;             // number of produced coordinates; 0: all of the launch domain's
    int n_offsets;        // rank 0: offsets given (0: none)
    int axis[kMaxDim];    // -1: the constant offset alone
    int64_t offset[kMaxDim];
    PyObject *fn;         // each.map(fn): called with the color (tuple if more than one dimension)
};

struct ProjectedObject {
    PyObject_HEAD
    uint64_t uid;
    PartitionNode *part;
    ProjectionObject *projection;  // strong
};

struct PartitionObject {
    PyObject_HEAD
    PartitionNode *part;
    std::vector<PyObject *> *children;                                // Region objects, made when first asked for
    std::vector<std::pair<ProjectionObject *, PyObject *>> *projected;  // strong values
};

struct TaskObject {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    TaskDef *def;
    PyObject *dict;
    PyObject *weakrefs;
};

struct FutureObject {
    PyObject_HEAD
    FutureState *state;
};

struct FutureMapObject {
    PyObject_HEAD
    std::vector<FutureState *> *states;  // by row-major color; null where an edge was skipped
};

struct TypeRegistry {
    PyTypeObject *region_base, *partition_base, *projection, *projected, *task, *future_base, *future_map_base;
    PyTypeObject *region, *partition, *future, *future_map;  // instantiated classes
    PyObject *error;        // error(kind, payload): raises
    PyObject *bind;         // bind(fn, args, kwargs) -> tuple of positional arguments
    PyObject *value;        // value(task, index, argument) -> what to pass by value, or raises
    PyObject *start;        // start(): makes the default context
    PyObject *first_launch; // first_launch(info) -> priority; once per task and context
    PyObject *dispatch;     // dispatch(name, start_or_end): tracing hook of the front end
    PyObject *compile;      // compile(info, regions, contiguous, check) -> address of a native body
    PyObject *on_launch;    // check mode: on_launch(info, regions, after) around each launch
    PyObject *make_room;    // make_room(info, bytes): waits for memory or raises
    PyObject *inner;        // inner(info, args, color): runs the body of an inner task
};
TypeRegistry &types();
bool make_types(PyObject *module);

PyObject *region_object(RegionNode *node);        // new reference
PyObject *partition_object(PartitionNode *part);  // new reference
RegionNode *as_region(PyObject *o);               // null with TypeError set
PartitionNode *as_partition(PyObject *o);
PyObject *future_object(FutureState *state);      // takes over one reference on the state
void release_root(Root *root);

// Raises through the front end's error(kind, payload); steals `payload`. Always returns null.
PyObject *raise(const char *kind, PyObject *payload);
// False with an error set: another thread than the context's, or a task body. `launched`: the task, if it is a launch.
bool check_thread(Context *c, TaskDef *launched = nullptr);
Context *context_or_start();                      // null with an exception set
std::vector<TaskDef *> &task_registry();

// Launch of a native task by other native code (GIL held, launching thread). `launch` comes from Context::new_launch with
// its scalars set; with more than kInlineArgs arguments or several points its owned_nodes hold the nodes (points x n_args).
// Consumes the launch. `futures`: one slot, or null. False with an exception set.
bool launch_native(Context *c, Launch *launch, const OpPlan *plan, RegionNode *const *nodes, int64_t points,
                   tracing::Token signature, tracing::Token flat, std::span<const uint32_t> operands, FutureState **future);

PyObject *launch_single(TaskObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames);
PyObject *launch_map(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
// False with HostAccessError set while the main program has these data in its hands.
bool check_host(RegionNode *node, uint64_t mask, bool writes);
// ---- bodies ----
// Compiles a lazily compiled task for these arguments; false with an exception set. Launching thread.
bool ensure_kernel(Context *c, TaskDef *task, RegionNode *const *nodes);

// ---- inner tasks ----
// Whether the running inner task may use `node` so; false with an error set. `child`: the launched task, if any.
bool check_bounds(Context *c, TaskDef *child, RegionNode *node, Privilege privilege, int op, uint64_t mask);
bool check_bounds(Context *c, TaskDef *child, const std::vector<Requirement> &requirements, RegionNode *const *nodes);
PyObject *run_inner(Context *c, TaskDef *task, const std::vector<Requirement> &requirements, RegionNode *const *nodes,
                    PyObject *const *args);
// skip: no body runs, futures hold None.
PyObject *map_inner(Context *c, TaskDef *task, const IndexPlan &plan, PyObject *const *args, bool skip);
// A row-major color as programs see it: an int, or a tuple in more than one dimension.
PyObject *color_of(const int64_t *shape, int rank, int64_t color);

// Requirements of parameter `param` for regions with the layout of `root`; null with an exception set.
const Resolved *resolve(TaskDef *task, uint16_t param, Root *root);

}  // namespace burnish::runtime
