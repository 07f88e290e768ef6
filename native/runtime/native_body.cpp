// Bodies given as function pointers: what they get, which compiled variant runs, and what their status means.
#include <algorithm>
#include <cstring>

#include "body.hpp"
#include "numpy.hpp"
#include "pytypes.hpp"
#include "views.hpp"

namespace burnish::runtime {

namespace {

// Row-major positions of a sparse node's points; made once, freed with the root.
const int64_t *points_of(RegionNode *node) {
    const int64_t *known = node->points.load(std::memory_order_acquire);
    if (known) return known;
    auto list = node->space->linear_points();
    auto *made = new int64_t[list.size() + 1];
    std::copy(list.begin(), list.end(), made);
    if (node->points.compare_exchange_strong(known, made, std::memory_order_acq_rel)) return made;
    delete[] made;  // another worker was first
    return known;
}

void describe(NativeArray &a, RegionNode *node, int field) {
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
        a.data = f.data + (r.empty() ? 0 : offset);
        a.index = nullptr;
    } else {
        nd = 1;
        a.shape[0] = node->space->volume();
        a.strides[0] = f.point_bytes;
        a.data = nullptr;  // packed by the caller
        a.index = points_of(node);
    }
    int64_t step = f.point_bytes;
    for (int64_t extent : f.inner) {
        step = extent ? step / extent : step;
        a.shape[nd] = extent;
        a.strides[nd++] = step;
    }
    a.ndim = nd;
}

// Reduction buffers are packed row-major.
void use_buffer(NativeArray &a, ReduceBuffer *buffer, int field) {
    RegionNode *node = buffer->node;
    a.data = buffer->field(field);
    int64_t step = node->root->fields[field].point_bytes;
    for (int d = (node->dense() ? node->root->bounds.dim : 1) - 1; d >= 0; --d) {
        a.strides[d] = step;
        step *= a.shape[d];
    }
}

struct Loan {
    RegionNode *node;
    int field;
    std::unique_ptr<std::byte[]> bytes;
    bool write;
};

const Resolved &resolved_for(const TaskRecord *t, size_t arg) {
    const TaskDef *task = t->launch->task;
    return *task->resolved[task->region_params[arg]]->find(t->nodes[arg]->root->layout);  // resolved at launch
}

// The arrays of one run: one entry per (region argument, field) in declaration order.
class Arrays {
   public:
    // `loans`: where to keep packed copies of sparse arguments (null: the caller provides all data).
    Arrays(TaskRecord *t, std::vector<Loan> *loans) {
        size_t args = t->launch->task->region_params.size();
        for (size_t i = 0; i < args; ++i) count_ += resolved_for(t, i).fields.size();
        if (count_ > kInline) heap_ = std::make_unique<NativeArray[]>(count_);
        NativeArray *a = data();
        for (size_t i = 0; i < args; ++i)
            for (const auto &[f, p] : resolved_for(t, i).fields) fill(*a++, t, i, f, p, loans);
    }
    NativeArray *data() { return heap_ ? heap_.get() : inline_; }
    size_t count() const { return count_; }

   private:
    static constexpr size_t kInline = 12;
    static void fill(NativeArray &a, TaskRecord *t, size_t arg, int f, Privilege p, std::vector<Loan> *loans) {
        RegionNode *node = t->nodes[arg];
        describe(a, node, f);
        if (p == Privilege::Reduce) {
            use_buffer(a, buffer_for(t, arg, f), f);
        } else if (!node->dense() && loans) {
            size_t bytes = static_cast<size_t>(node->space->volume() * node->root->fields[f].point_bytes);
            loans->push_back({node, f, std::make_unique<std::byte[]>(bytes + 1), p != Privilege::Read});
            gather_packed(node, f, loans->back().bytes.get());
            a.data = loans->back().bytes.get();
        }
    }
    size_t count_ = 0;
    NativeArray inline_[kInline];
    std::unique_ptr<NativeArray[]> heap_;
};

// A Python value as a native scalar; false with an exception set. GIL held.
bool to_scalar(PyObject *value, char type, Scalar &out) {
    if (type == 'd') out.f = PyFloat_AsDouble(value);
    else out.i = PyLong_AsLongLong(value);
    return !PyErr_Occurred();
}

// Values that come from futures, or from the color, in place of the launch's own. False: the task has failed.
bool gather_scalars(Context &context, TaskRecord *t, std::vector<Scalar> &scalars) {
    Launch *l = t->launch;
    TaskDef *task = l->task;
    scalars.assign(l->scalars, l->scalars + l->n_scalars);
    for (uint32_t i = 0; i < l->n_scalars; ++i) {
        char type = task->params[task->value_params[i]].scalar_type;
        if (i < 64 && (l->color_scalars >> i & 1)) {
            if (type == 'd') scalars[i].f = static_cast<double>(t->point);
            else scalars[i].i = t->point;
        }
        FutureState *f = i < l->futures_in.size() ? l->futures_in[i] : nullptr;
        if (!f) continue;
        if (f->type == type) {
            scalars[i] = f->value;
            continue;
        }
        Gil gil;
        PyObject *value = future_value(f);
        bool ok = value && to_scalar(value, type, scalars[i]);
        Py_XDECREF(value);
        if (ok) continue;
        fail_python(context, t);
        return false;
    }
    return true;
}

// Sets the Python exception of a body that returned a status. GIL held; takes over call.exception.
void raise_status(const TaskDef *task, const NativeCall &call) {
    PyObject *exception = call.exception ? call.exception : Py_NewRef(Py_None);
    PyObject *result = PyObject_CallFunction(python_types().native_failure, "OLzN", task->info,
                                             static_cast<long long>(call.status), call.message, exception);
    Py_XDECREF(result);
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "a native body failed");
}

bool contiguous(const RegionNode *node) {
    if (!node->dense()) return true;
    const Rect &r = node->space->bounds(), &b = node->root->bounds;
    int d = 0;
    while (d < r.dim && r.hi[d] - r.lo[d] <= 1) ++d;
    for (++d; d < r.dim; ++d)
        if (r.lo[d] != b.lo[d] || r.hi[d] != b.hi[d]) return false;
    return true;
}

void kernel_key(const TaskDef *task, RegionNode *const *nodes, bool check, std::vector<uint64_t> &key) {
    key.assign(1, check);
    for (size_t i = 0; i < task->region_params.size(); ++i)
        key.push_back(uint64_t{nodes[i]->root->layout} << 2 | uint64_t{nodes[i]->dense()} << 1 | contiguous(nodes[i]));
}

NativeBody body_of(const TaskDef *task, RegionNode *const *nodes, bool check) {
    if (!task->lazy) return task->native;
    thread_local std::vector<uint64_t> key;
    kernel_key(task, nodes, check, key);
    return task->kernels.find(key);
}

}  // namespace

bool ensure_kernel(Context *c, TaskDef *task, RegionNode *const *nodes) {
    std::vector<uint64_t> key;
    bool check = c->options().check;
    kernel_key(task, nodes, check, key);
    if (task->kernels.find(key)) return true;
    Py_ssize_t n = static_cast<Py_ssize_t>(task->region_params.size());
    PyObject *regions = PyTuple_New(n), *flags = PyTuple_New(n);
    for (Py_ssize_t i = 0; i < n; ++i) {
        PyTuple_SET_ITEM(regions, i, region_object(nodes[i]));
        PyTuple_SET_ITEM(flags, i, PyBool_FromLong(contiguous(nodes[i])));
    }
    PyObject *address = PyObject_CallFunction(types().compile, "ONNi", task->info, regions, flags, static_cast<int>(check));
    if (!address) return false;
    auto body = reinterpret_cast<NativeBody>(PyLong_AsVoidPtr(address));
    Py_DECREF(address);
    if (PyErr_Occurred()) return false;
    if (task->kernels.add({std::move(key), body})) return true;
    PyErr_Format(PyExc_RuntimeError, "task '%s' met more than %d different layouts", task->name.c_str(), KernelTable::kMax);
    return false;
}

RecordState run_native_body(Context &context, TaskRecord *t) {
    Launch *l = t->launch;
    TaskDef *task = l->task;
    if (!prepare_buffers(t)) {
        Gil gil;
        if (!PyErr_Occurred()) PyErr_NoMemory();
        return fail_python(context, t);
    }
    std::vector<Loan> loans;
    Arrays arrays(t, &loans);
    std::vector<Scalar> values;
    const Scalar *scalars = l->scalars;
    if (!l->futures_in.empty() || l->color_scalars) {
        if (!gather_scalars(context, t, values)) return RecordState::Failed;
        scalars = values.data();
    }
    NativeCall call{arrays.data(), scalars, t->point, task->native_user, {}, 0, nullptr, nullptr};
    body_of(task, t->nodes, context.options().check)(&call);
    if (call.status) {
        Gil gil;
        raise_status(task, call);
        return fail_python(context, t);
    }
    for (const Loan &loan : loans)
        if (loan.write) scatter_packed(loan.node, loan.field, loan.bytes.get());
    if (t->future) {
        t->future->value = call.result;
        t->future->type = task->return_type;
        t->future->ready.store(true, std::memory_order_release);
    }
    return RecordState::Done;
}

PyObject *call_native(TaskRecord *t, PyObject *given, PyObject *values) {
    TaskDef *task = t->launch->task;
    Arrays arrays(t, nullptr);
    std::vector<Scalar> scalars(task->value_params.size());
    if (PyList_GET_SIZE(given) != static_cast<Py_ssize_t>(arrays.count()) ||
        PyList_GET_SIZE(values) != static_cast<Py_ssize_t>(scalars.size())) {
        PyErr_SetString(PyExc_RuntimeError, "a native body was given another number of arguments");
        return nullptr;
    }
    for (size_t i = 0; i < arrays.count(); ++i) {
        PyObject *array = PyList_GET_ITEM(given, static_cast<Py_ssize_t>(i));
        arrays.data()[i].data = static_cast<std::byte *>(PyArray_DATA(reinterpret_cast<PyArrayObject *>(array)));
    }
    for (size_t i = 0; i < scalars.size(); ++i) {
        char type = task->params[task->value_params[i]].scalar_type;
        if (!to_scalar(PyList_GET_ITEM(values, static_cast<Py_ssize_t>(i)), type, scalars[i])) return nullptr;
    }
    NativeCall call{arrays.data(), scalars.data(), t->point, task->native_user, {}, 0, nullptr, nullptr};
    NativeBody body = body_of(task, t->nodes, true);
    Py_BEGIN_ALLOW_THREADS;
    body(&call);
    Py_END_ALLOW_THREADS;
    if (call.status) {
        raise_status(task, call);
        return nullptr;
    }
    if (!task->returns) return Py_NewRef(Py_None);
    return task->return_type == 'd' ? PyFloat_FromDouble(call.result.f) : PyLong_FromLongLong(call.result.i);
}

}  // namespace burnish::runtime
