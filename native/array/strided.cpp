#include "strided.hpp"

namespace burnish::array {

void Iteration::drop_axis(int axis) {
    for (int a = axis; a + 1 < axes; ++a) {
        shape[a] = shape[a + 1];
        for (int k = 0; k < operands; ++k) strides[k][a] = strides[k][a + 1];
    }
    --axes;
}

bool Iteration::joins(int outer) const {
    for (int k = 0; k < operands; ++k)
        if (strides[k][outer] != strides[k][outer + 1] * shape[outer + 1]) return false;
    return true;
}

void Iteration::simplify(int lead) {
    // A single element keeps its stride: loops choose their instructions by it.
    for (int a = 0; a < axes && axes > 1;)
        if (shape[a] == 1)
            drop_axis(a);
        else
            ++a;
    // Insertion sort: few axes, mostly in order, and equal strides keep their order.
    auto key = [&](int a) { return std::llabs(strides[lead][a]); };
    for (int i = 1; i < axes; ++i)
        for (int a = i; a > 0 && key(a - 1) < key(a) && key(a - 1) != 0; --a) {
            std::swap(shape[a - 1], shape[a]);
            for (int k = 0; k < operands; ++k) std::swap(strides[k][a - 1], strides[k][a]);
        }
    for (int a = axes - 2; a >= 0; --a)
        if (joins(a)) {
            const int64_t n = shape[a];
            drop_axis(a);
            shape[a] *= n;
        }
}

}  // namespace burnish::array
