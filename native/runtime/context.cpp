#include "context.hpp"

#include <chrono>

namespace burnish::runtime {

namespace {
Context *g_current = nullptr;

uint64_t now_ns() {
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                     std::chrono::steady_clock::now().time_since_epoch())
                                     .count());
}
}  // namespace

Context *current() { return g_current; }
void set_current(Context *c) {
    g_current = c;
    ++context_epoch;
}

std::vector<ReduceOp> &reduce_ops() {
    static std::vector<ReduceOp> ops = {{"+", '+'}, {"*", '*'}, {"min", '<'}, {"max", '>'}, {"&", '&'}, {"|", '|'}};
    return ops;
}

Context::Context(Options options, const TraceOptions &trace) : options_(options), thread_(std::this_thread::get_id()) {
    int threads = options_.serial ? 0 : options_.workers - 1;
    for (int i = 0; i <= threads; ++i) returned_records_.push_back(std::make_unique<GiveBack<TaskRecord>>());
    timeline.resize(threads + 1);
    sites_.push_back({nullptr, 0});
    bool spin = std::thread::hardware_concurrency() >= static_cast<unsigned>(options_.workers);
    tracer_ = std::make_unique<Tracer>(*this, trace);
    scheduler_ = std::make_unique<Scheduler>(threads, options_.lanes, spin, options_.chaos, *this);
}

bool Context::needs_gil(const TaskRecord *t) const {
    if (t->kind == RecordKind::Task) return t->launch->task->body == BodyKind::Python;
    return t->kind == RecordKind::Fold && static_cast<FoldWork *>(t->launch->work)->needs_gil;
}

Context::~Context() = default;

void Context::join() { scheduler_.reset(); }

Launch *Context::new_launch(TaskDef *task, uint32_t n_scalars) {
    Launch *l = launches_.take();
    l->task = task;
    l->refs.store(0, std::memory_order_relaxed);
    l->predicate = nullptr;
    l->domain_rank = 0;
    l->n_scalars = n_scalars;
    l->scalars = n_scalars <= 8 ? l->inline_scalars : new Scalar[n_scalars];
    l->owns_objects = false;
    l->work = nullptr;
    l->free_work = nullptr;
    l->site = 0;
    l->seq = seq_ + 1;
    return l;
}

namespace {

// One buffer for each reduction of a plan, null-terminated.
ReduceBuffer **make_buffers(const OpPlan &plan, RegionNode *const *nodes) {
    if (!plan.n_buffers) return nullptr;
    auto **buffers = new ReduceBuffer *[plan.n_buffers + 1];
    size_t k = 0;
    for (const auto &q : plan.requirements)
        if (q.privilege == Privilege::Reduce) {
            auto *b = new ReduceBuffer;
            b->node = nodes[q.arg];
            b->mask = q.mask;
            b->op = q.op;
            b->arg = q.arg;
            buffers[k++] = b;
        }
    buffers[k] = nullptr;
    return buffers;
}

// Of several causes the one first in program order is kept.
void keep_first(std::atomic<Failure *> &slot, Failure *failure) {
    Failure *old = slot.load();
    while ((!old || std::pair(failure->seq, failure->point) < std::pair(old->seq, old->point)) &&
           !slot.compare_exchange_weak(old, failure)) {
    }
}

}  // namespace

void Context::poison(TaskRecord *t, Failure *failure) {
    keep_first(t->failure, failure);
    t->poisoned.store(1, std::memory_order_release);
}

TaskRecord *Context::make_record(const Op &op, int64_t i, FutureState **futures) {
    TaskRecord *t = begin(op.launch);
    uint16_t n = op.plan->n_args;
    t->n_nodes = n;
    if (op.index) t->point = op.index->colors[static_cast<size_t>(i)];
    else if (op.points > 1) t->point = static_cast<int32_t>(i);
    RegionNode *const *nodes = op.nodes + i * n;
    if (n <= kInlineArgs) {
        for (uint16_t k = 0; k < n; ++k) t->inline_nodes[k] = nodes[k];
    } else {  // op.nodes lives as long as the launch
        t->nodes = nodes;
    }
    t->buffers = make_buffers(*op.plan, t->nodes);
    TaskDef *task = op.launch->task;
    if (futures) {
        FutureState *f = new_future(task->return_type);
        f->producer = User(t);
        f->refs.fetch_add(1, std::memory_order_relaxed);
        t->future = f;
        futures[op.index ? t->point : 0] = f;
    }
    for (FutureState *f : op.launch->futures_in)
        if (f) link(f->producer, t, true);
    if (op.launch->predicate) link(op.launch->predicate->producer, t, true);
    return t;
}

TaskRecord *Context::begin(Launch *launch) {
    if (records_.dry()) recycle();
    TaskRecord *t = records_.take();
    ++t->gen;
    t->pending.store(kPendingBias, std::memory_order_relaxed);
    t->poisoned.store(0, std::memory_order_relaxed);
    t->state.store(RecordState::Waiting, std::memory_order_relaxed);
    t->kind = RecordKind::Task;
    t->critical = launch && launch->task && launch->task->critical;
    t->head.store(nullptr, std::memory_order_relaxed);
    t->point = -1;
    t->seq = ++seq_;
    t->stamp = 0;
    t->launch = launch;
    t->nodes = t->inline_nodes;
    t->buffers = nullptr;
    t->future = nullptr;
    t->failure.store(nullptr, std::memory_order_relaxed);
    t->instance = nullptr;
    t->n_edges = 0;
    t->n_nodes = 0;
    t->spill_edges = nullptr;
    if (launch) launch->refs.fetch_add(1, std::memory_order_relaxed);
    return t;
}

void Context::issue(TaskRecord *t) {
    ++launched_;
    ++counters.tasks;
    int32_t delta = static_cast<int32_t>(t->n_edges) - kPendingBias;
    if (t->pending.fetch_add(delta, std::memory_order_acq_rel) + delta == 0) {
        if (options_.serial) scheduler_->run_now(t, 0);
        else scheduler_->ready(t, 0);
    }
}

void Context::issue_static(TaskRecord *t, std::atomic<int32_t> &counter) {
    ++launched_;
    ++counters.tasks;
    // Pending: the dynamic edges, and one for all static ones together.
    if (t->n_edges == 0) t->pending.store(1, std::memory_order_relaxed);
    else t->pending.fetch_add(static_cast<int32_t>(t->n_edges) + 1 - kPendingBias, std::memory_order_acq_rel);
    if (counter.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    if (t->pending.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        if (options_.serial) scheduler_->run_now(t, 0);
        else scheduler_->ready(t, 0);
    }
}

void Context::release_static(TaskRecord *t, int self, Failure *failure) {
    finish_row(
        *t->instance, t->slot, failure,
        [&](TaskRecord *s) {
            if (s->pending.fetch_sub(1, std::memory_order_acq_rel) == 1) scheduler_->ready(s, self);
        },
        [](std::atomic<Failure *> &slot, Failure *f) { keep_first(slot, f); });
    tracer_->release(t->instance);
}

RecordState Context::run(TaskRecord *t, int self) {
    if (t->instance)
        if (Failure *f = t->instance->failures[t->slot].load(std::memory_order_acquire)) poison(t, f);
    if (t->poisoned.load(std::memory_order_acquire)) {
        finish_poisoned(t);
        return RecordState::Failed;
    }
    uint64_t start = options_.profile ? now_ns() : 0;
    RecordState state = RecordState::Done;
    switch (t->kind) {
        case RecordKind::Task: state = skipped(t) ? RecordState::Done : run_body(*this, t, self); break;
        case RecordKind::Fold: run_fold(*static_cast<FoldWork *>(t->launch->work)); break;
        case RecordKind::Host: break;
    }
    if (options_.profile) {
        uint64_t end = now_ns();
        timeline[self].push_back({t->seq, t->launch->task ? t->launch->task->id : 0, t->point, self, start, end});
        if (t->launch->task) {
            t->launch->task->run_ns.fetch_add(end - start, std::memory_order_relaxed);
            t->launch->task->runs.fetch_add(1, std::memory_order_relaxed);
        }
    }
    return state;
}

void Context::retire(TaskRecord *t, int self, RecordState state) {
    if (t->buffers) {
        for (ReduceBuffer **b = t->buffers; *b; ++b) drop_buffer(*b);
        delete[] t->buffers;
        t->buffers = nullptr;
    }
    if (t->future) {
        drop_future(t->future);
        t->future = nullptr;
    }
    if (t->launch) release_launch(t->launch);
    if (state == RecordState::Failed || options_.record_edges) return;  // stays for those who ask later
    returned_records_[self]->push(t);
}

void Context::release_launch(Launch *l) {
    if (l->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) returned_launches_.push(l);
}

void Context::recycle() {
    for (auto &stack : returned_records_) {
        TaskRecord *t = stack->take_all();
        while (t) {
            TaskRecord *next = t->next_free;
            for (Edge *block = t->spill_edges; block;) {
                Edge *after = block[0].next;
                spare_edges_.push_back(block);
                block = after;
            }
            records_.give(t);
            t = next;
        }
    }
    Launch *l = returned_launches_.take_all();
    while (l) {
        Launch *next = l->next_free;
        if (l->owns_objects)
            for (uint32_t i = 0; i < l->n_scalars; ++i) Py_XDECREF(l->scalars[i].object);
        for (FutureState *f : l->futures_in)
            if (f) drop_future(f);
        l->futures_in.clear();
        if (l->predicate) drop_future(l->predicate);
        l->owned_nodes.reset();
        l->plan.reset();
        if (l->scalars != l->inline_scalars) delete[] l->scalars;
        if (l->free_work) l->free_work(l->work);
        launches_.give(l);
        l = next;
    }
    free_futures();
}

bool Context::wait_record(User user) {
    std::function<bool()> done = [user] {
        return user.rec->gen != user.gen || user.rec->state.load(std::memory_order_acquire) != RecordState::Waiting;
    };
    return scheduler_->help_until(done);
}

bool Context::wait_record_for(User user, double seconds) {
    auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    std::function<bool()> done = [user, until] {
        return user.rec->gen != user.gen || user.rec->state.load(std::memory_order_acquire) != RecordState::Waiting ||
               std::chrono::steady_clock::now() > until;
    };
    return scheduler_->help_until(done);
}

bool Context::wait_all() {
    uint64_t target = launched_;
    std::function<bool()> done = [this, target] { return scheduler_->completed() >= target; };
    bool ok = scheduler_->help_until(done);
    if (ok) {
        recycle();
        sweep_roots();
    }
    return ok;
}

bool Context::throttle() {
    if ((launched_ & 255) == 0 && !dying_.empty()) sweep_roots();
    if ((launched_ & 63) != 0 || in_flight() < static_cast<uint64_t>(options_.window)) return true;
    uint64_t limit = static_cast<uint64_t>(options_.window) * 3 / 4;
    std::function<bool()> done = [this, limit] { return launched_ - scheduler_->completed() <= limit; };
    return scheduler_->help_until(done);
}

bool Context::drain(uint64_t in_flight) {
    std::function<bool()> done = [this, in_flight] { return launched_ - scheduler_->completed() <= in_flight; };
    return scheduler_->help_until(done);
}

void Context::fail(TaskRecord *t, PyObject *exception) {
    auto failure = std::make_unique<Failure>();
    failure->exception = exception;
    failure->seq = t->seq;
    failure->point = t->point;
    failure->site = t->launch ? t->launch->site : 0;
    if (t->launch && t->launch->task) failure->task = t->launch->task->name;
    t->failure.store(failure.get(), std::memory_order_release);
    std::lock_guard lock(failure_mutex_);
    failures_.push_back(std::move(failure));
    failed_.store(true, std::memory_order_release);
}

// The unreported failure that comes first in program order.
Failure *Context::first_failure() {
    std::lock_guard lock(failure_mutex_);
    Failure *first = nullptr;
    for (auto &f : failures_)
        if (!f->reported && (!first || std::pair(f->seq, f->point) < std::pair(first->seq, first->point)))
            first = f.get();
    return first;
}

TaskRecord *Context::open_host(RegionNode *node, Privilege privilege, uint64_t mask) {
    TaskRecord *t = begin(nullptr);
    t->kind = RecordKind::Host;
    require(t, node, privilege, -1, mask, nullptr);
    return t;
}

bool Context::wait_host(TaskRecord *t) {
    int32_t target = kPendingBias - static_cast<int32_t>(t->n_edges);
    std::function<bool()> done = [t, target] { return t->pending.load(std::memory_order_acquire) == target; };
    return scheduler_->help_until(done);
}

void Context::close_host(TaskRecord *t) {
    ++launched_;
    scheduler_->complete(t, 0, t->poisoned.load() ? RecordState::Failed : RecordState::Done);
}

uint32_t Context::site_here() {
    PyFrameObject *frame = PyThreadState_GetFrame(PyThreadState_Get());
    while (frame) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        if (!internal_code(code)) {
            int lasti = PyFrame_GetLasti(frame);
            uint64_t key = reinterpret_cast<uint64_t>(code) * 0x9e3779b97f4a7c15ull + static_cast<uint64_t>(lasti);
            if (key == last_site_key_) {
                Py_DECREF(code);
                Py_DECREF(frame);
                return last_site_;
            }
            auto [it, fresh] = site_ids_.try_emplace(key, static_cast<uint32_t>(sites_.size()));
            if (fresh) sites_.push_back({code, lasti});
            else Py_DECREF(code);
            Py_DECREF(frame);
            last_site_key_ = key;
            last_site_ = it->second;
            return it->second;
        }
        Py_DECREF(code);
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    return 0;
}

// Code of burnish itself is skipped when a launch site is looked up.
bool Context::internal_code(PyCodeObject *code) {
    auto it = internal_codes_.find(code);
    if (it != internal_codes_.end()) return it->second;
    const char *file = PyUnicode_AsUTF8(code->co_filename);
    bool internal = file && !package_dir.empty() && std::string(file).rfind(package_dir, 0) == 0;
    Py_INCREF(code);
    internal_codes_.emplace(code, internal);
    return internal;
}

void Context::retire_root(Root *root) { dying_.push_back(root); }

void Context::sweep_roots() {
    std::erase_if(dying_, [this](Root *root) {
        if (!root->quiescent() || tracer_->uses(root)) return false;
        free_root_data(root);
        root->death = tracer_->log_end() + 1;
        dead_.push_back(root);
        return true;
    });
    while (!dead_.empty() && dead_.front()->death <= tracer_->log_start()) {
        delete_root(dead_.front());
        dead_.pop_front();
    }
}

// Folds what is still open and forgets all users: regions outlive the context, records do not.
bool Context::settle() {
    if (!wait_all()) return false;
    for (Root *root : live_roots())
        if (root->reduced && !root->death)
            for (const auto &atom : std::vector<AtomRef>(root->atoms)) fold_atom(root, atom, root->full_mask);
    if (!wait_all()) return false;
    for (Root *root : live_roots())
        for (const auto &atom : root->atoms)
            for (auto &e : atom->entries) set_writer(e, User());
    return true;
}

// Whatever is left when the context ends.
void Context::delete_roots() {
    for (Root *root : dying_) {
        free_root_data(root);
        delete_root(root);
    }
    for (Root *root : dead_) delete_root(root);
    dying_.clear();
    dead_.clear();
}

}  // namespace burnish::runtime
