// Reductions, matrix products and random numbers as launches.
#pragma once
#include "object.hpp"
#include "philox.hpp"
#include "ufunc.hpp"

namespace burnish::array {

// Reduces axes [first, last) with a binary ufunc whose loop works on `type`; a fresh array without these axes.
// The array must not be empty along them. Null with an exception set.
PyObject *reduce_array(Context &c, const Operation &op, ArrayObject *a, int first, int last, int type);

// (m, n) @ (n, p) for two arrays of one type that numpy.matmul has a loop for; 1-D operands as NumPy has them.
PyObject *multiply_matrices(Context &c, const Operation &matmul, ArrayObject *a, ArrayObject *b);

// Elements moved along every axis (up to 4), those that leave at one end coming in at the other; a fresh array.
PyObject *roll_array(Context &c, ArrayObject *a, std::span<const int64_t> shifts);

// A fresh 1-D array of n float64 or int64 numbers.
PyObject *draw_random(Context &c, const Draw &draw, int64_t n);

}  // namespace burnish::array
