#include "runtime/reduce.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "runtime/clones.hpp"
#include "runtime/half.hpp"

namespace burnish::runtime {

namespace {

// NumPy's type numbers (NPY_TYPES); integers are told apart by signedness and size, since long has either.
enum NumpyType { kBool = 0, kByte = 1, kULongLong = 10, kFloat = 11, kDouble = 12, kCFloat = 14, kCDouble = 15, kHalf = 23 };

template <class Real>
struct Complex {
    Real re, im;
};
template <class T>
constexpr bool is_complex = false;
template <class Real>
constexpr bool is_complex<Complex<Real>> = true;

struct Bool {
    uint8_t value;
};

template <class Real>
bool is_nan(Real x) {
    return x != x;
}

// np.minimum and np.maximum of floats: NaN wins, the first one of two; of equal operands the second.
template <bool kMax, class Real>
Real extreme(Real a, Real b) {
    return (kMax ? a > b : a < b) || is_nan(a) ? a : b;
}

template <bool kMax>
Half extreme(Half a, Half b) {
    const float x = to_float(a), y = to_float(b);
    return (kMax ? x >= y : x <= y) || is_nan(x) ? a : b;
}

template <bool kMax, class Real>
Complex<Real> extreme(Complex<Real> a, Complex<Real> b) {
    const bool before = kMax ? a.re > b.re : a.re < b.re;
    const bool tied = a.re == b.re && (kMax ? a.im >= b.im : a.im <= b.im);
    const bool first = is_nan(a.re) || is_nan(a.im) || (before && !is_nan(a.im) && !is_nan(b.im)) || tied;
    return first ? a : b;
}

template <Fold op, class T>
T apply(T a, T b) {
    constexpr bool kMax = op == Fold::Maximum;
    if constexpr (std::is_same_v<T, Bool>) {
        constexpr bool any = op == Fold::Add || op == Fold::Maximum || op == Fold::Or;
        return {static_cast<uint8_t>(any ? a.value || b.value : a.value && b.value)};
    } else if constexpr (std::is_integral_v<T>) {
        using U = std::conditional_t<sizeof(T) < sizeof(unsigned), unsigned, std::make_unsigned_t<T>>;   // wraps
        if constexpr (op == Fold::Add) return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
        if constexpr (op == Fold::Multiply) return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
        if constexpr (op == Fold::And) return static_cast<T>(a & b);
        if constexpr (op == Fold::Or) return static_cast<T>(a | b);
        if constexpr (op == Fold::Minimum) return std::min(a, b);
        if constexpr (op == Fold::Maximum) return std::max(a, b);
    } else if constexpr (op == Fold::Minimum || op == Fold::Maximum) {
        return extreme<kMax>(a, b);
    } else if constexpr (std::is_same_v<T, Half>) {
        const float x = to_float(a), y = to_float(b);
        return to_half(op == Fold::Add ? x + y : x * y);
    } else if constexpr (is_complex<T>) {
        if constexpr (op == Fold::Add) return {a.re + b.re, a.im + b.im};
        if constexpr (op == Fold::Multiply) return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
    } else {
        if constexpr (op == Fold::Add) return a + b;
        if constexpr (op == Fold::Multiply) return a * b;
    }
}

template <Fold op, class T>
T identity() {
    if constexpr (std::is_same_v<T, Bool>) {
        return {op == Fold::Multiply || op == Fold::Minimum || op == Fold::And};
    } else if constexpr (std::is_same_v<T, Half>) {
        return to_half(identity<op, float>());
    } else if constexpr (is_complex<T>) {
        using Real = decltype(T::re);
        return {identity<op, Real>(), op == Fold::Multiply ? Real{0} : identity<op, Real>()};
    } else if constexpr (std::is_integral_v<T>) {
        if constexpr (op == Fold::Multiply) return 1;
        if constexpr (op == Fold::Minimum) return std::numeric_limits<T>::max();
        if constexpr (op == Fold::Maximum) return std::numeric_limits<T>::min();
        if constexpr (op == Fold::And) return static_cast<T>(~T{0});
        return 0;
    } else {
        if constexpr (op == Fold::Multiply) return 1;
        if constexpr (op == Fold::Minimum) return std::numeric_limits<T>::infinity();
        if constexpr (op == Fold::Maximum) return -std::numeric_limits<T>::infinity();
        return static_cast<T>(-0.0);
    }
}

template <Fold op, class T>
BURNISH_CLONES void fold_loop(void *dst, const void *src, int64_t count) {
    auto *__restrict to = static_cast<T *>(dst);
    const auto *__restrict from = static_cast<const T *>(src);
    for (int64_t i = 0; i < count; ++i) to[i] = apply<op>(to[i], from[i]);
}

template <Fold op, class T>
void identity_loop(void *dst, int64_t count) {
    std::fill_n(static_cast<T *>(dst), count, identity<op, T>());
}

struct Kernels {
    FoldKernel fold = nullptr;
    void (*identity)(void *dst, int64_t count) = nullptr;
};

template <Fold op, class T>
constexpr Kernels kernels{&fold_loop<op, T>, &identity_loop<op, T>};

template <class T>
Kernels kernels_of(Fold op) {
    switch (op) {
        case Fold::Add: return kernels<Fold::Add, T>;
        case Fold::Multiply: return kernels<Fold::Multiply, T>;
        case Fold::Minimum: return kernels<Fold::Minimum, T>;
        case Fold::Maximum: return kernels<Fold::Maximum, T>;
        case Fold::And:
        case Fold::Or:
            if constexpr (std::is_integral_v<T> || std::is_same_v<T, Bool>)
                return op == Fold::And ? kernels<Fold::And, T> : kernels<Fold::Or, T>;
    }
    return {};
}

Kernels kernels_of(Fold op, ElementType type) {
    const int kind = type.type_num, size = type.itemsize;
    if (kind == kBool && size == 1) return kernels_of<Bool>(op);
    if (kByte <= kind && kind <= kULongLong) {   // odd numbers are the signed ones
        const bool is_signed = kind % 2 == 1;
        switch (size) {
            case 1: return is_signed ? kernels_of<int8_t>(op) : kernels_of<uint8_t>(op);
            case 2: return is_signed ? kernels_of<int16_t>(op) : kernels_of<uint16_t>(op);
            case 4: return is_signed ? kernels_of<int32_t>(op) : kernels_of<uint32_t>(op);
            case 8: return is_signed ? kernels_of<int64_t>(op) : kernels_of<uint64_t>(op);
        }
    }
    if (kind == kHalf && size == 2) return kernels_of<Half>(op);
    if (kind == kFloat && size == 4) return kernels_of<float>(op);
    if (kind == kDouble && size == 8) return kernels_of<double>(op);
    if (kind == kCFloat && size == 8) return kernels_of<Complex<float>>(op);
    if (kind == kCDouble && size == 16) return kernels_of<Complex<double>>(op);
    return {};
}

Kernels defined_kernels(Fold op, ElementType type) {
    const Kernels found = kernels_of(op, type);
    if (!found.fold)
        throw std::invalid_argument("the reduction is not defined on NumPy type number " + std::to_string(type.type_num) +
                                    " of " + std::to_string(type.itemsize) + " bytes");
    return found;
}

// Copies runs of `Point`s; a call of memcpy costs more than a short run itself.
template <class Point, bool kGather>
void copy_runs(void *packed, void *root, std::span<const Run> runs) {
    constexpr int64_t kShort = 64 / sizeof(Point);
    for (const Run &run : runs) {
        Point *const in_packed = static_cast<Point *>(packed) + run.packed;
        Point *const in_root = static_cast<Point *>(root) + run.linear;
        Point *const to = kGather ? in_packed : in_root;
        const Point *const from = kGather ? in_root : in_packed;
        if (run.length > kShort) {
            std::memcpy(to, from, static_cast<size_t>(run.length) * sizeof(Point));
        } else {
            for (int64_t i = 0; i < run.length; ++i) std::memcpy(to + i, from + i, sizeof(Point));
        }
    }
}

template <bool kGather>
void copy_runs(void *packed, void *root, std::span<const Run> runs, int64_t point_bytes) {
    switch (point_bytes) {
        case 1: return copy_runs<uint8_t, kGather>(packed, root, runs);
        case 2: return copy_runs<uint16_t, kGather>(packed, root, runs);
        case 4: return copy_runs<uint32_t, kGather>(packed, root, runs);
        case 8: return copy_runs<uint64_t, kGather>(packed, root, runs);
    }
    for (const Run &run : runs) {
        char *const in_packed = static_cast<char *>(packed) + run.packed * point_bytes;
        char *const in_root = static_cast<char *>(root) + run.linear * point_bytes;
        std::memcpy(kGather ? in_packed : in_root, kGather ? in_root : in_packed, static_cast<size_t>(run.length * point_bytes));
    }
}

}  // namespace

std::optional<Fold> fold_named(std::string_view op) {
    if (op == "+") return Fold::Add;
    if (op == "*") return Fold::Multiply;
    if (op == "min") return Fold::Minimum;
    if (op == "max") return Fold::Maximum;
    if (op == "&") return Fold::And;
    if (op == "|") return Fold::Or;
    return std::nullopt;
}

FoldKernel fold_kernel(Fold op, ElementType type) { return kernels_of(op, type).fold; }

void fold(Fold op, ElementType type, void *dst, const void *src, int64_t n) {
    defined_kernels(op, type).fold(dst, src, n * type.inner);
}

void fill_identity(Fold op, ElementType type, void *dst, int64_t n) {
    defined_kernels(op, type).identity(dst, n * type.inner);
}

void fold_runs(Fold op, ElementType type, void *root, const void *packed, std::span<const Run> runs) {
    const FoldKernel kernel = defined_kernels(op, type).fold;
    const int64_t bytes = type.bytes();
    for (const Run &run : runs)
        kernel(static_cast<char *>(root) + run.linear * bytes, static_cast<const char *>(packed) + run.packed * bytes,
               run.length * type.inner);
}

void gather_runs(void *packed, const void *root, std::span<const Run> runs, int64_t point_bytes) {
    copy_runs<true>(packed, const_cast<void *>(root), runs, point_bytes);
}

void scatter_runs(void *root, const void *packed, std::span<const Run> runs, int64_t point_bytes) {
    copy_runs<false>(const_cast<void *>(packed), root, runs, point_bytes);
}

}  // namespace burnish::runtime
