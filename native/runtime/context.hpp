// One sequential stream of launches: analysis, window, errors, statistics. Owned by the thread that started it.
#pragma once
#include <Python.h>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "forest.hpp"
#include "launch.hpp"
#include "record.hpp"
#include "reduce.hpp"
#include "scheduler.hpp"
#include "tracer.hpp"

namespace burnish::runtime {

struct Options {
    int workers = 2;
    int lanes = 2;
    bool serial = false;
    bool check = false;
    bool record_edges = false;  // keep every edge and every record (tests, --graph)
    bool profile = false;
    int64_t window = 16384;
    uint64_t chaos = 0;
    int64_t reduce_limit = int64_t{256} << 20;
    int64_t memory_limit = 0;   // bytes in regions and reduction buffers; 0: no limit
};

struct Site {
    PyCodeObject *code;  // strong
    int lasti;
};

// Reduction operators: the builtin ones fold natively, others through their Python function.
struct ReduceOp {
    std::string name;
    std::optional<Fold> builtin;
    PyObject *fn = nullptr, *identity = nullptr;
    bool commutative = true;
};
std::vector<ReduceOp> &reduce_ops();

// What an inner task that is running was given; launches inside it must stay within.
struct InnerBound {
    RegionNode *node;
    uint64_t mask;
    Privilege privilege;
    int op;
};
struct InnerFrame {
    TaskDef *task;
    std::vector<InnerBound> bounds;
    uint32_t newest_id;  // regions with greater ids were made inside
};

struct NodeEvent {
    uint64_t seq;
    uint32_t task;  // id, 0 for internal work
    int32_t point;
    uint32_t site;
    RecordKind kind;
};

struct TimelineEvent {
    uint64_t seq;
    uint32_t task;
    int32_t point;
    int worker;
    uint64_t start_ns, end_ns;
};

struct Counters {
    uint64_t launches = 0, tasks = 0, edges = 0, edges_removed = 0, folds = 0, refinements = 0, merges = 0;
    uint64_t replayed = 0, launch_ns = 0;
    bool false_edges_possible = false;
};

// Bytes in reduction buffers that are not folded yet.
inline std::atomic<int64_t> reduce_bytes{0};
// Bytes that reduction buffers of launched tasks will take when the bodies start.
inline std::atomic<int64_t> promised_bytes{0};
int64_t memory_used();  // bytes in regions and reduction buffers, promised ones included

struct FoldWork;
class ProcessBackend;

class Context final : public Runner {
   public:
    explicit Context(Options options, const TraceOptions &trace);
    ~Context();
    void join();  // stops the threads; without the GIL

    // ---- launching (launching thread, GIL held) ----
    // Starts one task record; the caller fills nodes and scalars, then calls issue().
    TaskRecord *begin(Launch *launch);
    Launch *new_launch(TaskDef *task, uint32_t n_scalars);
    // The record of point i of an op: nodes, buffers, futures.
    TaskRecord *make_record(const Op &op, int64_t i, FutureState **futures);
    void require(TaskRecord *t, RegionNode *node, Privilege privilege, int op, uint64_t mask, ReduceBuffer *buffer);
    void analyse(TaskRecord *t, const OpPlan &plan, bool predicated);
    void depend_on(TaskRecord *t, User producer, bool data) { link(producer, t, data); }
    void issue(TaskRecord *t);
    // Issues a row of a template: `counter` holds its static predecessors and one for being issued.
    void issue_static(TaskRecord *t, std::atomic<int32_t> &counter);
    TaskRecord *begin_fold(FoldWork *work);
    // What templates do to the analysis state.
    void refresh_atoms(RegionNode *node) {
        if (node->atoms_version != node->root->shape_version) refresh(node);
    }
    void fold_atom(Root *root, const AtomRef &atom, uint64_t mask);  // closes its open reductions
    void link_use(TaskRecord *t, const Entry &e, Privilege privilege);
    void set_writer(Entry &e, User writer);
    void apply_use(User user, RegionNode *node, const Requirement &q, ReduceBuffer *buffer);
    // Entries of an atom within `mask`, cut to fit.
    template <class F>
    void for_entries(Atom &atom, uint64_t mask, F &&visit) {
        for (size_t i = 0, n = atom.entries.size(); i < n; ++i) {
            uint64_t common = atom.entries[i].mask & mask;
            if (!common) continue;
            if (common != atom.entries[i].mask) cut_entry(atom, i, mask);
            visit(atom.entries[i]);
        }
    }
    Tracer &tracer() { return *tracer_; }
    PyObject *journal = nullptr;                // is told of every launch and may have it skipped; owned by the front end
    std::shared_ptr<ProcessBackend> processes;  // Python bodies run in worker processes

    // ---- waiting ----
    bool wait_record(User user);       // false: interrupted by a signal, Python exception set
    bool wait_record_for(User user, double seconds);  // also true when the time is over
    bool wait_host(TaskRecord *t);
    bool drain();                      // until everything launched so far has ended
    bool wait_all();
    bool throttle();                   // keeps the window; false: Python exception set
    bool drain(uint64_t in_flight);    // waits until so few launches are in flight; false: Python exception set
    bool failed() const { return failed_.load(std::memory_order_acquire); }  // some task has failed
    Failure *first_failure();
    int report(Failure *failure);
    void fail(TaskRecord *t, PyObject *exception);  // GIL held; steals the reference

    // ---- host access ----
    TaskRecord *open_host(RegionNode *node, Privilege privilege, uint64_t mask);
    void close_host(TaskRecord *t);

    uint32_t site_here();  // 0 if there is no Python frame outside burnish
    const Site &site(uint32_t id) const { return sites_[id]; }
    void retire_root(Root *root);  // frees it once its users have finished
    void sweep_roots();
    bool settle();
    bool fold_all();  // closes all open reductions and waits
    void delete_roots();
    void bury_failures();
    void release_launch(Launch *launch);  // any thread
    void recycle();                       // GIL held: takes back what workers returned

    uint64_t in_flight() const { return launched_ - scheduler_->completed(); }
    Scheduler &scheduler() { return *scheduler_; }
    const Options &options() const { return options_; }
    Counters counters;
    std::vector<std::pair<uint64_t, uint64_t>> edge_log;
    std::vector<uint64_t> fold_log;  // with record_edges: which records are folds
    std::vector<NodeEvent> node_log;                 // with record_edges
    std::vector<std::vector<TimelineEvent>> timeline;  // per worker
    std::thread::id thread() const { return thread_; }
    uint64_t last_seq() const { return seq_; }
    size_t record_bytes() const { return records_.bytes() + launches_.bytes(); }
    const uint64_t serial;             // 1, 2, ... of the contexts of this process
    std::vector<InnerFrame> inner_frames;
    bool launcher_runs_body = false;   // the launching thread is inside a task's Python body

   private:
    void link(User pred, TaskRecord *t, bool data);
    void link_future(FutureState *f, TaskRecord *t);
    Edge *new_edge(TaskRecord *t);
    void refresh(RegionNode *node);
    void lookup(RegionNode *node);
    void maybe_merge(TaskRecord *t, RegionNode *node, bool data, uint64_t mask);
    struct Closing {
        const AtomRef *atom;
        Entry *entry;
    };
    static void cut_entry(Atom &atom, size_t i, uint64_t mask);
    void close_entries(Root *root, std::span<const Closing> group);
    void close_in_groups(Root *root, std::vector<Closing> &closing);
    void fold_open(RegionNode *node, Privilege privilege, int op, uint64_t mask);
    void update_entry(User user, Entry &e, Privilege privilege, int op, ReduceBuffer *buffer);
    bool needs_gil(const TaskRecord *t) const override;
    RecordState run(TaskRecord *t, int self) override;
    void retire(TaskRecord *t, int self, RecordState state) override;
    void poison(TaskRecord *t, Failure *failure) override;
    void release_static(TaskRecord *t, int self, Failure *failure) override;
    bool internal_code(PyCodeObject *code);
    void log_node(const TaskRecord *t);
    void take_back(TaskRecord *t);  // launching thread

    Options options_;
    std::unique_ptr<Tracer> tracer_;
    std::unique_ptr<Scheduler> scheduler_;
    Slab<TaskRecord> records_;
    Slab<Launch> launches_;
    std::vector<std::unique_ptr<GiveBack<TaskRecord>>> returned_records_;  // per worker
    GiveBack<Launch> returned_launches_;
    std::vector<Edge *> spare_edges_;
    uint64_t seq_, launched_ = 0, next_check_ = 64;
    std::vector<Site> sites_;
    std::unordered_map<uint64_t, uint32_t> site_ids_;
    std::unordered_map<PyCodeObject *, bool> internal_codes_;  // keys are strong references
    uint64_t last_site_key_ = 0;
    PyCodeObject *last_site_code_ = nullptr;
    uint32_t last_site_ = 0;
    std::vector<std::unique_ptr<Failure>> failures_;
    std::mutex failure_mutex_;
    std::atomic<bool> failed_{false};
    std::vector<Root *> dying_;  // wait for their users
    std::deque<Root *> dead_;    // memory is gone; the op log may still name them
    std::thread::id thread_;
};

uint64_t clock_ns();            // steady clock
Context *current();             // null if none was started
void set_current(Context *c);
inline uint64_t context_epoch = 0;  // counts starts and stops: records of another epoch have finished

inline std::string package_dir;  // where burnish's own Python files are

// Executes a record's body; Python bodies with the GIL held. Sets the failure on error.
RecordState run_body(Context &context, TaskRecord *t, int self);
// Folds: sequence of (points, fields, buffers in launch order).
struct FoldPart {
    Space space;
    Root *root;
    uint64_t mask;
    int op;
    std::vector<ReduceBuffer *> buffers;
};
struct FoldWork {
    std::vector<FoldPart> parts;
    bool needs_gil = false;
    ~FoldWork();  // drops the buffers that were not folded
};
RecordState run_fold(Context &context, TaskRecord *t);
bool fold_python(const ReduceOp &op, const Field &field, std::byte *dst, std::byte *src, int64_t n);
void drop_buffer(ReduceBuffer *buffer);
void free_root_data(Root *root);  // GIL held: memory, views and plans; the nodes stay
void delete_root(Root *root);     // GIL held
void finish_poisoned(TaskRecord *t);  // its future fails with it

// Futures: references may be dropped by any thread, values are freed by the launching one.
FutureState *new_future(char type);
PyObject *future_value(const FutureState *f);  // GIL held; new reference
bool skipped(TaskRecord *t);
void drop_future(FutureState *f);
void free_futures();  // GIL held

}  // namespace burnish::runtime
