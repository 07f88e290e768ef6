// NumPy's own inner loops, as function pointers that worker threads may call without the GIL.
#pragma once
#include <Python.h>

#include <cstdint>
#include <optional>
#include <span>

namespace burnish::array {

constexpr int kMaxOperands = 8;

// The calling convention of every ufunc loop (PyUFuncGenericFunction): `n[0]` elements, byte strides, one pointer per
// operand. Numeric loops touch neither Python objects nor the interpreter state.
using LoopFunction = void (*)(char **args, const int64_t *n, const int64_t *strides, void *data);

struct Loop {
    LoopFunction call = nullptr;
    void *data = nullptr;
    int nin = 0, nout = 0;
};

// The loop of `ufunc` for exactly these NumPy type numbers (inputs, then outputs); nothing if there is none or if it
// works on Python objects. Type resolution is the caller's (numpy.ufunc.resolve_dtypes). Needs the GIL.
std::optional<Loop> find_loop(PyObject *ufunc, std::span<const int> types);

// Must be called once before the others, with the GIL; false leaves a Python exception set.
bool import_numpy();

}  // namespace burnish::array
