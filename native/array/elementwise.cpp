#include "elementwise.hpp"

#include <cstring>

namespace burnish::array {

namespace {

constexpr int64_t kBlock = 512;  // elements converted at a time; all buffers together stay in the first-level cache
constexpr int64_t kLargestItem = 16;

template <class T>
void move_elements(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n) {
    for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * to_stride, from + i * from_stride, sizeof(T));
}

struct Wide {
    char bytes[16];
};

void move_any(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n, int64_t size) {
    switch (size) {
        case 1: return move_elements<uint8_t>(to, to_stride, from, from_stride, n);
        case 2: return move_elements<uint16_t>(to, to_stride, from, from_stride, n);
        case 4: return move_elements<uint32_t>(to, to_stride, from, from_stride, n);
        case 8: return move_elements<uint64_t>(to, to_stride, from, from_stride, n);
        case 16: return move_elements<Wide>(to, to_stride, from, from_stride, n);
        default:
            for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * to_stride, from + i * from_stride, size);
    }
}

}  // namespace

void gather(char *to, const char *from, int64_t n, int64_t stride, int64_t size) {
    if (stride == size)
        std::memcpy(to, from, n * size);
    else
        move_any(to, size, from, stride, n, size);
}

void scatter(char *to, const char *from, int64_t n, int64_t stride, int64_t size) {
    if (stride == size)
        std::memcpy(to, from, n * size);
    else
        move_any(to, stride, from, size, n, size);
}

void set_types(Elementwise &op, std::span<const int> stored, std::span<const int> types) {
    for (size_t k = 0; k < stored.size(); ++k) {
        const bool input = static_cast<int>(k) < op.loop.nin;
        op.cast[k] = input ? find_cast(stored[k], types[k]) : find_cast(types[k], stored[k]);
        op.stored_size[k] = item_size(stored[k]);
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
    alignas(64) char packed[kBlock * kLargestItem];
    alignas(64) char converted[kMaxOperands][kBlock * kLargestItem];
    for (int64_t done = 0; done < n; done += kBlock) {
        const int64_t m = std::min(kBlock, n - done);
        char *now[kMaxOperands];
        int64_t step[kMaxOperands];
        for (int k = 0; k < over.operands; ++k) {
            now[k] = args[k] + done * strides[k];
            step[k] = strides[k];
            if (!cast[k]) continue;
            if (k < loop.nin) {
                const int64_t distinct = strides[k] ? m : 1;  // a broadcast operand stays one
                gather(packed, now[k], distinct, strides[k], stored_size[k]);
                cast[k](packed, converted[k], distinct, nullptr, nullptr);
            }
            now[k] = converted[k];
            step[k] = k < loop.nin && !strides[k] ? 0 : loop_size[k];
        }
        loop.call(now, &m, step, loop.data);
        for (int k = loop.nin; k < over.operands; ++k) {
            if (!cast[k]) continue;
            cast[k](converted[k], packed, m, nullptr, nullptr);
            scatter(args[k] + done * strides[k], packed, m, strides[k], stored_size[k]);
        }
    }
}

void Copy::run(const char *from, char *to) const {
    char *base[] = {const_cast<char *>(from), to};
    over.for_each_run(base, [this](char **args, int64_t n, const int64_t *strides) {
        if (!cast) {
            if (strides[1] == to_size)
                gather(args[1], args[0], n, strides[0], from_size);
            else
                move_any(args[1], strides[1], args[0], strides[0], n, from_size);
            return;
        }
        alignas(64) char packed[kBlock * kLargestItem], converted[kBlock * kLargestItem];
        for (int64_t done = 0; done < n; done += kBlock) {
            const int64_t m = std::min(kBlock, n - done);
            gather(packed, args[0] + done * strides[0], m, strides[0], from_size);
            cast(packed, converted, m, nullptr, nullptr);
            scatter(args[1] + done * strides[1], converted, m, strides[1], to_size);
        }
    });
}

}  // namespace burnish::array
