#include "process_body.hpp"

#include <cstring>

#include "body.hpp"
#include "executors/undo.hpp"
#include "memory.hpp"
#include "numpy.hpp"
#include "pytypes.hpp"
#include "views.hpp"

namespace burnish::runtime {

using executors::ArrayDesc;
using executors::CallStatus;
using executors::ObjectRef;
using executors::RequestWriter;

namespace {

constexpr int kAttempts = 10;  // of one task whose workers keep dying

ObjectRef ref_of(nb::handle h) { return nb::cast<ObjectRef>(h); }

}  // namespace

struct ProcessBackend::Loan {
    RegionNode *node;
    int field;
    uint64_t offset;
    bool write;
};

struct ProcessBackend::Attempt {
    std::vector<std::byte> request;
    RequestWriter writer{request};
    std::vector<Loan> loans;
    std::vector<ArrayDesc> undo;  // pieces that a body changes in place

    ~Attempt() {
        for (const Loan &l : loans) region_arena->free(l.offset);
    }
};

ProcessBackend::ProcessBackend(nb::object backend, nb::object decoder,
                               std::vector<std::pair<executors::Channel *, int>> workers, bool retry)
    : backend_(std::move(backend)), decoder_object_(std::move(decoder)), pickle_(backend_.attr("pickle")),
      decoder_(&nb::cast<executors::Decoder &>(decoder_object_)), retry_(retry) {
    for (auto [channel, pidfd] : workers) {
        auto peer = std::make_unique<Peer>();
        peer->channel = channel;
        peer->pidfd.store(pidfd);
        peers_.push_back(std::move(peer));
    }
    sparse_ = ref_of(backend_.attr("sparse"));
    placed_ = ref_of(backend_.attr("placed"));
    color_ = ref_of(backend_.attr("color"));
}

bool ProcessBackend::prepare(TaskDef *task, Launch *launch) {
    try {
        if (!task->remote.bytes) task->remote = ref_of(backend_.attr("publish_task")(nb::handle(task->info)));
        if (!launch->n_scalars) return true;
        auto encoded = std::make_shared<EncodedValues>();
        executors::Writer writer(encoded->bytes);
        for (uint32_t i = 0; i < launch->n_scalars; ++i) {
            encoded->begin.push_back(static_cast<uint32_t>(encoded->bytes.size()));
            nb::handle value = launch->scalars[i].object;
            if (!value.is_valid() || Py_IS_TYPE(value.ptr(), types().projection)) continue;
            if (nb::cast<bool>(backend_.attr("is_constant")(value))) writer.object(ref_of(backend_.attr("publish")(value)));
            else executors::encode_value(writer, value, pickle_);
        }
        encoded->begin.push_back(static_cast<uint32_t>(encoded->bytes.size()));
        launch->encoded = std::move(encoded);
        return true;
    } catch (const executors::PythonError &) {
        return false;
    } catch (nb::python_error &error) {
        error.restore();
        return false;
    }
}

ArrayDesc ProcessBackend::describe(RegionNode *node, int field, bool writeable) const {
    const Root *root = node->root;
    const Field &f = root->fields[field];
    const Rect &r = node->space->bounds();
    ArrayDesc d;
    int64_t step = f.point_bytes, offset = 0;
    for (int k = root->bounds.dim - 1; k >= 0; --k) {
        d.shape[k] = std::max<int64_t>(0, r.hi[k] - r.lo[k]);
        d.strides[k] = step;
        offset += r.lo[k] * step;
        step *= root->bounds.hi[k];
    }
    d.ndim = static_cast<uint8_t>(root->bounds.dim);
    d.offset = region_arena->offset_of(f.data + (r.empty() ? 0 : offset));
    d.writeable = writeable;
    return d;
}

namespace {

// Element type and inner shape of a field, behind the outer dimensions that are there already.
void complete(ArrayDesc &d, const Field &f) {
    d.dtype = executors::DType::code(f.code);
    d.item_bytes = static_cast<uint32_t>(f.item_bytes);
    int64_t step = f.point_bytes;
    for (int64_t n : f.inner) {
        step = n ? step / n : step;
        d.shape[d.ndim] = n;
        d.strides[d.ndim++] = step;
    }
}

// A contiguous array of the node's points.
ArrayDesc packed_desc(RegionNode *node, const Field &f, uint64_t offset, bool writeable) {
    ArrayDesc d;
    d.offset = offset;
    d.writeable = writeable;
    if (node->dense()) {
        const Rect &r = node->space->bounds();
        int64_t step = f.point_bytes;
        for (int k = r.dim - 1; k >= 0; --k) {
            d.shape[k] = std::max<int64_t>(0, r.hi[k] - r.lo[k]);
            d.strides[k] = step;
            step *= d.shape[k];
        }
        d.ndim = static_cast<uint8_t>(r.dim);
    } else {
        d.shape[0] = node->space->volume();
        d.strides[0] = f.point_bytes;
        d.ndim = 1;
    }
    complete(d, f);
    return d;
}

}  // namespace

ObjectRef ProcessBackend::index_of(RegionNode *node) {
    std::lock_guard lock(mutex_);
    auto [it, fresh] = indices_.try_emplace(node->id);
    if (fresh) {  // the positions themselves, as an array in the arena; lives as long as the backend
        auto points = node->space->linear_points();
        uint64_t offset = region_arena->alloc(points.size() * 8 + 8);
        std::memcpy(region_arena->at(offset), points.data(), points.size() * 8);
        it->second = {node->id, offset, points.size()};
    }
    return it->second;
}

void ProcessBackend::write_field(Attempt &a, TaskRecord *t, size_t arg, int field, Privilege p) {
    RegionNode *node = t->nodes[arg];
    const Field &f = node->root->fields[field];
    bool writeable = p != Privilege::Read;
    ArrayDesc d;
    if (p == Privilege::Reduce) {
        d = packed_desc(node, f, region_arena->offset_of(buffer_for(t, arg, field)->field(field)), true);
    } else if (node->dense() && region_arena->contains(f.data)) {
        d = describe(node, field, writeable);
        complete(d, f);
        if (p == Privilege::ReadWrite) a.undo.push_back(d);
    } else {
        uint64_t offset = region_arena->alloc(static_cast<uint64_t>(node->space->volume() * f.point_bytes) + 8);
        a.loans.push_back({node, field, offset, writeable});
        gather_packed(node, field, region_arena->at(offset));
        d = packed_desc(node, f, offset, writeable);
    }
    if (!node->dense()) {
        ObjectRef index = index_of(node);
        ArrayDesc i;
        i.offset = index.offset;
        i.dtype = executors::DType::code("<i8");
        i.item_bytes = 8;
        i.ndim = 1;
        i.shape[0] = static_cast<int64_t>(index.bytes);
        i.strides[0] = 8;
        a.writer.apply(sparse_, 2);
        a.writer.array(i);
        a.writer.array(d);
    } else if (node->root->bounds.dim == 1) {
        a.writer.apply(placed_, 2);
        a.writer.array(d);
        a.writer.integer(node->space->bounds().lo[0]);
    } else {
        a.writer.array(d);
    }
}

ObjectRef ProcessBackend::fields_factory(const Root *root, const Resolved &r) {
    {
        std::lock_guard lock(mutex_);
        if (auto it = factories_.find(&r); it != factories_.end()) return it->second;
    }
    Gil gil;
    nb::list names;
    for (const auto &[f, p] : r.fields) names.append(nb::str(root->fields[f].name.c_str()));
    ObjectRef ref = ref_of(backend_.attr("fields")(names));
    std::lock_guard lock(mutex_);
    return factories_.emplace(&r, ref).first->second;
}

void ProcessBackend::write_argument(Attempt &a, TaskRecord *t, size_t param, size_t arg) {
    const TaskDef *task = t->launch->task;
    const Root *root = t->nodes[arg]->root;
    const Resolved &r = *task->resolved[param]->find(root->layout);
    bool single = r.fields.size() == 1 && !names_fields(task->params[param]);
    if (!single) a.writer.apply(fields_factory(root, r), static_cast<uint32_t>(r.fields.size()));
    for (const auto &[f, p] : r.fields) write_field(a, t, arg, f, p);
}

void ProcessBackend::write_value(Attempt &a, TaskRecord *t, uint32_t index) {
    Launch *l = t->launch;
    const EncodedValues &e = *l->encoded;
    if (index < l->futures_in.size() && l->futures_in[index]) {
        Gil gil;
        nb::object value = nb::steal(future_value(l->futures_in[index]));
        executors::encode_value(a.writer, value, pickle_);
    } else if (e.begin[index] == e.begin[index + 1]) {  // `each`: the color
        if (l->domain_rank <= 1) return a.writer.integer(t->point);
        a.writer.apply(color_, l->domain_rank);
        int64_t stride = 1, color[kMaxDim], point = t->point;
        for (int d = l->domain_rank - 1; d >= 0; --d) {
            color[d] = point / stride % l->domain_shape[d];
            stride *= l->domain_shape[d];
        }
        for (int d = 0; d < l->domain_rank; ++d) a.writer.integer(color[d]);
    } else {
        a.writer.nodes({e.bytes.data() + e.begin[index], e.begin[index + 1] - e.begin[index]});
    }
}

RecordState ProcessBackend::run(Context &context, TaskRecord *t, int self) {
    TaskDef *task = t->launch->task;
    Peer &peer = *peers_[static_cast<size_t>(self)];
    std::vector<std::byte> response;
    for (int attempt = 1;; ++attempt) {
        CallStatus status;
        Attempt a;
        executors::Undo undo(*region_arena);
        try {
            if (!prepare_buffers(t)) throw std::bad_alloc();
            a.writer.begin_task(static_cast<uint16_t>(task->params.size()), task->returns);
            a.writer.object(task->remote);
            size_t arg = 0;
            uint32_t value = 0;
            for (size_t p = 0; p < task->params.size(); ++p) {
                if (task->params[p].kind == ParamKind::Region) write_argument(a, t, p, arg++);
                else write_value(a, t, value++);
            }
            a.writer.end_task();
            if (retry_ && !task->idempotent) undo.save(a.undo);
            status = peer.channel->call(a.request, response, peer.pidfd.load(), -1.0);
        } catch (const executors::PythonError &) {
            Gil gil;
            return fail_python(context, t);
        } catch (nb::python_error &error) {
            Gil gil;
            error.restore();
            return fail_python(context, t);
        } catch (const std::exception &error) {
            Gil gil;
            PyErr_SetString(PyExc_MemoryError, error.what());
            return fail_python(context, t);
        }
        if (status == CallStatus::ok) {
            RecordState state = finish(context, t, response);
            if (state == RecordState::Done)
                for (const Loan &l : a.loans)
                    if (l.write) scatter_packed(l.node, l.field, region_arena->at(l.offset));
            return state;
        }
        if (!retry_ || attempt == kAttempts) return lost(context, t, self);
        undo.restore();
        Gil gil;
        try {
            peer.pidfd.store(nb::cast<int>(backend_.attr("replace")(self)));
        } catch (nb::python_error &error) {
            error.restore();
            return fail_python(context, t);
        }
    }
}

RecordState ProcessBackend::finish(Context &context, TaskRecord *t, std::span<const std::byte> response) {
    executors::ResponseReader reader(response);
    executors::Outcome o = reader.next();
    if (o.status == executors::OutcomeStatus::ok && !t->future) return RecordState::Done;
    Gil gil;
    try {
        executors::Reader nodes(o.nodes);
        if (o.status == executors::OutcomeStatus::ok) {
            t->future->value.object = decoder_->value(nodes).release().ptr();
            t->future->type = 'O';
            t->future->ready.store(true, std::memory_order_release);
            return RecordState::Done;
        }
        executors::Node pickled;
        nodes.node(pickled);
        nb::object error = nb::none();
        if (pickled.head.kind == executors::NodeKind::pickled)
            error = nb::bytes(pickled.bytes.data(), pickled.bytes.size());
        nb::object type = decoder_->value(nodes), message = decoder_->value(nodes), trace = decoder_->value(nodes);
        nb::object raised = backend_.attr("rebuild")(nb::make_tuple(error, type, message, trace));
        PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(raised.ptr())), raised.ptr());
    } catch (const executors::PythonError &) {
    } catch (nb::python_error &error) {
        error.restore();
    } catch (const std::exception &error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    return fail_python(context, t);
}

// The worker is gone: this task fails, the place gets another process.
RecordState ProcessBackend::lost(Context &context, TaskRecord *t, int self) {
    Gil gil;
    try {
        nb::list regions;
        const TaskDef *task = t->launch->task;
        for (size_t i = 0; i < task->region_params.size(); ++i) {
            bool writes = false;
            for (const auto &d : task->params[task->region_params[i]].declared) writes |= d.privilege != Privilege::Read;
            if (writes) regions.append(nb::steal(region_object(t->nodes[i])));
        }
        nb::object color = t->point < 0 ? nb::none() : nb::steal(color_of(t->launch->domain_shape, t->launch->domain_rank, t->point));
        nb::object error = backend_.attr("lost")(self, nb::str(task->name.c_str()), color, regions);
        peers_[static_cast<size_t>(self)]->pidfd.store(nb::cast<int>(backend_.attr("replace")(self)));
        PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(error.ptr())), error.ptr());
    } catch (nb::python_error &error) {
        error.restore();
    } catch (const std::exception &error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    return fail_python(context, t);
}

}  // namespace burnish::runtime
