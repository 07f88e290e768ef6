// SipHash-2-4 (Aumasson, Bernstein 2012) and the uniform numbers that random graphs and imbalanced kernels draw from it.
#pragma once
#include <cstddef>
#include <cstdint>

namespace burnish::taskbench {

// Hash of `size` bytes (little-endian words) under the key k0, k1.
uint64_t siphash24(const void *data, size_t size, uint64_t k0, uint64_t k1);

// In [0, 1): hash of the values as little-endian int64 under the key bytes 01 02 .. 0f 00, divided by 2^64.
double uniform(const int64_t *values, size_t count);

}  // namespace burnish::taskbench
