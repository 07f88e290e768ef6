// From Python call to issued records: argument decoding, resolution, checks, index-launch plans.
#include <algorithm>
#include <cstring>
#include <map>

#include "numpy.hpp"
#include "op.hpp"
#include "process_body.hpp"
#include "launch_checks.hpp"
#include "pytypes.hpp"
#include "views.hpp"
#include "watch.hpp"

namespace burnish::runtime {

namespace {


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

}  // namespace

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

}  // namespace burnish::runtime
