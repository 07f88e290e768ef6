#include "bind.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "executors/arena.hpp"
#include "executors/channel.hpp"
#include "executors/message.hpp"
#include "executors/pyvalue.hpp"
#include "executors/serve.hpp"
#include "executors/undo.hpp"
#include "executors/watch.hpp"

namespace burnish::executors {

namespace {

std::span<const std::byte> view(const nb::bytes &b) {
    return {reinterpret_cast<const std::byte *>(b.c_str()), b.size()};
}

nb::bytes to_bytes(const std::vector<std::byte> &v) { return nb::bytes(v.data(), v.size()); }

[[noreturn]] void raise_set_error() {
    throw nb::python_error();
}

template <class F>
auto python_errors(F f) {
    try {
        return f();
    } catch (const PythonError &) {
        raise_set_error();
    }
}

// Shape and strides of an array in the arena, from Python.
ArrayDesc describe(uint64_t offset, nb::handle dtype, uint32_t item_bytes, const std::vector<int64_t> &shape,
                   const std::vector<int64_t> &strides, bool writeable) {
    if (shape.size() > max_dims || shape.size() != strides.size())
        throw std::invalid_argument("an array has at most 8 dimensions and as many strides");
    ArrayDesc d;
    d.offset = offset;
    d.dtype = nb::isinstance<nb::str>(dtype) ? DType::code(nb::cast<std::string_view>(dtype))
                                             : DType{nb::cast<ObjectRef>(dtype)};
    d.item_bytes = item_bytes;
    d.ndim = static_cast<uint8_t>(shape.size());
    d.writeable = writeable;
    std::copy(shape.begin(), shape.end(), d.shape.begin());
    std::copy(strides.begin(), strides.end(), d.strides.begin());
    return d;
}

// A request under construction, for callers in Python.
class Request {
public:
    explicit Request(nb::callable pickle) : pickle_(std::move(pickle)), writer_(bytes_) {}
    void task(uint16_t arguments, bool wants_result) {
        end();
        writer_.begin_task(arguments, wants_result);
        open_ = true;
    }
    void value(nb::handle v) {
        python_errors([&] { encode_value(writer_, v, pickle_); });
    }
    void pickled(const nb::bytes &b) { writer_.pickled(view(b)); }
    void object(const ObjectRef &ref) { writer_.object(ref); }
    void apply(const ObjectRef &ref, uint32_t children) { writer_.apply(ref, children); }
    void array(const ArrayDesc &d) { writer_.array(d); }
    nb::bytes finish() {
        end();
        return to_bytes(bytes_);
    }

private:
    void end() {
        if (open_) writer_.end_task();
        open_ = false;
    }
    nb::callable pickle_;
    std::vector<std::byte> bytes_;
    RequestWriter writer_;
    bool open_ = false;
};

// (status, begin_ns, end_ns, value) for each outcome; value of an error: (pickled | None, type, message, traceback).
nb::list outcomes(Decoder &decoder, const nb::bytes &response) {
    ResponseReader reader(view(response));
    nb::list all;
    for (uint32_t i = 0; i < reader.count(); ++i) {
        Outcome o = reader.next();
        Reader nodes(o.nodes);
        nb::object value;
        if (o.status == OutcomeStatus::ok) {
            value = python_errors([&] { return decoder.value(nodes); });
        } else {
            Node node;
            nodes.node(node);
            nb::object error = nb::none();
            if (node.head.kind == NodeKind::pickled) error = nb::bytes(node.bytes.data(), node.bytes.size());
            nb::object type = python_errors([&] { return decoder.value(nodes); });
            nb::object message = python_errors([&] { return decoder.value(nodes); });
            nb::object trace = python_errors([&] { return decoder.value(nodes); });
            value = nb::make_tuple(error, type, message, trace);
        }
        all.append(nb::make_tuple(static_cast<int>(o.status), o.begin_ns, o.end_ns, value));
    }
    return all;
}

// Waits in slices so that Ctrl-C reaches a main thread that waits here.
nb::tuple wait_interruptible(Channel &channel, int pidfd, double timeout) {
    constexpr double slice = 0.1;
    std::vector<std::byte> response;
    for (;;) {
        CallStatus status;
        double part = timeout < 0 ? slice : std::min(slice, timeout);
        {
            nb::gil_scoped_release release;
            status = channel.wait(response, pidfd, part);
        }
        if (PyErr_CheckSignals() != 0) raise_set_error();
        if (timeout >= 0) timeout = std::max(0.0, timeout - part);
        if (status == CallStatus::timeout && timeout != 0) continue;
        return nb::make_tuple(static_cast<int>(status), to_bytes(response));
    }
}

void bind_arena(nb::module_ &m) {
    nb::exception<ArenaFull>(m, "ArenaFull", PyExc_MemoryError);
    nb::class_<Arena>(m, "Arena")
        .def(nb::init<uint64_t, uint64_t, uint64_t>(), nb::arg("capacity"), nb::arg("limit") = 0,
             nb::arg("retain") = 256ull << 20)
        .def_static("attach", &Arena::attach, nb::arg("fd"), nb::arg("capacity"))
        .def("alloc", &Arena::alloc, nb::arg("bytes"), nb::arg("align") = 64,
             nb::call_guard<nb::gil_scoped_release>())
        .def("free", &Arena::free, nb::arg("offset"), nb::call_guard<nb::gil_scoped_release>())
        .def("block_bytes", &Arena::block_bytes, nb::arg("offset"))
        .def("trim", &Arena::trim, nb::call_guard<nb::gil_scoped_release>())
        .def("write",
             [](Arena &a, uint64_t offset, const nb::bytes &b) {
                 if (b.size() > a.capacity() || offset > a.capacity() - b.size())
                     throw std::out_of_range("outside the arena");
                 std::memcpy(a.at(offset), b.c_str(), b.size());
             })
        .def_prop_ro("fd", &Arena::fd)
        .def_prop_ro("capacity", &Arena::capacity)
        .def_prop_ro("address", [](const Arena &a) { return reinterpret_cast<uintptr_t>(a.base()); })
        .def("stats", [](const Arena &a) {
            auto s = a.stats();
            nb::dict d;
            d["capacity"] = s.capacity, d["limit"] = s.limit, d["used"] = s.used, d["peak"] = s.peak;
            d["retained"] = s.retained, d["blocks"] = s.blocks;
            return d;
        });
}

void bind_channel(nb::module_ &m) {
    nb::class_<Channel>(m, "Channel")
        .def(
            "__init__", [](Channel *self, Arena &arena, uint64_t offset) { new (self) Channel(arena.at(offset)); },
            nb::arg("arena"), nb::arg("offset"), nb::keep_alive<1, 2>())
        .def_prop_ro_static("BYTES", [](nb::handle) { return Channel::block_bytes(); })
        .def("reset", &Channel::reset)
        .def("set_spin", &Channel::set_spin, nb::arg("nanoseconds"))
        .def(
            "send",
            [](Channel &c, const nb::bytes &request, int pidfd, double timeout) {
                auto bytes = view(request);
                nb::gil_scoped_release release;
                return static_cast<int>(c.send(bytes, pidfd, timeout));
            },
            nb::arg("request"), nb::arg("pidfd"), nb::arg("timeout") = -1.0)
        .def("wait", &wait_interruptible, nb::arg("pidfd"), nb::arg("timeout") = -1.0)
        .def("beat", &Channel::beat)
        .def("beat_age", &Channel::beat_age)
        .def_prop_ro("done", &Channel::done);
}

}  // namespace
}  // namespace burnish::executors

BURNISH_BIND(executors) {
    namespace nb = nanobind;
    using namespace burnish::executors;
    bind_arena(m);
    bind_channel(m);
    nb::class_<ObjectRef>(m, "ObjectRef")
        .def(nb::init<uint64_t, uint64_t, uint64_t>(), nb::arg("id"), nb::arg("offset"), nb::arg("bytes"))
        .def_ro("id", &ObjectRef::id)
        .def_ro("offset", &ObjectRef::offset)
        .def_ro("bytes", &ObjectRef::bytes);
    nb::class_<ArrayDesc>(m, "ArrayDesc")
        .def("__init__",
             [](ArrayDesc *self, uint64_t offset, nb::handle dtype, uint32_t item_bytes, std::vector<int64_t> shape,
                std::vector<int64_t> strides, bool writeable) {
                 new (self) ArrayDesc(describe(offset, dtype, item_bytes, shape, strides, writeable));
             },
             nb::arg("offset"), nb::arg("dtype"), nb::arg("item_bytes"), nb::arg("shape"), nb::arg("strides"),
             nb::arg("writeable"));
    nb::class_<Request>(m, "Request")
        .def(nb::init<nb::callable>(), nb::arg("pickle"))
        .def("task", &Request::task, nb::arg("arguments"), nb::arg("wants_result") = true)
        .def("value", &Request::value, nb::arg("value").none())
        .def("pickled", &Request::pickled, nb::arg("data"))
        .def("object", &Request::object, nb::arg("ref"))
        .def("apply", &Request::apply, nb::arg("ref"), nb::arg("children"))
        .def("array", &Request::array, nb::arg("desc"))
        .def("finish", &Request::finish);
    nb::class_<Decoder>(m, "Decoder")
        .def(
            "__init__",
            [](Decoder *self, nb::object arena) { new (self) Decoder(nb::cast<Arena &>(arena), arena); },
            nb::arg("arena"))
        .def("array",
             [](Decoder &d, const ArrayDesc &desc) {
                 std::vector<std::byte> bytes;
                 Writer(bytes).array(desc);
                 Reader reader(bytes);
                 return python_errors([&] { return d.value(reader); });
             })
        .def("outcomes", &outcomes, nb::arg("response"));
    nb::class_<Undo>(m, "Undo")
        .def(nb::init<Arena &>(), nb::arg("arena"), nb::keep_alive<1, 2>())
        .def("save", [](Undo &u, const std::vector<ArrayDesc> &pieces) { u.save(pieces); }, nb::arg("pieces"))
        .def("restore", &Undo::restore)
        .def("release", &Undo::release)
        .def_prop_ro("bytes", &Undo::bytes);
    nb::class_<Watch>(m, "Watch").def(nb::init<Channel &, int>(), nb::arg("channel"), nb::arg("pipe"),
                                      nb::keep_alive<1, 2>());
    m.def("die_with_parent", [](int parent) { die_with_parent(parent); }, nb::arg("parent"));
    m.def("serve", &serve, nb::arg("channel"), nb::arg("decoder"), nb::arg("pickle"), nb::arg("describe"));
}
