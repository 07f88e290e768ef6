// Inner tasks: bodies that launch tasks. They run at their place on the launching thread, and what they may use bounds
// what the launches inside them use.
#include "pytypes.hpp"

namespace burnish::runtime {

namespace {

// Whether a task that was given `have` may launch one that needs `need`. A writer may read what its children wrote.
bool permits(const InnerBound &have, Privilege need, int op) {
    switch (have.privilege) {
        case Privilege::Read: return need == Privilege::Read;
        case Privilege::Write:
        case Privilege::ReadWrite: return true;
        case Privilege::Reduce: return need == Privilege::Reduce && op == have.op;
        case Privilege::None: break;
    }
    return false;
}

// Whether the permitted arguments together hold every point of `node` in field `bit`.
bool united_cover(const InnerFrame &frame, RegionNode *node, Privilege need, int op, uint64_t bit) {
    std::vector<Space> spaces;
    for (const InnerBound &b : frame.bounds)
        if (b.node->root == node->root && (b.mask & bit) && permits(b, need, op)) spaces.push_back(b.node->space);
    return !spaces.empty() && covers(*unite_all(node->root->bounds, spaces), *node->space);
}

// A future of a value that is there.
FutureState *ready_future(PyObject *value) {
    FutureState *f = new_future('O');
    f->value.object = Py_NewRef(value);
    f->ready.store(true, std::memory_order_release);
    return f;
}

FutureState *as_future(PyObject *value) {
    if (!Py_IS_TYPE(value, types().future)) return ready_future(value);
    FutureState *f = reinterpret_cast<FutureObject *>(value)->state;
    f->refs.fetch_add(1);
    return f;
}

// Runs one body; returns what it returned. Takes over the reference on `args`.
PyObject *run_one(Context *c, TaskDef *task, const std::vector<Requirement> &requirements, RegionNode *const *nodes,
                  PyObject *args, PyObject *color) {
    InnerFrame frame{task, {}, last_id()};
    for (const auto &q : requirements) frame.bounds.push_back({nodes[q.arg], q.mask, q.privilege, q.op});
    c->inner_frames.push_back(std::move(frame));
    PyObject *result = PyObject_CallFunction(types().inner, "OON", task->info, args, color);
    c->inner_frames.pop_back();
    Py_DECREF(args);
    return result;
}

}  // namespace

bool check_bounds(Context *c, TaskDef *child, RegionNode *node, Privilege privilege, int op, uint64_t mask) {
    if (c->inner_frames.empty()) return true;
    const InnerFrame &frame = c->inner_frames.back();
    if (node->root->id > frame.newest_id || node->space->is_empty()) return true;  // made inside, or nothing
    uint64_t missing = mask;
    for (const InnerBound &b : frame.bounds)
        if (b.node->root == node->root && permits(b, privilege, op) && covers(*b.node->space, *node->space))
            missing &= ~b.mask;
    for (uint64_t rest = missing; rest; rest &= rest - 1)
        if (united_cover(frame, node, privilege, op, rest & -rest)) missing &= ~(rest & -rest);
    if (!missing) return true;
    raise("bounds", Py_BuildValue("(OONiii)", frame.task->info, child ? child->info : Py_None, region_object(node),
                                  static_cast<int>(privilege), op, __builtin_ctzll(missing)));
    return false;
}

bool check_bounds(Context *c, TaskDef *child, const std::vector<Requirement> &requirements, RegionNode *const *nodes) {
    if (c->inner_frames.empty()) return true;
    for (const auto &q : requirements)
        if (!check_bounds(c, child, nodes[q.arg], q.privilege, q.op, q.mask)) return false;
    return true;
}

PyObject *run_inner(Context *c, TaskDef *task, const std::vector<Requirement> &requirements, RegionNode *const *nodes,
                    PyObject *const *args) {
    Py_ssize_t n = static_cast<Py_ssize_t>(task->params.size());
    PyObject *tuple = PyTuple_New(n);
    if (!tuple) return nullptr;
    for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(tuple, i, Py_NewRef(args[i]));
    ++task->launches;
    ++task->points;
    PyObject *result = run_one(c, task, requirements, nodes, tuple, Py_NewRef(Py_None));
    if (!result || !task->returns) {
        Py_XDECREF(result);
        return result ? Py_NewRef(Py_None) : nullptr;
    }
    PyObject *future = future_object(as_future(result));
    Py_DECREF(result);
    return future;
}

PyObject *map_inner(Context *c, TaskDef *task, const IndexPlan &plan, PyObject *const *args, bool skip) {
    FutureMapObject *futures = nullptr;
    if (task->returns) {
        futures = reinterpret_cast<FutureMapObject *>(types().future_map->tp_alloc(types().future_map, 0));
        futures->states = new std::vector<FutureState *>(plan.domain_volume);
        for (size_t i = 0; skip && i < plan.colors.size(); ++i) (*futures->states)[plan.colors[i]] = ready_future(Py_None);
    }
    if (skip) return futures ? reinterpret_cast<PyObject *>(futures) : Py_NewRef(Py_None);
    ++task->launches;
    // Bodies may make new plans or drop regions, which moves or ends this one.
    std::vector<RegionNode *> nodes = plan.nodes;
    std::vector<int32_t> colors = plan.colors;
    std::vector<int64_t> shape = plan.domain_shape;
    std::vector<Requirement> requirements = plan.requirements;
    size_t n_args = plan.n_args;
    for (size_t i = 0; i < colors.size(); ++i) {
        PyObject *tuple = PyTuple_New(static_cast<Py_ssize_t>(task->params.size()));
        PyObject *color = color_of(shape.data(), static_cast<int>(shape.size()), colors[i]);
        size_t region = 0;
        for (size_t p = 0; p < task->params.size(); ++p) {
            PyObject *value = task->params[p].kind == ParamKind::Region ? region_object(nodes[i * n_args + region++])
                              : Py_IS_TYPE(args[p], types().projection) ? Py_NewRef(color)
                                                                        : Py_NewRef(args[p]);
            PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(p), value);
        }
        ++task->points;
        PyObject *result = run_one(c, task, requirements, &nodes[i * n_args], tuple, color);
        if (!result) {
            Py_XDECREF(reinterpret_cast<PyObject *>(futures));
            return nullptr;
        }
        if (futures) (*futures->states)[colors[i]] = as_future(result);
        Py_DECREF(result);
    }
    return futures ? reinterpret_cast<PyObject *>(futures) : Py_NewRef(Py_None);
}

}  // namespace burnish::runtime
