#include "pool.hpp"

#include <cstdlib>
#include <unordered_set>

#include "runtime/memory.hpp"
#include "runtime/pytypes.hpp"

namespace burnish::array {

namespace {

constexpr int64_t kPooledBytes = int64_t{256} << 20;  // beyond this, roots are freed
// How far the program may run ahead of the temporaries' users: enough work for all workers, little enough to stay in
// the caches.
constexpr int64_t kAheadBytes = int64_t{4} << 20, kAheadRoots = 24;

PoolStats g_stats{};

// How roots made at one place of the program were cut in the end. New ones are cut alike at once, so that a recorded
// trace fits them.
struct Cut {
    uint64_t structure = 0;
    std::vector<runtime::Space> spaces;
};
std::unordered_map<uint64_t, Cut> &cuts() {
    static std::unordered_map<uint64_t, Cut> table;
    return table;
}
Cut &cut_of(const RootClass *of, uint32_t site) { return cuts()[uint64_t{of->id} << 32 | site]; }

void learn_cut(ArrayRoot *a) {
    Cut &cut = cut_of(a->of, a->site);
    const uint64_t structure = a->root->structure();
    if (cut.structure == structure || (cut.structure && cut.spaces.size() > a->root->atoms.size())) return;
    cut.structure = structure;
    cut.spaces.clear();
    for (const auto &atom : a->root->ordered_atoms()) cut.spaces.push_back(atom->space);
}

void apply_cut(ArrayRoot *a) {
    Root *root = a->root;
    const Cut &cut = cut_of(a->of, a->site);
    const std::vector<runtime::Space> *spaces = &cut.spaces;
    const std::vector<runtime::Space> uncut{root->region->space};
    if (!cut.structure) spaces = &uncut;
    if (root->atoms.size() == spaces->size() && (spaces->size() == 1 || root->structure() == cut.structure)) return;
    for (auto &atom : root->atoms) {
        atom->dead = true;
        atom->entries.clear();
    }
    root->atoms.clear();
    for (const auto &space : *spaces) {
        auto atom = std::make_shared<runtime::Atom>();
        atom->space = space;
        atom->entries.resize(1);
        atom->entries[0].mask = root->full_mask;
        root->atoms.push_back(std::move(atom));
    }
    ++root->shape_version;
}

void free_memory(PyObject *capsule) { runtime::give_memory(static_cast<std::byte *>(PyCapsule_GetPointer(capsule, nullptr))); }

ArrayRoot *make_array_root(RootClass *of) {
    const size_t bytes = (static_cast<size_t>(of->bytes) + 63) / 64 * 64;
    std::byte *data = runtime::take_memory(bytes);
    PyObject *owner = PyCapsule_New(data, nullptr, free_memory);
    if (!owner) return nullptr;
    runtime::Field f;
    f.name = "value";
    f.type_num = of->type;
    f.item_bytes = f.point_bytes = of->item;
    f.data = data;
    if (PyObject *code = PyObject_GetAttrString(reinterpret_cast<PyObject *>(of->descr), "str")) {
        f.code = PyUnicode_AsUTF8(code);
        Py_DECREF(code);
    }
    f.descr = Py_NewRef(of->descr);
    Root *root = runtime::make_root(of->bounds, runtime::IndexSpace::rect(of->bounds, of->bounds), {f}).release();
    root->memory.data = data;
    root->memory.bytes = bytes;
    root->layout = of->layout;
    root->python = owner;
    auto *a = new ArrayRoot;
    a->root = root;
    a->of = of;
    root->pool = a;
    ++g_stats.made;
    g_stats.live_bytes += of->bytes;
    return a;
}

void destroy(ArrayRoot *a) {
    Root *root = a->root;
    root->pool = nullptr;
    g_stats.live_bytes -= a->of->bytes;
    delete a;
    if (Context *c = runtime::current()) {
        c->retire_root(root);
    } else {
        runtime::free_root_data(root);
        runtime::delete_root(root);
    }
}

bool finished(Context &c, const ArrayRoot *a) {
    return a->epoch != runtime::context_epoch || c.tracer().finished_before(a->position);
}

std::unordered_set<RootClass *> &pooled_classes() {
    static std::unordered_set<RootClass *> classes;
    return classes;
}

}  // namespace

RegionNode *ArrayRoot::make_node(int rect) {
    if (nodes.size() < of->rects.size()) nodes.resize(of->rects.size());
    return nodes[rect] = rect == 0 ? root->region : root->rectangle(root->region, of->rects[rect]);
}

void ArrayRoot::give(Root *) {
    learn_cut(this);
    Context *c = runtime::current();
    epoch = runtime::context_epoch;
    position = c ? c->tracer().record_position() : 0;
    if ((c && c->failed()) || g_stats.pooled_bytes + of->bytes > kPooledBytes) return destroy(this);
    g_stats.pooled_bytes += of->bytes;
    if (of->dead.empty() && of->ready.empty()) pooled_classes().insert(of);
    of->dead.push_back(this);
}

ArrayRoot *take_root(Context &c, RootClass *of, uint32_t site) {
    for (;;) {
        while (!of->dead.empty() && finished(c, of->dead.front())) {
            of->ready.push_back(of->dead.front());
            of->dead.pop_front();
        }
        const auto waiting = static_cast<int64_t>(of->dead.size());
        if (!of->ready.empty() || waiting < kAheadRoots || waiting * of->bytes < kAheadBytes || c.failed() || !c.in_flight()) break;
        if (!c.drain(c.in_flight() / 2)) return nullptr;
    }
    ArrayRoot *a;
    if (of->ready.empty()) {
        a = make_array_root(of);
        if (!a) return nullptr;
    } else {
        a = of->ready.back();  // most likely still in a cache
        of->ready.pop_back();
        g_stats.pooled_bytes -= of->bytes;
        ++g_stats.reused;
        a->root->logical_id = runtime::next_id();
        a->root->bound = 0;
    }
    a->root->refs = 1;
    a->site = site;
    apply_cut(a);
    return a;
}

PoolStats pool_stats() { return g_stats; }

void empty_pool() {
    for (RootClass *of : pooled_classes()) {
        for (ArrayRoot *a : of->dead) destroy(a);
        for (ArrayRoot *a : of->ready) destroy(a);
        g_stats.pooled_bytes -= static_cast<int64_t>(of->dead.size() + of->ready.size()) * of->bytes;
        of->dead.clear();
        of->ready.clear();
    }
    pooled_classes().clear();
}

}  // namespace burnish::array
