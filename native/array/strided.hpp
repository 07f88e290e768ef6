// Iteration over several strided N-D operands of one (broadcast) shape, in runs along the innermost axis.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>

#include "loops.hpp"

namespace burnish::array {

constexpr int kMaxAxes = 8;

// Axes are outermost first; `strides[operand][axis]` in bytes, 0 where an operand is broadcast.
struct Iteration {
    int axes = 0, operands = 0;
    std::array<int64_t, kMaxAxes> shape{};
    std::array<std::array<int64_t, kMaxAxes>, kMaxOperands> strides{};

    bool empty() const { return std::find(shape.begin(), shape.begin() + axes, 0) != shape.begin() + axes; }

    // Drops axes of length 1, orders the others by the strides of operand `lead` (largest first) and joins neighbours
    // that every operand walks as one. The visited elements stay the same, their order may not.
    void simplify(int lead);

    // Calls run(pointers, n, inner strides) until everything is visited. The pointers may be changed by `run`.
    template <class Run>
    void for_each_run(char *const *base, Run &&run) const;

   private:
    void drop_axis(int axis);
    bool joins(int outer) const;
};

template <class Run>
void Iteration::for_each_run(char *const *base, Run &&run) const {
    if (empty()) return;
    std::array<char *, kMaxOperands> at{};
    std::copy_n(base, operands, at.begin());
    std::array<int64_t, kMaxOperands> inner{};
    const int last = axes - 1;
    const int64_t n = axes ? shape[last] : 1;
    for (int k = 0; k < operands && axes; ++k) inner[k] = strides[k][last];
    std::array<int64_t, kMaxAxes> index{};
    for (;;) {
        std::array<char *, kMaxOperands> args = at;
        run(args.data(), n, inner.data());
        int axis = last - 1;
        for (; axis >= 0; --axis) {
            for (int k = 0; k < operands; ++k) at[k] += strides[k][axis];
            if (++index[axis] < shape[axis]) break;
            for (int k = 0; k < operands; ++k) at[k] -= strides[k][axis] * shape[axis];
            index[axis] = 0;
        }
        if (axis < 0) return;
    }
}

}  // namespace burnish::array
