// What a task computes. Each kernel returns a value that depends on all of its work, so that none can be dropped.
#pragma once
#include <cstddef>
#include <cstdint>

namespace burnish::taskbench {

enum class KernelType : int32_t {
    empty, busy_wait, compute_bound, compute_bound2, compute_dgemm, memory_bound, memory_daxpy, load_imbalance, io_bound,
};

struct Kernel {
    KernelType type;
    int32_t samples;
    int64_t iterations;
    double imbalance;
};

// Scratch memory begins with one cache line of this word; the payload behind it starts as 1.2345 everywhere, so that
// no kernel ever meets a denormal.
constexpr uint64_t scratch_marker = 0x6275726e69736821;  // "burnish!"
constexpr size_t scratch_header = 64;
constexpr double start_value = 1.2345;

// The calling thread's scratch of `bytes` payload (header included in front), made and marked at first use.
// Returns the header; null if the memory cannot be had or its marker was overwritten.
unsigned char *thread_scratch(int64_t bytes);

// Iterations of load_imbalance at a point: round((1 + (U - 0.5) * imbalance) * n).
int64_t imbalanced_iterations(const Kernel &kernel, int64_t index, int64_t t, int64_t p);

// Runs the kernel for point (t, p) of graph `index`; `payload` is `scratch` bytes behind the header.
// Returns NaN with errno set if io_bound meets an error.
double run_kernel(const Kernel &kernel, int64_t index, int64_t t, int64_t p, unsigned char *payload, int64_t scratch);

}  // namespace burnish::taskbench
