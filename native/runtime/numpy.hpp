// NumPy's C API, imported once by pyruntime.cpp.
#pragma once
#define PY_ARRAY_UNIQUE_SYMBOL burnish_runtime_numpy
#ifndef BURNISH_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <Python.h>
#include <numpy/arrayobject.h>
