#include "tracer.hpp"

#include <algorithm>

#include "context.hpp"

namespace burnish::runtime {

namespace {
constexpr size_t kLogOps = 1u << 14;  // longer than any trace: candidates have at most 8192 ops
constexpr size_t kUserRing = 1u << 16;
constexpr size_t kTemplatesPerTrace = 16;
constexpr size_t kStrip = 200000;    // ops that a profile shows
using tracing::kNone;
uint64_t g_serial = 0;  // across contexts: roots outlive them
}  // namespace

void ReplayInstance::prepare(std::shared_ptr<Template> t) {
    tmpl = std::move(t);
    uint32_t n = tmpl->rows();
    if (n > capacity) {
        capacity = n;
        counters.reset(new std::atomic<int32_t>[n]);
        failures.reset(new std::atomic<Failure *>[n]);
        users.reset(new User[n]);
    }
    for (uint32_t r = 0; r < n; ++r) {
        counters[r].store(static_cast<int32_t>(tmpl->pred_begin[r + 1] - tmpl->pred_begin[r]) + 1, std::memory_order_relaxed);
        failures[r].store(nullptr, std::memory_order_relaxed);
    }
    roots.assign(tmpl->param_structures.size(), nullptr);
    logical_ids.assign(roots.size(), 0);
    buffers.assign(tmpl->n_buffers, nullptr);
    refs.store(1, std::memory_order_relaxed);
    next_slot = adopted_slots = adopted_rows = 0;
}

Tracer::Tracer(Context &context, const TraceOptions &options) : context_(context), options_(options) {
    if (options.automatic) recognizer_ = std::make_unique<tracing::Recognizer>(options.recognizer);
    users_.resize(kUserRing);
    log_.resize(kLogOps);
}
Tracer::~Tracer() = default;

bool Tracer::uses(const Root *root) const {
    return live_ && std::find(live_->roots.begin(), live_->roots.end(), root) != live_->roots.end();
}

bool Tracer::finished_before(uint64_t position) {
    if (n_users_ - finished_ > kUserRing) return false;  // overrun: see keep_up
    while (finished_ < position && users_[finished_ & (kUserRing - 1)].ended()) ++finished_;
    return finished_ >= position;
}

bool Tracer::keep_up() {
    if (n_users_ - finished_ > kUserRing) {  // by one launch of very many points
        if (!context_.drain()) return false;
        finished_ = n_users_;
        return true;
    }
    if (n_users_ - finished_ < kUserRing / 2 || finished_before(n_users_ - kUserRing / 2)) return true;
    User oldest = users_[finished_ & (kUserRing - 1)];
    return context_.wait_record(oldest);
}

// ---- the op log ----
LoggedOp &Tracer::next_log() { return log_[n_log_++ & (kLogOps - 1)]; }

LoggedOp &Tracer::log(const Op &op) {
    LoggedOp &l = next_log();
    l.task = op.launch->task;
    l.plan = op.plan;
    if (l.index != op.index) l.index = op.index;
    if (!op.index) {
        l.own_nodes.assign(op.nodes, op.nodes + op.points * op.plan->n_args);
        l.own_operands.assign(op.operands.data(), op.operands.data() + op.operands.size());
    }
    l.points = op.points;
    l.predicated = op.predicated;
    l.separator = false;
    l.site = op.launch->site;
    l.signature = op.signature;
    l.first_user = n_users_;
    return l;
}

TaskRecord *Tracer::make_point(const Op &op, int64_t i, FutureState **futures) {
    TaskRecord *t = context_.make_record(op, i, futures);
    users_[n_users_++ & (kUserRing - 1)] = User(t);
    return t;
}

void Tracer::analyse(const Op &op, FutureState **futures, LoggedOp &) {
    for (int64_t i = 0; i < op.points; ++i) {
        TaskRecord *t = make_point(op, i, futures);
        context_.analyse(t, *op.plan, op.predicated);
        context_.issue(t);
    }
    if (context_.options().profile && strip.size() < kStrip) strip.emplace_back(0, kNone);
}

void Tracer::issue(const Op &op, FutureState **futures) {
    LoggedOp &logged = log(op);
    if (manual_) return issue_manual(op, futures, logged);
    if (!recognizer_) return analyse(op, futures, logged);
    const tracing::Decision &d = recognizer_->op(op.signature, op.flat, op.operands);
    if (d.died != kNone && live_) fold_back();
    bool by_template = false;
    if (d.lead != kNone) {
        if (live_ && (live_candidate_ != d.lead || live_->next_slot != d.slot)) fold_back();
        auto it = known_.find(d.lead);
        if (!live_ && it != known_.end() && (d.slot == 0 || d.adopted) && open(it->second, d.slot, op)) live_candidate_ = d.lead;
        if (live_) {
            if (bind(live_->tmpl->slots[d.slot], logged)) {
                replay(op, futures, logged);
                by_template = true;
            } else {
                ++declined;
                fold_back();
            }
        }
    } else if (live_) {
        fold_back();
    }
    if (!by_template) analyse(op, futures, logged);
    if (d.completed) {
        uint32_t lead = d.lead;
        if (live_) finish_instance();
        else if (auto it = known_.find(lead); it != known_.end()) capture_last(lead, it->second.length);  // other structure
    }
    if (d.capture != kNone) capture_last(d.capture, d.capture_length);
}

void Tracer::separator() {
    if (!n_log_ || op_at(n_log_ - 1).separator) return;
    if (manual_) return split_manual();
    if (recognizer_) recognizer_->separator();
    if (live_) fold_back();
    log_separator();
}

void Tracer::log_separator() {
    LoggedOp &l = next_log();
    l.separator = true;
    l.index.reset();
    if (context_.options().profile && strip.size() < kStrip) strip.emplace_back(3, kNone);
}

// ---- capture ----
std::shared_ptr<Template> Tracer::capture_range(uint64_t first, uint32_t length) {
    if (first < log_start() || first + length > log_end()) return nullptr;
    std::vector<const LoggedOp *> ops;
    for (uint32_t k = 0; k < length; ++k) {
        const LoggedOp &op = op_at(first + k);
        if (op.separator) return nullptr;
        for (int64_t i = 0; i < op.points * op.plan->n_args; ++i)
            if (op.nodes()[i]->root->death) return nullptr;
        ops.push_back(&op);
    }
    ++captures;
    return capture(ops, [](void *c, RegionNode *n) { static_cast<Context *>(c)->refresh_atoms(n); }, &context_);
}

void Tracer::capture_last(uint32_t candidate, uint32_t length) {
    auto made = length <= log_end() - log_start() ? capture_range(log_end() - length, length) : nullptr;
    recognizer_->mark_captured(candidate, made != nullptr);
    if (!made) return;
    Known &known = known_[candidate];
    known.length = length;
    if (known.templates.size() >= kTemplatesPerTrace) {
        template_bytes_ -= known.templates.front()->bytes();
        known.templates.erase(known.templates.begin());
    }
    template_bytes_ += made->bytes();
    known.templates.push_back(std::move(made));
    known.last_use = log_end();
    known.sites.clear();
    for (uint32_t k = 0; k < length; ++k) {
        known.sites.push_back(op_at(n_log_ - length + k).site);
        size_t at = strip.size() - length + k;
        if (strip.size() >= length && strip.size() < kStrip) strip[at] = {1, candidate};
    }
    forget_excess();
}

// Templates least recently used go when all together exceed the memory limit.
void Tracer::forget_excess() {
    while (template_bytes_ > options_.memory && known_.size() > 1) {
        auto oldest = std::min_element(known_.begin(), known_.end(), [](const auto &a, const auto &b) {
            return a.second.last_use < b.second.last_use;
        });
        for (const auto &t : oldest->second.templates) template_bytes_ -= t->bytes();
        recognizer_->mark_captured(oldest->first, false);
        known_.erase(oldest);
    }
}

// ---- instances ----
bool Tracer::open(Known &known, uint32_t slot, const Op &op) {
    std::shared_ptr<Template> chosen;
    for (auto it = known.templates.rbegin(); it != known.templates.rend() && !chosen; ++it) {
        const Template &t = **it;
        if (slot >= t.slots.size() || (slot && t.n_buffers)) continue;  // buffers cannot be adopted
        const TemplateSlot &s = t.slots[slot];
        bool fits = s.task == op.launch->task && s.points == op.points && s.n_args == op.plan->n_args;
        for (uint16_t a = 0; fits && op.points && a < s.n_args; ++a)
            fits = op.nodes[a]->root->structure() == t.param_structures[t.params[s.first_param + a]];
        if (fits) chosen = *it;
    }
    if (!chosen) return false;
    uint64_t first = log_end() - 1 - slot;  // the current op is logged already
    if (slot >= log_end() - log_start()) return false;
    if (!free_) {
        free_ = returned_.take_all();
        if (!free_) {
            instances_.push_back(std::make_unique<ReplayInstance>());
            free_ = instances_.back().get();
            free_->next_free = nullptr;
        }
    }
    ReplayInstance *inst = free_;
    free_ = inst->next_free;
    inst->prepare(std::move(chosen));
    inst->first_op = first;
    inst->serial = ++g_serial;
    live_ = inst;
    const Template &t = *inst->tmpl;
    for (uint32_t k = 0; k < slot; ++k) {  // adopted: slots that were issued by other means
        const LoggedOp &past = op_at(first + k);
        if (past.separator || n_users_ - past.first_user > kUserRing || !bind(t.slots[k], past)) {
            close_instance();
            return false;
        }
        for (uint32_t row = t.slots[k].first_row; row < t.slots[k].end_row; ++row)
            inst->users[row] = users_[(past.first_user + row - t.slots[k].first_row) & (kUserRing - 1)];
    }
    inst->next_slot = inst->adopted_slots = slot;
    inst->adopted_rows = slot ? t.slots[slot - 1].end_row : 0;
    if (slot)  // edges from adopted rows are linked when their successors are issued
        for (uint32_t row = inst->adopted_rows; row < t.rows(); ++row)
            for (uint32_t i = t.pred_begin[row]; i < t.pred_begin[row + 1]; ++i)
                if (t.preds[i] / 2 < inst->adopted_rows) inst->counters[row].fetch_sub(1, std::memory_order_relaxed);
    return true;
}

// Parameters to roots: each once, with the recorded structure. The recognizer has matched names already; this is the
// check that makes a wrong replay impossible.
bool Tracer::bind(const TemplateSlot &slot, const LoggedOp &op) {
    const Template &t = *live_->tmpl;
    if (slot.task != op.task || slot.points != op.points || slot.n_args != op.plan->n_args) return false;
    if (!op.points) return true;
    for (uint16_t a = 0; a < slot.n_args; ++a) {
        Root *root = op.nodes()[a]->root;
        uint32_t param = t.params[slot.first_param + a];
        Root *&bound = live_->roots[param];
        const uint32_t logical = op.operand(a);
        if (bound == root && live_->logical_ids[param] == logical) continue;
        if (bound || root->death || root->structure() != t.param_structures[param]) return false;
        if (logical == root->logical_id) {
            if (root->bound == live_->serial) return false;
            root->bound = live_->serial;
        } else {  // an adopted op of a root that was used again since
            for (size_t p = 0; p < live_->roots.size(); ++p)
                if (live_->roots[p] == root && live_->logical_ids[p] == logical) return false;
        }
        bound = root;
        live_->logical_ids[param] = logical;
    }
    return true;
}

void Tracer::replay(const Op &op, FutureState **futures, LoggedOp &) {
    const TemplateSlot &slot = live_->tmpl->slots[live_->next_slot];
    live_->refs.fetch_add(static_cast<int32_t>(slot.end_row - slot.first_row), std::memory_order_relaxed);
    for (uint32_t row = slot.first_row; row < slot.end_row; ++row) {
        int32_t point = live_->tmpl->row_point[row];
        if (point < 0) {
            issue_fold(row);
            continue;
        }
        if (live_->tmpl->entry_begin[row] != live_->tmpl->entry_begin[row + 1]) close_open_reductions(row);
        TaskRecord *t = make_point(op, point, futures);
        uint32_t buffer = live_->tmpl->buffer_begin[row];
        for (ReduceBuffer **b = t->buffers; b && *b; ++b, ++buffer) {
            (*b)->refs.fetch_add(1, std::memory_order_relaxed);
            live_->buffers[buffer] = *b;
        }
        issue_row(t, row);
    }
    ++live_->next_slot;
    ++context_.counters.replayed;
    if (context_.options().profile && strip.size() < kStrip) strip.emplace_back(2, live_candidate_);
}

void Tracer::close_open_reductions(uint32_t row) {
    const Template &t = *live_->tmpl;
    for (uint32_t i = t.entry_begin[row]; i < t.entry_begin[row + 1]; ++i) {
        const EntryUse &e = t.entries[i];
        Root *root = live_->roots[e.at.param];
        if (root->reduced) context_.fold_atom(root, root->ordered_atoms()[e.at.atom], e.at.mask);
    }
}

void Tracer::link_entries(TaskRecord *record, uint32_t row) {
    const Template &t = *live_->tmpl;
    for (uint32_t i = t.entry_begin[row]; i < t.entry_begin[row + 1]; ++i) {
        const EntryUse &e = t.entries[i];
        const AtomRef &atom = live_->roots[e.at.param]->ordered_atoms()[e.at.atom];
        for (const Entry &entry : atom->entries)
            if (entry.mask & e.at.mask) context_.link_use(record, entry, e.privilege);
    }
}

void Tracer::issue_row(TaskRecord *t, uint32_t row) {
    ReplayInstance &inst = *live_;
    const Template &tmpl = *inst.tmpl;
    t->instance = &inst;
    t->slot = row;
    inst.users[row] = User(t);
    link_entries(t, row);
    if (inst.adopted_rows || context_.options().record_edges)
        for (uint32_t i = tmpl.pred_begin[row]; i < tmpl.pred_begin[row + 1]; ++i) {
            uint32_t p = tmpl.preds[i] / 2;
            if (p < inst.adopted_rows) context_.depend_on(t, inst.users[p], tmpl.preds[i] & 1);
            else if (context_.options().record_edges) context_.edge_log.emplace_back(inst.users[p].rec->seq, t->seq);
        }
    context_.issue_static(t, inst.counters[row]);
}

void Tracer::issue_fold(uint32_t row) {
    close_open_reductions(row);
    const Template &t = *live_->tmpl;
    const FoldSpec &spec = t.folds[static_cast<size_t>(-1 - t.row_point[row])];
    auto *work = new FoldWork;
    work->needs_gil = spec.needs_gil;
    for (const auto &part : spec.parts) {
        Root *root = live_->roots[part.at.param];
        FoldPart made{root->ordered_atoms()[part.at.atom]->space, root, part.at.mask, part.op, {}};
        for (uint32_t b : part.buffers) {
            live_->buffers[b]->refs.fetch_add(1, std::memory_order_relaxed);
            made.buffers.push_back(live_->buffers[b]);
        }
        work->parts.push_back(std::move(made));
    }
    issue_row(context_.begin_fold(work), row);
}

// The whole trace was issued: its exit list is the new state.
void Tracer::finish_instance() {
    ReplayInstance &inst = *live_;
    for (const ExitState &x : inst.tmpl->exits) {
        Root *root = inst.roots[x.at.param];
        if (root->logical_id != inst.logical_ids[x.at.param]) continue;  // used again: these users had finished
        context_.for_entries(*root->ordered_atoms()[x.at.atom], x.at.mask, [&](Entry &e) {
            if (x.writer != kNoRow) {
                e.writer = inst.users[x.writer];
                e.readers.clear();
            }
            for (uint32_t r : x.readers) e.readers.push(inst.users[r]);
            if (x.op >= 0) {
                e.op = x.op;
                root->reduced = true;
                for (auto [row, buffer] : x.reducers) {
                    inst.buffers[buffer]->refs.fetch_add(1, std::memory_order_relaxed);
                    e.reducers.emplace_back(inst.users[row], inst.buffers[buffer]);
                }
            }
        });
    }
    ++inst.tmpl->replays;
    ++replays;
    if (auto it = known_.find(live_candidate_); it != known_.end()) it->second.last_use = log_end();
    close_instance();
}

// Only some slots were issued: their effect on the state, op by op, without edges.
void Tracer::fold_back() {
    ReplayInstance &inst = *live_;
    const Template &t = *inst.tmpl;
    ++folds_back;
    for (uint32_t k = inst.adopted_slots; k < inst.next_slot; ++k) {
        const TemplateSlot &slot = t.slots[k];
        const LoggedOp &op = op_at(inst.first_op + k);
        for (uint32_t row = slot.first_row; row < slot.end_row; ++row) {
            if (t.row_point[row] < 0) {
                for (const auto &part : t.folds[static_cast<size_t>(-1 - t.row_point[row])].parts)
                    context_.for_entries(*inst.roots[part.at.param]->ordered_atoms()[part.at.atom], part.at.mask,
                                         [&](Entry &e) { context_.set_writer(e, inst.users[row]); });
                continue;
            }
            uint32_t buffer = t.buffer_begin[row];
            for (const auto &q : op.plan->requirements) {
                ReduceBuffer *b = q.privilege == Privilege::Reduce ? inst.buffers[buffer++] : nullptr;
                RegionNode *node = op.nodes()[static_cast<size_t>(t.row_point[row]) * op.plan->n_args + q.arg];
                context_.apply_use(inst.users[row], node, q, b);
            }
        }
    }
    close_instance();
}

void Tracer::close_instance() {
    ReplayInstance *inst = live_;
    live_ = nullptr;
    live_candidate_ = kNone;
    for (ReduceBuffer *&b : inst->buffers)
        if (b) {
            drop_buffer(b);
            b = nullptr;
        }
    release(inst);
}

void Tracer::release(ReplayInstance *inst) {
    if (inst->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) returned_.push(inst);
}

// ---- manual traces ----
bool Tracer::begin(const std::string &name, bool strict) {
    if (manual_) return false;
    separator();
    manual_name_ = name;
    manual_strict_ = strict;
    manual_part_ = 0;
    begin_part();
    return true;
}

// A manual trace is one template per stretch between blocking calls.
void Tracer::begin_part() {
    std::string key = manual_part_ ? manual_name_ + " part " + std::to_string(manual_part_) : manual_name_;
    manual_ = &manuals_[key];
    manual_->name = key;
    manual_->strict = manual_strict_;
    manual_->at = 0;
    manual_->deviated = false;
    manual_first_ = log_end();
}

void Tracer::split_manual() {
    end();
    log_separator();
    ++manual_part_;
    begin_part();
}

bool Tracer::would_mismatch(const Op &op) {
    if (!manual_ || manual_->ops.empty() || manual_->deviated) return false;
    const LoggedOp *expected = manual_->at < manual_->ops.size() ? &manual_->ops[manual_->at] : nullptr;
    if (expected && expected->signature == op.signature) return false;
    if (manual_->strict) {
        mismatch_ = std::make_unique<Mismatch>();
        mismatch_->name = manual_->name;
        mismatch_->slot = manual_->at;
        mismatch_->recorded = expected ? expected->task : nullptr;
        mismatch_->recorded_site = expected ? expected->site : 0;
        mismatch_->found = op.launch->task;
        mismatch_->found_site = op.launch->site;
    }
    return true;
}

void Tracer::issue_manual(const Op &op, FutureState **futures, LoggedOp &logged) {
    Manual &m = *manual_;
    if (!m.ops.empty() && !m.deviated && would_mismatch(op)) {
        m.deviated = true;
        mismatch_.reset();
    }
    bool replayable = m.tmpl && !m.deviated;
    if (replayable && m.at == 0) {
        Known one;
        one.templates = {m.tmpl};
        replayable = open(one, 0, op);
    }
    if (replayable && live_ && live_->next_slot == m.at && bind(live_->tmpl->slots[m.at], logged)) {
        replay(op, futures, logged);
    } else {
        if (live_) fold_back();
        analyse(op, futures, logged);
    }
    ++m.at;
}

void Tracer::end() {
    Manual &m = *manual_;
    uint32_t n = static_cast<uint32_t>(log_end() - manual_first_);
    if (live_) {
        if (live_->next_slot == live_->tmpl->slots.size()) finish_instance();
        else fold_back();
    } else if (n && !m.deviated) {
        if (auto made = capture_range(manual_first_, n)) {
            m.tmpl = std::move(made);
            m.ops.clear();
            for (uint64_t k = manual_first_; k < log_end(); ++k) m.ops.push_back(op_at(k));
        }
    }
    manual_ = nullptr;
}

std::vector<TraceSummary> Tracer::traces() const {
    std::vector<TraceSummary> all;
    auto add = [&](uint32_t id, const std::string &name, const std::vector<std::shared_ptr<Template>> &templates,
                   std::vector<uint32_t> sites, double reliability) {
        TraceSummary s{id, name, 0, 0, reliability, 0, std::move(sites), {}, 0, 0};
        for (const auto &t : templates) {
            s.length = static_cast<uint32_t>(t->slots.size());
            s.replays += t->replays;
            s.bytes += t->bytes();
            s.edges = t->preds.size();
            s.edges_recorded = t->edges_before_reduction;
        }
        if (!templates.empty())
            for (const auto &slot : templates.back()->slots) s.tasks.push_back(slot.task);
        all.push_back(std::move(s));
    };
    std::unordered_map<uint32_t, double> reliability;
    if (recognizer_)
        for (const auto &c : recognizer_->candidates()) reliability[c.id] = c.reliability;
    for (const auto &[id, known] : known_) add(id, "", known.templates, known.sites, reliability[id]);
    for (const auto &[name, m] : manuals_)
        if (m.tmpl) {
            std::vector<uint32_t> sites;
            for (const auto &op : m.ops) sites.push_back(op.site);
            add(kNone, name, {m.tmpl}, std::move(sites), 1.0);
        }
    return all;
}

}  // namespace burnish::runtime
