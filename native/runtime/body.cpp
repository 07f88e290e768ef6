// Running the body of a task record: Python functions over NumPy views, native functions over raw pointers.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "body.hpp"
#include "memory.hpp"
#include "numpy.hpp"
#include "process_body.hpp"
#include "pytypes.hpp"
#include "reduce.hpp"
#include "views.hpp"

namespace burnish::runtime {

BodyFrame *&frame_slot();

std::byte *ReduceBuffer::field(int f) const {
    size_t offset = 0;
    for (int i = 0; i < f; ++i)
        if (mask >> i & 1) offset += static_cast<size_t>(node->space->volume() * node->root->fields[i].point_bytes);
    return data + offset;
}

void ReduceBuffer::promise() {
    const auto &fields = node->root->fields;
    bytes = 0;
    for (size_t f = 0; f < fields.size(); ++f)
        if (mask >> f & 1) bytes += static_cast<size_t>(node->space->volume() * fields[f].point_bytes);
    promised_bytes.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
}

bool ReduceBuffer::allocate() {
    if (data) return true;  // its task is run again
    try {
        data = take_memory(bytes);
    } catch (const std::exception &) {
        return false;
    }
    promised_bytes.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
    reduce_bytes.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
    return true;
}

void drop_buffer(ReduceBuffer *buffer) {
    if (buffer->refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    auto &counter = buffer->data ? reduce_bytes : promised_bytes;
    counter.fetch_sub(static_cast<int64_t>(buffer->bytes), std::memory_order_relaxed);
    if (buffer->data) give_memory(buffer->data);
    delete buffer;
}

PyObject *color_of(const int64_t *shape, int rank, int64_t color) {
    if (rank <= 1) return PyLong_FromLongLong(color);
    PyObject *tuple = PyTuple_New(rank);
    for (int d = rank - 1; tuple && d >= 0; --d) {
        PyTuple_SET_ITEM(tuple, d, PyLong_FromLongLong(color % shape[d]));
        color /= shape[d];
    }
    return tuple;
}

namespace {

// Fills with the identity of a user's operator; false with an exception set.
bool fill_object(const ReduceOp &op, const Field &field, std::byte *data, int64_t n) {
    npy_intp dims = static_cast<npy_intp>(n);
    auto *descr = static_cast<PyArray_Descr *>(field.descr);
    PyGILState_STATE gil = PyGILState_Ensure();
    Py_INCREF(descr);
    PyObject *array = PyArray_NewFromDescr(&PyArray_Type, descr, 1, &dims, nullptr, data, NPY_ARRAY_CARRAY, nullptr);
    bool ok = array && PyArray_FillWithScalar(reinterpret_cast<PyArrayObject *>(array), op.identity) == 0;
    Py_XDECREF(array);
    PyGILState_Release(gil);
    return ok;
}

}  // namespace

// Buffers of one task, allocated and filled with identities when its body starts.
bool prepare_buffers(TaskRecord *t) {
    if (!t->buffers) return true;
    for (ReduceBuffer **b = t->buffers; *b; ++b) {
        ReduceBuffer *buffer = *b;
        const auto &fields = buffer->node->root->fields;
        int64_t n = buffer->node->space->volume();
        if (!buffer->allocate()) return false;
        const ReduceOp &op = reduce_ops()[buffer->op];
        for (size_t f = 0; f < fields.size(); ++f)
            if (buffer->mask >> f & 1) {
                std::byte *data = buffer->field(static_cast<int>(f));
                if (op.builtin) fill_identity(*op.builtin, fields[f].element(), data, n);
                else if (!fill_object(op, fields[f], data, n * fields[f].element().inner)) return false;
            }
    }
    return true;
}

ReduceBuffer *buffer_for(TaskRecord *t, size_t arg, int field) {
    for (ReduceBuffer **b = t->buffers; b && *b; ++b)
        if ((*b)->arg == arg && ((*b)->mask >> field & 1)) return *b;
    return nullptr;
}

PyObject *launch_color(const TaskRecord *t) {
    return t->point < 0 ? Py_NewRef(Py_None) : color_of(t->launch->domain_shape, t->launch->domain_rank, t->point);
}

namespace {

// The raised exception, normalized, with its traceback attached. Steals it from the interpreter state.
PyObject *take_exception() {
#if PY_VERSION_HEX >= 0x030C0000
    return PyErr_GetRaisedException();
#else
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback) PyException_SetTraceback(value, traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return value;
#endif
}

}  // namespace

RecordState fail_python(Context &context, TaskRecord *t) {
    PyObject *exception = take_exception();
    Launch *l = t->launch;
    const Site &site = context.site(l->site);
    PyObject *explained = PyObject_CallFunction(python_types().on_failure, "OONOi", exception,
                                                l->task ? l->task->info : Py_None, launch_color(t),
                                                site.code ? reinterpret_cast<PyObject *>(site.code) : Py_None, site.lasti);
    if (!explained) {
        PyErr_Clear();
        explained = Py_NewRef(exception);
    }
    Py_DECREF(exception);
    context.fail(t, explained);
    finish_poisoned(t);
    return RecordState::Failed;
}

namespace {

// Objects of a value parameter: the plain value, what a future brought, or the color where `each` was given.
PyObject *value_object(TaskRecord *t, uint32_t i) {
    Launch *l = t->launch;
    FutureState *f = i < l->futures_in.size() ? l->futures_in[i] : nullptr;
    if (f) return future_value(f);
    char type = l->task->params[l->task->value_params[i]].scalar_type;  // native bodies in check mode
    if (i < 64 && (l->color_scalars >> i & 1)) return PyLong_FromLongLong(t->point);
    if (type == 'd') return PyFloat_FromDouble(l->scalars[i].f);
    if (type == 'q') return PyLong_FromLongLong(l->scalars[i].i);
    PyObject *value = l->scalars[i].object;
    return Py_IS_TYPE(value, types().projection) ? color_of(l->domain_shape, l->domain_rank, t->point) : Py_NewRef(value);
}

struct Packed {
    RegionNode *node;
    int field;
    PyObject *array;  // borrowed from the argument objects
};

// The object for one field of one argument.
PyObject *field_object(TaskRecord *t, size_t arg, int field, Privilege p, BodyFrame &frame,
                       std::vector<Packed> &write_back) {
    RegionNode *node = t->nodes[arg];
    if (p == Privilege::Reduce) {
        ReduceBuffer *buffer = buffer_for(t, arg, field);
        PyObject *view = buffer_view(buffer, field);
        if (!view) return nullptr;
        PyObject *result = view;
        if (!node->dense()) {
            PyObject *index = sparse_index(node);
            result = index ? PyObject_CallFunctionObjArgs(python_types().sparse_field, index, view, nullptr) : nullptr;
            Py_XDECREF(index);
            Py_DECREF(view);
        }
        if (result) frame.extra.push_back({result, node, field});
        return result;
    }
    bool writable = p != Privilege::Read;
    if (node->dense()) return dense_view(node, field, writable);
    PyObject *values = packed_copy(node, field, writable);
    PyObject *index = values ? sparse_index(node) : nullptr;
    PyObject *result =
        index ? PyObject_CallFunctionObjArgs(python_types().sparse_field, index, values, nullptr) : nullptr;
    if (result) {
        frame.extra.push_back({result, node, field});
        if (writable) write_back.push_back({node, field, values});
    }
    Py_XDECREF(index);
    Py_XDECREF(values);
    return result;
}

const Resolved &resolved_for(const TaskDef *task, uint16_t param, const Root *root) {
    return *task->resolved[param]->find(root->layout);  // resolved at launch
}

}  // namespace

// A parameter that names its fields gets them as attributes, even if it is only one.
bool names_fields(const Param &p) {
    return std::any_of(p.declared.begin(), p.declared.end(), [](const auto &d) { return !d.fields.empty(); });
}

namespace {

// One attribute per field; reused between runs where all fields are dense and not reduced.
PyObject *struct_object(TaskRecord *t, size_t arg, const Resolved &r, BodyFrame &frame,
                        std::vector<Packed> &write_back) {
    RegionNode *node = t->nodes[arg];
    auto *views = static_cast<NodeViews *>(node->python);
    bool cacheable = node->dense();
    for (const auto &[f, p] : r.fields) cacheable &= p != Privilege::Reduce;
    if (cacheable && views)
        for (auto &s : views->structs)
            if (s.first == r.fields) return Py_NewRef(s.second);
    PyObject *names = PyList_New(0), *values = PyList_New(0), *result = nullptr;
    bool ok = names && values;
    for (const auto &[f, p] : r.fields) {
        if (!ok) break;
        PyObject *value = field_object(t, arg, f, p, frame, write_back);
        PyObject *name = PyUnicode_FromString(node->root->fields[f].name.c_str());
        ok = value && name && PyList_Append(names, name) == 0 && PyList_Append(values, value) == 0;
        Py_XDECREF(name);
        Py_XDECREF(value);
    }
    if (ok) result = PyObject_CallFunctionObjArgs(python_types().fields_view, names, values, nullptr);
    Py_XDECREF(names);
    Py_XDECREF(values);
    if (result && cacheable)
        static_cast<NodeViews *>(node->python)->structs.emplace_back(r.fields, Py_NewRef(result));
    return result;
}

PyObject *call_native_method(PyObject *capsule, PyObject *const *args, Py_ssize_t nargs) {
    auto *t = static_cast<TaskRecord *>(PyCapsule_GetPointer(capsule, nullptr));
    if (!t || nargs != 2) return PyErr_Format(PyExc_TypeError, "a native body takes a list of arrays and one of numbers");
    return call_native(t, args[0], args[1]);
}
PyMethodDef native_method = {"native_body", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_native_method)),
                             METH_FASTCALL, nullptr};

// Runs the body through the front end's guards.
PyObject *run_checked(TaskRecord *t, PyObject *const *args, size_t n) {
    TaskDef *task = t->launch->task;
    PyObject *body = nullptr;
    if (task->body == BodyKind::Python) {
        body = Py_NewRef(task->fn);
    } else if (PyObject *capsule = PyCapsule_New(t, nullptr, nullptr)) {
        body = PyCFunction_New(&native_method, capsule);
        Py_DECREF(capsule);
    }
    PyObject *given = PyTuple_New(static_cast<Py_ssize_t>(n)), *regions = PyTuple_New(t->n_nodes), *result = nullptr;
    bool ok = body && given && regions;
    for (size_t i = 0; ok && i < n; ++i) PyTuple_SET_ITEM(given, static_cast<Py_ssize_t>(i), Py_NewRef(args[i]));
    for (int i = 0; ok && i < t->n_nodes; ++i) {
        PyObject *region = region_object(t->nodes[i]);
        ok = region;
        PyTuple_SET_ITEM(regions, i, region);
    }
    if (ok) result = PyObject_CallFunction(python_types().wrap_body, "OONOO", task->info, given, launch_color(t), regions, body);
    Py_XDECREF(body);
    Py_XDECREF(given);
    Py_XDECREF(regions);
    return result;
}

RecordState run_python(Context &context, TaskRecord *t, int self) {
    Launch *l = t->launch;
    TaskDef *task = l->task;
    size_t n = task->params.size();
    constexpr size_t kStack = 16;
    PyObject *stack[kStack + 1];
    std::unique_ptr<PyObject *[]> heap;
    PyObject **args = stack + 1;
    if (n > kStack) {
        heap = std::make_unique<PyObject *[]>(n + 1);
        args = heap.get() + 1;
    }
    BodyFrame frame{t, {}, frame_slot()};
    std::vector<Packed> write_back;
    size_t made = 0, region = 0, value = 0;
    bool ok = prepare_buffers(t);
    if (!ok && !PyErr_Occurred()) PyErr_NoMemory();
    for (; ok && made < n; ++made) {
        if (task->params[made].kind == ParamKind::Value) {
            args[made] = value_object(t, static_cast<uint32_t>(value++));
        } else {
            size_t arg = region++;
            const Resolved &r = resolved_for(task, static_cast<uint16_t>(made), t->nodes[arg]->root);
            args[made] = r.fields.size() == 1 && !names_fields(task->params[made])
                             ? field_object(t, arg, r.fields[0].first, r.fields[0].second, frame, write_back)
                             : struct_object(t, arg, r, frame, write_back);
        }
        if (!args[made]) ok = false;
        if (!ok) break;
    }
    PyObject *result = nullptr;
    if (ok) {
        frame_slot() = &frame;
        bool on_launcher = self == 0, outer_body = context.launcher_runs_body;
        if (on_launcher) context.launcher_runs_body = true;
        if (context.options().check) {
            result = run_checked(t, args, n);
        } else {
            result = PyObject_Vectorcall(task->fn, args, n | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
        }
        frame_slot() = frame.outer;
        if (on_launcher) context.launcher_runs_body = outer_body;
    }
    if (result)
        for (const Packed &p : write_back)
            scatter_packed(p.node, p.field, PyArray_DATA(reinterpret_cast<PyArrayObject *>(p.array)));
    RecordState state = result ? RecordState::Done : fail_python(context, t);
    for (size_t i = 0; i < made; ++i) Py_DECREF(args[i]);
    if (result && t->future) {
        t->future->value.object = result;
        t->future->type = 'O';
        t->future->ready.store(true, std::memory_order_release);
    } else {
        Py_XDECREF(result);
    }
    return state;
}

}  // namespace

RecordState run_body(Context &context, TaskRecord *t, int self) {
    const TaskDef *task = t->launch->task;
    if (context.options().check) return run_python(context, t, self);  // all bodies: between guards
    if (task->body != BodyKind::Python) return run_native_body(context, t);
    if (context.processes && !task->local) return context.processes->run(context, t, self);
    return run_python(context, t, self);
}

FoldWork::~FoldWork() {
    for (FoldPart &part : parts)
        for (ReduceBuffer *buffer : part.buffers)
            if (buffer) drop_buffer(buffer);
}

namespace {

bool fold_buffer(const FoldPart &part, ReduceBuffer *buffer) {
    const ReduceOp &op = reduce_ops()[part.op];
    auto where = runs(*buffer->node->space, *part.space);
    for (size_t f = 0; f < part.root->fields.size(); ++f) {
        if (!(part.mask >> f & 1)) continue;
        const Field &field = part.root->fields[f];
        std::byte *packed = buffer->field(static_cast<int>(f));
        if (op.builtin) {
            fold_runs(*op.builtin, field.element(), field.data, packed, where);
            continue;
        }
        for (const Run &r : where)
            if (!fold_python(op, field, field.data + r.linear * field.point_bytes, packed + r.packed * field.point_bytes,
                             r.length * field.element().inner))
                return false;
    }
    return true;
}

}  // namespace

RecordState run_fold(Context &context, TaskRecord *t) {
    for (FoldPart &part : static_cast<FoldWork *>(t->launch->work)->parts)
        for (ReduceBuffer *&buffer : part.buffers) {
            // The buffer of a task that was skipped holds nothing.
            if (buffer->data && !fold_buffer(part, buffer)) return fail_python(context, t);
            drop_buffer(buffer);
            buffer = nullptr;
        }
    return RecordState::Done;
}

// A user's operator: fn(old, new) on arrays. False with an exception set.
bool fold_python(const ReduceOp &op, const Field &field, std::byte *dst, std::byte *src, int64_t n) {
    npy_intp dims = static_cast<npy_intp>(n);
    auto *descr = static_cast<PyArray_Descr *>(field.descr);
    auto wrap = [&](std::byte *data) {
        Py_INCREF(descr);
        return PyArray_NewFromDescr(&PyArray_Type, descr, 1, &dims, nullptr, data, NPY_ARRAY_CARRAY, nullptr);
    };
    PyObject *a = wrap(dst), *b = wrap(src);
    PyObject *result = a && b ? PyObject_CallFunctionObjArgs(op.fn, a, b, nullptr) : nullptr;
    bool ok = result && PyArray_CopyObject(reinterpret_cast<PyArrayObject *>(a), result) == 0;
    Py_XDECREF(result);
    Py_XDECREF(a);
    Py_XDECREF(b);
    return ok;
}

// ---- futures ----
namespace {
std::atomic<FutureState *> g_dead_futures{nullptr};
}

FutureState *new_future(char type) {
    auto *f = new FutureState;
    f->type = type;
    return f;
}

PyObject *future_value(const FutureState *f) {
    if (f->type == 'd') return PyFloat_FromDouble(f->value.f);
    if (f->type == 'q') return PyLong_FromLongLong(f->value.i);
    return Py_NewRef(f->value.object);
}

// A task whose predicate is false does nothing; its future, if any, holds None.
bool skipped(TaskRecord *t) {
    const FutureState *p = t->launch->predicate;
    if (!p) return false;
    if (p->type == 'd' && p->value.f != 0) return false;
    if (p->type == 'q' && p->value.i != 0) return false;
    if (p->type != 'O' && !t->future) return true;
    Gil gil;
    if (p->type == 'O') {
        int truth = PyObject_IsTrue(p->value.object);
        if (truth < 0) PyErr_Clear();
        if (truth > 0) return false;
    }
    if (t->future) {
        t->future->type = 'O';
        t->future->value.object = Py_NewRef(Py_None);
        t->future->ready.store(true, std::memory_order_release);
    }
    return true;
}

void drop_future(FutureState *f) {
    if (f->refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    FutureState *head = g_dead_futures.load(std::memory_order_relaxed);
    do f->next_dead = head;
    while (!g_dead_futures.compare_exchange_weak(head, f, std::memory_order_release, std::memory_order_relaxed));
}

void free_futures() {
    FutureState *f = g_dead_futures.exchange(nullptr, std::memory_order_acquire);
    while (f) {
        FutureState *next = f->next_dead;
        if (f->ready.load() && f->type == 'O') Py_XDECREF(f->value.object);
        if (Failure *failure = f->failure.load()) failure->futures.fetch_sub(1);
        delete f;
        f = next;
    }
}

void finish_poisoned(TaskRecord *t) {
    if (!t->future) return;
    Failure *failure = t->failure.load();
    failure->futures.fetch_add(1);
    t->future->failure.store(failure, std::memory_order_release);
}

}  // namespace burnish::runtime
