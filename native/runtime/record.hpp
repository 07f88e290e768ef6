// Task records, edges between them, and the pools they come from.
//
// Threads: records are allocated, given edges and recycled by the launching thread only; workers decrement `pending`,
// run bodies and close `head`. A (record, generation) pair stays meaningful after the record was recycled.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace burnish::runtime {

struct TaskRecord;
struct RegionNode;
struct Launch;
struct Failure;
struct FutureState;
struct ReduceBuffer;
struct ReplayInstance;

enum class Privilege : uint8_t { None, Read, Write, ReadWrite, Reduce };

// A successor's entry in a predecessor's list. Its memory belongs to the successor, which cannot be recycled before
// all its predecessors have walked their lists.
struct Edge {
    Edge *next;
    uintptr_t succ_and_data;  // TaskRecord*, bit 0: the successor reads what the predecessor wrote

    TaskRecord *succ() const { return reinterpret_cast<TaskRecord *>(succ_and_data & ~uintptr_t{1}); }
    bool data() const { return succ_and_data & 1; }
};

enum class RecordKind : uint8_t { Task, Fold, Host };
enum class RecordState : uint8_t { Waiting, Done, Failed };

constexpr int kInlineArgs = 6;
constexpr int kInlineEdges = 5;  // a record fills four cache lines
constexpr int32_t kPendingBias = 1 << 30;

inline Edge *closed() { return reinterpret_cast<Edge *>(uintptr_t{2}); }

struct alignas(64) TaskRecord {
    std::atomic<int32_t> pending{0};
    std::atomic<uint8_t> poisoned{0};
    std::atomic<RecordState> state{RecordState::Waiting};
    RecordKind kind = RecordKind::Task;
    uint8_t critical = 0;
    std::atomic<Edge *> head{nullptr};
    uint32_t gen = 0;
    int32_t point = -1;  // row-major color in the launch domain, -1 for a single launch
    uint64_t seq = 0;
    uint64_t stamp = 0;  // (seq of the last successor) * 2 + data
    Launch *launch = nullptr;
    RegionNode *const *nodes = nullptr;  // one per region argument
    ReduceBuffer **buffers = nullptr;    // one per requirement with a reduction, else null
    FutureState *future = nullptr;
    std::atomic<Failure *> failure{nullptr};
    ReplayInstance *instance = nullptr;  // set while issued through a template
    uint32_t slot = 0;                   // first counter of this point in the instance
    uint16_t n_edges = 0;
    uint16_t n_nodes = 0;
    Edge *spill_edges = nullptr;  // overflow blocks, chained through [0].next
    TaskRecord *next_free = nullptr;
    RegionNode *inline_nodes[kInlineArgs];
    Edge inline_edges[kInlineEdges];
};
static_assert(sizeof(TaskRecord) == 256);

struct User {
    TaskRecord *rec = nullptr;
    uint32_t gen = 0;

    User() = default;
    explicit User(TaskRecord *r) : rec(r), gen(r->gen) {}
    // Finished without failing: nothing can depend on it any more. Failed records are never recycled.
    bool finished() const {
        return !rec || rec->gen != gen || rec->state.load(std::memory_order_acquire) == RecordState::Done;
    }
    // Finished or failed.
    bool ended() const {
        return !rec || rec->gen != gen || rec->state.load(std::memory_order_acquire) != RecordState::Waiting;
    }
    bool operator==(const User &) const = default;
};

// Slab allocator of T for one allocating thread; other threads give back through their own lists (see Recycler).
template <class T>
class Slab {
   public:
    T *take() {
        if (!free_) grow();
        T *item = free_;
        free_ = item->next_free;
        return item;
    }
    void give(T *item) {
        item->next_free = free_;
        free_ = item;
    }
    void give_list(T *first) {
        while (first) {
            T *next = first->next_free;
            give(first);
            first = next;
        }
    }
    size_t bytes() const { return blocks_.size() * kBlock * sizeof(T); }
    bool dry() const { return !free_; }

   private:
    static constexpr size_t kBlock = 256;
    void grow() {
        blocks_.push_back(std::make_unique<T[]>(kBlock));
        T *items = blocks_.back().get();
        for (size_t i = kBlock; i-- > 0;) give(&items[i]);
    }
    std::vector<std::unique_ptr<T[]>> blocks_;
    T *free_ = nullptr;
};

// A stack that many threads push to and the launching thread empties.
template <class T>
class GiveBack {
   public:
    void push(T *item) {
        T *head = head_.load(std::memory_order_relaxed);
        do item->next_free = head;
        while (!head_.compare_exchange_weak(head, item, std::memory_order_release, std::memory_order_relaxed));
    }
    T *take_all() { return head_.exchange(nullptr, std::memory_order_acquire); }

   private:
    alignas(64) std::atomic<T *> head_{nullptr};
};

}  // namespace burnish::runtime
