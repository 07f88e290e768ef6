#include "reduce.hpp"

#include <cstring>
#include <vector>

namespace burnish::array {

namespace {

int64_t count(const Iteration &it) {
    int64_t n = 1;
    for (int a = 0; a < it.axes; ++a) n *= it.shape[a];
    return n;
}

// Joins neighbouring axes without reordering, so that C order stays.
void join_in_order(Iteration &it) {
    for (int a = it.axes - 2; a >= 0; --a) {
        bool joined = true;
        for (int k = 0; k < it.operands; ++k) joined &= it.strides[k][a] == it.strides[k][a + 1] * it.shape[a + 1];
        if (!joined) continue;
        const int64_t n = it.shape[a];
        for (int b = a; b + 1 < it.axes; ++b) {
            it.shape[b] = it.shape[b + 1];
            for (int k = 0; k < it.operands; ++k) it.strides[k][b] = it.strides[k][b + 1];
        }
        --it.axes;
        it.shape[a] *= n;
    }
}

// The contiguous strides of packed rows, for the axes of `inner`.
std::array<int64_t, kMaxAxes> packed_strides(const Iteration &inner, int64_t item) {
    std::array<int64_t, kMaxAxes> strides{};
    int64_t step = item;
    for (int a = inner.axes - 1; a >= 0; --a) {
        strides[a] = step;
        step *= inner.shape[a];
    }
    return strides;
}

}  // namespace

void Reduction::prepare() {
    length = count(sequence);
    rows = count(inner);
    join_in_order(sequence);
    join_in_order(inner);
    outer.simplify(1);
}

const char *Reduction::at(const char *in, int64_t position) const {
    for (int a = sequence.axes - 1; a >= 0; --a) {
        in += position % sequence.shape[a] * sequence.strides[0][a];
        position /= sequence.shape[a];
    }
    return in;
}

void Reduction::pack(const char *in, int64_t start, int64_t n, char *to) const {
    const int last = sequence.axes - 1;
    const int64_t run = sequence.axes ? sequence.shape[last] : 1, stride = sequence.axes ? sequence.strides[0][last] : 0;
    while (n > 0) {
        const int64_t m = std::min(n, run - start % run);
        if (cast)
            cast(to, item, at(in, start), stride, m);
        else
            move(to, item, at(in, start), stride, m, item);
        to += m * item;
        start += m;
        n -= m;
    }
}

void Reduction::leaf_of_elements(const char *in, int64_t start, int64_t n, char *out) const {
    alignas(64) char packed[kLeafElements * kLargestItem];
    const char *elements = packed;
    if (!cast && (!sequence.axes || (sequence.axes == 1 && sequence.strides[0][0] == item)))
        elements = at(in, start);
    else
        pack(in, start, n, packed);
    std::memcpy(out, elements, item);
    if (n == 1) return;
    char *args[] = {out, const_cast<char *>(elements) + item, out};
    const int64_t rest = n - 1, strides[] = {0, item, 0};
    loop.call(args, &rest, strides, loop.data);
}

void Reduction::leaf_of_rows(const char *in, int64_t start, int64_t n, char *packed_out) const {
    const auto packed = packed_strides(inner, item);
    Copy first{.over = inner, .cast = cast, .size = item};
    first.over.operands = 2;
    first.over.strides[1] = packed;
    first.run(at(in, start), packed_out);

    Elementwise add{.loop = loop, .over = inner};
    add.over.operands = 3;
    add.over.strides = {packed, inner.strides[0], packed};
    add.cast = {nullptr, cast, nullptr};
    add.loop_size = {item, item, item};
    add.casts = cast != nullptr;
    add.over.simplify(0);
    for (int64_t r = 1; r < n; ++r) {
        char *base[] = {packed_out, const_cast<char *>(at(in, start + r)), packed_out};
        add.run(base);
    }
}

void Reduction::leaf_to(const char *in, int64_t start, int64_t n, char *packed_out) const {
    if (inner.axes)
        leaf_of_rows(in, start, n, packed_out);
    else
        leaf_of_elements(in, start, n, packed_out);
}

void Reduction::run_leaves(const char *in, char *partials, int64_t first, int64_t last) const {
    for (int64_t k = first; k < last; ++k, partials += rows * item)
        leaf_to(in, k * leaf(), std::min(leaf(), length - k * leaf()), partials);
}

void Reduction::unpack(const char *packed, char *out) const {
    Copy copy{.over = inner, .size = item};
    copy.over.operands = 2;
    copy.over.strides[0] = packed_strides(inner, item);
    copy.run(packed, out);
}

void Reduction::whole(const char *in, char *out) const {
    std::vector<char> partials(leaves() * rows * item);
    run_leaves(in, partials.data(), 0, leaves());
    if (leaves() == 1) return unpack(partials.data(), out);
    Reduction next = *this;  // over the leaf results
    next.cast = nullptr;
    next.length = leaves();
    next.sequence.axes = 1;
    next.sequence.shape[0] = leaves();
    next.sequence.strides[0][0] = rows * item;
    next.inner.strides[0] = packed_strides(inner, item);
    next.whole(partials.data(), out);
}

void Reduction::run(const char *in, char *out) const {
    char *base[] = {const_cast<char *>(in), out};
    outer.for_each_run(base, [this](char **args, int64_t n, const int64_t *strides) {
        for (int64_t i = 0; i < n; ++i) whole(args[0] + i * strides[0], args[1] + i * strides[1]);
    });
}

}  // namespace burnish::array
