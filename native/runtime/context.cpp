#include "context.hpp"

#include <chrono>

namespace burnish::runtime {

namespace {
Context *g_current = nullptr;

uint64_t next_serial() {
    static uint64_t serial = 0;
    return ++serial;
}

uint64_t now_ns() {
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                     std::chrono::steady_clock::now().time_since_epoch())
                                     .count());
}
}  // namespace

Context *current() { return g_current; }
void set_current(Context *c) { g_current = c; }

std::vector<ReduceOp> &reduce_ops() {
    static std::vector<ReduceOp> ops = {{"+", '+'}, {"*", '*'}, {"min", '<'}, {"max", '>'}, {"&", '&'}, {"|", '|'}};
    return ops;
}

Context::Context(Options options) : serial(next_serial()), options_(options), thread_(std::this_thread::get_id()) {
    int threads = options_.serial ? 0 : options_.workers - 1;
    for (int i = 0; i <= threads; ++i) returned_records_.push_back(std::make_unique<GiveBack<TaskRecord>>());
    timeline.resize(threads + 1);
    sites_.push_back({nullptr, 0});
    bool spin = std::thread::hardware_concurrency() >= static_cast<unsigned>(options_.workers);
    scheduler_ = std::make_unique<Scheduler>(
        threads, options_.lanes, spin,
        Scheduler::Callbacks{
            .needs_gil =
                [](const TaskRecord *t) {
                    if (t->kind == RecordKind::Task) return t->launch->task->body == BodyKind::Python;
                    return t->kind == RecordKind::Fold && static_cast<FoldWork *>(t->launch->work)->needs_gil;
                },
            .run = [this](TaskRecord *t, int self) { return run(t, self); },
            .retire = [this](TaskRecord *t, int self, RecordState state) { retire(t, self, state); },
            .poison = [this](TaskRecord *t, Failure *f) { poison(t, f); },
            .thread_start = [](int) {},
        });
    scheduler_->shuffle(options_.chaos);
}

Context::~Context() = default;

void Context::join() { scheduler_.reset(); }

Launch *Context::new_launch(TaskDef *task, uint32_t n_scalars) {
    Launch *l = launches_.take();
    l->task = task;
    l->refs.store(0, std::memory_order_relaxed);
    l->plan = nullptr;
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

TaskRecord *Context::launch_native(const std::vector<NodeUse> &uses, void *work, void (*run)(void *),
                                   void (*free_work)(void *)) {
    struct Native {
        void *work;
        void (*run)(void *);
        void (*free_work)(void *);
    };
    Launch *launch = new_launch(nullptr, 0);
    launch->site = site_here();
    launch->work = new Native{work, run, free_work};
    launch->free_work = [](void *w) {
        auto *n = static_cast<Native *>(w);
        n->free_work(n->work);
        delete n;
    };
    TaskRecord *t = begin(launch);
    t->kind = RecordKind::Native;
    for (const auto &u : uses) require(t, u.node, u.privilege, -1, u.mask, nullptr);
    issue(t);
    return t;
}

RecordState Context::run(TaskRecord *t, int self) {
    if (t->poisoned.load(std::memory_order_acquire)) {
        finish_poisoned(t);
        return RecordState::Failed;
    }
    uint64_t start = options_.profile ? now_ns() : 0;
    RecordState state = RecordState::Done;
    switch (t->kind) {
        case RecordKind::Task: state = skipped(t) ? RecordState::Done : run_body(*this, t, self); break;
        case RecordKind::Fold: run_fold(*static_cast<FoldWork *>(t->launch->work)); break;
        case RecordKind::Native: {
            struct Native {
                void *work;
                void (*run)(void *);
            };
            auto *n = static_cast<Native *>(t->launch->work);
            n->run(n->work);
            break;
        }
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

void Context::fail(TaskRecord *t, PyObject *exception) {
    auto failure = std::make_unique<Failure>();
    failure->exception = exception;
    failure->seq = t->seq;
    failure->launch = t->launch ? t->launch->seq : t->seq;
    failure->point = t->point;
    failure->site = t->launch ? t->launch->site : 0;
    if (t->launch && t->launch->task) failure->task = t->launch->task->name;
    t->failure.store(failure.get(), std::memory_order_release);
    std::lock_guard lock(failure_mutex_);
    failures_.push_back(std::move(failure));
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

void Context::retire_root(Root *root) {
    dying_.push_back(root);
}

void Context::sweep_roots() {
    std::erase_if(dying_, [](Root *root) {
        if (!root->quiescent()) return false;
        delete_root(root);
        return true;
    });
}

}  // namespace burnish::runtime
