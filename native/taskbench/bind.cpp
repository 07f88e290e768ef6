#include "../bind.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <numpy/arrayobject.h>

#include <cstring>
#include <tuple>

#include "body.hpp"
#include "peak.hpp"
#include "random.hpp"

namespace nb = nanobind;
using namespace burnish::taskbench;
using Body = burnish_taskbench_body;

namespace {

using Pairs = std::vector<std::pair<int64_t, int64_t>>;

Pairs pairs(const Intervals &intervals) {
    Pairs out;
    for (const auto &i : intervals) out.emplace_back(i.first, i.last);
    return out;
}

// Memory of a NumPy array (the fast way) or of any other contiguous buffer, held until the call ends.
class Buffers {
public:
    explicit Buffers(int64_t size) : size_(size) {}
    ~Buffers() {
        for (auto &view : views_) PyBuffer_Release(&view);
    }

    void *get(PyObject *object, bool writable) {
        if (PyArray_Check(object)) {
            auto *array = reinterpret_cast<PyArrayObject *>(object);
            if (PyArray_NBYTES(array) != size_) refuse(PyArray_NBYTES(array));
            if (!PyArray_IS_C_CONTIGUOUS(array)) throw nb::value_error("a task's buffers must be contiguous");
            if (writable && !PyArray_ISWRITEABLE(array)) throw nb::value_error("the output buffer is read-only");
            return PyArray_DATA(array);
        }
        Py_buffer view;
        if (PyObject_GetBuffer(object, &view, writable ? PyBUF_WRITABLE : PyBUF_SIMPLE) != 0) throw nb::python_error();
        views_.push_back(view);
        if (view.len != size_) refuse(view.len);
        return view.buf;
    }

private:
    [[noreturn]] void refuse(int64_t bytes) const {
        throw nb::value_error(("a task's buffers have " + std::to_string(size_) + " bytes, got " + std::to_string(bytes)).c_str());
    }

    int64_t size_;
    std::vector<Py_buffer> views_;
};

void execute(const Body &body, int64_t t, int64_t p, PyObject *output, nb::handle inputs, bool any_order) {
    constexpr size_t inline_inputs = 16;
    Buffers buffers(body.graph.output);
    nb::object sequence = nb::steal(PySequence_Fast(inputs.ptr(), "inputs must be a sequence of buffers"));
    if (!sequence.is_valid()) throw nb::python_error();
    const auto count = static_cast<size_t>(PySequence_Fast_GET_SIZE(sequence.ptr()));
    PyObject **items = PySequence_Fast_ITEMS(sequence.ptr());
    const void *few[inline_inputs];
    std::vector<const void *> many(count > inline_inputs ? count : 0);
    const void **pointers = many.empty() ? few : many.data();
    for (size_t i = 0; i < count; ++i)
        pointers[i] = any_order && items[i] == Py_None ? nullptr : buffers.get(items[i], false);
    void *out = buffers.get(output, true);
    Failure failure;
    if (body.releases_gil) {
        nb::gil_scoped_release release;
        body.execute(t, p, out, pointers, count, any_order, failure);
    } else {
        body.execute(t, p, out, pointers, count, any_order, failure);
    }
    if (failure.code == 0) return;
    body.keep(failure);
    const auto error = nb::module_::import_("burnish.taskbench.errors").attr("ValidationError");
    PyErr_SetString(error.ptr(), failure.message(body.graph).c_str());
    throw nb::python_error();
}

nb::object produce(const Body &body, int64_t t, int64_t p, nb::args inputs) {
    npy_intp size = body.graph.output;
    nb::object output = nb::steal(PyArray_SimpleNew(1, &size, NPY_UINT8));
    if (!output.is_valid()) throw nb::python_error();
    execute(body, t, p, output.ptr(), inputs, false);
    return output;
}

template <class T>
nb::bytes to_bytes(const T &value) {
    return nb::bytes(reinterpret_cast<const char *>(&value), sizeof(T));
}

template <class T>
T from_bytes(const nb::bytes &bytes) {
    if (bytes.size() != sizeof(T)) throw nb::value_error("wrong size of a packed graph or kernel");
    T value;
    std::memcpy(&value, bytes.c_str(), sizeof(T));
    return value;
}

template <class T>
nb::object int64_array(const std::vector<T> &values) {
    static_assert(sizeof(T) % 8 == 0);
    npy_intp shape[2] = {static_cast<npy_intp>(values.size()), sizeof(T) / 8};
    nb::object array = nb::steal(PyArray_SimpleNew(sizeof(T) == 8 ? 1 : 2, shape, NPY_INT64));
    if (!array.is_valid()) throw nb::python_error();
    if (!values.empty())
        std::memcpy(PyArray_DATA(reinterpret_cast<PyArrayObject *>(array.ptr())), values.data(), values.size() * sizeof(T));
    return array;
}

// Dependences of all tasks as compressed rows of task ids (t ascending, p ascending): starts, ids.
nb::tuple expand(const Graph &graph, bool reverse) {
    std::vector<int64_t> starts{0}, ids;
    {
        nb::gil_scoped_release release;
        const auto first_ids = graph.first_ids();
        for (int64_t t = 0; t < graph.steps; ++t) {
            const int64_t other = reverse ? t + 1 : t - 1;
            const int64_t base = other < 0 || other >= graph.steps ? 0 : first_ids[other] - graph.offset(other);
            for (int64_t p = graph.offset(t); p < graph.offset(t) + graph.width_at(t); ++p) {
                for (const auto &i : reverse ? graph.reverse_dependencies(t, p) : graph.dependencies(t, p))
                    for (int64_t q = i.first; q <= i.last; ++q) ids.push_back(base + q);
                starts.push_back(static_cast<int64_t>(ids.size()));
            }
        }
    }
    return nb::make_tuple(int64_array(starts), int64_array(ids));
}

void bind_graph(nb::module_ &m) {
    nb::class_<Graph>(m, "Graph")
        .def("__init__",
             [](Graph *self, int64_t steps, int64_t width, int32_t type, int32_t index, int64_t radix, int64_t period,
                double fraction, int64_t output, int64_t scratch, std::tuple<int64_t, int64_t, int64_t> shape) {
                 const auto [a, b, c] = shape;
                 new (self) Graph{steps, width, Type{type}, index, radix, period, fraction, output, scratch, {a, b, c}};
             })
        .def("offset", &Graph::offset)
        .def("width", &Graph::width_at)
        .def("dependencies", [](const Graph &g, int64_t t, int64_t p) { return pairs(g.dependencies(t, p)); })
        .def("reverse_dependencies",
             [](const Graph &g, int64_t t, int64_t p) { return pairs(g.reverse_dependencies(t, p)); })
        .def("sets", &Graph::sets)
        .def("set_at", &Graph::set_at)
        .def("count",
             [](const Graph &g, int64_t nodes) {
                 nb::gil_scoped_release release;
                 const auto c = count(g, nodes);
                 return std::make_tuple(c.tasks, c.dependencies, c.local, c.nonlocal);
             })
        .def("expand", &expand, nb::arg("reverse"))
        .def("first_ids", [](const Graph &g) { return int64_array(g.first_ids()); })
        .def("pack", &to_bytes<Graph>)
        .def_static("unpack", &from_bytes<Graph>);
    m.def("siphash24", [](const nb::bytes &data, uint64_t k0, uint64_t k1) {
        return siphash24(data.c_str(), data.size(), k0, k1);
    });
    m.def("uniform", [](const std::vector<int64_t> &values) { return uniform(values.data(), values.size()); });
}

void bind_kernel(nb::module_ &m) {
    nb::class_<Kernel>(m, "Kernel")
        .def("__init__",
             [](Kernel *self, int32_t type, int32_t samples, int64_t iterations, double imbalance) {
                 new (self) Kernel{KernelType{type}, samples, iterations, imbalance};
             })
        .def("pack", &to_bytes<Kernel>)
        .def_static("unpack", &from_bytes<Kernel>)
        .def("imbalanced_iterations",
             [](const Kernel &k, int64_t index, int64_t t, int64_t p) { return imbalanced_iterations(k, index, t, p); })
        .def("run", [](const Kernel &k, int64_t index, int64_t t, int64_t p, int64_t scratch) {
            unsigned char *memory = scratch > 0 ? thread_scratch(scratch) : nullptr;
            return run_kernel(k, index, t, p, memory ? memory + scratch_header : nullptr, scratch);
        });
    m.def("total_iterations", [](const Kernel &k, const Graph &g) {
        nb::gil_scoped_release release;
        int64_t sum = 0;
        for (int64_t t = 0; t < g.steps; ++t)
            for (int64_t p = g.offset(t); p < g.offset(t) + g.width_at(t); ++p)
                sum += k.type == KernelType::load_imbalance ? imbalanced_iterations(k, g.index, t, p) : k.iterations;
        return sum;
    });
    m.def("peak", [](const Graph &g, const Kernel &k, int threads, double seconds) {
        nb::gil_scoped_release release;
        const auto p = peak(g, k, threads, seconds);
        return std::make_tuple(p.runs_per_second, p.cpu_per_run, p.mean_iterations);
    });
}

void bind_ledger(nb::module_ &m) {
    nb::class_<Ledger>(m, "Ledger")
        .def_static("create", &Ledger::create, nb::arg("path"), nb::arg("capacity"))
        .def_static("attach", &Ledger::attach, nb::arg("path"))
        .def_prop_ro("executed", &Ledger::executed)
        .def_prop_ro("path", &Ledger::path)
        .def_prop_ro("capacity", &Ledger::capacity)
        .def("add", &Ledger::add)
        .def("record", [](const Ledger &l, int64_t start, int64_t end, int64_t t, int64_t p, int32_t graph,
                          int32_t thread) { l.record({start, end, t, p, graph, thread}); })
        .def("records", [](const Ledger &l) { return int64_array(l.records()); })
        .def("reset", &Ledger::reset);
}

void bind_body(nb::module_ &m) {
    nb::class_<Body>(m, "Body")
        .def(nb::init<const Graph &, const Kernel &, bool, std::shared_ptr<Ledger>>())
        .def("execute", [](const Body &b, int64_t t, int64_t p, nb::handle output, nb::handle inputs,
                           bool any_order) { execute(b, t, p, output.ptr(), inputs, any_order); },
             nb::arg("t"), nb::arg("p"), nb::arg("output"), nb::arg("inputs"), nb::arg("any_order") = false)
        .def("__call__", [](const Body &b, int64_t t, int64_t p, nb::handle output, nb::handle inputs) {
            execute(b, t, p, output.ptr(), inputs, false); })
        .def("produce", &produce)
        .def("pack", [](const Body &b) {
            return nb::make_tuple(to_bytes(b.graph), to_bytes(b.kernel), b.validate, b.ledger->path()); })
        .def("__reduce__", [](const Body &b) {
            const auto load = nb::module_::import_("burnish.taskbench.bodies").attr("_load");
            return nb::make_tuple(load, nb::make_tuple(to_bytes(b.graph), to_bytes(b.kernel), b.validate, b.ledger->path())); })
        .def_prop_ro("failure", [](const Body &b) -> nb::object {
            const auto failure = b.first_failure();
            return failure.code == 0 ? nb::none() : nb::object(nb::str(failure.message(b.graph).c_str())); })
        .def("forget_failure", &Body::forget_failure)
        .def_prop_ro("address", [](const Body &b) { return reinterpret_cast<uintptr_t>(&b); });
    m.def("point_function", [](bool any_order) {
        return reinterpret_cast<uintptr_t>(any_order ? &burnish_taskbench_point_any_order : &burnish_taskbench_point); });
}

}  // namespace

BURNISH_BIND(taskbench) {
    if (PyArray_ImportNumPyAPI() < 0) throw nb::python_error();
    bind_graph(m);
    bind_kernel(m);
    bind_ledger(m);
    bind_body(m);
}
