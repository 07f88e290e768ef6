#include "executors/serve.hpp"

#include <time.h>

#include <vector>

namespace burnish::executors {

namespace {

uint64_t now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

class Task {
public:
    Task(Decoder &decoder, nb::handle pickle, nb::handle describe, ResponseWriter &out)
        : decoder_(decoder), pickle_(pickle), describe_(describe), out_(out) {}

    // Runs one task record and writes its outcome; never throws a Python error.
    void run(Reader record, uint16_t arguments, bool wants_result) {
        out_.begin_outcome();
        OutcomeStatus status = OutcomeStatus::not_received;
        uint64_t begin = now_ns(), end = begin;
        try {
            nb::object function = decoder_.value(record);
            collect(record, arguments);
            status = OutcomeStatus::raised;
            begin = end = now_ns();
            PyObject *returned = PyObject_Vectorcall(function.ptr(), pointers_.data(), arguments, nullptr);
            end = now_ns();
            if (!returned) throw PythonError{};
            nb::object result = nb::steal(returned);
            arguments_.clear();
            status = OutcomeStatus::not_returned;
            wants_result ? encode_value(out_, result, pickle_) : out_.none();
            status = OutcomeStatus::ok;
        } catch (const PythonError &) {
            describe_error();
        } catch (nb::python_error &error) {
            error.restore();
            describe_error();
        } catch (const std::exception &error) {
            PyErr_SetString(PyExc_RuntimeError, error.what());
            describe_error();
        }
        arguments_.clear();
        out_.end_outcome(status, begin, end);
    }

private:
    void collect(Reader &record, uint16_t n) {
        arguments_.clear();
        pointers_.clear();
        for (uint16_t i = 0; i < n; ++i) {
            arguments_.push_back(decoder_.value(record));
            pointers_.push_back(arguments_.back().ptr());
        }
    }

    void describe_error() {
        out_.restart_outcome();
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        PyErr_NormalizeException(&type, &value, &trace);
        if (trace) PyException_SetTraceback(value, trace);
        nb::object error = nb::steal(value);
        Py_XDECREF(type);
        Py_XDECREF(trace);
        nb::object parts = nb::steal(PyObject_CallOneArg(describe_.ptr(), error.ptr()));
        if (!parts.is_valid()) {  // describing failed: say at least what the type was
            PyErr_Clear();
            out_.none(), out_.text(Py_TYPE(error.ptr())->tp_name), out_.text(""), out_.text("");
            return;
        }
        nb::object pickled = parts[0];
        if (pickled.is_none()) {
            out_.none();
        } else {
            auto bytes = nb::cast<nb::bytes>(pickled);
            out_.pickled({reinterpret_cast<const std::byte *>(bytes.c_str()), bytes.size()});
        }
        for (int i = 1; i < 4; ++i) encode_value(out_, parts[i], pickle_);
    }

    Decoder &decoder_;
    nb::handle pickle_, describe_;
    ResponseWriter &out_;
    std::vector<nb::object> arguments_;
    std::vector<PyObject *> pointers_;
};

}  // namespace

void serve(Channel &channel, Decoder &decoder, nb::callable pickle, nb::callable describe) {
    std::vector<std::byte> request, response;
    ResponseWriter out(response);
    Task task(decoder, pickle, describe, out);
    for (;;) {
        {
            nb::gil_scoped_release release;
            channel.receive(request);
        }
        Reader in(request);
        auto head = in.get<std::array<uint32_t, 2>>();
        if (head[0] != request_magic) throw std::runtime_error("a request to a worker is not one");
        out.begin();
        for (uint32_t i = 0; i < head[1]; ++i) {
            auto bytes = in.get<uint32_t>();
            auto arguments = in.get<uint16_t>();
            auto flags = in.get<uint16_t>();
            in.get<uint64_t>();
            task.run(Reader(in.take(bytes - 16)), arguments, flags & task_wants_result);
            channel.completed(i + 1);
        }
        {
            nb::gil_scoped_release release;
            channel.respond(response);
        }
        if (head[1] == 0) return;
    }
}

}  // namespace burnish::executors
