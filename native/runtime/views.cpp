#include "views.hpp"

#include <cstring>

#include "numpy.hpp"

namespace burnish::runtime {

PythonTypes &python_types() {
    static PythonTypes types;
    return types;
}

NodeViews::~NodeViews() {
    for (PyObject *o : read_only) Py_XDECREF(o);
    for (PyObject *o : writable) Py_XDECREF(o);
    for (auto &s : structs) Py_XDECREF(s.second);
    Py_XDECREF(index);
}

namespace {

NodeViews &views_of(RegionNode *node) {
    if (!node->python) {
        auto *v = new NodeViews;
        v->read_only.resize(node->root->fields.size());
        v->writable.resize(node->root->fields.size());
        node->python = v;
    }
    return *static_cast<NodeViews *>(node->python);
}

// A strided array over memory that `base` keeps alive.
PyObject *wrap(const Field &f, int nd, npy_intp *dims, npy_intp *strides, std::byte *data, bool writable,
               PyObject *base) {
    auto *descr = static_cast<PyArray_Descr *>(f.descr);
    Py_INCREF(descr);
    int flags = writable ? NPY_ARRAY_WRITEABLE : 0;
    PyObject *array = PyArray_NewFromDescr(&PyArray_Type, descr, nd, dims, strides, data, flags | NPY_ARRAY_ALIGNED,
                                           nullptr);
    if (!array) return nullptr;
    PyArray_UpdateFlags(reinterpret_cast<PyArrayObject *>(array), NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS);
    Py_INCREF(base);
    if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject *>(array), base) < 0) {
        Py_DECREF(array);
        return nullptr;
    }
    return array;
}

// Dimensions of one point's inner shape behind `nd` outer ones.
int append_inner(const Field &f, int nd, npy_intp *dims, npy_intp *strides) {
    int64_t step = f.point_bytes;
    for (int64_t n : f.inner) {
        step = n ? step / n : step;
        dims[nd] = n;
        strides[nd++] = step;
    }
    return nd;
}

}  // namespace

PyObject *new_view(Root *root, int field, const Rect &r, bool writable) {
    const Field &f = root->fields[field];
    npy_intp dims[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    int64_t step = f.point_bytes, offset = 0;
    for (int d = root->bounds.dim - 1; d >= 0; --d) {
        dims[d] = std::max<int64_t>(0, r.hi[d] - r.lo[d]);
        strides[d] = step;
        offset += (r.lo[d] - root->bounds.lo[d]) * step;
        step *= root->bounds.hi[d] - root->bounds.lo[d];
    }
    bool empty = r.empty();
    int nd = append_inner(f, root->bounds.dim, dims, strides);
    return wrap(f, nd, dims, strides, f.data + (empty ? 0 : offset), writable, static_cast<PyObject *>(root->python));
}

PyObject *dense_view(RegionNode *node, int field, bool writable) {
    NodeViews &v = views_of(node);
    PyObject *&slot = (writable ? v.writable : v.read_only)[field];
    if (!slot) slot = new_view(node->root, field, shown_bounds(node), writable);
    Py_XINCREF(slot);
    return slot;
}

PyObject *buffer_view(ReduceBuffer *buffer, int field) {
    RegionNode *node = buffer->node;
    const Field &f = node->root->fields[field];
    npy_intp dims[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    int nd;
    if (node->dense()) {
        const Rect &r = node->space->bounds();
        int64_t step = f.point_bytes;
        nd = r.dim;
        for (int d = nd - 1; d >= 0; --d) {
            dims[d] = std::max<int64_t>(0, r.hi[d] - r.lo[d]);
            strides[d] = step;
            step *= dims[d];
        }
    } else {
        nd = 1;
        dims[0] = node->space->volume();
        strides[0] = f.point_bytes;
    }
    nd = append_inner(f, nd, dims, strides);
    buffer->refs.fetch_add(1);
    PyObject *owner = PyCapsule_New(buffer, nullptr, [](PyObject *c) {
        drop_buffer(static_cast<ReduceBuffer *>(PyCapsule_GetPointer(c, nullptr)));
    });
    if (!owner) return nullptr;
    PyObject *array = wrap(f, nd, dims, strides, buffer->field(field), true, owner);
    Py_DECREF(owner);
    return array;
}

PyObject *sparse_index(RegionNode *node) {
    NodeViews &v = views_of(node);
    if (!v.index) {
        auto points = node->space->linear_points();
        npy_intp n = static_cast<npy_intp>(points.size());
        v.index = PyArray_SimpleNew(1, &n, NPY_INT64);
        if (!v.index) return nullptr;
        if (n) std::memcpy(PyArray_DATA(reinterpret_cast<PyArrayObject *>(v.index)), points.data(), n * 8);
        PyArray_CLEARFLAGS(reinterpret_cast<PyArrayObject *>(v.index), NPY_ARRAY_WRITEABLE);
    }
    Py_INCREF(v.index);
    return v.index;
}

void gather_packed(RegionNode *node, int field, void *packed) {
    const Field &f = node->root->fields[field];
    auto *out = static_cast<std::byte *>(packed);
    for (const Interval &i : node->space->intervals()) {
        size_t bytes = static_cast<size_t>((i.hi - i.lo) * f.point_bytes);
        std::memcpy(out, f.data + i.lo * f.point_bytes, bytes);
        out += bytes;
    }
}

void scatter_packed(RegionNode *node, int field, const void *packed) {
    const Field &f = node->root->fields[field];
    auto *in = static_cast<const std::byte *>(packed);
    for (const Interval &i : node->space->intervals()) {
        size_t bytes = static_cast<size_t>((i.hi - i.lo) * f.point_bytes);
        std::memcpy(f.data + i.lo * f.point_bytes, in, bytes);
        in += bytes;
    }
}

PyObject *packed_copy(RegionNode *node, int field, bool writable) {
    const Field &f = node->root->fields[field];
    npy_intp dims[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    dims[0] = node->space->volume();
    int nd = append_inner(f, 1, dims, strides);
    auto *descr = static_cast<PyArray_Descr *>(f.descr);
    Py_INCREF(descr);
    PyObject *array = PyArray_NewFromDescr(&PyArray_Type, descr, nd, dims, nullptr, nullptr, 0, nullptr);
    if (!array) return nullptr;
    gather_packed(node, field, PyArray_DATA(reinterpret_cast<PyArrayObject *>(array)));
    if (!writable) PyArray_CLEARFLAGS(reinterpret_cast<PyArrayObject *>(array), NPY_ARRAY_WRITEABLE);
    return array;
}

namespace {
thread_local BodyFrame *t_frame = nullptr;
}
BodyFrame *current_frame() { return t_frame; }
BodyFrame *&frame_slot() { return t_frame; }

Placed place_of(PyObject *array) {
    if (!t_frame) return {array, nullptr, 0};
    for (const Placed &e : t_frame->extra)
        if (e.array == array) return e;
    TaskRecord *t = t_frame->record;
    for (int i = 0; i < t->n_nodes; ++i) {
        auto *v = static_cast<NodeViews *>(t->nodes[i]->python);
        if (!v) continue;
        for (auto *list : {&v->read_only, &v->writable})
            for (size_t f = 0; f < list->size(); ++f)
                if ((*list)[f] == array) return {array, t->nodes[i], static_cast<int>(f)};
    }
    return {array, nullptr, 0};
}

}  // namespace burnish::runtime
