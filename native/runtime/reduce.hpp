// Folding of reduction buffers into regions, identity values, and copies between a root array and packed points.
// Arrays are contiguous and aligned to their element; `dst` and `src` do not overlap. Nothing here needs the GIL.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/ispace.hpp"

namespace burnish::runtime {

enum class Fold : uint8_t { Add, Multiply, Minimum, Maximum, And, Or };
std::optional<Fold> fold_named(std::string_view op);   // "+", "*", "min", "max", "&", "|"

// Type of one point of a field: a NumPy type number (bool, integers, float16/32/64, complex64/128), its size in bytes,
// and how many such elements a point has (the inner shape of the field).
struct ElementType {
    int type_num;
    int itemsize;
    int64_t inner = 1;
    int64_t bytes() const { return itemsize * inner; }
};

// dst[i] = op(dst[i], src[i]) over `count` elements. Bit for bit NumPy's ufunc of that name: wrapping integers; add and
// multiply of bool are `or` and `and`; minimum and maximum propagate NaN (the first operand's if both are), compare
// complex numbers by real part, then imaginary; of equal operands the real ones keep src, complex and half ones dst
// (visible in signed zeros only). Complex products are unfused, (ac - bd) + (ad + bc)i, on every machine, while NumPy's
// own may be fused.
using FoldKernel = void (*)(void *dst, const void *src, int64_t count);
FoldKernel fold_kernel(Fold op, ElementType type);   // nullptr if NumPy does not define the operator on the type

// The four functions below throw std::invalid_argument where fold_kernel is nullptr; n counts points.
void fold(Fold op, ElementType type, void *dst, const void *src, int64_t n);
// The value e with fold(x, e) == x in all bits: for sums of floats that is -0.0, which keeps the sign of a zero.
void fill_identity(Fold op, ElementType type, void *dst, int64_t n);
// root[run.linear + i] = op(root[run.linear + i], packed[run.packed + i]) for each run.
void fold_runs(Fold op, ElementType type, void *root, const void *packed, std::span<const Run> runs);

void gather_runs(void *packed, const void *root, std::span<const Run> runs, int64_t point_bytes);
void scatter_runs(void *root, const void *packed, std::span<const Run> runs, int64_t point_bytes);

}  // namespace burnish::runtime
