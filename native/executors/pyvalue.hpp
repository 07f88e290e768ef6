// Nodes of a message as Python objects. All of this needs the GIL.
#pragma once
#include <Python.h>

#include <unordered_map>

#include "bind.hpp"
#include "executors/arena.hpp"
#include "executors/message.hpp"

namespace burnish::executors {

// Raised after a Python exception was set.
struct PythonError {};

class Decoder {
public:
    // owner: the Python object that keeps the arena mapped; it becomes the base of every array.
    Decoder(const Arena &arena, nb::object owner);

    // The value of the next node, with the nodes below it. New reference; throws PythonError, std::runtime_error
    // (broken message) or std::out_of_range (array outside the arena).
    nb::object value(Reader &in);

private:
    nb::object stored(const ObjectRef &ref);  // unpickled once
    nb::object array(const ArrayDesc &desc);
    nb::object dtype(const DType &dtype);

    const Arena &arena_;
    nb::object owner_, loads_;
    std::unordered_map<uint64_t, nb::object> objects_, dtypes_;
};

// Appends the node of a value: plain ones inline, everything else through `pickle` (a callable object -> bytes).
// Throws PythonError.
void encode_value(Writer &out, nb::handle value, nb::handle pickle);

}  // namespace burnish::executors
