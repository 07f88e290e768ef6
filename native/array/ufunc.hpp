// Elementwise operations on arrays: NumPy's ufuncs, copies, fills and selections.
#pragma once
#include "elementwise.hpp"
#include "object.hpp"

namespace burnish::array {

// An input: an array, or a scalar that takes part by value.
struct Operand {
    ArrayRoot *root = nullptr;
    const Geometry *geom = nullptr;
    uint32_t kind = 0;          // scalars: see scalar_kind()
    PyObject *value = nullptr;  // borrowed
};

// An operation with an interned number: a NumPy ufunc or one of ours.
struct Operation {
    uint32_t id;
    std::string name;
    PyObject *ufunc = nullptr;  // strong; null for our own loops
    int nin = 0;
};
Operation *find_operation(const char *name);       // null if there is none
Operation *add_operation(std::string name, PyObject *ufunc, int nin);

constexpr int kMaxInputs = 4;

// Operands read from Python objects; arrays made on the way are released at the end.
class Inputs {
   public:
    ~Inputs();
    // 1: understood, 0: no operand of ours (NotImplemented), -1: error set.
    int add(PyObject *o);
    Operand operands[kMaxInputs];
    int n = 0;

   private:
    PyObject *owned_[kMaxInputs] = {};
};

struct Target {  // where a result goes; a fresh array if root is null
    ArrayRoot *root = nullptr;
    const Geometry *geom = nullptr;
};

// Launches. Fresh results are new references; with a target the result is None. Null with an exception set.
PyObject *apply(Context &c, const Operation &op, Operand *in, int n, Target out);
// dst[...] = value, with broadcasting and conversion.
bool assign(Context &c, ArrayRoot *root, const Geometry *geom, PyObject *value);
// A fresh packed array with the elements of `a` as `type`.
PyObject *copy_array(Context &c, ArrayRoot *root, const Geometry *geom, int type, bool scalar);

PyObject *binary_slot(const Operation &op, PyObject *a, PyObject *b);
PyObject *inplace_slot(const Operation &op, PyObject *a, PyObject *b);
PyObject *unary_slot(const Operation &op, PyObject *a);

extern PyType_Spec ufunc_spec;
PyObject *make_ufunc(const Operation *op);

}  // namespace burnish::array
