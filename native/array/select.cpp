#include "select.hpp"

#include <array>
#include <cstring>

#include "convert.hpp"
#include "numpy_api.hpp"

namespace burnish::array {

namespace {

void move_loop(char **args, const int64_t *n, const int64_t *strides, void *size) {
    move(args[1], strides[1], args[0], strides[0], *n, reinterpret_cast<intptr_t>(size));
}

void cast_loop(char **args, const int64_t *n, const int64_t *strides, void *cast) {
    reinterpret_cast<CastFunction>(cast)(args[1], strides[1], args[0], strides[0], *n);
}

template <size_t N>
struct Bytes {
    char bytes[N];
};

// mask, value if true, value if false -> result
template <class Item>
void where_loop(char **args, const int64_t *n, const int64_t *strides, void *) {
    for (int64_t i = 0; i < *n; ++i) {
        const char *from = args[0][i * strides[0]] ? args[1] + i * strides[1] : args[2] + i * strides[2];
        std::memcpy(args[3] + i * strides[3], from, sizeof(Item));
    }
}

// mask, value -> where the mask holds
template <class Item>
void masked_loop(char **args, const int64_t *n, const int64_t *strides, void *) {
    for (int64_t i = 0; i < *n; ++i)
        if (args[0][i * strides[0]]) std::memcpy(args[2] + i * strides[2], args[1] + i * strides[1], sizeof(Item));
}


LoopFunction by_size(int64_t size, std::array<LoopFunction, 5> loops) {
    return loops[size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : size == 8 ? 3 : 4];
}

}  // namespace

Loop own_loop(const std::string &name, std::span<const int> stored, int out_type, int *types) {
    if (name == "copy") {
        const int from = stored[0] < 0 ? out_type : stored[0];
        types[0] = from;
        types[1] = out_type;
        if (CastFunction cast = find_cast(from, out_type)) return {cast_loop, reinterpret_cast<void *>(cast), 1, 1};
        return {move_loop, reinterpret_cast<void *>(static_cast<intptr_t>(item_size(out_type))), 1, 1};
    }
    const int64_t size = item_size(out_type);
    types[0] = NPY_BOOL;
    types[1] = types[2] = out_type;
    if (name == "where") {
        types[3] = out_type;
        return {by_size(size, {where_loop<Bytes<1>>, where_loop<Bytes<2>>, where_loop<Bytes<4>>, where_loop<Bytes<8>>, where_loop<Bytes<16>>}), nullptr, 3, 1};
    }
    return {by_size(size, {masked_loop<Bytes<1>>, masked_loop<Bytes<2>>, masked_loop<Bytes<4>>, masked_loop<Bytes<8>>, masked_loop<Bytes<16>>}), nullptr, 2, 1};
}

}  // namespace burnish::array
