#include "forest.hpp"

#include "op.hpp"

#include <algorithm>

namespace burnish::runtime {

namespace {
uint32_t g_last_id = 0;
}
uint32_t next_id() { return ++g_last_id; }
uint32_t last_id() { return g_last_id; }

std::unordered_set<Root *> &live_roots() {
    static std::unordered_set<Root *> roots;
    return roots;
}

Root::Root() { live_roots().insert(this); }
Root::~Root() { live_roots().erase(this); }

void UserList::prune() {
    User *users = data();
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n_; ++i)
        if (!users[i].finished()) users[kept++] = users[i];
    n_ = kept;
}

void UserList::push(User u) {
    if (n_ == cap_) {
        prune();
        if (n_ > cap_ / 2) {
            auto bigger = std::make_unique<User[]>(cap_ * 2);
            std::copy(data(), data() + n_, bigger.get());
            heap_ = std::move(bigger);
            cap_ *= 2;
        }
    }
    data()[n_++] = u;
}

UserList &UserList::operator=(const UserList &o) {
    if (this == &o) return *this;
    n_ = 0;
    if (o.n_ > cap_) {
        heap_ = std::make_unique<User[]>(o.cap_);
        cap_ = o.cap_;
    }
    std::copy(o.data(), o.data() + o.n_, data());
    n_ = o.n_;
    return *this;
}

UserList &UserList::operator=(UserList &&o) noexcept {
    if (this == &o) return *this;
    n_ = o.n_;
    cap_ = o.cap_;
    heap_ = std::move(o.heap_);
    std::copy(o.inline_, o.inline_ + kInline, inline_);
    o.n_ = 0;
    o.cap_ = kInline;
    return *this;
}

RegionNode *Root::add_node(Space space, PartitionNode *parent, int64_t color) {
    auto node = std::make_unique<RegionNode>();
    node->id = next_id();
    node->root = this;
    node->space = std::move(space);
    node->parent = parent;
    node->color = color;
    nodes.push_back(std::move(node));
    return nodes.back().get();
}

PartitionNode *Root::add_partition(RegionNode *parent, std::vector<int64_t> shape, Pieces pieces) {
    auto part = std::make_unique<PartitionNode>();
    part->id = next_id();
    part->parent = parent;
    part->shape = std::move(shape);
    part->disjoint = pieces.disjoint;
    part->complete = pieces.complete;
    int64_t color = 0;
    for (auto &space : pieces.spaces) part->children.push_back(add_node(std::move(space), part.get(), color++));
    partitions.push_back(std::move(part));
    return partitions.back().get();
}

RegionNode *Root::rectangle(RegionNode *of, const Rect &r) {
    Space space = intersection(IndexSpace::rect(bounds, r), of->space);
    if (space->volume() == of->space->volume()) return of;
    const Rect &cut = of->dense() ? space->bounds() : r;
    std::vector<int64_t> key = {of->dense() ? 0 : int64_t{of->id}};
    for (int d = 0; d < bounds.dim; ++d) {
        key.push_back(cut.lo[d]);
        key.push_back(cut.hi[d]);
    }
    auto [it, fresh] = rectangles.try_emplace(std::move(key), nullptr);
    if (fresh) it->second = add_node(std::move(space), nullptr, 0);
    return it->second;
}

bool Root::overlap(const RegionNode *a, const RegionNode *b) {
    if (a == b) return !a->space->is_empty();
    if (a->parent && a->parent == b->parent && a->parent->disjoint) return false;
    uint64_t key = a->id < b->id ? (uint64_t{a->id} << 32 | b->id) : (uint64_t{b->id} << 32 | a->id);
    auto it = overlap_cache.find(key);
    if (it == overlap_cache.end()) it = overlap_cache.emplace(key, intersects(*a->space, *b->space)).first;
    return it->second;
}

const OpenHost *Root::open_host(const RegionNode *node, uint64_t mask, bool writes) {
    for (const auto &h : open_hosts)
        if ((h.writes || writes) && (h.mask & mask) && overlap(h.node, node)) return &h;
    return nullptr;
}

bool Root::settled() const {
    for (const auto &atom : atoms)
        for (const auto &e : atom->entries)
            if (!e.writer.ended()) return false;
    return true;
}

namespace {
uint64_t hash_space(const IndexSpace &space) {
    uint64_t h = tracing::combine(static_cast<uint64_t>(space.dense()), static_cast<uint64_t>(space.volume()));
    const Rect &r = space.bounds();
    for (int d = 0; d < r.dim; ++d) {
        h = tracing::combine(h, static_cast<uint64_t>(r.lo[d]));
        h = tracing::combine(h, static_cast<uint64_t>(r.hi[d]));
    }
    if (!space.dense())
        for (const Interval &i : space.intervals()) {
            h = tracing::combine(h, static_cast<uint64_t>(i.lo));
            h = tracing::combine(h, static_cast<uint64_t>(i.hi));
        }
    return h;
}

int64_t first_point(const IndexSpace &space) { return space.intervals().empty() ? -1 : space.intervals().front().lo; }
}  // namespace

uint64_t shape_signature(RegionNode *node) {
    if (!node->signature) {
        const Root *root = node->root;
        uint64_t h = tracing::combine(root->layout, static_cast<uint64_t>(root->attached));
        for (int d = 0; d < root->bounds.dim; ++d) h = tracing::combine(h, static_cast<uint64_t>(root->bounds.hi[d]));
        node->signature = tracing::combine(h, hash_space(*node->space)) | 1;
    }
    return node->signature;
}

const std::vector<AtomRef> &Root::ordered_atoms() {
    if (ordered_version != shape_version) {
        std::stable_sort(atoms.begin(), atoms.end(), [](const AtomRef &a, const AtomRef &b) {
            return first_point(*a->space) < first_point(*b->space);
        });
        uint64_t h = tracing::combine(layout, atoms.size());
        for (const auto &atom : atoms) {
            if (!atom->hash) atom->hash = hash_space(*atom->space);
            h = tracing::combine(h, atom->hash);
        }
        structure_hash = h;
        ordered_version = shape_version;
    }
    return atoms;
}

uint64_t Root::structure() {
    ordered_atoms();
    return structure_hash;
}

uint32_t layout_of(int dimensions, const std::vector<Field> &fields) {
    static std::map<std::string, uint32_t> known;
    std::string key = std::to_string(dimensions) + "|";
    for (const auto &f : fields) {
        key += f.name + ":" + std::to_string(f.type_num) + "/" + std::to_string(f.item_bytes);
        for (int64_t n : f.inner) key += "," + std::to_string(n);
        key += ";";
    }
    return known.try_emplace(key, static_cast<uint32_t>(known.size() + 1)).first->second;
}

std::unique_ptr<Root> make_root(const Rect &bounds, Space space, std::vector<Field> fields) {
    auto root = std::make_unique<Root>();
    root->id = root->logical_id = next_id();
    root->bounds = bounds;
    root->fields = std::move(fields);
    size_t n = root->fields.size();
    root->full_mask = n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1;
    root->region = root->add_node(std::move(space), nullptr, 0);
    auto atom = std::make_shared<Atom>();
    atom->space = root->region->space;
    atom->entries.resize(1);
    atom->entries[0].mask = root->full_mask;
    root->atoms.push_back(atom);
    return root;
}

}  // namespace burnish::runtime
