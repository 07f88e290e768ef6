// NumPy's C API for this folder: one table, imported by loops.cpp.
#pragma once
#define PY_ARRAY_UNIQUE_SYMBOL burnish_array_numpy_api
#ifndef NPY_TARGET_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION  // PyArray_Pack
#endif
#ifndef BURNISH_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>
