#include "scheduler.hpp"

#include <chrono>

#include "launch.hpp"

namespace burnish::runtime {

namespace {
inline void cpu_relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}
thread_local uint64_t t_random = 0x9e3779b97f4a7c15ull;
uint64_t next_random() {
    t_random ^= t_random << 13;
    t_random ^= t_random >> 7;
    t_random ^= t_random << 17;
    return t_random;
}
}  // namespace

// ---- Chase-Lev ----
Deque::Deque() {
    rings_.push_back(std::make_unique<Ring>(1024));
    ring_.store(rings_.back().get());
}
Deque::~Deque() = default;

Deque::Ring *Deque::grow(Ring *old, int64_t bottom, int64_t top) {
    auto bigger = std::make_unique<Ring>((old->mask + 1) * 2);
    for (int64_t i = top; i < bottom; ++i)
        bigger->slots[i & bigger->mask].store(old->slots[i & old->mask].load(std::memory_order_relaxed),
                                              std::memory_order_relaxed);
    rings_.push_back(std::move(bigger));
    ring_.store(rings_.back().get(), std::memory_order_release);
    return rings_.back().get();
}

void Deque::push(TaskRecord *r) {
    int64_t b = bottom_.load(std::memory_order_relaxed);
    int64_t t = top_.load(std::memory_order_acquire);
    Ring *ring = ring_.load(std::memory_order_relaxed);
    if (b - t > ring->mask) ring = grow(ring, b, t);
    ring->slots[b & ring->mask].store(r, std::memory_order_relaxed);
    bottom_.store(b + 1, std::memory_order_release);
}

TaskRecord *Deque::pop() {
    int64_t b = bottom_.load(std::memory_order_relaxed) - 1;
    Ring *ring = ring_.load(std::memory_order_relaxed);
    bottom_.store(b, std::memory_order_seq_cst);
    int64_t t = top_.load(std::memory_order_seq_cst);
    TaskRecord *r = nullptr;
    if (t <= b) {
        r = ring->slots[b & ring->mask].load(std::memory_order_relaxed);
        if (t == b) {
            if (!top_.compare_exchange_strong(t, t + 1, std::memory_order_seq_cst, std::memory_order_relaxed))
                r = nullptr;
            bottom_.store(b + 1, std::memory_order_relaxed);
        }
    } else {
        bottom_.store(b + 1, std::memory_order_relaxed);
    }
    return r;
}

TaskRecord *Deque::steal() {
    int64_t t = top_.load(std::memory_order_seq_cst);
    int64_t b = bottom_.load(std::memory_order_seq_cst);
    if (t >= b) return nullptr;
    Ring *ring = ring_.load(std::memory_order_acquire);
    TaskRecord *r = ring->slots[t & ring->mask].load(std::memory_order_relaxed);
    if (!top_.compare_exchange_strong(t, t + 1, std::memory_order_seq_cst, std::memory_order_relaxed)) return nullptr;
    return r;
}

// ---- lane queue ----
void LaneQueue::push(TaskRecord *r) {
    while (lock_.test_and_set(std::memory_order_acquire)) cpu_relax();
    (r->critical ? critical_ : normal_).push_back(r);
    size_.fetch_add(1, std::memory_order_release);
    lock_.clear(std::memory_order_release);
}

TaskRecord *LaneQueue::pop(uint64_t which) {
    if (empty()) return nullptr;
    while (lock_.test_and_set(std::memory_order_acquire)) cpu_relax();
    TaskRecord *r = nullptr;
    auto &queue = critical_.empty() ? normal_ : critical_;
    if (!queue.empty()) {
        if (which) std::swap(queue.front(), queue[which % queue.size()]);
        r = queue.front();
        queue.pop_front();
        size_.fetch_sub(1, std::memory_order_relaxed);
    }
    lock_.clear(std::memory_order_release);
    return r;
}

// ---- scheduler ----
Scheduler::Scheduler(int threads, int lanes, bool spin, uint64_t chaos, Runner &runner)
    : runner_(runner), lanes_(lanes), spin_(spin), chaos_(chaos) {
    for (int i = 0; i <= threads; ++i) workers_.push_back(std::make_unique<Worker>());
    for (int i = 1; i <= threads; ++i) workers_[i]->thread = std::thread([this, i] { loop(i); });
}

Scheduler::~Scheduler() {
    stop_.store(true);
    {
        std::lock_guard lock(mutex_);
        epoch_.fetch_add(1);
    }
    wakeup_.notify_all();
    for (auto &w : workers_)
        if (w->thread.joinable()) w->thread.join();
}

uint64_t Scheduler::completed() const {
    uint64_t total = 0;
    for (const auto &w : workers_) total += w->stats.completed.load(std::memory_order_relaxed);
    return total;
}

void Scheduler::wake() {
    if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
    {
        std::lock_guard lock(mutex_);
        epoch_.fetch_add(1);
    }
    wakeup_.notify_one();
    if (launcher_waits_.load(std::memory_order_relaxed)) launcher_wakeup_.notify_one();
}

void Scheduler::ready(TaskRecord *r, int self) {
    if (runner_.needs_gil(r)) lane_.push(r);
    else workers_[self]->deque.push(r);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the fence in park
    wake();
}

void Scheduler::jitter(bool holds_gil) {
    if (!chaos_ || next_random() % 4) return;
    auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(next_random() % 200);
    PyThreadState *state = holds_gil ? PyEval_SaveThread() : nullptr;
    while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
    if (state) PyEval_RestoreThread(state);
}

bool Scheduler::interrupted() {
    if (!interrupt_) return false;
    interrupt_ = false;
    PyErr_SetNone(PyExc_KeyboardInterrupt);
    return true;
}

void Scheduler::complete(TaskRecord *r, int self, RecordState state) {
    Failure *failure = r->failure.load(std::memory_order_relaxed);
    r->state.store(state, std::memory_order_release);
    Edge *e = r->head.exchange(closed(), std::memory_order_acq_rel);
    while (e) {
        Edge *next = e->next;  // before the successor can run and recycle the edge's memory
        TaskRecord *s = e->succ();
        if (state == RecordState::Failed && e->data()) runner_.poison(s, failure);
        if (s->pending.fetch_sub(1, std::memory_order_acq_rel) == 1) ready(s, self);
        e = next;
    }
    if (r->instance) runner_.release_static(r, self, state == RecordState::Failed ? failure : nullptr);
    runner_.retire(r, self, state);
    // Last: whoever waits for the count may take everything down.
    auto &done = workers_[self]->stats.completed;
    done.store(done.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
    if (launcher_waits_.load(std::memory_order_seq_cst)) {
        std::lock_guard lock(mutex_);
        if (launcher_done_ && (*launcher_done_)()) {
            epoch_.fetch_add(1);
            launcher_wakeup_.notify_one();
        }
    }
}

void Scheduler::execute(TaskRecord *r, int self) {
    bool holds_gil = chaos_ && runner_.needs_gil(r);  // asked before the record's launch may be recycled
    jitter(holds_gil);
    RecordState state = runner_.run(r, self);
    jitter(holds_gil);
    complete(r, self, state);
}

void Scheduler::run_now(TaskRecord *r, int self) { execute(r, self); }

TaskRecord *Scheduler::find_native(int self) {
    if (TaskRecord *r = chaos_ && next_random() % 2 ? workers_[self]->deque.steal() : workers_[self]->deque.pop())
        return r;
    int n = static_cast<int>(workers_.size());
    for (int i = 1; i < n; ++i) {
        int victim = (self + i) % n;
        if (TaskRecord *r = workers_[victim]->deque.steal()) {
            workers_[self]->stats.stolen.fetch_add(1, std::memory_order_relaxed);
            return r;
        }
    }
    return nullptr;
}

bool Scheduler::has_work() const {
    for (const auto &w : workers_)
        if (!w->deque.empty()) return true;
    return !lane_.empty() && lanes_active_.load(std::memory_order_relaxed) < lanes_;
}

bool Scheduler::should_stay_awake(const std::function<bool()> *done) const {
    return has_work() || stop_.load(std::memory_order_relaxed) || (done && (*done)());
}

bool Scheduler::spin_for_work(const std::function<bool()> *done) const {
    for (int i = 0; spin_ && i < 400; ++i) {
        if (should_stay_awake(done)) return true;
        cpu_relax();
    }
    return false;
}

void Scheduler::park(int self) {
    if (spin_for_work(nullptr)) return;
    uint64_t seen = epoch_.load();
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!should_stay_awake(nullptr)) {
        workers_[self]->stats.parked.fetch_add(1, std::memory_order_relaxed);
        std::unique_lock lock(mutex_);
        wakeup_.wait_for(lock, std::chrono::milliseconds(100), [&] { return epoch_.load() != seen || stop_.load(); });
    }
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
}

// The launching thread also wakes when what it waits for has come true: the completing worker looks.
void Scheduler::park_launcher(const std::function<bool()> &done) {
    if (spin_for_work(&done)) return;
    std::unique_lock lock(mutex_);
    uint64_t seen = epoch_.load();
    launcher_done_ = &done;
    launcher_waits_.store(true, std::memory_order_seq_cst);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!should_stay_awake(&done))
        launcher_wakeup_.wait_for(lock, std::chrono::milliseconds(20), [&] { return epoch_.load() != seen; });
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    launcher_waits_.store(false, std::memory_order_seq_cst);
    launcher_done_ = nullptr;
}

void Scheduler::drain_lane(int self) {
    auto start = std::chrono::steady_clock::now();
    int n = 0;
    while (TaskRecord *r = lane_.pop(chaos_ ? next_random() : 0)) {
        execute(r, self);
        if ((++n & 15) == 0 && std::chrono::steady_clock::now() - start > std::chrono::milliseconds(2)) break;
    }
}

void Scheduler::loop(int self) {
    t_random ^= static_cast<uint64_t>(self) * 0xbf58476d1ce4e5b9ull + chaos_;
    PyThreadState *state = nullptr;
    while (!stop_.load(std::memory_order_acquire)) {
        if (TaskRecord *r = find_native(self)) {
            execute(r, self);
            continue;
        }
        if (!lane_.empty()) {
            int active = lanes_active_.load(std::memory_order_relaxed);
            if (active < lanes_ && lanes_active_.compare_exchange_strong(active, active + 1)) {
                if (!state) {
                    PyGILState_STATE gil = PyGILState_Ensure();
                    state = PyGILState_GetThisThreadState();
                    drain_lane(self);
                    (void)gil;  // released for good at the end of the loop
                    PyEval_SaveThread();
                } else {
                    PyEval_RestoreThread(state);
                    drain_lane(self);
                    PyEval_SaveThread();
                }
                lanes_active_.fetch_sub(1);
                continue;
            }
        }
        park(self);
    }
    if (state) {
        PyEval_RestoreThread(state);
        PyGILState_Release(PyGILState_UNLOCKED);
    }
}

bool Scheduler::help_until(const std::function<bool()> &done) {
    while (!done()) {
        if (!lane_.empty()) {
            lanes_active_.fetch_add(1);
            while (!done()) {
                TaskRecord *r = lane_.pop(chaos_ ? next_random() : 0);
                if (!r) break;
                execute(r, 0);
                if (interrupt_) break;
            }
            lanes_active_.fetch_sub(1);
            if (interrupted()) return false;
            if (done()) break;
        }
        PyThreadState *state = PyEval_SaveThread();
        while (!done()) {
            if (TaskRecord *r = find_native(0)) execute(r, 0);
            else if (!lane_.empty()) break;
            else {
                park_launcher(done);
                if (!has_work()) break;  // back to Python now and then: signals
            }
        }
        PyEval_RestoreThread(state);
        if (PyErr_CheckSignals() != 0) return false;
    }
    return true;
}

}  // namespace burnish::runtime
