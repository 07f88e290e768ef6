// Python bodies in worker processes: each worker thread of the driver is paired with one process and a channel.
#pragma once
#include <Python.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "bind.hpp"
#include "context.hpp"
#include "executors/channel.hpp"
#include "executors/message.hpp"
#include "executors/pyvalue.hpp"

namespace burnish::runtime {

// Values of a launch as message nodes, made when it is launched so that no worker thread needs the GIL for them.
struct EncodedValues {
    std::vector<std::byte> bytes;
    std::vector<uint32_t> begin;  // one more than values; empty range: encoded when the task runs
};

class ProcessBackend {
   public:
    // backend: the Python object with publish_task(info), publish(value), fields(names), sparse, placed, color,
    // pickle(value), rebuild(parts), replace(worker) and epitaph(worker, message).
    ProcessBackend(nb::object backend, nb::object decoder, std::vector<std::pair<executors::Channel *, int>> workers,
                   bool retry);

    // GIL held, launching thread: what the workers must have before a launch of the task. False with an exception set.
    bool prepare(TaskDef *task, Launch *launch);
    RecordState run(Context &context, TaskRecord *t, int self);

   private:
    struct Loan;  // a packed copy in the arena that stands for a sparse or foreign piece
    struct Attempt;
    void write_argument(Attempt &a, TaskRecord *t, size_t param, size_t arg);
    void write_field(Attempt &a, TaskRecord *t, size_t arg, int field, Privilege p);
    void write_value(Attempt &a, TaskRecord *t, uint32_t index);
    executors::ArrayDesc describe(RegionNode *node, int field, bool writeable) const;
    RecordState finish(Context &context, TaskRecord *t, std::span<const std::byte> response);
    RecordState lost(Context &context, TaskRecord *t, int self);
    executors::ObjectRef fields_factory(const Root *root, const Resolved &r);
    executors::ObjectRef index_of(RegionNode *node);

    nb::object backend_, decoder_object_, pickle_;
    executors::Decoder *decoder_;
    struct Peer {
        executors::Channel *channel;
        std::atomic<int> pidfd;
    };
    std::vector<std::unique_ptr<Peer>> peers_;
    bool retry_;
    executors::ObjectRef sparse_, placed_, color_;
    std::mutex mutex_;  // the two tables below; filled with the GIL held, read without
    std::unordered_map<const Resolved *, executors::ObjectRef> factories_;
    std::unordered_map<uint32_t, executors::ObjectRef> indices_;
};

}  // namespace burnish::runtime
