#include "pytypes.hpp"

#include <structmember.h>

#include <algorithm>
#include <map>

#include "op.hpp"
#include "views.hpp"

namespace burnish::runtime {

TypeRegistry &types() {
    static TypeRegistry registry{};
    return registry;
}

PyObject *raise(const char *kind, PyObject *payload) {
    if (!payload) return nullptr;
    PyObject *result = PyObject_CallFunction(types().error, "sN", kind, payload);
    if (result) {
        Py_DECREF(result);
        PyErr_Format(PyExc_RuntimeError, "unreported error of kind %s", kind);
    }
    return nullptr;
}

void release_root(Root *root) {
    if (--root->refs > 0) return;
    if (root->pool) {
        root->pool->give(root);
    } else if (Context *c = current()) {
        c->retire_root(root);
    } else {
        free_root_data(root);
        delete_root(root);
    }
}

void free_root_data(Root *root) {
    for (TaskDef *task : task_registry())
        std::erase_if(task->plans, [&](const auto &plan) {
            return std::find(plan->roots.begin(), plan->roots.end(), root) != plan->roots.end();
        });
    for (auto &node : root->nodes) {
        delete static_cast<NodeViews *>(node->python);
        node->python = nullptr;
    }
    for (auto &f : root->fields) Py_XDECREF(static_cast<PyObject *>(f.descr));
    for (auto &part : root->partitions) Py_XDECREF(static_cast<PyObject *>(part->origin));
    Py_XDECREF(static_cast<PyObject *>(root->origin));
    Py_XDECREF(static_cast<PyObject *>(root->python));
    root->fields.clear();
    for (const auto &atom : root->atoms)
        for (const auto &e : atom->entries)
            for (const auto &r : e.reducers) drop_buffer(r.second);
    root->atoms.clear();
}

void delete_root(Root *root) { delete root; }

namespace {

uint64_t next_uid() {
    static uint64_t uid = uint64_t{1} << 40;  // apart from node ids
    return ++uid;
}

template <class T>
T *alloc(PyTypeObject *type) {
    return reinterpret_cast<T *>(type->tp_alloc(type, 0));
}

void free_object(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

// ---- region ----
void region_dealloc(PyObject *self) {
    if (PyObject_IS_GC(self)) PyObject_GC_UnTrack(self);
    if (auto *node = reinterpret_cast<RegionObject *>(self)->node) release_root(node->root);
    free_object(self);
}
Py_hash_t region_hash(PyObject *self) { return reinterpret_cast<RegionObject *>(self)->node->id; }
PyObject *region_compare(PyObject *a, PyObject *b, int op) {
    if ((op != Py_EQ && op != Py_NE) || !PyObject_TypeCheck(b, types().region_base)) Py_RETURN_NOTIMPLEMENTED;
    bool same = reinterpret_cast<RegionObject *>(a)->node == reinterpret_cast<RegionObject *>(b)->node;
    return PyBool_FromLong(same == (op == Py_EQ));
}
PyType_Slot region_slots[] = {{Py_tp_dealloc, (void *)region_dealloc},
                              {Py_tp_hash, (void *)region_hash},
                              {Py_tp_richcompare, (void *)region_compare},
                              {0, nullptr}};
PyType_Spec region_spec = {"burnish._native.runtime.RegionBase", sizeof(RegionObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, region_slots};

// ---- projections ----
std::map<std::vector<int64_t>, ProjectionObject *> &interned() {
    static std::map<std::vector<int64_t>, ProjectionObject *> table;
    return table;
}

// One object for each (rank, axes, offsets), alive for ever: identity is equality on the launch path.
PyObject *projection_of(int rank, int n_offsets, const int *axis, const int64_t *offset) {
    std::vector<int64_t> key = {rank, n_offsets};
    int n = rank ? rank : n_offsets;
    for (int d = 0; d < n; ++d) {
        key.push_back(rank ? axis[d] : 0);
        key.push_back(offset[d]);
    }
    auto &slot = interned()[key];
    if (!slot) {
        slot = alloc<ProjectionObject>(types().projection);
        if (!slot) return nullptr;
        slot->uid = next_uid();
        slot->rank = rank;
        slot->n_offsets = n_offsets;
        for (int d = 0; d < n; ++d) {
            slot->axis[d] = rank ? axis[d] : 0;
            slot->offset[d] = offset[d];
        }
        slot->fn = nullptr;
    }
    return Py_NewRef(reinterpret_cast<PyObject *>(slot));
}

bool read_offsets(PyObject *o, int64_t *out, int *n) {
    if (PyLong_Check(o)) {
        out[0] = PyLong_AsLongLong(o);
        *n = 1;
        return !PyErr_Occurred();
    }
    if (PyTuple_Check(o) && PyTuple_GET_SIZE(o) >= 1 && PyTuple_GET_SIZE(o) <= kMaxDim) {
        *n = static_cast<int>(PyTuple_GET_SIZE(o));
        for (int d = 0; d < *n; ++d) {
            out[d] = PyLong_AsLongLong(PyTuple_GET_ITEM(o, d));
            if (out[d] == -1 && PyErr_Occurred()) return false;
        }
        return true;
    }
    PyErr_SetString(PyExc_TypeError, "each + offset: the offset is an int or a tuple of ints");
    return false;
}

PyObject *projection_shift(PyObject *a, PyObject *b, int sign) {
    if (!Py_IS_TYPE(a, types().projection)) {  // int + each
        if (sign < 0 || !Py_IS_TYPE(b, types().projection)) Py_RETURN_NOTIMPLEMENTED;
        std::swap(a, b);
    }
    auto *p = reinterpret_cast<ProjectionObject *>(a);
    int64_t by[kMaxDim];
    int n;
    if (!read_offsets(b, by, &n)) return nullptr;
    if (p->fn) {
        PyErr_SetString(PyExc_TypeError, "each.map(f) takes no offset; add it inside f");
        return nullptr;
    }
    int64_t offset[kMaxDim];
    if (p->rank) {  // one axis: each.x + 1
        if (n != 1 || p->rank != 1) {
            PyErr_SetString(PyExc_TypeError, "each.x + offset: the offset is one int");
            return nullptr;
        }
        offset[0] = p->offset[0] + sign * by[0];
        return projection_of(1, 0, p->axis, offset);
    }
    if (p->n_offsets && p->n_offsets != n) {
        PyErr_SetString(PyExc_TypeError, "offsets of different length");
        return nullptr;
    }
    for (int d = 0; d < n; ++d) offset[d] = (p->n_offsets ? p->offset[d] : 0) + sign * by[d];
    bool zero = true;
    for (int d = 0; d < n; ++d) zero &= offset[d] == 0;
    return projection_of(0, zero ? 0 : n, nullptr, offset);
}
PyObject *projection_add(PyObject *a, PyObject *b) { return projection_shift(a, b, 1); }
PyObject *projection_sub(PyObject *a, PyObject *b) { return projection_shift(a, b, -1); }

template <int kAxis>
PyObject *projection_axis(PyObject *, void *) {
    int axis = kAxis;
    int64_t zero = 0;
    return projection_of(1, 0, &axis, &zero);
}

PyObject *projection_map(PyObject *, PyObject *fn) {
    if (!PyCallable_Check(fn)) {
        PyErr_SetString(PyExc_TypeError, "each.map(f) needs a function from color to color");
        return nullptr;
    }
    auto *p = alloc<ProjectionObject>(types().projection);
    if (!p) return nullptr;
    p->uid = next_uid();
    p->rank = p->n_offsets = 0;
    p->fn = Py_NewRef(fn);
    return reinterpret_cast<PyObject *>(p);
}
void projection_dealloc(PyObject *self) {
    Py_XDECREF(reinterpret_cast<ProjectionObject *>(self)->fn);
    free_object(self);
}
PyObject *projection_repr(PyObject *self) {
    auto *p = reinterpret_cast<ProjectionObject *>(self);
    if (p->fn) return PyUnicode_FromFormat("each.map(%R)", p->fn);
    std::string text = p->rank ? "" : "each";
    for (int d = 0; d < p->rank; ++d) {
        if (d) text += ", ";
        if (p->axis[d] < 0) text += std::to_string(p->offset[d]);
        else {
            text += std::string("each.") + "xyzw"[p->axis[d]];
            if (p->offset[d]) text += (p->offset[d] < 0 ? " - " : " + ") + std::to_string(std::abs(p->offset[d]));
        }
    }
    if (!p->rank && p->n_offsets == 1)
        text += (p->offset[0] < 0 ? " - " : " + ") + std::to_string(std::abs(p->offset[0]));
    if (!p->rank && p->n_offsets > 1) {
        text += " + (";
        for (int d = 0; d < p->n_offsets; ++d) text += (d ? ", " : "") + std::to_string(p->offset[d]);
        text += ")";
    }
    return PyUnicode_FromString(text.c_str());
}
PyMethodDef projection_methods[] = {
    {"map", projection_map, METH_O, "each.map(f): color c of the launch uses color f(c) of the partition."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef projection_getset[] = {{"x", projection_axis<0>, nullptr, "First coordinate of the color.", nullptr},
                                   {"y", projection_axis<1>, nullptr, "Second coordinate.", nullptr},
                                   {"z", projection_axis<2>, nullptr, "Third coordinate.", nullptr},
                                   {"w", projection_axis<3>, nullptr, "Fourth coordinate.", nullptr},
                                   {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot projection_slots[] = {{Py_tp_dealloc, (void *)projection_dealloc},
                                  {Py_nb_add, (void *)projection_add},
                                  {Py_nb_subtract, (void *)projection_sub},
                                  {Py_tp_repr, (void *)projection_repr},
                                  {Py_tp_methods, projection_methods},
                                  {Py_tp_getset, projection_getset},
                                  {0, nullptr}};
PyType_Spec projection_spec = {"burnish._native.runtime.Projection", sizeof(ProjectionObject), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, projection_slots};

void projected_dealloc(PyObject *self) {
    auto *p = reinterpret_cast<ProjectedObject *>(self);
    release_root(p->part->parent->root);
    Py_DECREF(p->projection);
    free_object(self);
}
PyObject *projected_partition(PyObject *self, void *) {
    return partition_object(reinterpret_cast<ProjectedObject *>(self)->part);
}
PyObject *projected_projection(PyObject *self, void *) {
    return Py_NewRef(reinterpret_cast<PyObject *>(reinterpret_cast<ProjectedObject *>(self)->projection));
}
PyGetSetDef projected_getset[] = {
    {"partition", projected_partition, nullptr, "The partition.", nullptr},
    {"projection", projected_projection, nullptr, "From colors of the launch to colors of the partition.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot projected_slots[] = {{Py_tp_dealloc, (void *)projected_dealloc},
                                 {Py_tp_getset, projected_getset},
                                 {0, nullptr}};
PyType_Spec projected_spec = {"burnish._native.runtime.Projected", sizeof(ProjectedObject), 0,
                              Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, projected_slots};

// ---- partition ----
void partition_dealloc(PyObject *self) {
    auto *p = reinterpret_cast<PartitionObject *>(self);
    if (PyObject_IS_GC(self)) PyObject_GC_UnTrack(self);
    for (PyObject *child : *p->children) Py_XDECREF(child);
    for (auto &entry : *p->projected) Py_DECREF(entry.second);
    delete p->children;
    delete p->projected;
    release_root(p->part->parent->root);
    free_object(self);
}

PyObject *projected_object(PartitionObject *p, ProjectionObject *projection) {
    for (auto &entry : *p->projected)
        if (entry.first == projection) return Py_NewRef(entry.second);
    auto *o = alloc<ProjectedObject>(types().projected);
    if (!o) return nullptr;
    o->uid = next_uid();
    o->part = p->part;
    o->projection = reinterpret_cast<ProjectionObject *>(Py_NewRef(reinterpret_cast<PyObject *>(projection)));
    ++p->part->parent->root->refs;
    p->projected->emplace_back(projection, reinterpret_cast<PyObject *>(o));
    return Py_NewRef(reinterpret_cast<PyObject *>(o));
}

PyObject *child_object(PartitionObject *p, int64_t color) {
    PyObject *&slot = (*p->children)[color];
    if (!slot) slot = region_object(p->part->children[color]);
    return Py_XNewRef(slot);
}

PyObject *color_error(PartitionNode *part, PyObject *key) {
    return raise("color", Py_BuildValue("(NO)", partition_object(part), key));
}

PyObject *partition_subscript(PyObject *self, PyObject *key) {
    auto *p = reinterpret_cast<PartitionObject *>(self);
    PartitionNode *part = p->part;
    if (PyLong_CheckExact(key) && part->shape.size() == 1) {
        int64_t c = PyLong_AsLongLong(key);
        if (c >= 0 && c < part->colors()) return child_object(p, c);
        if (c == -1 && PyErr_Occurred()) PyErr_Clear();
        return color_error(part, key);
    }
    if (Py_IS_TYPE(key, types().projection)) return projected_object(p, reinterpret_cast<ProjectionObject *>(key));
    if (PyTuple_Check(key) && PyTuple_GET_SIZE(key) == static_cast<Py_ssize_t>(part->shape.size())) {
        int n = static_cast<int>(PyTuple_GET_SIZE(key));
        int axis[kMaxDim];
        int64_t offset[kMaxDim], color = 0;
        bool projected = false;
        for (int d = 0; d < n; ++d) {
            PyObject *item = PyTuple_GET_ITEM(key, d);
            if (Py_IS_TYPE(item, types().projection)) {
                auto *q = reinterpret_cast<ProjectionObject *>(item);
                if (q->rank != 1) return color_error(part, key);
                axis[d] = q->axis[0];
                offset[d] = q->offset[0];
                projected = true;
            } else {
                axis[d] = -1;
                offset[d] = PyLong_AsLongLong(item);
                if (offset[d] == -1 && PyErr_Occurred()) {
                    PyErr_Clear();
                    return color_error(part, key);
                }
                if (offset[d] < 0 || offset[d] >= part->shape[d]) return color_error(part, key);
                color = color * part->shape[d] + offset[d];
            }
        }
        if (!projected) return child_object(p, color);
        PyObject *projection = projection_of(n, 0, axis, offset);
        if (!projection) return nullptr;
        PyObject *o = projected_object(p, reinterpret_cast<ProjectionObject *>(projection));
        Py_DECREF(projection);
        return o;
    }
    if (PyIndex_Check(key) && !PyLong_CheckExact(key)) {
        PyObject *index = PyNumber_Index(key);
        if (!index) return nullptr;
        PyObject *o = partition_subscript(self, index);
        Py_DECREF(index);
        return o;
    }
    return color_error(part, key);
}
Py_ssize_t partition_length(PyObject *self) { return reinterpret_cast<PartitionObject *>(self)->part->colors(); }
PyType_Slot partition_slots[] = {{Py_tp_dealloc, (void *)partition_dealloc},
                                 {Py_mp_subscript, (void *)partition_subscript},
                                 {Py_mp_length, (void *)partition_length},
                                 {0, nullptr}};
PyType_Spec partition_spec = {"burnish._native.runtime.PartitionBase", sizeof(PartitionObject), 0,
                              Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                              partition_slots};

// ---- task ----
void task_dealloc(PyObject *self) {
    auto *t = reinterpret_cast<TaskObject *>(self);
    PyObject_GC_UnTrack(self);
    if (t->weakrefs) PyObject_ClearWeakRefs(self);
    // The definition stays in the registry: launches in flight and recorded templates name it.
    Py_CLEAR(t->dict);
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}
int task_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(reinterpret_cast<TaskObject *>(self)->dict);
    return 0;
}
int task_clear(PyObject *self) {
    Py_CLEAR(reinterpret_cast<TaskObject *>(self)->dict);
    return 0;
}
PyMethodDef task_methods[] = {
    {"map", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(launch_map)), METH_FASTCALL | METH_KEYWORDS,
     "map(domain, *args, edge='error', when=None)\n\nLaunch one task for each color of `domain` (an int, a tuple or a "
     "partition). Region arguments are projected: p[each], p[each - 1], p[each.x, each.y + 1], p[each.map(f)]; a "
     "region or a plain value is passed to all. Returns a FutureMap if the task returns a value.\n\n"
     "edge: what happens to colors whose projection leaves the partition: 'error', 'skip', 'clip' or 'wrap'.\n"
     "when: a Future; the bodies run only if it holds a true value."},
    {nullptr, nullptr, 0, nullptr}};
PyMemberDef task_members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(TaskObject, vectorcall), READONLY, nullptr},
                              {"__dictoffset__", T_PYSSIZET, offsetof(TaskObject, dict), READONLY, nullptr},
                              {"__weaklistoffset__", T_PYSSIZET, offsetof(TaskObject, weakrefs), READONLY, nullptr},
                              {nullptr, 0, 0, 0, nullptr}};
PyObject *task_repr(PyObject *self) {
    return PyUnicode_FromFormat("<task '%s'>", reinterpret_cast<TaskObject *>(self)->def->name.c_str());
}
PyObject *task_get_name(PyObject *self, void *) {
    return PyUnicode_FromString(reinterpret_cast<TaskObject *>(self)->def->name.c_str());
}
PyObject *task_get_fn(PyObject *self, void *) {
    PyObject *fn = reinterpret_cast<TaskObject *>(self)->def->fn;
    return Py_NewRef(fn ? fn : Py_None);
}
PyObject *task_get_info(PyObject *self, void *) { return Py_NewRef(reinterpret_cast<TaskObject *>(self)->def->info); }
PyObject *task_get_source(PyObject *self, void *) {
    return PyObject_GetAttrString(reinterpret_cast<TaskObject *>(self)->def->info, "source");
}
PyGetSetDef task_getset[] = {{"name", task_get_name, nullptr, "The task's name.", nullptr},
                             {"fn", task_get_fn, nullptr, "The undecorated function.", nullptr},
                             {"info", task_get_info, nullptr, "What the front end knows about it: a TaskInfo.", nullptr},
                            {"source", task_get_source, nullptr, "Source of the body, with what burnish generated for it.", nullptr},
                            {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                             {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot task_slots[] = {{Py_tp_dealloc, (void *)task_dealloc},   {Py_tp_traverse, (void *)task_traverse},
                            {Py_tp_clear, (void *)task_clear},       {Py_tp_call, (void *)PyVectorcall_Call},
                            {Py_tp_methods, task_methods},           {Py_tp_members, task_members},
                            {Py_tp_getset, task_getset},             {Py_tp_repr, (void *)task_repr},
                            {0, nullptr}};
PyType_Spec task_spec = {"burnish._native.runtime.Task", sizeof(TaskObject), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC |
                             Py_TPFLAGS_DISALLOW_INSTANTIATION,
                         task_slots};

// ---- futures ----
void future_dealloc(PyObject *self) {
    drop_future(reinterpret_cast<FutureObject *>(self)->state);
    free_object(self);
}
PyType_Slot future_slots[] = {{Py_tp_dealloc, (void *)future_dealloc}, {0, nullptr}};
PyType_Spec future_spec = {"burnish._native.runtime.FutureBase", sizeof(FutureObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, future_slots};

void future_map_dealloc(PyObject *self) {
    auto *m = reinterpret_cast<FutureMapObject *>(self);
    for (FutureState *f : *m->states)
        if (f) drop_future(f);
    delete m->states;
    free_object(self);
}
PyObject *future_map_at(PyObject *self, PyObject *index) {
    auto *m = reinterpret_cast<FutureMapObject *>(self);
    Py_ssize_t i = PyNumber_AsSsize_t(index, PyExc_IndexError);
    if (i == -1 && PyErr_Occurred()) return nullptr;
    if (i < 0 || i >= static_cast<Py_ssize_t>(m->states->size())) {
        PyErr_Format(PyExc_IndexError, "color %zd is outside 0..%zd", i, static_cast<Py_ssize_t>(m->states->size()) - 1);
        return nullptr;
    }
    FutureState *f = (*m->states)[i];
    if (!f) Py_RETURN_NONE;
    f->refs.fetch_add(1);
    return future_object(f);
}
Py_ssize_t future_map_length(PyObject *self) {
    return static_cast<Py_ssize_t>(reinterpret_cast<FutureMapObject *>(self)->states->size());
}
PyMethodDef future_map_methods[] = {{"_at", future_map_at, METH_O, "Future of a row-major color; None if skipped."},
                                    {nullptr, nullptr, 0, nullptr}};
PyType_Slot future_map_slots[] = {{Py_tp_dealloc, (void *)future_map_dealloc},
                                  {Py_mp_length, (void *)future_map_length},
                                  {Py_tp_methods, future_map_methods},
                                  {0, nullptr}};
PyType_Spec future_map_spec = {"burnish._native.runtime.FutureMapBase", sizeof(FutureMapObject), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                               future_map_slots};

}  // namespace

PyObject *region_object(RegionNode *node) {
    auto *o = alloc<RegionObject>(types().region);
    if (!o) return nullptr;
    o->node = node;
    ++node->root->refs;
    return reinterpret_cast<PyObject *>(o);
}

PyObject *partition_object(PartitionNode *part) {
    auto *o = alloc<PartitionObject>(types().partition);
    if (!o) return nullptr;
    o->part = part;
    o->children = new std::vector<PyObject *>(part->children.size());
    o->projected = new std::vector<std::pair<ProjectionObject *, PyObject *>>;
    ++part->parent->root->refs;
    return reinterpret_cast<PyObject *>(o);
}

RegionNode *as_region(PyObject *o) {
    if (PyObject_TypeCheck(o, types().region_base)) return reinterpret_cast<RegionObject *>(o)->node;
    PyErr_Format(PyExc_TypeError, "expected a Region, got %s", Py_TYPE(o)->tp_name);
    return nullptr;
}

PartitionNode *as_partition(PyObject *o) {
    if (PyObject_TypeCheck(o, types().partition_base)) return reinterpret_cast<PartitionObject *>(o)->part;
    PyErr_Format(PyExc_TypeError, "expected a Partition, got %s", Py_TYPE(o)->tp_name);
    return nullptr;
}

PyObject *future_object(FutureState *state) {
    auto *o = alloc<FutureObject>(types().future);
    if (!o) return nullptr;
    o->state = state;
    return reinterpret_cast<PyObject *>(o);
}

bool make_types(PyObject *module) {
    struct {
        PyTypeObject *&slot;
        PyType_Spec *spec;
        const char *name;
    } all[] = {{types().region_base, &region_spec, "RegionBase"},
               {types().partition_base, &partition_spec, "PartitionBase"},
               {types().projection, &projection_spec, "Projection"},
               {types().projected, &projected_spec, "Projected"},
               {types().task, &task_spec, "Task"},
               {types().future_base, &future_spec, "FutureBase"},
               {types().future_map_base, &future_map_spec, "FutureMapBase"}};
    for (auto &t : all) {
        t.slot = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(t.spec));
        if (!t.slot || PyModule_AddObjectRef(module, t.name, reinterpret_cast<PyObject *>(t.slot)) < 0) return false;
    }
    PyObject *each = projection_of(0, 0, nullptr, nullptr);
    return each && PyModule_AddObjectRef(module, "each", each) == 0;
}

}  // namespace burnish::runtime
