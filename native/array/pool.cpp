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

// How roots made at one place of the program are cut in the end. The next one made there is cut alike from the start, so
// that a recorded trace fits it.
struct Cut {
    uint64_t structure = 0;
    std::vector<runtime::Space> spaces;
    Bin *bin = nullptr;
};
Cut &cut_of(const RootClass *of, uint32_t site) {
    static std::unordered_map<uint64_t, Cut> table;
    return table[uint64_t{of->id} << 32 | site];
}

void learn_cut(ArrayRoot *a, uint64_t structure) {
    Cut &cut = cut_of(a->of, a->site);
    if (cut.structure == structure) return;
    cut.structure = structure;
    cut.bin = &a->of->bins[structure];
    cut.spaces.clear();
    for (const auto &atom : a->root->ordered_atoms()) cut.spaces.push_back(atom->space);
}

void apply_cut(Root *root, const Cut &cut) {
    if (!cut.structure || root->structure() == cut.structure) return;
    for (auto &atom : root->atoms) atom->dead = true;
    root->atoms.clear();
    for (const auto &space : cut.spaces) {
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
    const uint64_t structure = root->structure();
    learn_cut(this, structure);
    Context *c = runtime::current();
    epoch = runtime::context_epoch;
    position = c ? c->tracer().record_position() : 0;
    if ((c && c->failed()) || g_stats.pooled_bytes + of->bytes > kPooledBytes) return destroy(this);
    g_stats.pooled_bytes += of->bytes;
    of->bins[structure].dead.push_back(this);
    pooled_classes().insert(of);
}

namespace {

void collect_finished(Context &c, Bin &bin) {
    while (!bin.dead.empty() && finished(c, bin.dead.front())) {
        bin.ready.push_back(bin.dead.front());
        bin.dead.pop_front();
    }
}

// A free root that is cut otherwise, if the class holds many: programs that keep changing their cuts would hoard.
ArrayRoot *steal(Context &c, RootClass *of) {
    int64_t idle = 0;
    Bin *largest = nullptr;
    for (auto &[structure, bin] : of->bins) {
        collect_finished(c, bin);
        idle += static_cast<int64_t>(bin.ready.size());
        if (!largest || bin.ready.size() > largest->ready.size()) largest = &bin;
    }
    if (!largest || idle < kAheadRoots || idle * of->bytes < kAheadBytes) return nullptr;
    ArrayRoot *a = largest->ready.back();
    largest->ready.pop_back();
    return a;
}

}  // namespace

ArrayRoot *take_root(Context &c, RootClass *of, uint32_t site) {
    const Cut &cut = cut_of(of, site);
    Bin &bin = cut.bin ? *cut.bin : of->bins[of->uncut];
    for (;;) {
        collect_finished(c, bin);
        const auto waiting = static_cast<int64_t>(bin.dead.size());
        if (!bin.ready.empty() || waiting < kAheadRoots || waiting * of->bytes < kAheadBytes || c.failed() || !c.in_flight()) break;
        if (!c.drain(c.in_flight() / 2)) return nullptr;
    }
    ArrayRoot *a = nullptr;
    if (!bin.ready.empty()) {
        a = bin.ready.back();  // most likely still in a cache
        bin.ready.pop_back();
    } else if (of->bins.size() > 1) {
        a = steal(c, of);
    }
    if (!a) {
        a = make_array_root(of);
        if (!a) return nullptr;
        if (!of->uncut) of->uncut = a->root->structure();
    } else {
        g_stats.pooled_bytes -= of->bytes;
        ++g_stats.reused;
        a->root->logical_id = runtime::next_id();
        a->root->bound = 0;
    }
    apply_cut(a->root, cut);
    a->root->refs = 1;
    a->site = site;
    return a;
}

PoolStats pool_stats() { return g_stats; }

void empty_pool() {
    for (RootClass *of : pooled_classes()) {
        for (auto &[structure, bin] : of->bins) {
            for (ArrayRoot *a : bin.dead) destroy(a);
            for (ArrayRoot *a : bin.ready) destroy(a);
            g_stats.pooled_bytes -= static_cast<int64_t>(bin.dead.size() + bin.ready.size()) * of->bytes;
            bin.dead.clear();
            bin.ready.clear();
        }
    }
    pooled_classes().clear();
}

}  // namespace burnish::array
