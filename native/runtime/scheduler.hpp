// Worker threads with work stealing. Records that need the GIL wait in one lane queue and are drained by at most
// `lanes` threads at a time, several per GIL acquisition.
#pragma once
#include <Python.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "record.hpp"

namespace burnish::runtime {

// Chase-Lev deque (Chase and Lev 2005; memory orders after Le, Pop, Cohen, Zappa Nardelli 2013).
class Deque {
   public:
    Deque();
    ~Deque();
    void push(TaskRecord *r);   // owner
    TaskRecord *pop();          // owner
    TaskRecord *steal();        // anyone
    bool empty() const {
        return bottom_.load(std::memory_order_relaxed) <= top_.load(std::memory_order_relaxed);
    }

   private:
    struct Ring {
        explicit Ring(int64_t n) : mask(n - 1), slots(new std::atomic<TaskRecord *>[n]) {}
        int64_t mask;
        std::unique_ptr<std::atomic<TaskRecord *>[]> slots;
    };
    Ring *grow(Ring *old, int64_t bottom, int64_t top);
    alignas(64) std::atomic<int64_t> top_{0};
    alignas(64) std::atomic<int64_t> bottom_{0};
    std::atomic<Ring *> ring_;
    std::vector<std::unique_ptr<Ring>> rings_;  // old rings stay readable for thieves
};

class LaneQueue {
   public:
    void push(TaskRecord *r);
    TaskRecord *pop(uint64_t which);  // 0: the oldest; else any, for tests
    bool empty() const { return size_.load(std::memory_order_acquire) == 0; }
    int64_t size() const { return size_.load(std::memory_order_relaxed); }

   private:
    std::atomic_flag lock_ = ATOMIC_FLAG_INIT;
    std::deque<TaskRecord *> critical_, normal_;
    std::atomic<int64_t> size_{0};
};

struct WorkerStats {
    std::atomic<uint64_t> completed{0}, stolen{0}, parked{0}, busy_ns{0};
};

// What the runtime does with a record. `self` is the worker's index; 0 is the launching thread.
class Runner {
   public:
    virtual bool needs_gil(const TaskRecord *t) const = 0;
    // Runs the body (with the GIL held if needs_gil) and reports whether it succeeded.
    virtual RecordState run(TaskRecord *t, int self) = 0;
    virtual void poison(TaskRecord *t, Failure *failure) = 0;
    // Successors that a template names; those that become ready go to Scheduler::ready.
    virtual void release_static(TaskRecord *t, int self, Failure *failure) = 0;
    // After successors were released: give the record's resources back.
    virtual void retire(TaskRecord *t, int self, RecordState state) = 0;

   protected:
    ~Runner() = default;
};

class Scheduler {
   public:
    Scheduler(int threads, int lanes, bool spin, uint64_t chaos, Runner &runner);  // threads beside the launching one
    ~Scheduler();

    int threads() const { return static_cast<int>(workers_.size()) - 1; }
    // A record whose dependences are met. Called by any worker.
    void ready(TaskRecord *r, int self);
    // Launching thread only, with the GIL held: run ready records until done() holds. Returns false if interrupted
    // by a Python signal handler (exception set).
    bool help_until(const std::function<bool()> &done);
    void complete(TaskRecord *r, int self, RecordState state);
    // Runs r here and now (serial executor).
    void run_now(TaskRecord *r, int self);
    // A body on the launching thread was ended by Ctrl-C, which is meant for the program.
    void interrupt() { interrupt_ = true; }
    bool interrupted();  // raises it; launching thread
    uint64_t completed() const;
    WorkerStats &stats(int self) { return workers_[self]->stats; }
    int64_t lane_backlog() const { return lane_.size(); }

   private:
    struct Worker {
        Deque deque;
        WorkerStats stats;
        std::thread thread;
    };
    void loop(int self);
    TaskRecord *find_native(int self);
    void drain_lane(int self);  // GIL held
    void execute(TaskRecord *r, int self);
    void wake();
    bool has_work() const;
    bool spin_for_work(const std::function<bool()> *done) const;
    void park(int self);
    void park_launcher(const std::function<bool()> &done);
    bool should_stay_awake(const std::function<bool()> *done) const;
    void jitter(bool holds_gil);

    Runner &runner_;
    std::vector<std::unique_ptr<Worker>> workers_;
    LaneQueue lane_;
    std::atomic<int> lanes_active_{0};
    int lanes_;
    bool spin_;
    std::atomic<bool> stop_{false};
    std::atomic<uint32_t> sleepers_{0};
    std::atomic<uint64_t> epoch_{0};
    std::mutex mutex_;
    std::condition_variable wakeup_, launcher_wakeup_;
    std::atomic<bool> launcher_waits_{false};
    const std::function<bool()> *launcher_done_ = nullptr;  // guarded by mutex_
    bool interrupt_ = false;
    uint64_t chaos_;  // nonzero: adversarial order and delays, for tests
};

}  // namespace burnish::runtime
