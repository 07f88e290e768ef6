// Templates: the dependence analysis of a sequence of ops, recorded once, valid for every isomorphic sequence whose
// roots have the same atoms. Rows are the points of the ops in order, with a row for each fold before the point that
// needs it. Every edge points backwards, so any prefix of a template can be replayed on its own.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "op.hpp"

namespace burnish::runtime {

constexpr uint32_t kNoRow = 0xFFFFFFFFu;

// Some fields of one atom of one parameter's root, by the atom's place in Root::ordered_atoms().
struct AtomUse {
    uint32_t param, atom;
    uint64_t mask;
};

// A row that uses data whose state comes from before the trace.
struct EntryUse {
    AtomUse at;
    Privilege privilege;
};

struct FoldSpec {
    struct Part {
        AtomUse at;
        int op;
        std::vector<uint32_t> buffers;  // buffer slots in launch order
    };
    std::vector<Part> parts;
    bool needs_gil = false;
};

struct ExitState {
    AtomUse at;
    uint32_t writer = kNoRow;
    std::vector<uint32_t> readers;
    int op = -1;
    std::vector<std::pair<uint32_t, uint32_t>> reducers;  // row, buffer slot
};

struct TemplateSlot {
    TaskDef *task;
    uint32_t first_row, end_row;
    uint32_t first_param;  // parameters of the region arguments, in Template::params
    uint16_t n_args;
    int64_t points;
};

struct Template {
    std::vector<TemplateSlot> slots;
    std::vector<uint32_t> params;            // parameter number by slot and region argument
    std::vector<uint64_t> param_structures;  // Root::structure() at capture, by parameter
    // By row; compressed lists.
    std::vector<int32_t> row_point;          // index of the point in its op, or -1 - index of the fold
    std::vector<uint32_t> pred_begin, preds; // row * 2 + data
    std::vector<uint32_t> succ_begin, succs;
    std::vector<uint32_t> entry_begin;
    std::vector<EntryUse> entries;
    std::vector<uint32_t> buffer_begin;      // first buffer slot of a row
    std::vector<FoldSpec> folds;
    std::vector<ExitState> exits;
    uint32_t n_buffers = 0;
    uint64_t edges_before_reduction = 0;
    uint64_t replays = 0;

    uint32_t rows() const { return static_cast<uint32_t>(row_point.size()); }
    size_t bytes() const;
};

// A few values inside, more on the heap: most ops have up to four region arguments.
template <class T>
class Few {
   public:
    void assign(const T *begin, const T *end) {
        n_ = static_cast<size_t>(end - begin);
        if (n_ <= few_.size()) std::copy(begin, end, few_.begin());
        else many_.assign(begin, end);
    }
    const T *data() const { return n_ <= few_.size() ? few_.data() : many_.data(); }

   private:
    size_t n_ = 0;
    std::array<T, 4> few_{};
    std::vector<T> many_;
};

// One op as the log keeps it.
struct LoggedOp {
    TaskDef *task = nullptr;
    const OpPlan *plan = nullptr;
    std::shared_ptr<const IndexPlan> index;
    Few<RegionNode *> own_nodes;  // launches without a plan of their own
    Few<uint32_t> own_operands;   // logical root by region argument
    int64_t points = 0;
    bool predicated = false;
    bool separator = false;
    uint32_t site = 0;
    tracing::Token signature;
    uint64_t first_user = 0;  // in the tracer's ring of users; one per point (folds not counted)

    RegionNode *const *nodes() const { return index ? index->nodes.data() : own_nodes.data(); }
    uint32_t operand(size_t arg) const { return index ? index->operands[arg] : own_operands.data()[arg]; }
};

// Null if the ops cannot be recorded. `refresh` brings a node's atoms up to date.
std::shared_ptr<Template> capture(std::span<const LoggedOp *const> ops, void (*refresh)(void *, RegionNode *),
                                  void *context);

}  // namespace burnish::runtime
