#include "kernel.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "random.hpp"

namespace burnish::taskbench {

namespace {

// Four doubles that the compiler keeps in one register (two where vectors are narrower).
typedef double Quad __attribute__((vector_size(32)));

double fold(const Quad *values, int count, bool product) {
    Quad all = values[0];
    for (int i = 1; i < count; ++i) all = product ? all * values[i] : all + values[i];
    return product ? (all[0] * all[1]) * (all[2] * all[3]) : (all[0] + all[1]) + (all[2] + all[3]);
}

// The loops are written once and compiled twice: for machines with fused multiply-add and, with the product rounded
// before the sum, for those without.
struct Fused {
    static constexpr bool fused = true;
    static inline __attribute__((always_inline)) void add_product(Quad &sum, const Quad &a, const Quad &b) {
        for (int i = 0; i < 4; ++i) sum[i] = __builtin_fma(a[i], b[i], sum[i]);
    }
};

struct Rounded {
    static constexpr bool fused = false;
    static inline __attribute__((always_inline)) void add_product(Quad &sum, const Quad &a, const Quad &b) {
        sum += a * b;
    }
};

template <class Arithmetic>
inline __attribute__((always_inline)) double bound_loop(int64_t n) {
    Quad a[16];
    for (auto &q : a) q = Quad{} + start_value;
    for (int64_t i = 0; i < n; ++i) {
#pragma GCC unroll 16
        for (int j = 0; j < 16; ++j) Arithmetic::add_product(a[j], a[j], a[j]);
    }
    return fold(a, 16, true);
}

template <class Arithmetic>
inline __attribute__((always_inline)) double bound2_loop(int64_t n) {
    Quad c[8], a = Quad{} + start_value, b = Quad{} + 1.010101;
    for (auto &q : c) q = Quad{};
    for (int64_t i = 0; i < n; ++i) {
        if constexpr (!Arithmetic::fused) asm volatile("" : "+m"(a), "+m"(b));  // else the product would be hoisted
#pragma GCC unroll 8
        for (int j = 0; j < 8; ++j) Arithmetic::add_product(c[j], a, b);
    }
    return fold(c, 8, false);
}

// c += x * b
template <class Arithmetic>
inline __attribute__((always_inline)) void row_loop(double x, const double *b, double *c, int64_t n) {
    const Quad factor = Quad{} + x;
    Quad row, sum;
    int64_t j = 0;
    for (; j + 4 <= n; j += 4) {
        std::memcpy(&row, b + j, sizeof row), std::memcpy(&sum, c + j, sizeof sum);
        Arithmetic::add_product(sum, factor, row);
        std::memcpy(c + j, &sum, sizeof sum);
    }
    for (; j < n; ++j) {
        row = Quad{} + b[j], sum = Quad{} + c[j];
        Arithmetic::add_product(sum, factor, row);
        c[j] = sum[0];
    }
}

double bound(int64_t n) { return bound_loop<Rounded>(n); }
double bound2(int64_t n) { return bound2_loop<Rounded>(n); }
void row(double x, const double *b, double *c, int64_t n) { row_loop<Rounded>(x, b, c, n); }

#if defined(__x86_64__)
#define BURNISH_FMA __attribute__((target("avx2,fma")))
const bool has_fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
#define BURNISH_FMA  // every 64-bit ARM has it
constexpr bool has_fma = true;
#endif
BURNISH_FMA double bound_fused(int64_t n) { return bound_loop<Fused>(n); }
BURNISH_FMA double bound2_fused(int64_t n) { return bound2_loop<Fused>(n); }
BURNISH_FMA void row_fused(double x, const double *b, double *c, int64_t n) { row_loop<Fused>(x, b, c, n); }

const auto compute = has_fma ? bound_fused : bound;
const auto compute2 = has_fma ? bound2_fused : bound2;
const auto axpy = has_fma ? row_fused : row;

double busy_wait(int64_t n) {
    int64_t a = 113;
    for (int64_t i = 0; i < n; ++i) a = a * 139 % 2147483647;
    return static_cast<double>(a);
}

// C += A * B, n times; the three N x N matrices follow each other in the payload.
double dgemm(int64_t n, double *payload, int64_t scratch) {
    const auto size = static_cast<int64_t>(std::sqrt(static_cast<double>(scratch / 24)));
    const double *a = payload, *b = a + size * size;
    double *c = payload + 2 * size * size;
    for (int64_t iteration = 0; iteration < n; ++iteration)
        for (int64_t i = 0; i < size; ++i)
            for (int64_t k = 0; k < size; ++k) axpy(a[i * size + k], b + k * size, c + i * size, size);
    return size > 0 ? c[size * size - 1] : 0.0;
}

// Each chunk's first half is copied onto (memory_bound) or added to (memory_daxpy) its second half.
double stream(const Kernel &kernel, int64_t t, unsigned char *payload, int64_t scratch) {
    const int64_t chunk = scratch / kernel.samples, half = chunk / 2;
    double last = 0;
    for (int64_t i = 0; i < kernel.iterations; ++i) {
        unsigned char *at = payload + (t * kernel.iterations + i) % kernel.samples * chunk;
        if (kernel.type == KernelType::memory_bound) {
            std::memcpy(at + half, at, half);
        } else {
            auto *x = reinterpret_cast<double *>(at);
            axpy(1.0, x, x + chunk / 16, chunk / 16);
        }
        std::memcpy(&last, at + chunk - 8, 8);
    }
    return last;
}

// Writes n KiB to an unnamed temporary file and reads them back; the sum of the bytes read.
double io(int64_t n) {
    constexpr size_t block = 1 << 16;
    const char *folder = std::getenv("TMPDIR");
    std::string name = std::string(folder && *folder ? folder : "/tmp") + "/burnish-taskbench-XXXXXX";
    const int file = mkstemp(name.data());
    if (file < 0) return std::numeric_limits<double>::quiet_NaN();
    unlink(name.c_str());
    std::vector<unsigned char> buffer(block, 1);
    double sum = 0;
    const int64_t bytes = n * 1024;
    for (const bool writing : {true, false}) {
        for (int64_t at = 0; at < bytes;) {
            const auto part = static_cast<size_t>(std::min<int64_t>(block, bytes - at));
            const ssize_t done = writing ? pwrite(file, buffer.data(), part, at) : pread(file, buffer.data(), part, at);
            if (done <= 0) {
                const int error = errno;
                close(file);
                errno = done == 0 ? EIO : error;
                return std::numeric_limits<double>::quiet_NaN();
            }
            if (!writing)
                for (ssize_t i = 0; i < done; ++i) sum += buffer[i];
            at += done;
        }
    }
    close(file);
    return sum;
}

struct Scratch {
    unsigned char *memory = nullptr;
    int64_t bytes = -1;
    ~Scratch() { std::free(memory); }
};

}  // namespace

unsigned char *thread_scratch(int64_t bytes) {
    thread_local Scratch own;
    if (own.bytes < bytes) {
        std::free(own.memory);
        own.bytes = -1;
        const size_t size = (scratch_header + static_cast<size_t>(bytes) + 63) / 64 * 64;
        own.memory = static_cast<unsigned char *>(std::aligned_alloc(64, size));
        if (own.memory == nullptr) return nullptr;
        for (size_t i = 0; i < scratch_header; i += 8) std::memcpy(own.memory + i, &scratch_marker, 8);
        for (size_t i = scratch_header; i + 8 <= size; i += 8) std::memcpy(own.memory + i, &start_value, 8);
        own.bytes = bytes;
    }
    for (size_t i = 0; i < scratch_header; i += 8)
        if (std::memcmp(own.memory + i, &scratch_marker, 8) != 0) return nullptr;
    return own.memory;
}

int64_t imbalanced_iterations(const Kernel &kernel, int64_t index, int64_t t, int64_t p) {
    const int64_t key[3] = {index, t, p};
    const double factor = 1 + (uniform(key, 3) - 0.5) * kernel.imbalance;
    return static_cast<int64_t>(std::round(factor * static_cast<double>(kernel.iterations)));
}

double run_kernel(const Kernel &kernel, int64_t index, int64_t t, int64_t p, unsigned char *payload, int64_t scratch) {
    switch (kernel.type) {
        case KernelType::empty: return 0.0;
        case KernelType::busy_wait: return busy_wait(kernel.iterations);
        case KernelType::compute_bound: return compute(kernel.iterations);
        case KernelType::load_imbalance: return compute(imbalanced_iterations(kernel, index, t, p));
        case KernelType::compute_bound2: return compute2(kernel.iterations);
        case KernelType::compute_dgemm: return dgemm(kernel.iterations, reinterpret_cast<double *>(payload), scratch);
        case KernelType::memory_bound:
        case KernelType::memory_daxpy: return stream(kernel, t, payload, scratch);
        case KernelType::io_bound: return io(kernel.iterations);
    }
    return 0.0;
}

}  // namespace burnish::taskbench
