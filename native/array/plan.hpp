// Plans: everything about an operation that does not change from one launch to the next. They are found by operation and
// geometries, never change and live for ever, so launches in flight point to them.
#pragma once
#include <Python.h>

#include <memory>
#include <string>
#include <vector>

#include "pool.hpp"
#include "runtime/op.hpp"

namespace burnish::array {

using runtime::NativeCall;
using runtime::Privilege;
using runtime::Scalar;

struct ArrayArg {
    RootClass *of;
    Privilege privilege;
};

class Plan {
   public:
    virtual ~Plan() = default;
    virtual void run(const NativeCall &call, int64_t point) const = 0;

    int points() const { return points_; }
    int args() const { return op_.n_args; }

    // GIL held. `roots`: one per argument. `words`: scalars (16 bytes each). False with an exception set.
    bool launch(Context &c, uint32_t site, ArrayRoot *const *roots, const Scalar *words, uint32_t n_words) const;

   protected:
    // `rects`: by point and argument.
    void prepare(const std::string &name, const std::vector<ArrayArg> &args, std::vector<int> rects);

    static const char *scalar(const NativeCall &call, int k) { return reinterpret_cast<const char *>(call.scalars + 1 + 2 * k); }
    static char *data(const NativeCall &call, int arg) { return reinterpret_cast<char *>(call.arrays[arg].data); }

   private:
    bool resolve(ArrayRoot *const *roots) const;

    runtime::TaskDef *task_ = nullptr;
    runtime::OpPlan op_;
    tracing::Token signature_;
    int points_ = 1;
    std::vector<int> rects_;
    mutable bool resolved_ = false;
};

// Operation, options and geometry numbers.
struct PlanKey {
    std::array<uint32_t, 8> words{};
    bool operator==(const PlanKey &) const = default;
};
const Plan *find_plan(const PlanKey &key);
const Plan *store_plan(const PlanKey &key, std::unique_ptr<Plan> plan);

// Cuts of `shape` along its first axis longer than 1 into at most `workers` pieces: positions along that axis, from 0 to
// its length. Pieces are whole tiles, which depend on the shape only. One piece for up to 32 Ki elements.
struct Cuts {
    int axis = 0;
    std::vector<int64_t> at;
    int pieces() const { return static_cast<int>(at.size()) - 1; }
};
Cuts cut(std::span<const int64_t> shape, int workers);

constexpr int64_t kChunkedAbove = 32 * 1024;

}  // namespace burnish::array
