// From Python call to issued records: argument decoding, resolution, checks, index-launch plans.
#include <algorithm>
#include <cstring>
#include <map>

#include "numpy.hpp"
#include "op.hpp"
#include "process_body.hpp"
#include "pytypes.hpp"
#include "views.hpp"
#include "watch.hpp"

namespace burnish::runtime {

std::vector<TaskDef *> &task_registry() {
    static std::vector<TaskDef *> tasks;
    return tasks;
}

Context *context_or_start() {
    if (Context *c = current()) return c;
    PyObject *result = PyObject_CallNoArgs(types().start);
    if (!result) return nullptr;
    Py_DECREF(result);
    return current();
}

bool check_thread(Context *c, TaskDef *launched) {
    if (c->thread() == std::this_thread::get_id() && !c->launcher_runs_body) return true;
    PyObject *what = launched ? launched->info : Py_None;
    if (BodyFrame *frame = current_frame()) raise("in_body", Py_BuildValue("(OO)", frame->record->launch->task->info, what));
    else raise("thread", Py_BuildValue("(O)", what));
    return false;
}

// Once per task and context: data that the body captures, the mapper's priority.
bool first_launch(Context *c, TaskDef *task) {
    PyObject *priority = PyObject_CallOneArg(types().first_launch, task->info);
    if (!priority) return false;
    task->critical = PyLong_AsLong(priority) > 0;
    Py_DECREF(priority);
    if (PyErr_Occurred()) return false;
    task->seen_by = c->serial;
    return true;
}

bool check_host(RegionNode *node, uint64_t mask, bool writes) {
    Root *root = node->root;
    const OpenHost *open = root->open_host(node, mask, writes);
    if (!open && !root->given_up) return true;
    raise("host_open", Py_BuildValue("(NO)", region_object(root->region), open && !open->writes ? Py_False : Py_True));
    return false;
}

const Resolved *resolve(TaskDef *task, uint16_t param, Root *root) {
    if (const Resolved *known = task->resolved[param]->find(root->layout)) return known;
    auto made = std::make_unique<Resolved>();
    Resolved &r = *made;
    r.layout = root->layout;
    const Param &p = task->params[param];
    uint16_t arg = static_cast<uint16_t>(
        std::find(task->region_params.begin(), task->region_params.end(), param) - task->region_params.begin());
    uint64_t used = 0;
    for (const auto &d : p.declared) {
        Requirement q{arg, d.privilege, d.op, 0};
        std::vector<int> fields;
        if (d.fields.empty())
            for (size_t f = 0; f < root->fields.size(); ++f) fields.push_back(static_cast<int>(f));
        for (const auto &name : d.fields) {
            size_t f = 0;
            while (f < root->fields.size() && root->fields[f].name != name) ++f;
            if (f == root->fields.size()) {
                raise("field", Py_BuildValue("(OisN)", task->info, param, name.c_str(),
                                             region_object(root->region)));
                return nullptr;
            }
            fields.push_back(static_cast<int>(f));
        }
        bool fits = p.ndim < 0 || p.ndim == root->bounds.dim;
        for (int f : fields) fits &= p.type_num < 0 || p.type_num == root->fields[f].type_num;
        if (!fits) {
            raise("native_type", Py_BuildValue("(OiN)", task->info, param, region_object(root->region)));
            return nullptr;
        }
        for (int f : fields) {
            q.mask |= uint64_t{1} << f;
            r.fields.emplace_back(f, d.privilege);
            if (d.privilege == Privilege::Reduce && reduce_ops()[d.op].builtin &&
                !fold_kernel(*reduce_ops()[d.op].builtin, root->fields[f].element())) {
                raise("reduce_type", Py_BuildValue("(OisN)", task->info, param, root->fields[f].name.c_str(),
                                                   region_object(root->region)));
                return nullptr;
            }
        }
        if (used & q.mask) {
            raise("field_twice", Py_BuildValue("(Oi)", task->info, param));
            return nullptr;
        }
        used |= q.mask;
        r.requirements.push_back(q);
    }
    const Resolved *stored = task->resolved[param]->add(std::move(made));
    if (!stored) PyErr_SetString(PyExc_RuntimeError, "one task parameter met more than 64 different field layouts");
    return stored;
}

namespace {

bool conflicting(const Requirement &a, const Requirement &b) {
    if (!(a.mask & b.mask)) return false;
    if (a.privilege == Privilege::Read && b.privilege == Privilege::Read) return false;
    return !(a.privilege == Privilege::Reduce && b.privilege == Privilege::Reduce && a.op == b.op);
}

// Values that can be shared with a running task as they are.
bool immutable(PyObject *o) {
    PyTypeObject *t = Py_TYPE(o);
    return t == &PyFloat_Type || t == &PyLong_Type || t == &PyUnicode_Type || t == &PyBool_Type || o == Py_None ||
           t == &PyBytes_Type || t == &PyComplex_Type || t == types().projection;
}

// Stores one value argument in the launch: a plain value, or the future it comes from.
bool store_value(TaskObject *self, Launch *l, uint32_t i, uint16_t param, PyObject *arg) {
    TaskDef *task = self->def;
    if (Py_IS_TYPE(arg, types().future)) {
        FutureState *f = reinterpret_cast<FutureObject *>(arg)->state;
        f->refs.fetch_add(1);
        if (l->futures_in.size() < l->n_scalars) l->futures_in.resize(l->n_scalars);
        l->futures_in[i] = f;
        l->scalars[i].object = nullptr;
        return true;
    }
    char type = task->params[param].scalar_type;
    if (type != 'O') {
        if (Py_IS_TYPE(arg, types().projection) && i < 64) {
            l->color_scalars |= uint64_t{1} << i;
            return true;
        }
        if (type == 'd') l->scalars[i].f = PyFloat_AsDouble(arg);
        else l->scalars[i].i = PyLong_AsLongLong(arg);
        if (!PyErr_Occurred()) return true;
        PyErr_Clear();
        raise("scalar", Py_BuildValue("(OiO)", task->info, param, arg));
        return false;
    }
    PyObject *value = immutable(arg) ? Py_NewRef(arg)
                                     : PyObject_CallFunction(types().value, "OiO", task->info,
                                                             static_cast<int>(param), arg);
    l->scalars[i].object = value;
    return value != nullptr;
}

Launch *fill_launch(Context *c, TaskObject *self, PyObject *const *args) {
    TaskDef *task = self->def;
    Launch *l = c->new_launch(task, static_cast<uint32_t>(task->value_params.size()));
    l->owns_objects = task->body == BodyKind::Python;
    if (l->owns_objects)
        for (uint32_t i = 0; i < l->n_scalars; ++i) l->scalars[i].object = nullptr;
    for (uint32_t i = 0; i < l->n_scalars; ++i) {
        uint16_t param = task->value_params[i];
        if (!store_value(self, l, i, param, args[param])) {
            l->refs.store(1);
            c->release_launch(l);
            return nullptr;
        }
    }
    if (c->processes && task->body == BodyKind::Python && !task->local && !c->processes->prepare(task, l)) {
        l->refs.store(1);
        c->release_launch(l);
        return nullptr;
    }
    l->site = c->site_here();
    return l;
}

bool check_hosts(const std::vector<Requirement> &requirements, RegionNode *const *nodes) {
    for (const auto &q : requirements) {
        const Root *root = nodes[q.arg]->root;
        if (root->open_hosts.empty() && !root->given_up) continue;
        if (!check_host(nodes[q.arg], q.mask, q.privilege != Privilege::Read)) return false;
    }
    return true;
}

bool argument_error(TaskDef *task, uint16_t param, PyObject *arg) {
    raise("argument", Py_BuildValue("(OiO)", task->info, param, arg));
    return false;
}

bool check_alias(TaskDef *task, const std::vector<Requirement> &requirements, RegionNode *const *nodes) {
    for (size_t i = 0; i < requirements.size(); ++i)
        for (size_t j = i + 1; j < requirements.size(); ++j) {
            const Requirement &a = requirements[i], &b = requirements[j];
            RegionNode *x = nodes[a.arg], *y = nodes[b.arg];
            if (x->root != y->root || a.arg == b.arg || !conflicting(a, b) || !x->root->overlap(x, y)) continue;
            raise("alias", Py_BuildValue("(OiNiNL)", task->info, task->region_params[a.arg],
                                         region_object(x), task->region_params[b.arg], region_object(y),
                                         static_cast<long long>(overlap_volume(*x->space, *y->space))));
            return false;
        }
    return true;
}

// Requirements of a task for arguments of these layouts; null with an exception set.
const OpPlan *single_plan(TaskDef *task, RegionNode *const *nodes, const uint32_t *layouts, size_t n) {
    for (const auto &[key, plan] : task->single_plans)
        if (std::equal(key.begin(), key.end(), layouts, layouts + n)) return plan.get();
    auto plan = std::make_unique<OpPlan>();
    plan->n_args = static_cast<uint16_t>(n);
    for (size_t i = 0; i < n; ++i) {
        const Resolved *r = resolve(task, task->region_params[i], nodes[i]->root);
        if (!r) return nullptr;
        for (const auto &q : r->requirements) {
            plan->requirements.push_back(q);
            plan->n_buffers += q.privilege == Privilege::Reduce;
        }
    }
    task->single_plans.emplace_back(std::vector<uint32_t>(layouts, layouts + n), std::move(plan));
    return task->single_plans.back().second.get();
}

// Tells the journal what a launch returned; steals and returns it.
PyObject *journaled(Context *c, PyObject *returned) {
    if (!c->journal || !returned) return returned;
    PyObject *told = PyObject_CallMethod(c->journal, "launched", "O", returned);
    if (!told) Py_CLEAR(returned);
    Py_XDECREF(told);
    return returned;
}

// Waits until the reduction buffers of a launch fit below the memory limit; false with an exception set.
bool make_room(Context *c, TaskDef *task, const OpPlan &plan, RegionNode *const *nodes, int64_t points) {
    if (!c->options().memory_limit || !plan.n_buffers) return true;
    int64_t bytes = 0;
    for (int64_t i = 0; i < points; ++i)
        for (const auto &q : plan.requirements) {
            const RegionNode *node = nodes[i * plan.n_args + q.arg];
            if (q.privilege != Privilege::Reduce) continue;
            for (uint64_t rest = q.mask; rest; rest &= rest - 1)
                bytes += node->space->volume() * node->root->fields[__builtin_ctzll(rest)].point_bytes;
        }
    if (memory_used() + bytes <= c->options().memory_limit) return true;
    PyObject *done = PyObject_CallFunction(types().make_room, "OL", task->info, static_cast<long long>(bytes));
    Py_XDECREF(done);
    return done != nullptr;
}

PyObject *mismatch_error(Context *c) {
    const Tracer::Mismatch *m = c->tracer().mismatch();
    auto info = [](const TaskDef *t) { return t && t->info ? t->info : Py_None; };
    auto site = [&](uint32_t id) {
        const Site &s = c->site(id);
        return s.code ? Py_BuildValue("(Oi)", s.code, s.lasti) : Py_NewRef(Py_None);
    };
    PyObject *payload = Py_BuildValue("(sIONON)", m->name.c_str(), m->slot, info(m->recorded), site(m->recorded_site),
                                      info(m->found), site(m->found_site));
    c->tracer().clear_mismatch();
    return raise("trace_mismatch", payload);
}

// Issues an op whose launch we hold one reference of; false with an exception set.
bool run_op(Context *c, const Op &op, FutureState **futures) {
    TaskDef *task = op.launch->task;
    if (c->tracer().would_mismatch(op) && c->tracer().mismatch()) {
        c->release_launch(op.launch);
        mismatch_error(c);
        return false;
    }
    ++task->launches;
    task->points += static_cast<uint64_t>(op.points);
    ++c->counters.launches;
    if (c->journal) {
        PyObject *skip = PyObject_CallMethod(c->journal, "launch", "OKL", task->info, op.signature.lo ^ task->code_hash,
                                             static_cast<long long>(op.points));
        if (!skip || skip == Py_True) {
            Py_XDECREF(skip);
            if (skip && futures)
                for (int64_t i = 0; i < op.points; ++i) futures[op.index ? op.index->colors[i] : 0] = new_future('O');
            c->release_launch(op.launch);
            return skip != nullptr;
        }
        Py_DECREF(skip);
    }
    uint64_t start = c->options().profile ? clock_ns() : 0;
    c->tracer().issue(op, futures);
    if (c->options().profile) c->counters.launch_ns += clock_ns() - start;
    c->release_launch(op.launch);
    return c->throttle();
}

}  // namespace

bool launch_native(Context *c, Launch *launch, const OpPlan *plan, RegionNode *const *nodes, int64_t points,
                   tracing::Token signature, tracing::Token flat, std::span<const uint32_t> operands, FutureState **future) {
    launch->refs.store(1, std::memory_order_relaxed);
    return run_op(c, Op{launch, plan, nullptr, nodes, points, false, signature, flat, operands}, future);
}

PyObject *launch_single(TaskObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    TaskDef *task = self->def;
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    size_t n = task->params.size();
    if (kwnames || nargs != static_cast<Py_ssize_t>(n)) {
        PyObject *positional = PyTuple_New(nargs), *keywords = PyDict_New();
        for (Py_ssize_t i = 0; i < nargs; ++i) PyTuple_SET_ITEM(positional, i, Py_NewRef(args[i]));
        for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); ++i)
            PyDict_SetItem(keywords, PyTuple_GET_ITEM(kwnames, i), args[nargs + i]);
        PyObject *bound = PyObject_CallFunction(types().bind, "ONN", task->info, positional, keywords);
        if (!bound) return nullptr;
        PyObject *result = PyTuple_GET_SIZE(bound) == static_cast<Py_ssize_t>(n)
                               ? launch_single(self, &PyTuple_GET_ITEM(bound, 0), n, nullptr)
                               : nullptr;
        Py_DECREF(bound);
        return result;
    }
    Context *c = context_or_start();
    if (!c || !check_thread(c, task)) return nullptr;
    if (task->seen_by != c->serial && !first_launch(c, task)) return nullptr;
    RegionNode *nodes_stack[kInlineArgs];
    size_t n_regions = task->region_params.size();
    std::unique_ptr<RegionNode *[]> nodes_heap(n_regions > kInlineArgs ? new RegionNode *[n_regions] : nullptr);
    RegionNode **nodes = nodes_heap ? nodes_heap.get() : nodes_stack;
    if (n_regions > 64) {
        PyErr_SetString(PyExc_TypeError, "a task takes at most 64 region arguments");
        return nullptr;
    }
    uint32_t layouts[64], operands[64];
    for (size_t i = 0; i < n_regions; ++i) {
        uint16_t param = task->region_params[i];
        PyObject *arg = args[param];
        if (Py_TYPE(arg) != types().region) return argument_error(task, param, arg), nullptr;
        nodes[i] = reinterpret_cast<RegionObject *>(arg)->node;
        Root *root = nodes[i]->root;
        layouts[i] = root->layout;
        operands[i] = root->logical_id;
    }
    const OpPlan *plan = single_plan(task, nodes, layouts, n_regions);
    if (!plan || !check_hosts(plan->requirements, nodes) || !check_alias(task, plan->requirements, nodes) ||
        !check_bounds(c, task, plan->requirements, nodes))
        return nullptr;
    if (task->inner) return run_inner(c, task, std::vector(plan->requirements), nodes, args);
    if (task->lazy && !ensure_kernel(c, task, nodes)) return nullptr;
    if (!make_room(c, task, *plan, nodes, 1)) return nullptr;
    Watch watch(c, task);
    for (size_t i = 0; i < n_regions; ++i) watch.add(nodes[i]->root);
    if (!watch.before()) return nullptr;
    Launch *l = fill_launch(c, self, args);
    if (!l) return nullptr;
    l->refs.store(1, std::memory_order_relaxed);  // ours while the op is issued
    if (n_regions > kInlineArgs) {
        l->owned_nodes = std::move(nodes_heap);
        nodes = l->owned_nodes.get();
    }
    Op op{l, plan, nullptr, nodes, 1, false, {}, {}, {operands, n_regions}};
    uint64_t signature = task->id, flat = task->id;
    for (size_t i = 0; i < n_regions; ++i) {
        signature = tracing::combine(signature, shape_signature(nodes[i]));
        flat = tracing::combine(flat, nodes[i]->id);
    }
    op.signature = {signature, tracing::mix(signature ^ 0x5bd1e995u)};
    op.flat = {flat, tracing::mix(flat ^ 0x5bd1e995u)};
    FutureState *future = nullptr;
    bool ok = run_op(c, op, task->returns ? &future : nullptr);
    if (!ok || !watch.after()) {
        if (future) drop_future(future);
        return nullptr;
    }
    return journaled(c, future ? future_object(future) : Py_NewRef(Py_None));
}

// ---- index launches ----
namespace {

enum Edge_ : int { kEdgeError, kEdgeSkip, kEdgeClip, kEdgeWrap };

struct Domain {
    std::vector<int64_t> shape;
    int64_t volume() const {
        int64_t v = 1;
        for (int64_t n : shape) v *= n;
        return v;
    }
};

bool read_domain(PyObject *o, Domain &d) {
    if (PyObject_TypeCheck(o, types().partition_base)) {
        d.shape = reinterpret_cast<PartitionObject *>(o)->part->shape;
        return true;
    }
    if (PyIndex_Check(o)) {
        d.shape = {PyNumber_AsSsize_t(o, PyExc_OverflowError)};
    } else if (PyTuple_Check(o)) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i)
            d.shape.push_back(PyNumber_AsSsize_t(PyTuple_GET_ITEM(o, i), PyExc_OverflowError));
    }
    if (PyErr_Occurred()) return false;
    bool bad = d.shape.empty() || d.shape.size() > kMaxDim;
    for (int64_t n : d.shape) bad |= n < 0;
    if (bad) {
        raise("domain", Py_BuildValue("(O)", o));
        return false;
    }
    return true;
}

PyObject *tuple_of(const int64_t *values, int n) {
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; tuple && i < n; ++i) PyTuple_SET_ITEM(tuple, i, PyLong_FromLongLong(values[i]));
    return tuple;
}

PyObject *color_tuple(const IndexPlan &plan, int64_t point) {
    int64_t color[kMaxDim], rest = plan.colors[point];
    int n = static_cast<int>(plan.domain_shape.size());
    for (int d = n - 1; d >= 0; --d) {
        color[d] = rest % plan.domain_shape[d];
        rest /= plan.domain_shape[d];
    }
    return tuple_of(color, n);
}

// A rectangle of points in `space` to show: all of it, or its first run of positions within one row.
Rect sample_of(const IndexSpace &space, const Rect &bounds) {
    if (space.dense()) return space.bounds();
    Interval first = space.intervals().front();
    Rect r = bounds;
    int64_t rest = first.lo;
    for (int d = bounds.dim - 1; d >= 0; --d) {
        int64_t extent = bounds.hi[d] - bounds.lo[d];
        r.lo[d] = bounds.lo[d] + rest % extent;
        r.hi[d] = d == bounds.dim - 1 ? std::min(r.lo[d] + first.hi - first.lo, bounds.hi[d]) : r.lo[d] + 1;
        rest /= extent;
    }
    return r;
}

// Row-major color of the partition for one point; -1: skip this point; -2: error set.
int64_t project(PartitionNode *part, ProjectionObject *p, const int64_t *color, int n, int edge, TaskDef *task,
                uint16_t param, PyObject *arg) {
    int64_t target[kMaxDim];
    int m = static_cast<int>(part->shape.size());
    if (p && p->fn) {
        PyObject *key = n == 1 ? PyLong_FromLongLong(color[0]) : PyTuple_New(n);
        for (int d = 0; n > 1 && d < n; ++d) PyTuple_SET_ITEM(key, d, PyLong_FromLongLong(color[d]));
        PyObject *result = PyObject_CallOneArg(p->fn, key);
        Py_DECREF(key);
        if (!result) return -2;
        bool ok = true;
        if (PyTuple_Check(result)) {
            ok = PyTuple_GET_SIZE(result) == m;
            for (int d = 0; ok && d < m; ++d) target[d] = PyNumber_AsSsize_t(PyTuple_GET_ITEM(result, d), nullptr);
        } else {
            ok = m == 1;
            if (ok) target[0] = PyNumber_AsSsize_t(result, nullptr);
        }
        Py_DECREF(result);
        if (PyErr_Occurred()) return -2;
        if (!ok) {
            raise("projection_rank", Py_BuildValue("(OiNO)", task->info, param, partition_object(part), arg));
            return -2;
        }
    } else if (p && p->rank) {
        bool ok = p->rank == m;
        for (int d = 0; ok && d < m; ++d) {
            ok = p->axis[d] < n;
            if (ok) target[d] = (p->axis[d] < 0 ? 0 : color[p->axis[d]]) + p->offset[d];
        }
        if (!ok) {
            raise("projection_rank", Py_BuildValue("(OiNO)", task->info, param, partition_object(part), arg));
            return -2;
        }
    } else {
        if (n != m || (p && p->n_offsets && p->n_offsets != m)) {
            raise("projection_rank", Py_BuildValue("(OiNO)", task->info, param, partition_object(part), arg));
            return -2;
        }
        for (int d = 0; d < m; ++d) target[d] = color[d] + (p && p->n_offsets ? p->offset[d] : 0);
    }
    int64_t linear = 0;
    for (int d = 0; d < m; ++d) {
        int64_t extent = part->shape[d];
        if (target[d] < 0 || target[d] >= extent) {
            if (edge == kEdgeSkip) return -1;
            if (edge == kEdgeError || extent == 0) {
                raise("projection", Py_BuildValue("(OiNONN)", task->info, param, partition_object(part), arg,
                                                  tuple_of(color, n), tuple_of(target, m)));
                return -2;
            }
            if (edge == kEdgeClip) target[d] = std::clamp<int64_t>(target[d], 0, extent - 1);
            else target[d] = ((target[d] % extent) + extent) % extent;
        }
        linear = linear * extent + target[d];
    }
    return linear;
}

// Interference between points, by sweeping over each root's intervals of written or reduced arguments against all
// others; only pairs whose bounds meet are looked at closely.
bool check_interference(TaskDef *task, const IndexPlan &plan, PyObject *const *args) {
    struct Use {
        RegionNode *node;
        int64_t point;
        const Requirement *q;
        int64_t lo, hi;  // linear bounds
    };
    std::map<Root *, std::vector<Use>> by_root;
    bool writes = false;
    for (const auto &q : plan.requirements) writes |= q.privilege != Privilege::Read;
    if (!writes) return true;
    for (int64_t i = 0; i < plan.points; ++i)
        for (const auto &q : plan.requirements) {
            RegionNode *node = plan.nodes[i * plan.n_args + q.arg];
            if (node->space->is_empty()) continue;
            auto spans = node->space->intervals();
            by_root[node->root].push_back({node, i, &q, spans.front().lo, spans.back().hi});
        }
    for (auto &[root, uses] : by_root) {
        std::sort(uses.begin(), uses.end(), [](const Use &a, const Use &b) { return a.lo < b.lo; });
        for (size_t i = 0; i < uses.size(); ++i)
            for (size_t j = i + 1; j < uses.size() && uses[j].lo < uses[i].hi; ++j) {
                const Use *a = &uses[i], *b = &uses[j];
                if (!conflicting(*a->q, *b->q)) continue;
                if (a->point == b->point && a->q->arg == b->q->arg) continue;
                if (!root->overlap(a->node, b->node)) continue;
                if (a->point > b->point) std::swap(a, b);
                Space common = intersection(a->node->space, b->node->space);
                int field = __builtin_ctzll(a->q->mask & b->q->mask);
                if (a->point == b->point) {
                    raise("alias", Py_BuildValue("(OiNiNL)", task->info,
                                                 task->region_params[a->q->arg], region_object(a->node),
                                                 task->region_params[b->q->arg], region_object(b->node),
                                                 static_cast<long long>(common->volume())));
                    return false;
                }
                Rect sample = sample_of(*common, root->bounds);
                raise("interference",
                      Py_BuildValue("(OLNNiNiNNNiOOii)", task->info, static_cast<long long>(plan.points),
                                    color_tuple(plan, a->point), color_tuple(plan, b->point),
                                    task->region_params[a->q->arg], region_object(a->node),
                                    task->region_params[b->q->arg], region_object(b->node),
                                    tuple_of(sample.lo.data(), sample.dim), tuple_of(sample.hi.data(), sample.dim),
                                    field, args[task->region_params[a->q->arg]], args[task->region_params[b->q->arg]],
                                    static_cast<int>(a->q->privilege), static_cast<int>(b->q->privilege)));
                return false;
            }
    }
    return true;
}

// Tokens: geometry of every argument of every point without root identities; and with them.
void sign(TaskDef *task, IndexPlan &plan) {
    uint64_t signature = tracing::combine(task->id, static_cast<uint64_t>(plan.domain_volume) + 1), flat = signature;
    for (int64_t n : plan.domain_shape) signature = tracing::combine(signature, static_cast<uint64_t>(n));
    for (int32_t c : plan.colors) signature = tracing::combine(signature, static_cast<uint64_t>(c));
    for (RegionNode *node : plan.nodes) signature = tracing::combine(signature, shape_signature(node));
    for (uint64_t k : plan.key) flat = tracing::combine(flat, k);
    plan.signature = {signature, tracing::mix(signature ^ 0x5bd1e995u)};
    plan.flat = {flat, tracing::mix(flat ^ 0x5bd1e995u)};
}

std::shared_ptr<IndexPlan> build_plan(TaskDef *task, const Domain &domain, PyObject *const *args, int edge,
                      std::vector<uint64_t> key) {
    auto plan = std::make_shared<IndexPlan>();
    plan->key = std::move(key);
    plan->n_args = static_cast<uint16_t>(task->region_params.size());
    std::vector<PartitionNode *> parts(plan->n_args);
    std::vector<ProjectionObject *> projections(plan->n_args);
    std::vector<RegionNode *> constants(plan->n_args);
    for (int i = 0; i < plan->n_args; ++i) {
        PyObject *arg = args[task->region_params[i]];
        Root *root;
        if (Py_IS_TYPE(arg, types().projected)) {
            auto *p = reinterpret_cast<ProjectedObject *>(arg);
            parts[i] = p->part;
            projections[i] = p->projection;
            root = p->part->parent->root;
        } else if (PyObject_TypeCheck(arg, types().partition_base)) {
            parts[i] = reinterpret_cast<PartitionObject *>(arg)->part;
            root = parts[i]->parent->root;
        } else {
            constants[i] = reinterpret_cast<RegionObject *>(arg)->node;
            root = constants[i]->root;
        }
        if (std::find(plan->roots.begin(), plan->roots.end(), root) == plan->roots.end()) plan->roots.push_back(root);
        const Resolved *r = resolve(task, task->region_params[i], root);
        if (!r) return nullptr;
        plan->operands.push_back(root->logical_id);
        for (const auto &q : r->requirements) {
            plan->requirements.push_back(q);
            plan->n_buffers += q.privilege == Privilege::Reduce;
        }
    }
    int n = static_cast<int>(domain.shape.size());
    int64_t color[kMaxDim] = {};
    int64_t volume = domain.volume();
    for (int64_t c = 0; c < volume; ++c) {
        bool skip = false;
        size_t start = plan->nodes.size();
        for (int i = 0; i < plan->n_args && !skip; ++i) {
            RegionNode *node = constants[i];
            if (parts[i]) {
                int64_t target = project(parts[i], projections[i], color, n, edge, task, task->region_params[i],
                                         args[task->region_params[i]]);
                if (target == -2) return nullptr;
                skip = target == -1;
                node = skip ? nullptr : parts[i]->children[target];
            }
            plan->nodes.push_back(node);
        }
        if (skip) plan->nodes.resize(start);
        else plan->colors.push_back(static_cast<int32_t>(c));
        for (int d = n - 1; d >= 0 && ++color[d] == domain.shape[d]; --d) color[d] = 0;
    }
    plan->points = static_cast<int64_t>(plan->colors.size());
    plan->domain_volume = volume;
    plan->domain_shape = domain.shape;
    if (!check_interference(task, *plan, args)) return nullptr;
    if (task->plans.size() >= 4096) task->plans.erase(task->plans.begin());
    sign(task, *plan);
    task->plans.push_back(plan);
    return plan;
}

std::shared_ptr<IndexPlan> find_plan(TaskDef *task, PyObject *domain_object, PyObject *const *args, int edge) {
    Domain domain;
    uint64_t key_stack[40];
    size_t k = 0;
    key_stack[k++] = static_cast<uint64_t>(edge);
    bool small = PyLong_CheckExact(domain_object);
    if (small) {
        int64_t v = PyLong_AsLongLong(domain_object);
        if (v < 0) {
            PyErr_Clear();
            raise("domain", Py_BuildValue("(O)", domain_object));
            return nullptr;
        }
        domain.shape = {v};
        key_stack[k++] = static_cast<uint64_t>(v);
    } else {
        if (!read_domain(domain_object, domain)) return nullptr;
        for (int64_t v : domain.shape) key_stack[k++] = static_cast<uint64_t>(v);
    }
    std::vector<uint64_t> key(key_stack, key_stack + k);
    for (uint16_t param : task->region_params) {
        PyObject *arg = args[param];
        if (Py_IS_TYPE(arg, types().projected)) key.push_back(reinterpret_cast<ProjectedObject *>(arg)->uid);
        else if (Py_IS_TYPE(arg, types().region)) key.push_back(reinterpret_cast<RegionObject *>(arg)->node->id);
        else if (PyObject_TypeCheck(arg, types().partition_base))
            key.push_back(reinterpret_cast<PartitionObject *>(arg)->part->id);
        else return argument_error(task, param, arg), nullptr;
    }
    for (size_t i = task->plans.size(); i-- > 0;)
        if (task->plans[i]->key == key) return task->plans[i];
    return build_plan(task, domain, args, edge, std::move(key));
}

int parse_edge(PyObject *o) {
    const char *text = PyUnicode_Check(o) ? PyUnicode_AsUTF8(o) : nullptr;
    if (text && !std::strcmp(text, "error")) return kEdgeError;
    if (text && !std::strcmp(text, "skip")) return kEdgeSkip;
    if (text && !std::strcmp(text, "clip")) return kEdgeClip;
    if (text && !std::strcmp(text, "wrap")) return kEdgeWrap;
    raise("edge", Py_BuildValue("(O)", o));
    return -1;
}

// Every layout combination among the points has its compiled body.
bool compile_all(Context *c, TaskDef *task, IndexPlan &plan) {
    uint8_t bit = c->options().check ? 2 : 1;
    if (plan.kernels_ready & bit) return true;
    for (int64_t i = 0; i < plan.points; ++i)
        if (!ensure_kernel(c, task, &plan.nodes[i * plan.n_args])) return false;
    plan.kernels_ready |= bit;
    return true;
}

// The index launch of an inner task: nothing happens if `when` (may be null) holds a false value.
PyObject *launch_inner(Context *c, TaskDef *task, const IndexPlan &plan, PyObject *const *params, PyObject *when) {
    int truth = 1;
    if (when) {
        PyObject *value = PyObject_CallMethod(when, "get", nullptr);
        truth = value ? PyObject_IsTrue(value) : -1;
        Py_XDECREF(value);
        if (truth < 0) return nullptr;
    }
    return map_inner(c, task, plan, params, !truth);
}

}  // namespace

PyObject *launch_map(PyObject *self_object, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    auto *self = reinterpret_cast<TaskObject *>(self_object);
    TaskDef *task = self->def;
    Py_ssize_t n = static_cast<Py_ssize_t>(task->params.size());
    int edge = kEdgeError;
    FutureState *when = nullptr;
    PyObject *when_object = nullptr;
    Py_ssize_t extra_keywords = 0;
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); ++i) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, i), *value = args[nargs + i];
        if (PyUnicode_CompareWithASCIIString(name, "edge") == 0) {
            edge = parse_edge(value);
            if (edge < 0) return nullptr;
        } else if (PyUnicode_CompareWithASCIIString(name, "when") == 0) {
            if (value != Py_None && !Py_IS_TYPE(value, types().future)) return raise("when", Py_BuildValue("(O)", value));
            if (value != Py_None) {
                when = reinterpret_cast<FutureObject *>(value)->state;
                when_object = value;
            }
        } else {
            ++extra_keywords;
        }
    }
    if (nargs < 1) {
        PyErr_SetString(PyExc_TypeError, "map() needs a domain: an int, a tuple or a partition");
        return nullptr;
    }
    if (nargs - 1 != n || extra_keywords) {
        PyObject *positional = PyTuple_New(nargs - 1), *keywords = PyDict_New();
        for (Py_ssize_t i = 1; i < nargs; ++i) PyTuple_SET_ITEM(positional, i - 1, Py_NewRef(args[i]));
        for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); ++i) {
            PyObject *name = PyTuple_GET_ITEM(kwnames, i);
            if (PyUnicode_CompareWithASCIIString(name, "edge") && PyUnicode_CompareWithASCIIString(name, "when"))
                PyDict_SetItem(keywords, name, args[nargs + i]);
        }
        PyObject *bound = PyObject_CallFunction(types().bind, "ONN", task->info, positional, keywords);
        if (!bound) return nullptr;
        std::vector<PyObject *> full = {args[0]};
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(bound); ++i) full.push_back(PyTuple_GET_ITEM(bound, i));
        Py_ssize_t given = static_cast<Py_ssize_t>(full.size());
        PyObject *rest = PyTuple_New(0);
        if (kwnames) {
            std::vector<PyObject *> names;
            for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kwnames); ++i) {
                PyObject *name = PyTuple_GET_ITEM(kwnames, i);
                if (!PyUnicode_CompareWithASCIIString(name, "edge") || !PyUnicode_CompareWithASCIIString(name, "when")) {
                    names.push_back(name);
                    full.push_back(args[nargs + i]);
                }
            }
            Py_DECREF(rest);
            rest = PyTuple_New(static_cast<Py_ssize_t>(names.size()));
            for (size_t i = 0; i < names.size(); ++i) PyTuple_SET_ITEM(rest, i, Py_NewRef(names[i]));
        }
        PyObject *result = given - 1 == n ? launch_map(self_object, full.data(), given, rest) : nullptr;
        Py_DECREF(rest);
        Py_DECREF(bound);
        return result;
    }
    Context *c = context_or_start();
    if (!c || !check_thread(c, task)) return nullptr;
    if (task->seen_by != c->serial && !first_launch(c, task)) return nullptr;
    PyObject *const *params = args + 1;
    std::shared_ptr<IndexPlan> plan = find_plan(task, args[0], params, edge);
    if (!plan) return nullptr;
    bool watched = std::any_of(plan->roots.begin(), plan->roots.end(),
                               [](const Root *root) { return root->given_up || !root->open_hosts.empty(); });
    for (int64_t i = 0; watched && i < plan->points; ++i)
        if (!check_hosts(plan->requirements, &plan->nodes[static_cast<size_t>(i) * plan->n_args])) return nullptr;
    if (!c->inner_frames.empty())
        for (int64_t i = 0; i < plan->points; ++i)
            if (!check_bounds(c, task, plan->requirements, &plan->nodes[i * plan->n_args])) return nullptr;
    if (task->inner) return launch_inner(c, task, *plan, params, when_object);
    if (task->lazy && !compile_all(c, task, *plan)) return nullptr;
    if (!make_room(c, task, *plan, plan->nodes.data(), plan->points)) return nullptr;
    Watch watch(c, task);
    for (Root *root : plan->roots) watch.add(root);
    if (!watch.before()) return nullptr;
    Launch *l = fill_launch(c, self, params);
    if (!l) return nullptr;
    l->domain_rank = static_cast<uint8_t>(plan->domain_shape.size());
    std::copy(plan->domain_shape.begin(), plan->domain_shape.end(), l->domain_shape);
    if (when) {
        when->refs.fetch_add(1);
        l->predicate = when;
    }
    FutureMapObject *futures = nullptr;
    if (task->returns) {
        futures = reinterpret_cast<FutureMapObject *>(types().future_map->tp_alloc(types().future_map, 0));
        futures->states = new std::vector<FutureState *>(static_cast<size_t>(plan->domain_volume));
    }
    l->refs.store(1, std::memory_order_relaxed);  // ours while the points are issued
    l->plan = plan;  // keeps the nodes
    Op op{l, plan.get(), plan, plan->nodes.data(), plan->points, when != nullptr, plan->signature, plan->flat, plan->operands};
    if (when) op.signature.lo ^= 0x9e3779b97f4a7c15ull;
    if (!run_op(c, op, futures ? futures->states->data() : nullptr) || !watch.after()) {
        Py_XDECREF(reinterpret_cast<PyObject *>(futures));
        return nullptr;
    }
    return journaled(c, futures ? reinterpret_cast<PyObject *>(futures) : Py_NewRef(Py_None));
}

}  // namespace burnish::runtime
