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

void drop_buffer(ReduceBuffer *buffer) {
    if (buffer->refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    if (buffer->data) {
        reduce_bytes.fetch_sub(static_cast<int64_t>(buffer->bytes), std::memory_order_relaxed);
        give_memory(buffer->data);
    }
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

// The color as messages show it; None for a single launch.
PyObject *launch_color(const TaskRecord *t) {
    return t->point < 0 ? Py_NewRef(Py_None) : color_of(t->launch->domain_shape, t->launch->domain_rank, t->point);
}

// Objects of a value parameter: the plain value, what a future brought, or the color where `each` was given.
PyObject *value_object(TaskRecord *t, uint32_t i) {
    Launch *l = t->launch;
    FutureState *f = i < l->futures_in.size() ? l->futures_in[i] : nullptr;
    if (f) return future_value(f);
    PyObject *value = l->scalars[i].object;
    return Py_IS_TYPE(value, types().projection) ? color_of(l->domain_shape, l->domain_rank, t->point) : Py_NewRef(value);
}

}  // namespace

// Buffers of one task, allocated and filled with identities when its body starts.
bool prepare_buffers(TaskRecord *t) {
    if (!t->buffers) return true;
    for (ReduceBuffer **b = t->buffers; *b; ++b) {
        ReduceBuffer *buffer = *b;
        const auto &fields = buffer->node->root->fields;
        int64_t n = buffer->node->space->volume();
        size_t bytes = 0;
        for (size_t f = 0; f < fields.size(); ++f)
            if (buffer->mask >> f & 1) bytes += static_cast<size_t>(n * fields[f].point_bytes);
        buffer->bytes = bytes;
        if (!buffer->data) {  // else: its task is run again
            buffer->data = take_memory(bytes);
            reduce_bytes.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
        }
        const ReduceOp &op = reduce_ops()[buffer->op];
        for (size_t f = 0; f < fields.size(); ++f)
            if ((buffer->mask >> f & 1) && op.builtin)
                fill_identity(*op.builtin, fields[f].element(), buffer->field(static_cast<int>(f)), n);
    }
    return true;
}

namespace {

ReduceBuffer *buffer_for(TaskRecord *t, size_t arg, int field) {
    for (ReduceBuffer **b = t->buffers; b && *b; ++b)
        if ((*b)->arg == arg && ((*b)->mask >> field & 1)) return *b;
    return nullptr;
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
        const ReduceOp &op = reduce_ops()[buffer->op];
        if (!op.builtin && PyArray_FillWithScalar(reinterpret_cast<PyArrayObject *>(view), op.identity) < 0) {
            Py_DECREF(view);
            return nullptr;
        }
        frame.extra.emplace_back(view, node);
        if (node->dense()) return view;
        PyObject *index = sparse_index(node);
        PyObject *result = index ? PyObject_CallFunctionObjArgs(python_types().sparse_field, index, view, nullptr) : nullptr;
        Py_XDECREF(index);
        Py_DECREF(view);
        return result;
    }
    bool writable = p != Privilege::Read;
    if (node->dense()) return dense_view(node, field, writable);
    PyObject *values = packed_copy(node, field, writable);
    PyObject *index = values ? sparse_index(node) : nullptr;
    PyObject *result =
        index ? PyObject_CallFunctionObjArgs(python_types().sparse_field, index, values, nullptr) : nullptr;
    if (result) {
        frame.extra.emplace_back(values, node);
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
    if (!ok) PyErr_NoMemory();
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
        PyObject *wrap = context.options().check ? python_types().wrap_body : nullptr;
        if (wrap) {
            PyObject *tuple = PyTuple_New(static_cast<Py_ssize_t>(n));
            for (size_t i = 0; i < n; ++i) PyTuple_SET_ITEM(tuple, i, Py_NewRef(args[i]));
            result = PyObject_CallFunction(wrap, "OOL", task->fn, tuple, static_cast<long long>(t->point));
            Py_DECREF(tuple);
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

void fill_array(NativeArray &a, RegionNode *node, int field) {
    const Field &f = node->root->fields[field];
    int nd;
    if (node->dense()) {
        const Rect &r = node->space->bounds();
        const Rect &bounds = node->root->bounds;
        int64_t step = f.point_bytes, offset = 0;
        nd = bounds.dim;
        for (int d = nd - 1; d >= 0; --d) {
            a.shape[d] = std::max<int64_t>(0, r.hi[d] - r.lo[d]);
            a.strides[d] = step;
            offset += (r.lo[d] - bounds.lo[d]) * step;
            step *= bounds.hi[d] - bounds.lo[d];
        }
        a.data = f.data + offset;
    } else {
        nd = 1;
        a.shape[0] = node->space->volume();
        a.strides[0] = f.point_bytes;
        a.data = nullptr;  // packed by the caller
    }
    int64_t step = f.point_bytes;
    for (int64_t extent : f.inner) {
        step = extent ? step / extent : step;
        a.shape[nd] = extent;
        a.strides[nd++] = step;
    }
    a.ndim = nd;
}

struct Gil {
    PyGILState_STATE state = PyGILState_Ensure();
    ~Gil() { PyGILState_Release(state); }
};

// Puts the values of futures among the scalars of a native body, converted to their declared types. On a value that
// does not fit, the task fails.
bool fill_future_scalars(Context &context, TaskRecord *t, std::vector<Scalar> &scalars) {
    const Launch *l = t->launch;
    const TaskDef *task = l->task;
    for (size_t i = 0; i < l->futures_in.size(); ++i) {
        const FutureState *f = l->futures_in[i];
        if (!f) continue;
        char type = task->params[task->value_params[i]].scalar_type;
        if (f->type == type) {
            scalars[i] = f->value;
            continue;
        }
        Gil gil;
        PyObject *value = future_value(f);
        if (type == 'd') scalars[i].f = PyFloat_AsDouble(value);
        else scalars[i].i = PyLong_AsLongLong(value);
        Py_DECREF(value);
        if (PyErr_Occurred()) {
            fail_python(context, t);
            return false;
        }
    }
    return true;
}

RecordState fail_memory(Context &context, TaskRecord *t) {
    Gil gil;
    PyErr_NoMemory();
    return fail_python(context, t);
}

RecordState run_native_body(Context &context, TaskRecord *t) {
    Launch *l = t->launch;
    TaskDef *task = l->task;
    if (!prepare_buffers(t)) return fail_memory(context, t);
    constexpr int kStack = 12;
    NativeArray stack[kStack];
    std::vector<NativeArray> heap;
    struct Loan {
        RegionNode *node;
        int field;
        std::unique_ptr<std::byte[]> bytes;
        bool write;
    };
    std::vector<Loan> loans;
    int count = 0;
    for (size_t i = 0; i < task->region_params.size(); ++i)
        count += static_cast<int>(resolved_for(task, task->region_params[i], t->nodes[i]->root).fields.size());
    NativeArray *arrays = stack;
    if (count > kStack) {
        heap.resize(count);
        arrays = heap.data();
    }
    int k = 0;
    for (size_t i = 0; i < task->region_params.size(); ++i) {
        RegionNode *node = t->nodes[i];
        for (const auto &[f, p] : resolved_for(task, task->region_params[i], node->root).fields) {
            NativeArray &a = arrays[k++];
            fill_array(a, node, f);
            if (p == Privilege::Reduce) {
                ReduceBuffer *buffer = buffer_for(t, i, f);
                a.data = buffer->field(f);
                int64_t step = node->root->fields[f].point_bytes;  // packed row-major
                int outer = node->dense() ? node->root->bounds.dim : 1;
                for (int d = outer - 1; d >= 0; --d) {
                    a.strides[d] = step;
                    step *= a.shape[d];
                }
            } else if (!node->dense()) {
                size_t bytes = static_cast<size_t>(node->space->volume() * node->root->fields[f].point_bytes);
                loans.push_back({node, f, std::make_unique<std::byte[]>(bytes + 1), p != Privilege::Read});
                gather_packed(node, f, loans.back().bytes.get());
                a.data = loans.back().bytes.get();
            }
        }
    }
    const Scalar *scalars = l->scalars;
    std::vector<Scalar> filled;
    if (!l->futures_in.empty()) {
        filled.assign(l->scalars, l->scalars + l->n_scalars);
        if (!fill_future_scalars(context, t, filled)) return RecordState::Failed;
        scalars = filled.data();
    }
    NativeCall call{arrays, scalars, t->point, task->native_user, {}};
    task->native(&call);
    for (const Loan &loan : loans)
        if (loan.write) scatter_packed(loan.node, loan.field, loan.bytes.get());
    if (t->future) {
        t->future->value = call.result;
        t->future->type = task->return_type;
        t->future->ready.store(true, std::memory_order_release);
    }
    return RecordState::Done;
}

}  // namespace

RecordState run_body(Context &context, TaskRecord *t, int self) {
    const TaskDef *task = t->launch->task;
    if (task->body != BodyKind::Python) return run_native_body(context, t);
    if (context.processes && !task->local) return context.processes->run(context, t, self);
    return run_python(context, t, self);
}

void run_fold(FoldWork &work) {
    for (FoldPart &part : work.parts) {
        const ReduceOp &op = reduce_ops()[part.op];
        for (ReduceBuffer *buffer : part.buffers) {
            if (!buffer->data) {  // its task was skipped
                drop_buffer(buffer);
                continue;
            }
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
                    fold_python(op, field, field.data + r.linear * field.point_bytes, packed + r.packed * field.point_bytes,
                                r.length * field.element().inner);
            }
            drop_buffer(buffer);
        }
    }
}

// A user's operator: fn(old, new) on arrays.
void fold_python(const ReduceOp &op, const Field &field, std::byte *dst, std::byte *src, int64_t n) {
    npy_intp dims = static_cast<npy_intp>(n);
    auto *descr = static_cast<PyArray_Descr *>(field.descr);
    auto wrap = [&](std::byte *data) {
        Py_INCREF(descr);
        return PyArray_NewFromDescr(&PyArray_Type, descr, 1, &dims, nullptr, data, NPY_ARRAY_CARRAY, nullptr);
    };
    PyObject *a = wrap(dst), *b = wrap(src);
    PyObject *result = a && b ? PyObject_CallFunctionObjArgs(op.fn, a, b, nullptr) : nullptr;
    if (!result || PyArray_CopyObject(reinterpret_cast<PyArrayObject *>(a), result) < 0) PyErr_WriteUnraisable(op.fn);
    Py_XDECREF(result);
    Py_XDECREF(a);
    Py_XDECREF(b);
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
        delete f;
        f = next;
    }
}

void finish_poisoned(TaskRecord *t) {
    if (!t->future) return;
    t->future->failure.store(t->failure.load());
    t->future->ready.store(false);
}

}  // namespace burnish::runtime
