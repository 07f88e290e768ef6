#include "elementwise.hpp"

namespace burnish::array {

constexpr int64_t kBlock = 512;  // elements converted at a time; all buffers together stay in the first-level cache

void set_types(Elementwise &op, std::span<const int> stored, std::span<const int> types) {
    for (size_t k = 0; k < stored.size(); ++k) {
        const bool input = static_cast<int>(k) < op.loop.nin;
        op.cast[k] = input ? find_cast(stored[k], types[k]) : find_cast(types[k], stored[k]);
        op.loop_size[k] = item_size(types[k]);
        op.casts |= op.cast[k] != nullptr;
    }
}

void Elementwise::run(char *const *base) const {
    over.for_each_run(base, [this](char **args, int64_t n, const int64_t *strides) {
        if (casts)
            run_cast(args, n, strides);
        else
            loop.call(args, &n, strides, loop.data);
    });
}

void Elementwise::run_cast(char **args, int64_t n, const int64_t *strides) const {
    alignas(64) char converted[kMaxOperands][kBlock * kLargestItem];
    for (int64_t done = 0; done < n; done += kBlock) {
        const int64_t m = std::min(kBlock, n - done);
        char *now[kMaxOperands];
        int64_t step[kMaxOperands];
        for (int k = 0; k < over.operands; ++k) {
            now[k] = args[k] + done * strides[k];
            step[k] = strides[k];
            if (!cast[k]) continue;
            const bool broadcast = k < loop.nin && strides[k] == 0 && n > 1;  // stays one element
            if (k < loop.nin) cast[k](converted[k], loop_size[k], now[k], strides[k], broadcast ? 1 : m);
            now[k] = converted[k];
            step[k] = broadcast ? 0 : loop_size[k];
        }
        loop.call(now, &m, step, loop.data);
        for (int k = loop.nin; k < over.operands; ++k)
            if (cast[k]) cast[k](args[k] + done * strides[k], strides[k], converted[k], loop_size[k], m);
    }
}

void Copy::run(const char *from, char *to) const {
    char *base[] = {const_cast<char *>(from), to};
    over.for_each_run(base, [this](char **args, int64_t n, const int64_t *strides) {
        if (cast)
            cast(args[1], strides[1], args[0], strides[0], n);
        else
            move(args[1], strides[1], args[0], strides[0], n, size);
    });
}

}  // namespace burnish::array
