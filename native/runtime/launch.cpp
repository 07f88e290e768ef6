// From Python call to issued records: argument decoding, resolution, checks, index-launch plans.
#include <algorithm>
#include <cstring>
#include <map>

#include "numpy.hpp"
#include "launch_checks.hpp"
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

bool conflicting(const Requirement &a, const Requirement &b) {
    if (!(a.mask & b.mask)) return false;
    if (a.privilege == Privilege::Read && b.privilege == Privilege::Read) return false;
    return !(a.privilege == Privilege::Reduce && b.privilege == Privilege::Reduce && a.op == b.op);
}

namespace {

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

}  // namespace

bool argument_error(TaskDef *task, uint16_t param, PyObject *arg) {
    raise("argument", Py_BuildValue("(OiO)", task->info, param, arg));
    return false;
}

namespace {

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
