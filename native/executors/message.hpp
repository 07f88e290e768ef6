// What travels through a channel: tasks as small trees of nodes, their outcomes back. Data stay in the arena.
//
// Little-endian, every item starts at a multiple of 8 bytes.
//   request  = u32 magic, u32 tasks, task*            (no tasks: the worker ends)
//   task     = u32 bytes of the record, u16 arguments, u16 flags, u64 reserved, node (the function), node* (arguments)
//   response = u32 magic, u32 outcomes, outcome*      (in the order of the tasks)
//   outcome  = u32 bytes of the record, u8 status, u8[3] 0, u64 begin_ns, u64 end_ns,
//              node (the result)  or  four nodes: pickled exception or none, type name, message, traceback text
//   node     = u8 kind, u8 a, u16 b, u32 n, then by kind
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace burnish::executors {

// A pickled Python object that was put into the arena once: functions, factories, constants, unusual dtypes. Workers
// unpickle it when they first meet the id and keep it; so a respawned worker needs no preparation.
struct ObjectRef {
    uint64_t id = 0;  // hash of the content
    uint64_t offset = 0;
    uint64_t bytes = 0;
};

// A NumPy dtype: its `str` if that has at most 8 characters ("<f8", "<M8[ns]"), else a pickled dtype in the arena.
// Subarray dtypes are written as further dimensions of the array.
struct DType {
    ObjectRef ref;
    static DType code(std::string_view text) {
        if (text.empty() || text.size() > 8) throw std::invalid_argument("dtype code must have 1 to 8 characters");
        DType d;
        std::memcpy(&d.ref.id, text.data(), text.size());
        return d;
    }
    bool is_code() const { return ref.bytes == 0; }
};

constexpr uint32_t max_dims = 8;

// A strided piece of the arena.
struct ArrayDesc {
    uint64_t offset = 0;  // of element [0, 0, ...]
    DType dtype;
    uint32_t item_bytes = 0;
    uint8_t ndim = 0;
    bool writeable = false;
    std::array<int64_t, max_dims> shape{};
    std::array<int64_t, max_dims> strides{};  // in bytes, may be negative
};

enum class NodeKind : uint8_t { none, boolean, integer, real, text, pickled, object, apply, array };

enum class OutcomeStatus : uint8_t {
    ok = 0,
    raised = 1,           // the body raised
    not_received = 2,     // the function or an argument could not be unpickled
    not_returned = 3,     // the result could not be pickled
};

constexpr uint32_t request_magic = 0x31515242, response_magic = 0x31535242;  // "BRQ1", "BRS1"
constexpr uint16_t task_wants_result = 1;

struct NodeHead {
    NodeKind kind;
    uint8_t a = 0;
    uint16_t b = 0;
    uint32_t n = 0;
};

class Writer {
public:
    explicit Writer(std::vector<std::byte> &out) : out_(out) {}

    void none() { put(NodeHead{NodeKind::none}); }
    void boolean(bool v) { put(NodeHead{NodeKind::boolean, v}); }
    void integer(int64_t v) { put(NodeHead{NodeKind::integer}), put(v); }
    void real(double v) { put(NodeHead{NodeKind::real}), put(v); }
    void text(std::string_view v) { blob(NodeKind::text, v.data(), v.size()); }
    void pickled(std::span<const std::byte> v) { blob(NodeKind::pickled, v.data(), v.size()); }
    void object(const ObjectRef &ref) { put(NodeHead{NodeKind::object}), put(ref); }
    // The next `children` nodes are arguments of a callable in the arena; the node's value is what it returns. This is
    // how arguments with several fields, sparse pieces and captured constants get their Python shape.
    void apply(const ObjectRef &callable, uint32_t children) {
        put(NodeHead{NodeKind::apply, 0, 0, children}), put(callable);
    }
    // Nodes that were written elsewhere before.
    void nodes(std::span<const std::byte> written) { raw(written.data(), written.size()); }
    void array(const ArrayDesc &d) {
        put(NodeHead{NodeKind::array, d.ndim, d.writeable, d.item_bytes});
        put(d.offset), put(d.dtype.ref);
        raw(d.shape.data(), d.ndim * sizeof(int64_t));
        raw(d.strides.data(), d.ndim * sizeof(int64_t));
    }

protected:
    template <class T>
    void put(const T &v) {
        static_assert(sizeof(T) % 8 == 0);
        raw(&v, sizeof(T));
    }
    void raw(const void *data, size_t bytes) {
        size_t at = out_.size();
        out_.resize(at + bytes);
        if (bytes) std::memcpy(out_.data() + at, data, bytes);
    }
    void blob(NodeKind kind, const void *data, size_t bytes) {
        if (bytes > UINT32_MAX) throw std::length_error("a value of 4 GiB or more cannot be sent to a worker");
        put(NodeHead{kind, 0, 0, static_cast<uint32_t>(bytes)});
        raw(data, bytes);
        out_.resize((out_.size() + 7) & ~size_t{7});
    }
    void patch(size_t at, uint32_t v) { std::memcpy(out_.data() + at, &v, 4); }

    std::vector<std::byte> &out_;
};

// begin_task(n); one node for the function; n nodes for its arguments; end_task(); ... ; finish().
class RequestWriter : public Writer {
public:
    explicit RequestWriter(std::vector<std::byte> &out) : Writer(out) { begin(); }
    void begin() {  // a new request in the same buffer
        out_.clear();
        tasks_ = 0;
        put(std::array<uint32_t, 2>{request_magic, 0});
    }
    void begin_task(uint16_t arguments, bool wants_result) {
        start_ = out_.size();
        put(std::array<uint16_t, 4>{0, 0, arguments, wants_result ? task_wants_result : uint16_t{0}});
        put(uint64_t{0});
    }
    void end_task() {
        patch(start_, static_cast<uint32_t>(out_.size() - start_));
        patch(4, ++tasks_);
    }

private:
    size_t start_ = 0;
    uint32_t tasks_ = 0;
};

struct Node {
    NodeHead head{};
    int64_t integer = 0;
    double real = 0;
    std::span<const std::byte> bytes;  // of text and pickled
    ObjectRef object;                  // of object and apply
    ArrayDesc array;
};

class Reader {
public:
    explicit Reader(std::span<const std::byte> in) : in_(in) {}
    template <class T>
    T get() {
        T v;
        std::memcpy(&v, take(sizeof(T)).data(), sizeof(T));
        return v;
    }
    std::span<const std::byte> take(size_t bytes) {
        if (bytes > in_.size() - at_) throw std::runtime_error("a message between driver and worker is cut short");
        auto part = in_.subspan(at_, bytes);
        at_ += bytes;
        return part;
    }
    bool empty() const { return at_ == in_.size(); }
    size_t at() const { return at_; }

    // Reads the node's own fields; the children of `apply` follow as nodes.
    void node(Node &v) {
        v.head = get<NodeHead>();
        switch (v.head.kind) {
            case NodeKind::none:
            case NodeKind::boolean: break;
            case NodeKind::integer: v.integer = get<int64_t>(); break;
            case NodeKind::real: v.real = get<double>(); break;
            case NodeKind::text:
            case NodeKind::pickled:
                v.bytes = take(v.head.n);
                take((8 - v.head.n % 8) % 8);
                break;
            case NodeKind::object:
            case NodeKind::apply: v.object = get<ObjectRef>(); break;
            case NodeKind::array: {
                if (v.head.a > max_dims) throw std::runtime_error("a message holds an array of too many dimensions");
                v.array.ndim = v.head.a;
                v.array.writeable = v.head.b & 1;
                v.array.item_bytes = v.head.n;
                v.array.offset = get<uint64_t>();
                v.array.dtype.ref = get<ObjectRef>();
                size_t bytes = v.array.ndim * sizeof(int64_t);
                std::memcpy(v.array.shape.data(), take(bytes).data(), bytes);
                std::memcpy(v.array.strides.data(), take(bytes).data(), bytes);
                break;
            }
            default: throw std::runtime_error("a message holds a node of unknown kind");
        }
    }

private:
    std::span<const std::byte> in_;
    size_t at_ = 0;
};

struct Outcome {
    OutcomeStatus status;
    uint64_t begin_ns, end_ns;         // CLOCK_MONOTONIC around the body
    std::span<const std::byte> nodes;  // the result, or the four nodes of an error; into the response
};

class ResponseReader {
public:
    explicit ResponseReader(std::span<const std::byte> response) : reader_(response) {
        auto head = reader_.get<std::array<uint32_t, 2>>();
        if (head[0] != response_magic) throw std::runtime_error("a worker's response is not one");
        count_ = head[1];
    }
    uint32_t count() const { return count_; }
    Outcome next() {
        auto head = reader_.get<std::array<uint32_t, 2>>();
        Outcome o;
        o.status = static_cast<OutcomeStatus>(head[1] & 0xff);
        o.begin_ns = reader_.get<uint64_t>();
        o.end_ns = reader_.get<uint64_t>();
        o.nodes = reader_.take(head[0] - 24);
        return o;
    }

private:
    Reader reader_;
    uint32_t count_;
};

class ResponseWriter : public Writer {
public:
    explicit ResponseWriter(std::vector<std::byte> &out) : Writer(out) { begin(); }
    void begin() {
        out_.clear();
        outcomes_ = 0;
        put(std::array<uint32_t, 2>{response_magic, 0});
    }
    void begin_outcome() {
        start_ = out_.size();
        put(std::array<uint64_t, 3>{});
    }
    void end_outcome(OutcomeStatus status, uint64_t begin_ns, uint64_t end_ns) {
        patch(start_, static_cast<uint32_t>(out_.size() - start_));
        patch(start_ + 4, static_cast<uint32_t>(status));
        std::memcpy(out_.data() + start_ + 8, &begin_ns, 8);
        std::memcpy(out_.data() + start_ + 16, &end_ns, 8);
        patch(4, ++outcomes_);
    }
    void restart_outcome() { out_.resize(start_ + 24); }  // drop what was written of the current one

private:
    size_t start_ = 0;
    uint32_t outcomes_ = 0;
};

}  // namespace burnish::executors
