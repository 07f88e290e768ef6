// Tracing inside the runtime: op log, capture, eager replay, automatic and manual traces.
//
// The recognizer says which ops continue a known sequence; a template says which edges they need. Ops of a live
// instance get their edges from the template and touch no analysis state. When the instance ends, complete or not, the
// state is brought forward: from the exit list, or op by op for what was issued (folding).
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "record.hpp"
#include "template.hpp"
#include "tracing/recognizer.hpp"

namespace burnish::runtime {

class Context;
class Scheduler;

// One execution of a template. Static edges count down `counters`; the last predecessor of a row that was issued hands
// it to its record. Rows are never touched again after the instance was closed and all its records have finished.
struct ReplayInstance {
    std::shared_ptr<Template> tmpl;
    std::atomic<int32_t> refs{0};
    std::unique_ptr<std::atomic<int32_t>[]> counters;
    std::unique_ptr<std::atomic<Failure *>[]> failures;
    std::unique_ptr<User[]> users;
    uint32_t capacity = 0;
    std::vector<Root *> roots;
    std::vector<uint32_t> logical_ids;    // of the roots when they were bound: a pool may reuse one later
    uint64_t serial = 0;                  // of this execution
    std::vector<ReduceBuffer *> buffers;  // one reference each while the instance is open
    uint64_t first_op = 0;                // log position of slot 0
    uint32_t next_slot = 0, adopted_slots = 0, adopted_rows = 0;
    ReplayInstance *next_free = nullptr;

    void prepare(std::shared_ptr<Template> t);
};

// A finished row of an instance: count its successors down and hand over those that are ready.
template <class Ready, class Poison>
void finish_row(ReplayInstance &inst, uint32_t row, Failure *failure, Ready &&ready, Poison &&poison) {
    const Template &t = *inst.tmpl;
    for (uint32_t i = t.succ_begin[row]; i < t.succ_begin[row + 1]; ++i) {
        uint32_t s = t.succs[i] / 2;
        if (failure && (t.succs[i] & 1)) poison(inst.failures[s], failure);
        if (inst.counters[s].fetch_sub(1, std::memory_order_acq_rel) == 1) ready(inst.users[s].rec);
    }
}

struct TraceOptions {
    tracing::Config recognizer;
    bool automatic = true;
    size_t memory = 64u << 20;
};

struct TraceSummary {
    uint32_t id;
    std::string name;  // manual traces
    uint32_t length;
    uint64_t replays;
    double reliability;
    size_t bytes;
    std::vector<uint32_t> sites;
    std::vector<TaskDef *> tasks;
    uint64_t edges, edges_recorded;
};

class Tracer {
   public:
    Tracer(Context &context, const TraceOptions &options);
    ~Tracer();

    // Issues one op, by template or by analysis. `futures`: by color (index launch) or one; null if none are returned.
    void issue(const Op &op, FutureState **futures);
    // A blocking read, fence or untraceable launch.
    void separator();
    // The end of a row's record. Any thread.
    void release(ReplayInstance *inst);

    // Manual traces. begin returns false if one is open already.
    bool begin(const std::string &name, bool strict);
    void end();
    // Set when an op deviates from a strict manual trace: (slot, recorded op, found op).
    struct Mismatch {
        std::string name;
        uint32_t slot;
        TaskDef *recorded, *found;
        uint32_t recorded_site, found_site;
    };
    const Mismatch *mismatch() const { return mismatch_.get(); }
    void clear_mismatch() { mismatch_.reset(); }
    bool would_mismatch(const Op &op);

    bool uses(const Root *root) const;        // bound in the live instance
    // Position in the stream of task records, and whether all records before one have finished.
    uint64_t record_position() const { return n_users_; }
    bool finished_before(uint64_t position);
    bool keep_up();  // waits while the ring is about to overwrite unfinished records; false: Python exception set
    uint64_t log_start() const { return n_log_ > log_.size() ? n_log_ - log_.size() : 0; }
    uint64_t log_end() const { return n_log_; }
    std::vector<TraceSummary> traces() const;
    std::vector<std::pair<uint8_t, uint32_t>> strip;  // per op: 0 analysed, 1 captured, 2 replayed, 3 separator; trace
    uint64_t captures = 0, replays = 0, folds_back = 0, declined = 0;
    const tracing::Recognizer *recognizer() const { return recognizer_.get(); }

   private:
    struct Known {
        std::vector<std::shared_ptr<Template>> templates;
        uint64_t last_use = 0;
        std::vector<uint32_t> sites;
        uint32_t length = 0;
    };
    struct Manual {
        std::string name;
        bool strict = true;
        std::vector<LoggedOp> ops;     // as recorded (tokens and sites)
        std::shared_ptr<Template> tmpl;
        uint32_t at = 0;
        bool deviated = false;
    };

    LoggedOp &log(const Op &op);
    LoggedOp &next_log();
    const LoggedOp &op_at(uint64_t position) const { return log_[position & (log_.size() - 1)]; }
    void analyse(const Op &op, FutureState **futures, LoggedOp &logged);
    void replay(const Op &op, FutureState **futures, LoggedOp &logged);
    bool open(Known &known, uint32_t slot, const Op &op);
    bool bind(const TemplateSlot &slot, const LoggedOp &op);
    TaskRecord *make_point(const Op &op, int64_t i, FutureState **futures);
    void issue_row(TaskRecord *t, uint32_t row);
    void issue_fold(uint32_t row);
    void close_open_reductions(uint32_t row);
    void link_entries(TaskRecord *t, uint32_t row);
    void finish_instance();  // complete: exit list
    void fold_back();        // incomplete: op by op
    void close_instance();
    void capture_last(uint32_t candidate, uint32_t length);
    std::shared_ptr<Template> capture_range(uint64_t first, uint32_t length);
    void forget_excess();
    void log_separator();
    void begin_part();
    void split_manual();
    void issue_manual(const Op &op, FutureState **futures, LoggedOp &logged);

    Context &context_;
    TraceOptions options_;
    std::unique_ptr<tracing::Recognizer> recognizer_;
    std::vector<LoggedOp> log_;     // ring
    uint64_t n_log_ = 0;
    std::vector<User> users_;       // ring
    uint64_t n_users_ = 0, finished_ = 0;  // all records before finished_ have finished
    std::unordered_map<uint32_t, Known> known_;
    size_t template_bytes_ = 0;
    ReplayInstance *live_ = nullptr;
    uint32_t live_candidate_ = tracing::kNone;
    std::vector<std::unique_ptr<ReplayInstance>> instances_;
    ReplayInstance *free_ = nullptr;
    GiveBack<ReplayInstance> returned_;
    std::unordered_map<std::string, Manual> manuals_;
    Manual *manual_ = nullptr;
    uint64_t manual_first_ = 0;
    std::string manual_name_;
    bool manual_strict_ = true;
    uint32_t manual_part_ = 0;
    std::unique_ptr<Mismatch> mismatch_;
};

}  // namespace burnish::runtime
