// Tasks as declared, and what is shared by the points of one launch.
#pragma once
#include <Python.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executors/message.hpp"
#include "forest.hpp"

namespace burnish::runtime {

// One privilege on some fields of one region argument, resolved against the argument's field layout.
struct Requirement {
    uint16_t arg = 0;  // index among the region arguments
    Privilege privilege = Privilege::None;
    int op = -1;
    uint64_t mask = 0;
};

// As declared: field names (empty: all fields).
struct DeclaredRequirement {
    std::vector<std::string> fields;
    Privilege privilege;
    int op;
};

enum class ParamKind : uint8_t { Region, Value };
enum class BodyKind : uint8_t { Python, Native };

// What a native body gets. Arrays are strided views, the outer dimensions followed by the field's inner shape; sparse
// subregions come packed, one outer dimension. burnish.runtime.native_task documents this for users.
struct NativeArray {
    std::byte *data;
    int64_t ndim;
    int64_t shape[kMaxDim + 4];
    int64_t strides[kMaxDim + 4];  // bytes
    const int64_t *index;          // row-major root positions of a sparse subregion's points, else null
};
union Scalar {
    PyObject *object;
    double f;
    int64_t i;
};
struct NativeCall {
    const NativeArray *arrays;  // one per (region argument, field) in declaration order
    const Scalar *scalars;
    int64_t point;              // row-major color, -1 for a single launch
    void *user;                 // as given when the task was made
    Scalar result;              // set by the body, if the task returns a value
    int64_t status;             // set by a body that fails: not 0
    const char *message;        // and, if it likes, a static text that says why
    PyObject *exception;        // or a Python object that the front end makes an exception from (new reference)
};
using NativeBody = void (*)(NativeCall *);

struct Param {
    std::string name;
    ParamKind kind = ParamKind::Value;
    std::vector<DeclaredRequirement> declared;
    char scalar_type = 'O';  // native bodies: 'd' or 'q'
    int type_num = -1;       // native bodies: NumPy type of all fields and dimensions of the region, if declared
    int ndim = -1;
};

struct IndexPlan;
struct EncodedValues;
struct OpPlan;

// Requirements of one parameter for one field layout.
struct Resolved {
    uint32_t layout = 0;
    std::vector<Requirement> requirements;
    std::vector<std::pair<int, Privilege>> fields;  // (field, privilege) in declaration order
};

// The layouts one parameter has met. Grows on the launching thread while workers read.
class ResolvedTable {
   public:
    const Resolved *find(uint32_t layout) const {
        for (const auto &slot : slots_) {
            const Resolved *r = slot.load(std::memory_order_acquire);
            if (!r || r->layout == layout) return r;
        }
        return nullptr;
    }
    const Resolved *add(std::unique_ptr<Resolved> r) {  // null when full
        for (auto &slot : slots_)
            if (!slot.load(std::memory_order_relaxed)) {
                owned_.push_back(std::move(r));
                slot.store(owned_.back().get(), std::memory_order_release);
                return owned_.back().get();
            }
        return nullptr;
    }

   private:
    std::array<std::atomic<const Resolved *>, 64> slots_{};
    std::vector<std::unique_ptr<Resolved>> owned_;
};

// A body compiled for one combination of argument layouts.
struct Kernel {
    std::vector<uint64_t> key;
    NativeBody body;
};

// A list that grows on the launching thread while workers read.
class KernelTable {
   public:
    static constexpr int kMax = 64;
    NativeBody find(const std::vector<uint64_t> &key) const {
        for (const auto &slot : slots_) {
            const Kernel *k = slot.load(std::memory_order_acquire);
            if (!k) return nullptr;
            if (k->key == key) return k->body;
        }
        return nullptr;
    }
    bool add(Kernel kernel) {  // false when full
        for (auto &slot : slots_)
            if (!slot.load(std::memory_order_relaxed)) {
                owned_.push_back(std::make_unique<Kernel>(std::move(kernel)));
                slot.store(owned_.back().get(), std::memory_order_release);
                return true;
            }
        return false;
    }

   private:
    std::array<std::atomic<const Kernel *>, kMax> slots_{};
    std::vector<std::unique_ptr<Kernel>> owned_;
};

struct TaskDef {
    uint32_t id = 0;
    std::string name;
    std::vector<Param> params;
    std::vector<uint16_t> region_params, value_params;
    BodyKind body = BodyKind::Python;
    PyObject *fn = nullptr;    // strong
    PyObject *info = nullptr;  // strong: what the front end knows about the task (TaskInfo)
    bool local = false;        // plain values only: runs in the driver also when bodies go to worker processes
    executors::ObjectRef remote;  // the function as workers get it
    uint64_t seen_by = 0;      // serial number of the context that saw its first launch
    NativeBody native = nullptr;  // null where `lazy`
    bool lazy = false;            // compiled at the first launch with each combination of layouts, into `kernels`
    KernelTable kernels;
    void *native_user = nullptr;
    bool returns = false;
    char return_type = 'O';  // native bodies: 'd' or 'q'
    bool critical = false;
    bool inner = false;
    bool idempotent = false;
    bool deterministic = true;
    uint64_t code_hash = 0;
    std::vector<std::unique_ptr<ResolvedTable>> resolved;  // per parameter
    std::vector<std::shared_ptr<IndexPlan>> plans;
    std::vector<std::pair<std::vector<uint32_t>, std::unique_ptr<OpPlan>>> single_plans;  // by layouts of the arguments
    // totals for --explain
    uint64_t launches = 0, points = 0;
    std::atomic<uint64_t> run_ns{0}, runs{0};
};

// Shared by the points of one launch.
struct Launch {
    TaskDef *task = nullptr;
    std::atomic<int32_t> refs{0};
    uint32_t site = 0;
    uint64_t seq = 0;
    uint32_t n_scalars = 0;
    Scalar *scalars = nullptr;
    uint64_t color_scalars = 0;  // native bodies: scalars that are the point's color
    bool owns_objects = false;  // scalars are Python objects to be released with the GIL held
    std::vector<FutureState *> futures_in;  // by value parameter, null where it is a plain value
    FutureState *predicate = nullptr;       // bodies run only if it holds a true value
    std::unique_ptr<RegionNode *[]> owned_nodes;  // many region arguments: records point here
    std::shared_ptr<const IndexPlan> plan;        // or into the plan
    std::shared_ptr<EncodedValues> encoded;       // values as messages, for worker processes
    uint8_t domain_rank = 0;
    int64_t domain_shape[kMaxDim] = {};
    void *work = nullptr;                   // fold, fill or native work of internal records
    void (*free_work)(void *) = nullptr;
    Launch *next_free = nullptr;
    Scalar inline_scalars[8];
};

struct Failure {
    PyObject *exception;  // strong
    uint64_t seq;
    uint64_t launch;      // the launch it is a point of: all its failures are reported as one
    int64_t point;
    std::string task;
    uint32_t site;
    bool reported = false;
    std::atomic<int> futures{0};  // that hold it: they may outlive the context
};

// A single-assignment value. `refs` counts Python handles and the producing record.
struct FutureState {
    std::atomic<int32_t> refs{1};
    std::atomic<bool> ready{false};
    std::atomic<Failure *> failure{nullptr};
    char type = 'O';
    Scalar value{};
    User producer;
    FutureState *next_dead = nullptr;
};

// Private accumulation buffer of one reduction requirement of one task.
struct ReduceBuffer {
    std::atomic<int32_t> refs{1};
    RegionNode *node;
    uint64_t mask;
    int op;
    uint16_t arg;               // which region argument it is for
    std::byte *data = nullptr;  // packed, field after field; allocated when the body starts
    size_t bytes = 0;           // what data takes; counted as promised until then
    std::byte *field(int f) const;  // start of field f's packed values
    void promise();
    bool allocate();  // false: there is no memory
};

}  // namespace burnish::runtime
