// burnish._native.runtime: the cold half of the runtime's interface. The front end in Python wraps and documents it.
#define BURNISH_IMPORTS_NUMPY
#include "numpy.hpp"
//
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "bind.hpp"
#include "body.hpp"
#include "memory.hpp"
#include "process_body.hpp"
#include "pytypes.hpp"
#include "views.hpp"

namespace burnish::runtime {

namespace {

using namespace nb::literals;
using Ints = std::vector<int64_t>;
using PySpace = std::shared_ptr<IndexSpace>;

nb::object steal(PyObject *o) {
    if (!o) throw nb::python_error();
    return nb::steal(o);
}

RegionNode *region_arg(nb::handle h) {
    RegionNode *node = as_region(h.ptr());
    if (!node) throw nb::python_error();
    return node;
}

PartitionNode *partition_arg(nb::handle h) {
    PartitionNode *part = as_partition(h.ptr());
    if (!part) throw nb::python_error();
    return part;
}

Context &context_arg() {
    Context *c = context_or_start();
    if (!c || !check_thread(c)) throw nb::python_error();
    return *c;
}

Rect rect_from(const Ints &lo, const Ints &hi) {
    Rect r;
    r.dim = static_cast<int>(lo.size());
    for (int d = 0; d < kMaxDim; ++d) {
        r.lo[d] = d < r.dim ? lo[d] : 0;
        r.hi[d] = d < r.dim ? hi[d] : 1;
    }
    return r;
}

nb::tuple ints_tuple(const int64_t *v, size_t n) {
    return nb::tuple(nb::cast(Ints(v, v + n)));
}

// shape, sparse space (or none), fields as (name, scalar dtype, inner shape), memory to attach (or none), and what
// the front end finds the region's name by.
nb::object make_region(const Ints &shape, std::optional<PySpace> space,
                       std::vector<std::tuple<std::string, nb::object, Ints>> fields, nb::object attach,
                       nb::object origin) {
    Rect bounds = rect_from(Ints(shape.size(), 0), shape);
    std::vector<Field> made;
    int64_t points = bounds.volume();
    size_t bytes = 0;
    for (auto &[field_name, dtype, inner] : fields) {
        auto *descr = reinterpret_cast<PyArray_Descr *>(dtype.ptr());
        Field f;
        f.name = field_name;
        f.type_num = descr->type_num;
        f.item_bytes = PyDataType_ELSIZE(descr);
        f.inner = inner;
        f.point_bytes = f.item_bytes;
        for (int64_t n : inner) f.point_bytes *= n;
        f.code = nb::cast<std::string>(dtype.attr("str"));
        f.descr = dtype.inc_ref().ptr();
        bytes += (static_cast<size_t>(f.point_bytes * points) + 63) / 64 * 64;
        made.push_back(std::move(f));
    }
    std::byte *data;
    nb::object owner;
    if (attach.is_none()) {
        data = take_memory(bytes);
        std::memset(data, 0, bytes);
        owner = nb::capsule(data, [](void *p) noexcept { give_memory(static_cast<std::byte *>(p)); });
    } else {
        data = reinterpret_cast<std::byte *>(PyArray_DATA(reinterpret_cast<PyArrayObject *>(attach.ptr())));
        owner = attach;
    }
    size_t offset = 0;
    for (auto &f : made) {
        f.data = data + offset;
        offset += (static_cast<size_t>(f.point_bytes * points) + 63) / 64 * 64;
    }
    uint32_t layout = layout_of(bounds.dim, made);
    Space points_of = space ? Space(*space) : IndexSpace::rect(bounds, bounds);
    Root *root = make_root(bounds, std::move(points_of), std::move(made)).release();
    root->memory.data = data;
    root->memory.bytes = bytes;
    root->layout = layout;
    root->attached = !attach.is_none();
    root->python = owner.release().ptr();
    root->origin = origin.release().ptr();
    PyObject *region = region_object(root->region);
    --root->refs;  // make_root's own
    return steal(region);
}

nb::dict root_info(nb::handle region) {
    Root *root = region_arg(region)->root;
    nb::dict d;
    d["id"] = root->id;
    d["origin"] = nb::borrow(static_cast<PyObject *>(root->origin));
    d["owner"] = nb::borrow(static_cast<PyObject *>(root->python));
    d["shape"] = ints_tuple(root->bounds.hi.data(), root->bounds.dim);
    nb::list fields;
    for (const auto &f : root->fields)
        fields.append(nb::make_tuple(f.name, nb::borrow(static_cast<PyObject *>(f.descr)), nb::tuple(nb::cast(f.inner))));
    d["fields"] = nb::tuple(fields);
    d["attached"] = root->attached;
    d["bytes"] = root->memory.bytes;
    return d;
}

nb::tuple node_info(nb::handle region) {
    RegionNode *node = region_arg(region);
    nb::object parent = node->parent ? steal(partition_object(node->parent)) : nb::none();
    return nb::make_tuple(node->id, std::const_pointer_cast<IndexSpace>(node->space), parent, node->color,
                          node == node->root->region);
}

nb::object subregion(nb::handle region, const Ints &lo, const Ints &hi) {
    RegionNode *node = region_arg(region);
    return steal(region_object(node->root->rectangle(node, rect_from(lo, hi))));
}

nb::object add_partition(nb::handle region, Ints shape, std::vector<PySpace> spaces, bool disjoint, bool complete,
                         nb::object origin) {
    RegionNode *node = region_arg(region);
    Pieces pieces;
    for (auto &s : spaces) pieces.spaces.push_back(s);
    pieces.disjoint = disjoint;
    pieces.complete = complete;
    PartitionNode *part = node->root->add_partition(node, std::move(shape), std::move(pieces));
    part->origin = origin.release().ptr();
    return steal(partition_object(part));
}

nb::list partitions_of(nb::handle region) {
    nb::list all;
    for (auto &part : region_arg(region)->root->partitions) all.append(steal(partition_object(part.get())));
    return all;
}

nb::dict partition_info(nb::handle partition) {
    PartitionNode *part = partition_arg(partition);
    nb::dict d;
    d["id"] = part->id;
    d["origin"] = nb::borrow(static_cast<PyObject *>(part->origin));
    d["parent"] = steal(region_object(part->parent));
    d["shape"] = nb::tuple(nb::cast(part->shape));
    d["disjoint"] = part->disjoint;
    d["complete"] = part->complete;
    nb::list spaces;
    for (RegionNode *c : part->children) spaces.append(nb::cast(std::const_pointer_cast<IndexSpace>(c->space)));
    d["spaces"] = spaces;
    return d;
}

PyObject *vectorcall_entry(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    return launch_single(reinterpret_cast<TaskObject *>(self), args, nargsf, kwnames);
}

// info: the front end's TaskInfo. Its `native_parameters` are (name, None) for values and (name, [(field names, privilege,
// operator)]) for regions; its `native_body` is (function pointer, user pointer, scalar types, return type) or None.
nb::object make_task(nb::object info) {
    auto flag = [&](const char *name) { return nb::cast<bool>(info.attr(name)); };
    auto def = std::make_unique<TaskDef>();
    def->id = static_cast<uint32_t>(task_registry().size() + 1);
    def->name = nb::cast<std::string>(info.attr("name"));
    nb::object fn = info.attr("fn"), native = info.attr("native_body");
    def->fn = fn.is_none() ? nullptr : fn.inc_ref().ptr();
    def->returns = flag("returns");
    def->critical = nb::cast<int>(info.attr("priority")) > 0;
    def->inner = flag("inner");
    def->idempotent = flag("idempotent");
    def->deterministic = flag("deterministic");
    def->code_hash = nb::cast<uint64_t>(info.attr("code_hash"));
    std::string scalar_types;
    if (!native.is_none()) {
        auto [body, user, scalars, result] = nb::cast<std::tuple<uintptr_t, uintptr_t, std::string, std::string>>(native);
        def->body = BodyKind::Native;
        def->native = reinterpret_cast<NativeBody>(body);
        def->native_user = reinterpret_cast<void *>(user);
        scalar_types = scalars;
        if (!result.empty()) def->return_type = result[0];
        def->lazy = !body;
    }
    for (nb::handle h : info.attr("native_parameters")) {
        auto pair = nb::cast<nb::tuple>(h);
        Param p;
        p.name = nb::cast<std::string>(pair[0]);
        uint16_t index = static_cast<uint16_t>(def->params.size());
        if (pair[1].is_none()) {
            if (def->value_params.size() < scalar_types.size()) p.scalar_type = scalar_types[def->value_params.size()];
            def->value_params.push_back(index);
        } else {
            p.kind = ParamKind::Region;
            for (nb::handle r : pair[1]) {
                auto [fields, privilege, op] = nb::cast<std::tuple<std::vector<std::string>, int, int>>(r);
                p.declared.push_back({fields, static_cast<Privilege>(privilege), op});
            }
            def->region_params.push_back(index);
            nb::object parameter = info.attr("parameters")[index];
            if (nb::object dtype = parameter.attr("dtype"); !dtype.is_none()) p.type_num = nb::cast<int>(dtype.attr("num"));
            if (nb::object ndim = parameter.attr("ndim"); !ndim.is_none()) p.ndim = nb::cast<int>(ndim);
        }
        def->params.push_back(std::move(p));
        def->resolved.push_back(std::make_unique<ResolvedTable>());
    }
    def->info = info.inc_ref().ptr();
    def->local = flag("local");
    auto *task = PyObject_GC_New(TaskObject, types().task);
    if (!task) throw nb::python_error();
    task->vectorcall = vectorcall_entry;
    task->def = def.get();
    task->dict = nullptr;
    task->weakrefs = nullptr;
    task_registry().push_back(def.release());
    PyObject_GC_Track(task);
    return nb::steal(reinterpret_cast<PyObject *>(task));
}

uint64_t mask_of(RegionNode *node, const std::optional<std::string> &field) {
    if (!field) return node->root->full_mask;
    for (size_t f = 0; f < node->root->fields.size(); ++f)
        if (node->root->fields[f].name == *field) return uint64_t{1} << f;
    throw nb::key_error(field->c_str());
}

// The region's memory belongs to the program again: launches on it are refused from now on.
void give_up(nb::handle region) { region_arg(region)->root->given_up = true; }

// ---- errors of tasks ----
void throw_failure(Failure *failure) {
    int others = current() ? current()->report(failure) : 0;
    if (others) {
        std::string note = "and so did " + std::to_string(others) + " other color" + (others > 1 ? "s" : "") + " of this launch";
        nb::handle(failure->exception).attr("add_note")(note);
    }
    PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(failure->exception)), failure->exception);
    throw nb::python_error();
}
void throw_first(Context &c) {
    if (Failure *f = c.first_failure()) throw_failure(f);
}

void wait_all() {
    Context *c = current();
    if (!c) return;
    if (!check_thread(c)) throw nb::python_error();
    c->tracer().separator();
    if (!c->wait_all()) throw nb::python_error();
    throw_first(*c);
}

FutureState *future_arg(nb::handle h) {
    if (!PyObject_TypeCheck(h.ptr(), types().future_base)) throw nb::type_error("expected a Future");
    return reinterpret_cast<FutureObject *>(h.ptr())->state;
}

bool future_done(nb::handle h) {
    FutureState *f = future_arg(h);
    return f->ready.load(std::memory_order_acquire) || f->failure.load();
}

nb::object future_get(nb::handle h, std::optional<double> timeout) {
    FutureState *f = future_arg(h);
    Context *c = current();
    if (c && check_thread(c)) c->tracer().separator();
    else PyErr_Clear();
    if (!f->ready.load(std::memory_order_acquire) && !f->failure.load()) {
        if (!c || !check_thread(c)) throw nb::python_error();
        bool ok = timeout ? c->wait_record_for(f->producer, *timeout) : c->wait_record(f->producer);
        if (!ok) throw nb::python_error();
    }
    if (Failure *failure = f->failure.load()) throw_failure(failure);
    if (c) throw_first(*c);
    if (!f->ready.load(std::memory_order_acquire)) {
        PyErr_SetString(PyExc_TimeoutError, "the future is not ready yet");
        throw nb::python_error();
    }
    return steal(future_value(f));
}

// ---- host access ----
struct HostAccess {
    TaskRecord *record;
    RegionNode *node;
    uint64_t context;  // the record ends with it
    bool open;
};

HostAccess open_host(nb::handle region, int privilege, std::optional<std::string> field) {
    RegionNode *node = region_arg(region);
    Context &c = context_arg();
    c.tracer().separator();
    auto p = static_cast<Privilege>(privilege);
    uint64_t mask = mask_of(node, field);
    bool writes = p != Privilege::Read;
    if (!check_bounds(&c, nullptr, node, p, -1, mask) || !check_host(node, mask, writes)) throw nb::python_error();
    TaskRecord *t = c.open_host(node, p, mask);
    if (!c.wait_host(t)) throw nb::python_error();
    Failure *failure = t->poisoned.load() ? t->failure.load() : c.first_failure();
    if (failure) {
        c.close_host(t);
        throw_failure(failure);
    }
    node->root->open_hosts.push_back({node, mask, writes, t});
    ++node->root->refs;
    return {t, node, c.serial, true};
}

void close_host(HostAccess &access) {
    if (!access.open) return;
    access.open = false;
    Root *root = access.node->root;
    auto here = std::find_if(root->open_hosts.begin(), root->open_hosts.end(),
                             [&](const OpenHost &h) { return h.access == access.record; });
    root->open_hosts.erase(here);
    if (Context *c = current(); c && c->serial == access.context) c->close_host(access.record);
    release_root(root);
}

int field_index(RegionNode *node, const std::string &name) {
    return __builtin_ctzll(mask_of(node, name));
}

nb::object view(nb::handle region, const std::string &field, bool writable) {
    RegionNode *node = region_arg(region);
    if (!node->dense()) throw nb::value_error("a sparse region has no view");
    return steal(new_view(node->root, field_index(node, field), shown_bounds(node), writable));
}

nb::object packed(nb::handle region, const std::string &field) {
    RegionNode *node = region_arg(region);
    return steal(packed_copy(node, field_index(node, field), true));
}

void unpack(nb::handle region, const std::string &field, nb::handle values) {
    RegionNode *node = region_arg(region);
    scatter_packed(node, field_index(node, field), PyArray_DATA(reinterpret_cast<PyArrayObject *>(values.ptr())));
}

nb::object index_of(nb::handle region) { return steal(sparse_index(region_arg(region))); }

// ---- life cycle ----
TraceOptions trace_options(const nb::dict &d) {
    TraceOptions t;
    auto algorithm = nb::cast<std::string>(d["algorithm"]);
    t.automatic = algorithm != "off";
    auto &r = t.recognizer;
    r.algorithm = tracing::Algorithm::burnish;
    r.mode = tracing::Mode::eager;
    r.history = nb::cast<uint32_t>(d["history"]);
    r.ruler = nb::cast<uint32_t>(d["ruler"]);
    r.min_length = nb::cast<uint32_t>(d["min_length"]);
    if (!nb::object(d["max_length"]).is_none()) r.max_length = nb::cast<uint32_t>(d["max_length"]);
    r.deterministic = nb::cast<bool>(d["deterministic"]);
    r.budget = nb::cast<double>(d["budget"]);
    r.parametric = nb::cast<bool>(d["parametric"]);
    t.memory = nb::cast<size_t>(d["memory"]);
    return t;
}

void start(int workers, int lanes, bool serial, bool check, bool record_edges, bool profile, int64_t window,
           uint64_t chaos, int64_t reduce_limit, int64_t memory_limit, nb::dict trace) {
    if (current()) throw std::runtime_error("a context is running");
    Options o;
    o.workers = workers;
    o.lanes = lanes;
    o.serial = serial;
    o.check = check;
    o.record_edges = record_edges;
    o.profile = profile;
    o.window = window;
    o.chaos = chaos;
    o.reduce_limit = reduce_limit;
    o.memory_limit = memory_limit;
    set_current(new Context(o, trace_options(trace)));
}

// Python bodies go to worker processes from now on; before the first launch of the context.
void use_processes(nb::object backend, nb::object decoder, nb::list workers, bool retry) {
    std::vector<std::pair<executors::Channel *, int>> peers;
    for (nb::handle w : workers)
        peers.emplace_back(&nb::cast<executors::Channel &>(w.attr("channel")), nb::cast<int>(w.attr("pidfd")));
    context_arg().processes = std::make_shared<ProcessBackend>(backend, decoder, std::move(peers), retry);
}

void stop() {
    Context *c = current();
    if (!c) return;
    c->tracer().separator();
    while (!c->settle()) PyErr_Clear();  // a second Ctrl-C does not leave tasks running
    c->sweep_roots();
    c->recycle();
    set_current(nullptr);
    {
        nb::gil_scoped_release release;
        c->join();
    }
    c->recycle();
    c->delete_roots();
    delete c;
}

nb::dict counters() {
    nb::dict d;
    Context *c = current();
    if (!c) return d;
    const Counters &k = c->counters;
    d["launches"] = k.launches;
    d["tasks"] = k.tasks;
    d["edges"] = k.edges;
    d["edges_removed"] = k.edges_removed;
    d["folds"] = k.folds;
    d["refinements"] = k.refinements;
    d["merges"] = k.merges;
    d["replayed"] = k.replayed;
    d["launch_ns"] = k.launch_ns;
    d["completed"] = c->scheduler().completed();
    d["captures"] = c->tracer().captures;
    d["replays"] = c->tracer().replays;
    d["folded_back"] = c->tracer().folds_back;
    d["declined"] = c->tracer().declined;
    d["false_edges_possible"] = k.false_edges_possible;
    d["record_bytes"] = c->record_bytes();
    uint64_t stolen = 0, parked = 0;
    for (int i = 0; i <= c->scheduler().threads(); ++i) {
        stolen += c->scheduler().stats(i).stolen.load();
        parked += c->scheduler().stats(i).parked.load();
    }
    d["stolen"] = stolen;
    d["parked"] = parked;
    return d;
}

nb::list traces() {
    nb::list all;
    Context *c = current();
    if (!c) return all;
    for (const auto &t : c->tracer().traces()) {
        nb::dict d;
        d["id"] = t.id;
        d["name"] = t.name;
        d["length"] = t.length;
        d["replays"] = t.replays;
        d["reliability"] = t.reliability;
        d["bytes"] = t.bytes;
        d["edges"] = t.edges;
        d["edges_recorded"] = t.edges_recorded;
        nb::list tasks, sites;
        for (TaskDef *task : t.tasks) tasks.append(task->name);
        for (uint32_t id : t.sites) {
            const Site &s = c->site(id);
            sites.append(s.code ? nb::object(nb::make_tuple(nb::borrow(reinterpret_cast<PyObject *>(s.code)), s.lasti))
                                : nb::none());
        }
        d["tasks"] = tasks;
        d["sites"] = sites;
        all.append(d);
    }
    return all;
}

bool begin_trace(const std::string &name, bool strict) {
    Context &c = context_arg();
    return c.tracer().begin(name, strict);
}

void end_trace() {
    if (Context *c = current()) c->tracer().end();
}

nb::dict atom_stats(nb::handle region) {
    Root *root = region_arg(region)->root;
    size_t longest = 0, entries = 0;
    for (const auto &a : root->atoms)
        for (const auto &e : a->entries) {
            ++entries;
            longest = std::max<size_t>(longest, std::max<size_t>(e.readers.size(), e.reducers.size()));
        }
    nb::dict d;
    d["atoms"] = root->atoms.size();
    d["entries"] = entries;
    d["longest_list"] = longest;
    d["version"] = root->shape_version;
    d["nodes"] = root->nodes.size();
    return d;
}

nb::list task_table() {
    nb::list rows;
    for (TaskDef *t : task_registry())
        if (t->launches) rows.append(nb::make_tuple(t->id, t->name, t->launches, t->points, t->runs.load(), t->run_ns.load()));
    return rows;
}

// The newest executions: (seq, kind, task or None, point, launch site or None).
nb::list node_log(size_t last) {
    nb::list rows;
    Context *c = current();
    if (!c) return rows;
    size_t n = c->node_log.size();
    for (size_t i = n > last ? n - last : 0; i < n; ++i) {
        const NodeEvent &e = c->node_log[i];
        nb::object task = nb::none(), site = nb::none();
        if (e.task) task = nb::cast(task_registry()[e.task - 1]->name);
        if (const Site &s = c->site(e.site); s.code)
            site = nb::make_tuple(nb::borrow(reinterpret_cast<PyObject *>(s.code)), s.lasti);
        rows.append(nb::make_tuple(e.seq, static_cast<int>(e.kind), task, e.point, site));
    }
    return rows;
}

// (id, region, bytes of its memory) of the roots that the program still has, in order of creation.
nb::list live_root_list() {
    std::vector<Root *> roots;
    for (Root *root : live_roots())
        if (root->refs > 0 && !root->death) roots.push_back(root);
    std::sort(roots.begin(), roots.end(), [](const Root *a, const Root *b) { return a->id < b->id; });
    nb::list rows;
    for (Root *root : roots)
        rows.append(nb::make_tuple(root->id, steal(region_object(root->region)), root->attached ? 0 : root->memory.bytes));
    return rows;
}

nb::list timeline() {
    nb::list rows;
    if (Context *c = current())
        for (const auto &worker : c->timeline)
            for (const auto &e : worker)
                rows.append(nb::make_tuple(e.seq, e.task, e.point, e.worker, e.start_ns, e.end_ns));
    return rows;
}

// First point of a dense argument of the running body.
nb::object placement(nb::handle array) {
    RegionNode *node = place_of(array.ptr()).node;
    if (!node) return nb::none();
    const Rect &b = node->space->bounds();
    return ints_tuple(b.lo.data(), b.dim);
}

// (region, field name) of an argument of the running body.
nb::object whereabouts(nb::handle array) {
    Placed p = place_of(array.ptr());
    if (!p.node) return nb::none();
    return nb::make_tuple(steal(region_object(p.node)), p.node->root->fields[p.field].name);
}

// Makes `copy` stand for `original` while the body runs.
void lend(nb::handle copy, nb::handle original) {
    Placed p = place_of(original.ptr());
    if (p.node) current_frame()->extra.push_back({copy.ptr(), p.node, p.field});
}

// (TaskInfo, color) of the running body.
nb::object running_task() {
    BodyFrame *frame = current_frame();
    if (!frame) return nb::none();
    return nb::make_tuple(nb::borrow(frame->record->launch->task->info), steal(launch_color(frame->record)));
}

// Waits for everything launched; errors of tasks stay unreported.
void settle() {
    Context *c = current();
    if (c && !c->wait_all()) throw nb::python_error();
}

void register_front_end(nb::dict d) {
    auto keep = [&](const char *name) { return nb::object(d[name]).inc_ref().ptr(); };
    auto type = [&](const char *name) { return reinterpret_cast<PyTypeObject *>(keep(name)); };
    types().region = type("Region");
    types().partition = type("Partition");
    types().future = type("Future");
    types().future_map = type("FutureMap");
    types().error = keep("error");
    types().bind = keep("bind");
    types().value = keep("value");
    types().start = keep("start");
    types().first_launch = keep("first_launch");
    types().compile = keep("compile");
    types().on_launch = keep("on_launch");
    types().make_room = keep("make_room");
    types().inner = keep("inner");
    python_types().sparse_field = keep("SparseField");
    python_types().fields_view = keep("fields_view");
    python_types().on_failure = keep("on_failure");
    python_types().wrap_body = keep("wrap_body");
    python_types().native_failure = keep("native_failure");
    package_dir = nb::cast<std::string>(d["package_dir"]);
}

int add_reduction(const std::string &name, nb::object fn, nb::object identity, bool commutative) {
    for (size_t i = 0; i < reduce_ops().size(); ++i)
        if (reduce_ops()[i].name == name) return -1;
    reduce_ops().push_back({name, std::nullopt, fn.inc_ref().ptr(), identity.inc_ref().ptr(), commutative});
    return static_cast<int>(reduce_ops().size() - 1);
}

int find_reduction(const std::string &name) {
    for (size_t i = 0; i < reduce_ops().size(); ++i)
        if (reduce_ops()[i].name == name) return static_cast<int>(i);
    return -1;
}

bool numpy_ready() { return PyArray_ImportNumPyAPI() == 0; }

}  // namespace

BURNISH_BIND(runtime) {
    if (!numpy_ready() || !make_types(m.ptr())) throw nb::python_error();
    m.def("register_front_end", &register_front_end);
    m.def("make_region", &make_region, "shape"_a, "space"_a.none(), "fields"_a, "attach"_a.none(), "origin"_a.none());
    m.def("root_info", &root_info);
    m.def("node_info", &node_info);
    m.def("subregion", &subregion);
    m.def("root_region", [](nb::handle r) { return steal(region_object(region_arg(r)->root->region)); });
    m.def("add_partition", &add_partition, "region"_a, "shape"_a, "spaces"_a, "disjoint"_a, "complete"_a, "origin"_a.none());
    m.def("partitions_of", &partitions_of, "Partitions of the region's root, in order of creation.");
    m.def("partition_info", &partition_info);
    m.def("make_task", &make_task);
    m.def("wait_all", &wait_all);
    m.def("future_done", &future_done);
    m.def("future_get", &future_get, "future"_a, "timeout"_a.none());
    nb::class_<HostAccess>(m, "HostAccess");
    m.def("open_host", &open_host, "region"_a, "privilege"_a, "field"_a.none());
    m.def("close_host", &close_host);
    m.def("give_up", &give_up);
    m.def("view", &view);
    m.def("packed", &packed);
    m.def("unpack", &unpack);
    m.def("index_of", &index_of);
    m.def("start", &start, "workers"_a, "lanes"_a, "serial"_a, "check"_a, "record_edges"_a, "profile"_a, "window"_a,
          "chaos"_a, "reduce_limit"_a, "memory_limit"_a, "trace"_a);
    m.def("stop", &stop);
    m.def("use_processes", &use_processes);
    m.def("set_journal", [](nb::object journal) {
        if (Context *c = current()) c->journal = journal.is_none() ? nullptr : journal.ptr();
    }, "journal"_a.none());
    m.def("live_region", [](uint32_t root) -> nb::object {
        for (Root *r : live_roots())
            if (r->id == root && !r->death && r->refs > 0) return steal(region_object(r->region));
        return nb::none();
    });
    m.def("future_set", [](nb::handle future, nb::object value) {
        FutureState *f = future_arg(future);
        if (f->ready.load()) return;
        f->value.object = value.release().ptr();
        f->type = 'O';
        f->ready.store(true, std::memory_order_release);
    }, "future"_a, "value"_a.none());
    m.def("set_arena", [](nb::object arena) { region_arena = &nb::cast<executors::Arena &>(arena.inc_ref()); });
    m.def("running", [] { return current() != nullptr; });
    m.def("counters", &counters);
    m.def("atom_stats", &atom_stats);
    m.def("traces", &traces);
    m.def("begin_trace", &begin_trace);
    m.def("end_trace", &end_trace);
    m.def("trace_strip", [] { return current() ? current()->tracer().strip : std::vector<std::pair<uint8_t, uint32_t>>{}; });
    m.def("task_table", &task_table);
    m.def("timeline", &timeline);
    m.def("edge_log", [] { return current() ? current()->edge_log : std::vector<std::pair<uint64_t, uint64_t>>{}; });
    m.def("fold_log", [] { return current() ? current()->fold_log : std::vector<uint64_t>{}; });
    m.def("last_seq", [] { return current() ? current()->last_seq() : 0; });
    m.def("placement", &placement, "array"_a);
    m.def("whereabouts", &whereabouts, "array"_a);
    m.def("lend", &lend, "copy"_a, "original"_a);
    m.def("running_task", &running_task);
    m.def("node_log", &node_log, "last"_a);
    m.def("live_roots", &live_root_list);
    m.def("memory_used", &memory_used);
    m.def("memory_limit", [] { return current() ? current()->options().memory_limit : 0; });
    m.def("fold_all", [] {
        if (Context *c = current(); c && !c->fold_all()) throw nb::python_error();
    });
    m.def("settle", &settle);
    m.def("add_reduction", &add_reduction);
    m.def("find_reduction", &find_reduction);
    m.def("reduction_name", [](int op) { return reduce_ops().at(op).name; });
}

}  // namespace burnish::runtime
