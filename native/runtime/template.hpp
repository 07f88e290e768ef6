// Templates: the dependence analysis of a sequence of ops, recorded once, valid for every isomorphic sequence whose
// roots have the same atoms. Rows are the points of the ops in order, with a row for each fold before the point that
// needs it. Every edge points backwards, so any prefix of a template can be replayed on its own.
#pragma once
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

// One op as the log keeps it.
struct LoggedOp {
    TaskDef *task = nullptr;
    const OpPlan *plan = nullptr;
    std::shared_ptr<const IndexPlan> index;
    RegionNode *few_nodes[kInlineArgs];
    std::vector<RegionNode *> many_nodes;  // launches without an index plan and more nodes than that
    int64_t points = 0;
    bool predicated = false;
    bool separator = false;
    uint32_t site = 0;
    tracing::Token signature;
    uint64_t first_user = 0;  // in the tracer's ring of users; one per point (folds not counted)

    RegionNode *const *nodes() const {
        return index ? index->nodes.data() : points * plan->n_args <= kInlineArgs ? few_nodes : many_nodes.data();
    }
};

// Null if the ops cannot be recorded. `refresh` brings a node's atoms up to date.
std::shared_ptr<Template> capture(std::span<const LoggedOp *const> ops, void (*refresh)(void *, RegionNode *),
                                  void *context);

}  // namespace burnish::runtime
