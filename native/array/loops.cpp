#include "loops.hpp"

#define BURNISH_IMPORTS_NUMPY
#include "numpy_api.hpp"

#define NO_IMPORT_UFUNC
#include <numpy/ufuncobject.h>

namespace burnish::array {

static_assert(sizeof(npy_intp) == sizeof(int64_t), "NumPy index type is 64 bits wide");

bool import_numpy() {
    static bool done = false;
    if (!done) done = PyArray_ImportNumPyAPI() == 0;
    return done;
}

std::optional<Loop> find_loop(PyObject *ufunc, std::span<const int> types) {
    const auto *u = reinterpret_cast<const PyUFuncObject *>(ufunc);
    if (static_cast<size_t>(u->nargs) != types.size()) return std::nullopt;
    for (int type : types)
        if (!PyTypeNum_ISNUMBER(type) && !PyTypeNum_ISBOOL(type)) return std::nullopt;
    for (int k = 0; k < u->ntypes; ++k) {
        const char *row = u->types + k * u->nargs;
        bool same = true;
        for (int a = 0; a < u->nargs && same; ++a) same = row[a] == types[a];
        if (!same || !u->functions[k]) continue;
        return Loop{reinterpret_cast<LoopFunction>(u->functions[k]), u->data ? const_cast<void *>(u->data[k]) : nullptr,
                    u->nin, u->nout};
    }
    return std::nullopt;
}

}  // namespace burnish::array
