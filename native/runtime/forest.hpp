// The region forest: roots own memory and analysis state; partitions name subregions of a region.
// Nodes live as long as their root. Everything here is touched by the launching thread only, except the data itself.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ispace.hpp"
#include "record.hpp"
#include "reduce.hpp"

namespace burnish::runtime {

struct Root;
struct PartitionNode;

// Memory of one root: all fields, one contiguous array each. Views that a program keeps hold a reference of their own.
struct Memory {
    std::byte *data = nullptr;
    size_t bytes = 0;
    std::shared_ptr<void> owner;
};

struct Field {
    std::string name, code;          // code: the dtype as workers read it, "<f8"
    int type_num = 0;
    int64_t item_bytes = 0;          // one scalar
    std::vector<int64_t> inner;      // inner shape of a subarray dtype
    int64_t point_bytes = 0;         // item_bytes * product(inner)
    std::byte *data = nullptr;
    ElementType element() const {
        return {type_num, static_cast<int>(item_bytes), item_bytes ? point_bytes / item_bytes : 0};
    }
    void *descr = nullptr;           // PyArray_Descr* of the scalar, strong reference kept by the Python side
};

constexpr int kMaxFields = 64;

// A short list of users with room for a few inside; finished users are dropped when it would grow.
class UserList {
   public:
    void push(User u);
    void clear() { n_ = 0; }
    void prune();
    uint32_t size() const { return n_; }
    bool empty() const { return n_ == 0; }
    const User *begin() const { return data(); }
    const User *end() const { return data() + n_; }

    UserList() = default;
    UserList(const UserList &o) { *this = o; }
    UserList &operator=(const UserList &o);
    UserList(UserList &&o) noexcept { *this = std::move(o); }
    UserList &operator=(UserList &&o) noexcept;

   private:
    static constexpr uint32_t kInline = 4;
    const User *data() const { return heap_ ? heap_.get() : inline_; }
    User *data() { return heap_ ? heap_.get() : inline_; }
    uint32_t n_ = 0, cap_ = kInline;
    User inline_[kInline];
    std::unique_ptr<User[]> heap_;
};

// What happened last to some fields of an atom (specs: equivalence set).
struct Entry {
    uint64_t mask = 0;
    User writer;
    UserList readers;
    int op = -1;  // operator of the open reductions, -1 if none
    std::vector<std::pair<User, ReduceBuffer *>> reducers;  // in launch order; each holds one reference on its buffer
};

// A maximal set of points that all launches so far have used alike. Split atoms point to their halves, merged ones
// are dead: caches that hold them look again.
struct Atom {
    Space space;
    std::vector<Entry> entries;
    std::shared_ptr<Atom> inside, outside;  // after a split
    bool dead = false;                      // after a merge
    RegionNode *merged_by = nullptr;
    uint64_t hash = 0;  // of the geometry; 0: not computed yet

    bool split() const { return inside != nullptr; }
};
using AtomRef = std::shared_ptr<Atom>;

struct RegionNode {
    uint32_t id = 0;
    Root *root = nullptr;
    Space space;
    PartitionNode *parent = nullptr;  // null for the root and for rectangles cut by hand
    int64_t color = 0;
    std::vector<AtomRef> atoms;
    uint64_t atoms_version = 0;  // equals root->shape_version while `atoms` is current
    uint32_t merge_backoff = 0, merge_wait = 0, merge_width = 0;
    std::atomic<const int64_t *> points{nullptr};  // row-major positions for native bodies, made when first needed
    void *python = nullptr;      // Python-side caches (views), owned by the Python layer
    uint64_t signature = 0;      // see shape_signature(); 0: not computed yet

    ~RegionNode() { delete[] points.load(); }
    bool dense() const { return space->dense(); }
};

struct PartitionNode {
    uint32_t id = 0;
    RegionNode *parent = nullptr;
    std::vector<int64_t> shape;  // color space
    std::vector<RegionNode *> children;
    bool disjoint = false, complete = false;
    void *origin = nullptr;  // Python object that its name is found by, strong

    int64_t colors() const { return static_cast<int64_t>(children.size()); }
};

// Takes roots whose last Python reference is gone instead of their being freed (array temporaries).
class RootPool {
   public:
    virtual void give(Root *root) = 0;

   protected:
    ~RootPool() = default;
};

// Data that the main program has in its hands.
struct OpenHost {
    RegionNode *node;
    uint64_t mask;
    bool writes;
    const TaskRecord *access;
};

struct Root {
    Root();
    ~Root();
    Root(const Root &) = delete;
    uint32_t id = 0;
    Rect bounds;
    std::vector<Field> fields;
    uint64_t full_mask = 0;
    Memory memory;
    RegionNode *region = nullptr;
    std::vector<std::unique_ptr<RegionNode>> nodes;
    std::vector<std::unique_ptr<PartitionNode>> partitions;
    std::map<std::vector<int64_t>, RegionNode *> rectangles;  // subregions cut by hand, by (sparse region or 0) + lo + hi
    std::vector<AtomRef> atoms;
    uint64_t shape_version = 1;
    std::unordered_map<uint64_t, bool> overlap_cache;
    std::vector<OpenHost> open_hosts;
    bool given_up = false;   // its memory belongs to the program again
    bool reduced = false;    // some launch ever reduced into it
    uint32_t layout = 0;     // interned field names and types
    uint32_t logical_id = 0;  // operand of tokens; renewed when an array front end reuses the root
    uint64_t bound = 0;       // replay instance that has bound it under this logical id
    RootPool *pool = nullptr;
    uint64_t last_record = 0;  // record position when the last Python reference went
    uint64_t death = 0;       // op position at which its memory was given back
    int refs = 1;  // Python objects that name it, plus pending internal users; changed with the GIL held
    bool attached = false;
    void *python = nullptr;  // owner of the memory, strong
    void *origin = nullptr;  // Python object that its name is found by, strong
    uint64_t ordered_version = 0, structure_hash = 0;

    RegionNode *add_node(Space space, PartitionNode *parent, int64_t color);
    PartitionNode *add_partition(RegionNode *parent, std::vector<int64_t> shape, Pieces pieces);
    RegionNode *rectangle(RegionNode *of, const Rect &r);     // the points of `of` inside r
    bool overlap(const RegionNode *a, const RegionNode *b);  // cached by id pair
    const OpenHost *open_host(const RegionNode *node, uint64_t mask, bool writes);  // that forbids this use
    // The last writers have ended. Every other user is older than one of them, or has a record in the tracer's ring.
    bool settled() const;
    // Atoms by their first point: an order that isomorphic roots share. And a hash of their geometry.
    const std::vector<AtomRef> &ordered_atoms();
    uint64_t structure();
};

uint32_t next_id();
uint32_t layout_of(int dimensions, const std::vector<Field> &fields);  // equal field names, types and inner shapes get the same id
std::unordered_set<Root *> &live_roots();
uint32_t last_id();  // the newest one
std::unique_ptr<Root> make_root(const Rect &bounds, Space space, std::vector<Field> fields);

}  // namespace burnish::runtime
