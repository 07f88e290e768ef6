#include "bind.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>

#include "lineage/crc32c.hpp"
#include "lineage/frame.hpp"
#include "lineage/group_commit.hpp"
#include "lineage/records.hpp"

namespace burnish::lineage {

namespace {

std::span<const std::byte> view(const nb::bytes &b) {
    return {reinterpret_cast<const std::byte *>(b.c_str()), b.size()};
}

// Groups go to a Python callable (first lsn, bytes), which returns when they are durable.
class PythonSink : public Sink {
public:
    explicit PythonSink(nb::callable write) : write_(std::move(write)) {}
    ~PythonSink() override {
        nb::gil_scoped_acquire gil;
        write_.reset();
    }
    void write(uint64_t first_lsn, std::span<const std::byte> frames) override {
        nb::gil_scoped_acquire gil;
        try {
            write_(first_lsn, nb::bytes(frames.data(), frames.size()));
        } catch (nb::python_error &error) {
            throw std::runtime_error(nb::cast<std::string>(nb::str(error.value())));
        }
    }

private:
    nb::object write_;
};

// A log that is dropped without close() still writes what it holds; its thread may need the GIL for that.
class OwnedGroupCommit : public GroupCommit {
public:
    using GroupCommit::GroupCommit;
    ~OwnedGroupCommit() {
        nb::gil_scoped_release release;
        try {
            close();
        } catch (const std::exception &) {
        }
    }
};

uint64_t append(GroupCommit &log, int kind, int flags, const nb::bytes &payload) {
    auto k = static_cast<Kind>(kind);
    auto f = static_cast<uint8_t>(flags);
    if (uint64_t lsn = log.try_append(k, f, view(payload))) return lsn;
    auto bytes = view(payload);
    nb::gil_scoped_release release;
    return log.append(k, f, bytes);
}

// ([(kind, flags, payload)], good bytes, "complete" | "torn" | "damaged", problem); records below `from` are left out.
nb::tuple scan(nb::handle data, uint64_t first_lsn, uint64_t from) {
    Py_buffer buffer;
    if (PyObject_GetBuffer(data.ptr(), &buffer, PyBUF_SIMPLE) != 0) throw nb::python_error();
    Scan found;
    {
        nb::gil_scoped_release release;
        found = scan_frames({static_cast<const std::byte *>(buffer.buf), static_cast<size_t>(buffer.len)}, first_lsn);
    }
    nb::list records;
    for (const auto &f : found.frames)
        if (f.head.lsn >= from)
            records.append(nb::make_tuple(f.head.lsn, static_cast<int>(f.head.kind), static_cast<int>(f.head.flags),
                                          nb::bytes(f.payload.data(), f.payload.size())));
    PyBuffer_Release(&buffer);
    static constexpr const char *names[] = {"complete", "torn", "damaged"};
    return nb::make_tuple(records, found.good_bytes, names[static_cast<int>(found.end)], found.problem);
}

nb::bytes frame(int kind, int flags, uint64_t lsn, const nb::bytes &payload) {
    std::vector<std::byte> out;
    append_frame(out, static_cast<Kind>(kind), static_cast<uint8_t>(flags), lsn, view(payload));
    return nb::bytes(out.data(), out.size());
}

using PyArgument = std::tuple<uint64_t, std::optional<std::vector<int64_t>>, std::string, int, uint64_t>;

nb::bytes launch_payload(uint64_t task, const std::vector<int64_t> &domain, const std::vector<PyArgument> &arguments,
                         uint32_t scalar_count, const nb::bytes &scalars, const std::vector<uint64_t> &futures) {
    std::vector<Argument> native;
    for (const auto &[target, offset, function, privilege, mask] : arguments) {
        Argument a{target, offset || !function.empty(), {}, function, static_cast<uint8_t>(privilege), mask};
        if (offset) a.offset = *offset;
        native.push_back(a);
    }
    std::vector<std::byte> out;
    encode_launch(out, task, domain, native, scalar_count, view(scalars), futures);
    return nb::bytes(out.data(), out.size());
}

nb::bytes replay_payload(uint64_t templ, const nb::bytes &bindings, uint32_t scalar_count, const nb::bytes &scalars) {
    std::vector<std::byte> out;
    encode_replay(out, templ, view(bindings).first<16>(), scalar_count, view(scalars));
    return nb::bytes(out.data(), out.size());
}

nb::bytes commit_payload(uint64_t domain, uint64_t first, uint64_t last) {
    std::vector<std::byte> out;
    encode_commit(out, domain, first, last);
    return nb::bytes(out.data(), out.size());
}

}  // namespace
}  // namespace burnish::lineage

BURNISH_BIND(lineage) {
    namespace nb = nanobind;
    using namespace burnish::lineage;
    m.def("crc32c", [](const nb::bytes &data, uint32_t crc) { return crc32c(view(data), crc); }, nb::arg("data"),
          nb::arg("crc") = 0);
    m.def("crc32c_table", [](const nb::bytes &data, uint32_t crc) { return crc32c_table(view(data), crc); },
          nb::arg("data"), nb::arg("crc") = 0);
    m.def("frame", &frame, nb::arg("kind"), nb::arg("flags"), nb::arg("lsn"), nb::arg("payload"));
    m.def("scan", &scan, nb::arg("data"), nb::arg("first_lsn"), nb::arg("start") = 0);
    m.def("launch_payload", &launch_payload, nb::arg("task"), nb::arg("domain"), nb::arg("arguments"),
          nb::arg("scalar_count"), nb::arg("scalars"), nb::arg("futures"));
    m.def("replay_payload", &replay_payload, nb::arg("template"), nb::arg("bindings"), nb::arg("scalar_count"),
          nb::arg("scalars"));
    m.def("commit_payload", &commit_payload, nb::arg("domain"), nb::arg("first"), nb::arg("last"));
    nb::class_<GroupCommit>(m, "GroupCommit")
        .def("append", &append, nb::arg("kind"), nb::arg("flags"), nb::arg("payload"))
        .def("flush", &GroupCommit::flush, nb::arg("upto") = 0, nb::call_guard<nb::gil_scoped_release>())
        .def("close", &GroupCommit::close, nb::call_guard<nb::gil_scoped_release>())
        .def_prop_ro("durable", &GroupCommit::durable)
        .def_prop_ro("next_lsn", &GroupCommit::next_lsn)
        .def_prop_ro("groups", &GroupCommit::groups);
    nb::class_<OwnedGroupCommit, GroupCommit>(m, "OwnedGroupCommit")
        .def_static(
            "to_directory",
            [](const std::string &directory, const std::string &tail, bool sync, uint64_t segment_bytes,
               uint64_t next_lsn) {
                return new OwnedGroupCommit(std::make_unique<DirectorySink>(directory, tail, sync, segment_bytes),
                                            next_lsn);
            },
            nb::arg("directory"), nb::arg("tail"), nb::arg("sync"), nb::arg("segment_bytes"), nb::arg("next_lsn"))
        .def_static(
            "to_callable",
            [](nb::callable write, uint64_t next_lsn) {
                return new OwnedGroupCommit(std::make_unique<PythonSink>(std::move(write)), next_lsn);
            },
            nb::arg("write"), nb::arg("next_lsn"));
}
