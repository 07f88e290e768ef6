#include "context.hpp"

#include <chrono>
#include <unordered_set>

#include "memory.hpp"

namespace burnish::runtime {

namespace {
Context *g_current = nullptr;
uint64_t g_seq = 0;  // program order goes on from context to context

// A failure of an ended context that futures or poisoned data still refer to. The record stands for the writers.
struct Tomb {
    std::unique_ptr<Failure> failure;
    TaskRecord record;
};
std::vector<std::unique_ptr<Tomb>> &tombs() {
    static auto *all = new std::vector<std::unique_ptr<Tomb>>;  // not destroyed: regions may be freed very late
    return *all;
}

uint64_t next_serial() {
    static uint64_t serial = 0;
    return ++serial;
}

}  // namespace

uint64_t clock_ns() {
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                     std::chrono::steady_clock::now().time_since_epoch())
                                     .count());
}

Context *current() { return g_current; }
void set_current(Context *c) {
    g_current = c;
    ++context_epoch;
}

std::vector<ReduceOp> &reduce_ops() {
    static std::vector<ReduceOp> ops = {{"+", Fold::Add},       {"*", Fold::Multiply}, {"min", Fold::Minimum},
                                        {"max", Fold::Maximum}, {"&", Fold::And},      {"|", Fold::Or}};
    return ops;
}

Context::Context(Options options, const TraceOptions &trace)
    : serial(next_serial()), options_(options), seq_(g_seq), thread_(std::this_thread::get_id()) {
    int threads = options_.serial ? 0 : options_.workers - 1;
    for (int i = 0; i <= threads; ++i) returned_records_.push_back(std::make_unique<GiveBack<TaskRecord>>());
    timeline.resize(threads + 1);
    sites_.push_back({nullptr, 0});
    bool spin = std::thread::hardware_concurrency() >= static_cast<unsigned>(options_.workers);
    tracer_ = std::make_unique<Tracer>(*this, trace);
    scheduler_ = std::make_unique<Scheduler>(threads, options_.lanes, spin, options_.chaos, *this);
}

bool Context::needs_gil(const TaskRecord *t) const {
    if (t->kind == RecordKind::Task) {
        const TaskDef *task = t->launch->task;
        return options_.check || (task->body == BodyKind::Python && (!processes || task->local));
    }
    return t->kind == RecordKind::Fold && static_cast<FoldWork *>(t->launch->work)->needs_gil;
}

Context::~Context() {
    g_seq = seq_;
    for (const Site &site : sites_) Py_XDECREF(reinterpret_cast<PyObject *>(site.code));
    for (const auto &known : internal_codes_) Py_DECREF(reinterpret_cast<PyObject *>(known.first));
}

void Context::join() { scheduler_.reset(); }

Launch *Context::new_launch(TaskDef *task, uint32_t n_scalars) {
    if (launches_.dry()) recycle();
    Launch *l = launches_.take();
    l->task = task;
    l->refs.store(0, std::memory_order_relaxed);
    l->predicate = nullptr;
    l->domain_rank = 0;
    l->n_scalars = n_scalars;
    l->scalars = n_scalars <= 8 ? l->inline_scalars : new Scalar[n_scalars];
    l->owns_objects = false;
    l->color_scalars = 0;
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
            b->promise();
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
        if (f) link_future(f, t);
    if (op.launch->predicate) link_future(op.launch->predicate, t);
    return t;
}

// The producer of a finished future may be gone, with its context.
void Context::link_future(FutureState *f, TaskRecord *t) {
    if (Failure *failure = f->failure.load(std::memory_order_acquire)) poison(t, failure);
    else if (!f->ready.load(std::memory_order_acquire) || options_.record_edges) link(f->producer, t, true);
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

int64_t memory_used() {
    int64_t taken = region_arena ? static_cast<int64_t>(region_arena->stats().used) : 0;
    return taken + promised_bytes.load(std::memory_order_relaxed);
}

void Context::log_node(const TaskRecord *t) {
    const Launch *l = t->launch;
    node_log.push_back({t->seq, l && l->task ? l->task->id : 0, t->point, l ? l->site : 0, t->kind});
}

void Context::issue(TaskRecord *t) {
    if (options_.record_edges) log_node(t);
    ++launched_;
    ++counters.tasks;
    int32_t delta = static_cast<int32_t>(t->n_edges) - kPendingBias;
    if (t->pending.fetch_add(delta, std::memory_order_acq_rel) + delta == 0) {
        if (options_.serial) scheduler_->run_now(t, 0);
        else scheduler_->ready(t, 0);
    }
}

void Context::issue_static(TaskRecord *t, std::atomic<int32_t> &counter) {
    if (options_.record_edges) log_node(t);
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
    uint64_t start = options_.profile ? clock_ns() : 0;
    RecordState state = RecordState::Done;
    switch (t->kind) {
        case RecordKind::Task: state = skipped(t) ? RecordState::Done : run_body(*this, t, self); break;
        case RecordKind::Fold: state = run_fold(*this, t); break;
        case RecordKind::Host: break;
    }
    if (options_.profile) {
        uint64_t end = clock_ns();
        TaskDef *task = t->launch ? t->launch->task : nullptr;
        timeline[self].push_back({t->seq, task ? task->id : 0, t->point, self, start, end});
        if (task) {
            task->run_ns.fetch_add(end - start, std::memory_order_relaxed);
            task->runs.fetch_add(1, std::memory_order_relaxed);
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
    if (self == 0) take_back(t);  // still in the cache: the next launch takes it
    else returned_records_[self]->push(t);
}

void Context::release_launch(Launch *l) {
    if (l->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) returned_launches_.push(l);
}

void Context::take_back(TaskRecord *t) {
    for (Edge *block = t->spill_edges; block;) {
        Edge *after = block[0].next;
        spare_edges_.push_back(block);
        block = after;
    }
    records_.give(t);
}

void Context::recycle() {
    for (auto &stack : returned_records_) {
        TaskRecord *t = stack->take_all();
        while (t) {
            TaskRecord *next = t->next_free;
            take_back(t);
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
        l->encoded.reset();
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

bool Context::drain() {
    uint64_t target = launched_;
    std::function<bool()> done = [this, target] { return scheduler_->completed() >= target; };
    return scheduler_->help_until(done);
}

bool Context::wait_all() {
    bool ok = drain();
    if (ok) {
        recycle();
        sweep_roots();
    }
    return ok;
}

bool Context::throttle() {
    if (scheduler_->interrupted()) return false;
    if (launched_ < next_check_) return true;
    next_check_ = launched_ + 64;
    if (!dying_.empty()) sweep_roots();
    if (!tracer_->keep_up()) return false;
    if (in_flight() < static_cast<uint64_t>(options_.window)) return true;
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
    failure->launch = t->launch ? t->launch->seq : t->seq;
    failure->point = t->point;
    failure->site = t->launch ? t->launch->site : 0;
    if (t->launch && t->launch->task) failure->task = t->launch->task->name;
    if (PyErr_GivenExceptionMatches(exception, PyExc_KeyboardInterrupt) && thread_ == std::this_thread::get_id()) {
        failure->reported = true;  // by the interrupt that the program gets now
        scheduler_->interrupt();
    }
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

// Counts the failure as reported, with the other points of its launch; returns how many those are.
int Context::report(Failure *failure) {
    std::lock_guard lock(failure_mutex_);
    int others = 0;
    for (auto &f : failures_)
        if (f->launch == failure->launch) {
            others += f.get() != failure && !f->reported;
            f->reported = true;
        }
    return others;
}

TaskRecord *Context::open_host(RegionNode *node, Privilege privilege, uint64_t mask) {
    TaskRecord *t = begin(nullptr);
    t->kind = RecordKind::Host;
    require(t, node, privilege, -1, mask, nullptr);
    return t;
}

// Waits until the data are there. If a signal interrupts this, the access ends by itself later, like any task.
bool Context::wait_host(TaskRecord *t) {
    int32_t target = kPendingBias - static_cast<int32_t>(t->n_edges);
    std::function<bool()> done = [t, target] { return t->pending.load(std::memory_order_acquire) == target; };
    if (scheduler_->help_until(done)) return true;
    issue(t);
    return false;
}

void Context::close_host(TaskRecord *t) {
    if (options_.record_edges) log_node(t);
    ++launched_;
    scheduler_->complete(t, 0, t->poisoned.load() ? RecordState::Failed : RecordState::Done);
}

uint32_t Context::site_here() {
    PyFrameObject *frame = PyThreadState_GetFrame(PyThreadState_Get());
    while (frame) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        if (code == last_site_code_ || !internal_code(code)) {
            last_site_code_ = code;
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

void Context::retire_root(Root *root) {
    root->last_record = tracer_->record_position();
    dying_.push_back(root);
}

void Context::sweep_roots() {
    std::vector<Root *> waiting = std::move(dying_);  // freeing memory may run code of the program, which drops more
    dying_.clear();
    for (Root *root : waiting) {
        if (!tracer_->finished_before(root->last_record) || !root->settled() || tracer_->uses(root)) {
            dying_.push_back(root);
            continue;
        }
        free_root_data(root);
        root->death = tracer_->log_end() + 1;
        dead_.push_back(root);
    }
    while (!dead_.empty() && dead_.front()->death <= tracer_->log_start()) {
        delete_root(dead_.front());
        dead_.pop_front();
    }
}

bool Context::fold_all() {
    if (!wait_all()) return false;
    for (Root *root : live_roots())
        if (root->reduced && !root->death)
            for (const auto &atom : std::vector<AtomRef>(root->atoms)) fold_atom(root, atom, root->full_mask);
    return wait_all();
}

// Folds what is still open and forgets all users: regions outlive the context, records do not.
bool Context::settle() {
    if (!fold_all()) return false;
    bury_failures();
    return true;
}

// Forgets all users; data that failures poisoned stay poisoned as long as their region lives.
void Context::bury_failures() {
    for (auto &f : failures_) {
        auto tomb = std::make_unique<Tomb>();
        tomb->record.gen = 1;
        tomb->record.state.store(RecordState::Failed);
        tomb->record.failure.store(f.get());
        tomb->record.head.store(closed());
        tomb->failure = std::move(f);
        tombs().push_back(std::move(tomb));
    }
    failures_.clear();
    std::unordered_map<const Failure *, TaskRecord *> stands_for;
    for (auto &tomb : tombs()) stands_for[tomb->failure.get()] = &tomb->record;
    std::unordered_set<const TaskRecord *> named;
    for (Root *root : live_roots())
        for (const auto &atom : root->atoms)
            for (auto &e : atom->entries) {
                bool failed = !e.writer.finished();
                TaskRecord *writer = failed ? stands_for.at(e.writer.rec->failure.load()) : nullptr;
                if (failed) named.insert(writer);
                set_writer(e, failed ? User(writer) : User());
            }
    free_futures();
    std::vector<std::unique_ptr<Tomb>> kept, empty;
    for (auto &tomb : tombs()) {
        bool wanted = named.contains(&tomb->record) || tomb->failure->futures.load() > 0;
        (wanted ? kept : empty).push_back(std::move(tomb));
    }
    tombs() = std::move(kept);
    for (auto &tomb : empty) Py_XDECREF(tomb->failure->exception);  // may run code of the program
}

// Whatever is left when the context ends.
void Context::delete_roots() {
    while (!dying_.empty()) {
        Root *root = dying_.back();
        dying_.pop_back();
        free_root_data(root);
        delete_root(root);
    }
    for (Root *root : dead_) delete_root(root);
    dead_.clear();
}

}  // namespace burnish::runtime
