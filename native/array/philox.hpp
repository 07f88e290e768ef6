// Philox4x64-10 (Salmon, Moraes, Dror, Shaw 2011) as a NumPy bit generator that starts at any counter, and filling of
// fixed-size blocks from it: element i of call c depends on the key, c and i only, not on chunks or threads.
#pragma once
#include <array>
#include <cstdint>

namespace burnish::array {

using Words = std::array<uint64_t, 4>;

Words philox(Words counter, std::array<uint64_t, 2> key);

constexpr int64_t kRandomBlock = 1024;  // elements that are drawn from one counter

enum class Distribution : uint8_t { Uniform, Normal, Integers };

struct Draw {
    std::array<uint64_t, 2> key{};
    uint64_t call = 0;          // counter word 3
    Distribution distribution = Distribution::Uniform;
    int64_t low = 0;            // Integers: low <= x <= low + range
    uint64_t range = 0;
};

// Elements [first, last) of the flattened result of a call, packed; `first` is a multiple of kRandomBlock. float64 for
// Uniform and Normal, int64 for Integers. Block b uses counters (*, *, b, call); within it the numbers are those of
// numpy.random.Generator(Philox(key=key, counter=[0, 0, b, call])).
void fill_random(const Draw &draw, int64_t first, int64_t last, void *out);

}  // namespace burnish::array
