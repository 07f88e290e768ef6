// Dependence analysis: equivalence sets with field masks (specs: atoms), refinement and coalescing.
// Visibility follows Legion's equivalence sets (Bauer et al., "Visibility algorithms for dynamic dependence analysis
// and distributed coherence", PPoPP 2023).
#include <algorithm>

#include "context.hpp"

namespace burnish::runtime {

Edge *Context::new_edge(TaskRecord *t) {
    if (t->n_edges < kInlineEdges) return &t->inline_edges[t->n_edges];
    constexpr int kSpill = 32;  // element 0 of a spill block chains the blocks
    int k = (t->n_edges - kInlineEdges) % (kSpill - 1);
    if (k == 0) {
        Edge *block;
        if (spare_edges_.empty()) {
            block = new Edge[kSpill];
        } else {
            block = spare_edges_.back();
            spare_edges_.pop_back();
        }
        block[0].next = t->spill_edges;
        t->spill_edges = block;
    }
    return &t->spill_edges[k + 1];
}

void Context::link(User pred, TaskRecord *t, bool data) {
    TaskRecord *p = pred.rec;
    if (!p || p == t || p->gen != pred.gen) return;
    uint64_t stamp = t->seq * 2;
    if (p->stamp == stamp + 1 || (p->stamp == stamp && !data)) {
        ++counters.edges_removed;
        return;
    }
    if (options_.record_edges) edge_log.emplace_back(p->seq, t->seq);
    RecordState state = p->state.load(std::memory_order_acquire);
    if (state == RecordState::Done) return;
    if (state == RecordState::Failed) {
        if (data) poison(t, p->failure.load());
        return;
    }
    p->stamp = stamp + data;
    Edge *e = new_edge(t);
    e->succ_and_data = reinterpret_cast<uintptr_t>(t) | static_cast<uintptr_t>(data);
    Edge *head = p->head.load(std::memory_order_acquire);
    do {
        if (head == closed()) {  // finished meanwhile
            if (data && p->state.load(std::memory_order_acquire) == RecordState::Failed) poison(t, p->failure.load());
            return;
        }
        e->next = head;
    } while (!p->head.compare_exchange_weak(head, e, std::memory_order_release, std::memory_order_acquire));
    ++t->n_edges;
    ++counters.edges;
}

namespace {

constexpr size_t kMaxOpenReductions = 1024;  // of one entry, before they are folded without being asked for
constexpr size_t kFoldGroupSearch = 64;

AtomRef half(const AtomRef &whole, Space space) {
    auto atom = std::make_shared<Atom>();
    atom->space = std::move(space);
    atom->entries = whole->entries;
    atom->merged_by = whole->merged_by;
    for (auto &e : atom->entries)
        for (auto &r : e.reducers) r.second->refs.fetch_add(1, std::memory_order_relaxed);
    return atom;
}

void drop_reducers(Entry &e) {
    for (auto &r : e.reducers) drop_buffer(r.second);
    e.reducers.clear();
    e.op = -1;
}

// Whether one fold of both has exactly the dependences of two.
bool alike(const Entry &a, const Entry &b) {
    if (a.writer != b.writer || a.op != b.op || a.reducers.size() != b.reducers.size()) return false;
    for (size_t i = 0; i < a.reducers.size(); ++i)
        if (a.reducers[i].first != b.reducers[i].first) return false;
    return std::equal(a.readers.begin(), a.readers.end(), b.readers.begin(), b.readers.end());
}

void leaves(const AtomRef &atom, std::vector<AtomRef> &out, bool &dead) {
    if (atom->dead) dead = true;
    else if (atom->split()) {
        leaves(atom->inside, out, dead);
        leaves(atom->outside, out, dead);
    } else out.push_back(atom);
}

}  // namespace

// Brings the node's list of atoms up to date. Splits need no geometry: a node is always a union of whole atoms.
void Context::refresh(RegionNode *node) {
    Root *root = node->root;
    if (!node->atoms.empty()) {
        std::vector<AtomRef> fresh;
        bool dead = false;
        for (const auto &atom : node->atoms) leaves(atom, fresh, dead);
        if (!dead) {
            node->atoms = std::move(fresh);
            node->atoms_version = root->shape_version;
            return;
        }
    }
    lookup(node);
    node->atoms_version = root->shape_version;
}

// Finds the atoms of a node and cuts those that stick out (refinement).
void Context::lookup(RegionNode *node) {
    Root *root = node->root;
    node->atoms.clear();
    if (node->space->is_empty()) return;
    size_t n = root->atoms.size();
    int64_t missing = node->space->volume();
    for (size_t i = 0; i < n && missing > 0; ++i) {
        AtomRef atom = root->atoms[i];
        if (!intersects(*atom->space, *node->space)) continue;
        if (covers(*node->space, *atom->space)) {
            missing -= atom->space->volume();
            node->atoms.push_back(std::move(atom));
            continue;
        }
        atom->inside = half(atom, intersection(atom->space, node->space));
        atom->outside = half(atom, difference(atom->space, node->space));
        if (atom->merged_by) {  // this merge did not last: try again later than last time
            auto &m = *atom->merged_by;
            m.merge_backoff = std::min<uint32_t>(m.merge_backoff * 2 + 1, 1u << 16);
            atom->inside->merged_by = atom->outside->merged_by = nullptr;
        }
        for (auto &e : atom->entries) drop_reducers(e);
        atom->entries.clear();
        root->atoms[i] = atom->inside;
        root->atoms.push_back(atom->outside);
        missing -= atom->inside->space->volume();
        node->atoms.push_back(atom->inside);
        ++root->shape_version;
        ++counters.refinements;
    }
}

// A dominating write makes its atoms alike again. Merging in a loop that splits again at once would cost more than it
// saves, so a node whose merges do not last waits longer each time, unless its atoms have become many more.
void Context::maybe_merge(TaskRecord *t, RegionNode *node, bool data, uint64_t mask) {
    size_t n = node->atoms.size();
    if (n < 2) return;
    if (node->merge_wait < node->merge_backoff && n < 4 * std::max<size_t>(node->merge_width, 4)) {
        ++node->merge_wait;
        return;
    }
    Root *root = node->root;
    for (const auto &atom : node->atoms)
        for (const auto &e : atom->entries) {
            if ((e.mask & ~mask) == 0) continue;
            if (!e.writer.finished() || !e.reducers.empty()) return;  // other fields still differ
            for (const auto &u : e.readers)
                if (!u.finished()) return;
        }
    auto merged = std::make_shared<Atom>();
    merged->space = node->space;
    merged->merged_by = node;
    merged->entries.resize(1);
    merged->entries[0].mask = root->full_mask;
    for (const auto &atom : node->atoms) {
        for (auto &e : atom->entries) {  // the coming writer waits for everybody here; the merged atom starts empty
            if (e.readers.empty() || data) link(e.writer, t, data);
            for (const auto &u : e.readers) link(u, t, false);
            drop_reducers(e);
        }
        atom->dead = true;
        atom->entries.clear();
    }
    std::erase_if(root->atoms, [](const AtomRef &a) { return a->dead; });
    root->atoms.push_back(merged);
    ++root->shape_version;
    ++counters.merges;
    node->merge_wait = 0;
    node->merge_width = static_cast<uint32_t>(n);
    node->atoms.assign(1, merged);
    node->atoms_version = root->shape_version;
}

// The fields of entry i outside `mask` become an entry of their own.
void Context::cut_entry(Atom &atom, size_t i, uint64_t mask) {
    Entry rest = atom.entries[i];
    for (auto &r : rest.reducers) r.second->refs.fetch_add(1, std::memory_order_relaxed);
    rest.mask &= ~mask;
    atom.entries[i].mask &= mask;
    atom.entries.push_back(std::move(rest));
}

// Open reductions that the coming use must see become fold tasks, in launch order.
void Context::fold_open(RegionNode *node, Privilege privilege, int op, uint64_t mask) {
    bool full = reduce_bytes.load(std::memory_order_relaxed) > options_.reduce_limit;
    std::vector<Closing> closing;
    for (const auto &atom : node->atoms) {
        auto &entries = atom->entries;
        for (size_t i = 0, n = entries.size(); i < n; ++i)
            if (entries[i].op >= 0 && (entries[i].mask & mask) && (entries[i].mask & ~mask)) cut_entry(*atom, i, mask);
        for (auto &e : entries) {
            if (!(e.mask & mask) || e.op < 0) continue;
            if (privilege == Privilege::Write) drop_reducers(e);  // dead before anyone saw them
            else if (privilege != Privilege::Reduce || e.op != op || full || e.reducers.size() >= kMaxOpenReductions)
                closing.push_back({&atom, &e});
        }
    }
    close_in_groups(node->root, closing);
}

void Context::fold_atom(Root *root, const AtomRef &atom, uint64_t mask) {
    std::vector<Closing> closing;
    for (auto &e : atom->entries)
        if ((e.mask & mask) && e.op >= 0) closing.push_back({&atom, &e});
    close_in_groups(root, closing);
}

// Entries with the same users share a fold: others would wait, and be poisoned, for data that are not theirs.
void Context::close_in_groups(Root *root, std::vector<Closing> &closing) {
    for (size_t first = 0; first < closing.size();) {
        size_t end = first + 1, stop = std::min(closing.size(), first + kFoldGroupSearch);
        for (size_t i = end; i < stop; ++i)
            if (alike(*closing[first].entry, *closing[i].entry)) std::swap(closing[end++], closing[i]);
        close_entries(root, std::span(closing).subspan(first, end - first));
        first = end;
    }
}

// One fold task becomes the last writer of the given entries.
void Context::close_entries(Root *root, std::span<const Closing> group) {
    auto work = std::make_unique<FoldWork>();
    for (const Closing &c : group) {
        FoldPart part{(*c.atom)->space, root, c.entry->mask, c.entry->op, {}};
        for (auto &r : c.entry->reducers) part.buffers.push_back(r.second);  // with its reference
        work->needs_gil |= !reduce_ops()[c.entry->op].builtin;
        work->parts.push_back(std::move(part));
    }
    TaskRecord *t = begin_fold(work.release());
    const Entry &e = *group.front().entry;
    link(e.writer, t, true);
    for (const auto &u : e.readers) link(u, t, false);
    for (const auto &r : e.reducers) link(r.first, t, true);
    for (const Closing &c : group) {
        c.entry->reducers.clear();
        set_writer(*c.entry, User(t));
    }
    issue(t);
}

TaskRecord *Context::begin_fold(FoldWork *work) {
    Launch *launch = new_launch(nullptr, 0);
    launch->work = work;
    launch->free_work = [](void *w) { delete static_cast<FoldWork *>(w); };
    TaskRecord *t = begin(launch);
    t->kind = RecordKind::Fold;
    if (options_.record_edges) fold_log.push_back(t->seq);
    ++counters.folds;
    return t;
}

void Context::link_use(TaskRecord *t, const Entry &e, Privilege privilege) {
    switch (privilege) {
        case Privilege::Read: link(e.writer, t, true); break;
        case Privilege::Write:
        case Privilege::ReadWrite: {
            bool data = privilege == Privilege::ReadWrite;
            if (e.readers.empty() || data) link(e.writer, t, data);
            for (const auto &u : e.readers) link(u, t, false);
            break;
        }
        case Privilege::Reduce:  // the buffer is private; the fold waits
        case Privilege::None: break;
    }
}

void Context::set_writer(Entry &e, User writer) {
    e.writer = writer;
    e.readers.clear();
    drop_reducers(e);
}

void Context::update_entry(User user, Entry &e, Privilege privilege, int op, ReduceBuffer *buffer) {
    switch (privilege) {
        case Privilege::Read: e.readers.push(user); break;
        case Privilege::Write:
        case Privilege::ReadWrite:
            e.writer = user;
            e.readers.clear();
            break;
        case Privilege::Reduce:
            e.op = op;
            buffer->refs.fetch_add(1, std::memory_order_relaxed);
            e.reducers.emplace_back(user, buffer);
            break;
        case Privilege::None: break;
    }
}

void Context::require(TaskRecord *t, RegionNode *node, Privilege privilege, int op, uint64_t mask,
                      ReduceBuffer *buffer) {
    Root *root = node->root;
    refresh_atoms(node);
    if (root->reduced) fold_open(node, privilege, op, mask);
    root->reduced |= privilege == Privilege::Reduce;
    if (privilege == Privilege::Write || privilege == Privilege::ReadWrite)
        maybe_merge(t, node, privilege == Privilege::ReadWrite, mask);
    for (const auto &atom : node->atoms)
        for_entries(*atom, mask, [&](Entry &e) {
            link_use(t, e, privilege);
            update_entry(User(t), e, privilege, op, buffer);
        });
}

void Context::analyse(TaskRecord *t, const OpPlan &plan, bool predicated) {
    size_t k = 0;
    for (const auto &q : plan.requirements) {
        ReduceBuffer *buffer = q.privilege == Privilege::Reduce ? t->buffers[k++] : nullptr;
        // A predicated task may leave the old contents in place.
        Privilege p = predicated && q.privilege == Privilege::Write ? Privilege::ReadWrite : q.privilege;
        require(t, t->nodes[q.arg], p, q.op, q.mask, buffer);
    }
}

// The effect of a use that was issued through a template.
void Context::apply_use(User user, RegionNode *node, const Requirement &q, ReduceBuffer *buffer) {
    refresh_atoms(node);
    node->root->reduced |= q.privilege == Privilege::Reduce;
    for (const auto &atom : node->atoms)
        for_entries(*atom, q.mask, [&](Entry &e) {
            if (q.privilege == Privilege::Write && e.op >= 0) drop_reducers(e);
            update_entry(user, e, q.privilege, q.op, buffer);
        });
}

}  // namespace burnish::runtime
