#include "executors/pyvalue.hpp"

#include <numpy/arrayobject.h>

#include <string>

#include "executors/undo.hpp"

namespace burnish::executors {

namespace {

bool import_numpy() {
    static bool done = false;
    if (!done) done = _import_array() >= 0;
    return done;
}

nb::object owned(PyObject *p) {
    if (!p) throw PythonError{};
    return nb::steal(p);
}

const char *chars(std::span<const std::byte> bytes) { return reinterpret_cast<const char *>(bytes.data()); }

}  // namespace

Decoder::Decoder(const Arena &arena, nb::object owner) : arena_(arena), owner_(std::move(owner)) {
    if (!import_numpy()) throw nb::python_error();
    loads_ = nb::module_::import_("pickle").attr("loads");
}

nb::object Decoder::stored(const ObjectRef &ref) {
    if (auto it = objects_.find(ref.id); it != objects_.end()) return it->second;
    if (ref.offset > arena_.capacity() || ref.bytes > arena_.capacity() - ref.offset)
        throw std::out_of_range("a stored object reaches outside the shared memory");
    auto *data = reinterpret_cast<char *>(arena_.at(ref.offset));
    nb::object view = owned(PyMemoryView_FromMemory(data, static_cast<Py_ssize_t>(ref.bytes), PyBUF_READ));
    nb::object value = owned(PyObject_CallOneArg(loads_.ptr(), view.ptr()));
    objects_.emplace(ref.id, value);
    return value;
}

nb::object Decoder::dtype(const DType &dtype) {
    if (!dtype.is_code()) return stored(dtype.ref);
    if (auto it = dtypes_.find(dtype.ref.id); it != dtypes_.end()) return it->second;
    char code[9] = {};
    std::memcpy(code, &dtype.ref.id, 8);
    nb::object text = owned(PyUnicode_FromString(code));
    PyArray_Descr *descr = nullptr;
    if (!PyArray_DescrConverter(text.ptr(), &descr)) throw PythonError{};
    nb::object value = nb::steal(reinterpret_cast<PyObject *>(descr));
    dtypes_.emplace(dtype.ref.id, value);
    return value;
}

nb::object Decoder::array(const ArrayDesc &desc) {
    check_inside(arena_, desc);
    nb::object type = dtype(desc.dtype);
    auto *descr = reinterpret_cast<PyArray_Descr *>(type.ptr());
    if (static_cast<npy_intp>(desc.item_bytes) != PyDataType_ELSIZE(descr))
        throw std::runtime_error("a message holds an array whose item size is not that of its dtype");
    Py_INCREF(descr);  // PyArray_NewFromDescr takes it over
    static_assert(sizeof(npy_intp) == sizeof(int64_t));
    nb::object view = owned(PyArray_NewFromDescr(
        &PyArray_Type, descr, desc.ndim, reinterpret_cast<const npy_intp *>(desc.shape.data()),
        reinterpret_cast<const npy_intp *>(desc.strides.data()), arena_.at(desc.offset),
        desc.writeable ? NPY_ARRAY_WRITEABLE : 0, nullptr));
    if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject *>(view.ptr()), owner_.inc_ref().ptr()) < 0)
        throw PythonError{};
    return view;
}

nb::object Decoder::value(Reader &in) {
    Node node;
    in.node(node);
    switch (node.head.kind) {
        case NodeKind::none: return nb::none();
        case NodeKind::boolean: return nb::borrow(node.head.a ? Py_True : Py_False);
        case NodeKind::integer: return owned(PyLong_FromLongLong(node.integer));
        case NodeKind::real: return owned(PyFloat_FromDouble(node.real));
        case NodeKind::text:
            return owned(PyUnicode_DecodeUTF8(chars(node.bytes), static_cast<Py_ssize_t>(node.bytes.size()),
                                              "surrogatepass"));
        case NodeKind::pickled: {
            auto *data = const_cast<char *>(chars(node.bytes));
            nb::object view =
                owned(PyMemoryView_FromMemory(data, static_cast<Py_ssize_t>(node.bytes.size()), PyBUF_READ));
            return owned(PyObject_CallOneArg(loads_.ptr(), view.ptr()));
        }
        case NodeKind::object: return stored(node.object);
        case NodeKind::array: return array(node.array);
        case NodeKind::apply: {
            uint32_t children = node.head.n;
            nb::object callable = stored(node.object);
            nb::object arguments = owned(PyTuple_New(children));
            for (uint32_t i = 0; i < children; ++i) PyTuple_SET_ITEM(arguments.ptr(), i, value(in).release().ptr());
            return owned(PyObject_CallObject(callable.ptr(), arguments.ptr()));
        }
    }
    throw std::runtime_error("a message holds a node of unknown kind");
}

void encode_value(Writer &out, nb::handle value, nb::handle pickle) {
    PyObject *v = value.ptr();
    if (v == Py_None) return out.none();
    if (PyBool_Check(v)) return out.boolean(v == Py_True);
    if (PyFloat_CheckExact(v)) return out.real(PyFloat_AS_DOUBLE(v));
    if (PyLong_CheckExact(v)) {
        int overflow = 0;
        long long n = PyLong_AsLongLongAndOverflow(v, &overflow);
        if (!overflow) return out.integer(n);
    }
    if (PyUnicode_CheckExact(v)) {
        Py_ssize_t n = 0;
        const char *text = PyUnicode_AsUTF8AndSize(v, &n);
        if (text) return out.text({text, static_cast<size_t>(n)});
        PyErr_Clear();  // lone surrogates: pickle knows them
    }
    nb::object bytes = owned(PyObject_CallOneArg(pickle.ptr(), v));
    char *data = nullptr;
    Py_ssize_t n = 0;
    if (PyBytes_AsStringAndSize(bytes.ptr(), &data, &n) < 0) throw PythonError{};
    out.pickled({reinterpret_cast<const std::byte *>(data), static_cast<size_t>(n)});
}

}  // namespace burnish::executors
