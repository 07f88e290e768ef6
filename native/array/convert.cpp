#include "convert.hpp"

#include <algorithm>
#include <array>
#include <complex>
#include <cstring>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>

#include "numpy_api.hpp"

namespace burnish::array {

namespace {

using Types = std::tuple<bool, int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t, float, double,
                         std::complex<float>, std::complex<double>>;
constexpr size_t kTypes = std::tuple_size_v<Types>;

size_t position(int type) {
    switch (type) {
        case NPY_BOOL: return 0;
        case NPY_BYTE: return 1;
        case NPY_UBYTE: return 2;
        case NPY_SHORT: return 3;
        case NPY_USHORT: return 4;
        case NPY_INT: return 5;
        case NPY_UINT: return 6;
        case NPY_LONG:
        case NPY_LONGLONG: return 7;
        case NPY_ULONG:
        case NPY_ULONGLONG: return 8;
        case NPY_FLOAT: return 9;
        case NPY_DOUBLE: return 10;
        case NPY_CFLOAT: return 11;
        case NPY_CDOUBLE: return 12;
        default: throw std::invalid_argument("only boolean, integer, float32/64 and complex64/128 arrays are supported");
    }
}
static_assert(sizeof(long) == sizeof(long long));

template <class T>
constexpr bool is_complex = false;
template <class T>
constexpr bool is_complex<std::complex<T>> = true;

template <class To, class From>
To converted(From x) {
    if constexpr (std::is_same_v<To, bool>)
        return x != From(0);
    else if constexpr (is_complex<To> && is_complex<From>)
        return To(static_cast<typename To::value_type>(x.real()), static_cast<typename To::value_type>(x.imag()));
    else if constexpr (is_complex<To>)
        return To(static_cast<typename To::value_type>(x));
    else if constexpr (is_complex<From>)
        return static_cast<To>(x.real());
    else
        return static_cast<To>(x);
}

template <class From, class To>
void cast_elements(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n) {
    auto loop = [n](char *t, int64_t ts, const char *f, int64_t fs) {
        for (int64_t i = 0; i < n; ++i, t += ts, f += fs) {
            From x;
            std::memcpy(&x, f, sizeof x);
            const To y = converted<To>(x);
            std::memcpy(t, &y, sizeof y);
        }
    };
    if (to_stride == sizeof(To) && from_stride == sizeof(From))
        loop(to, sizeof(To), from, sizeof(From));  // constants let the compiler use vector instructions
    else
        loop(to, to_stride, from, from_stride);
}

template <class From, size_t... I>
constexpr std::array<CastFunction, kTypes> row(std::index_sequence<I...>) {
    return {&cast_elements<From, std::tuple_element_t<I, Types>>...};
}

template <size_t... I>
constexpr std::array<std::array<CastFunction, kTypes>, kTypes> table(std::index_sequence<I...> all) {
    return {row<std::tuple_element_t<I, Types>>(all)...};
}

constexpr auto kCasts = table(std::make_index_sequence<kTypes>());

template <class Word>
void move_words(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n) {
    for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * to_stride, from + i * from_stride, sizeof(Word));
}

}  // namespace

CastFunction find_cast(int from, int to) {
    const size_t a = position(from), b = position(to);
    return a == b ? nullptr : kCasts[a][b];
}

bool supported_type(int type) {
    return type <= NPY_ULONGLONG || type == NPY_FLOAT || type == NPY_DOUBLE || type == NPY_CFLOAT || type == NPY_CDOUBLE;
}

int64_t item_size(int type) {
    static constexpr int64_t sizes[kTypes] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16};
    return sizes[position(type)];
}

void move(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n, int64_t size) {
    if (to_stride == size && from_stride == size) {
        std::memcpy(to, from, n * size);
        return;
    }
    if (from_stride == 0 && to_stride == size && n > 1) {  // a fill
        move(to, size, from, 0, 1, size);
        for (int64_t done = 1; done < n;) {
            const int64_t more = std::min(done, n - done);
            std::memcpy(to + done * size, to, static_cast<size_t>(more * size));
            done += more;
        }
        return;
    }
    switch (size) {
        case 1: return move_words<uint8_t>(to, to_stride, from, from_stride, n);
        case 2: return move_words<uint16_t>(to, to_stride, from, from_stride, n);
        case 4: return move_words<uint32_t>(to, to_stride, from, from_stride, n);
        case 8: return move_words<uint64_t>(to, to_stride, from, from_stride, n);
        default: return move_words<std::array<uint64_t, 2>>(to, to_stride, from, from_stride, n);
    }
}

}  // namespace burnish::array
