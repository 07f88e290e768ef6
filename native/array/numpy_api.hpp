// NumPy's C API for this folder: one table, imported by loops.cpp.
#pragma once
#define PY_ARRAY_UNIQUE_SYMBOL burnish_array_numpy_api
#ifndef BURNISH_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>
