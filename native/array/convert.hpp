// Conversion and movement of strided elements between NumPy's boolean, integer, float and complex types.
#pragma once
#include <cstdint>

namespace burnish::array {

constexpr int64_t kLargestItem = 16;

// n elements; strides in bytes. To bool: not zero. Float to integer as in C (the caller keeps to the range). Complex to
// real drops the imaginary part.
using CastFunction = void (*)(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n);

// By NumPy type numbers; null if the two types are the same. Throws std::invalid_argument for other kinds of type.
CastFunction find_cast(int from, int to);

bool supported_type(int type);
int64_t item_size(int type);

// n elements of `size` bytes, unchanged.
void move(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n, int64_t size);

}  // namespace burnish::array
