#include "philox.hpp"

#include <numpy/random/distributions.h>

#include <algorithm>

namespace burnish::array {

namespace {

void multiply(uint64_t a, uint64_t b, uint64_t &high, uint64_t &low) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    high = static_cast<uint64_t>(product >> 64);
    low = static_cast<uint64_t>(product);
}

// The generator's state and NumPy's order of consumption: 4 words per counter, increment before use, 32-bit draws take
// the low half first.
struct Stream {
    Words counter, words{};
    std::array<uint64_t, 2> key;
    int used = 4;
    bool has_half = false;
    uint32_t half = 0;

    uint64_t next64() {
        if (used == 4) {
            for (auto &word : counter)
                if (++word) break;
            words = philox(counter, key);
            used = 0;
        }
        return words[used++];
    }
    uint32_t next32() {
        if (has_half) {
            has_half = false;
            return half;
        }
        const uint64_t word = next64();
        has_half = true;
        half = static_cast<uint32_t>(word >> 32);
        return static_cast<uint32_t>(word);
    }
};

uint64_t next64(void *s) { return static_cast<Stream *>(s)->next64(); }
uint32_t next32(void *s) { return static_cast<Stream *>(s)->next32(); }
double next_double(void *s) { return static_cast<double>(next64(s) >> 11) * (1.0 / 9007199254740992.0); }

void fill_block(const Draw &draw, uint64_t block, int64_t n, void *out) {
    Stream stream{.counter = {0, 0, block, draw.call}, .key = draw.key};
    bitgen_t bits{&stream, next64, next32, next_double, next64};
    switch (draw.distribution) {
        case Distribution::Uniform:
            return random_standard_uniform_fill(&bits, n, static_cast<double *>(out));
        case Distribution::Normal:
            return random_standard_normal_fill(&bits, n, static_cast<double *>(out));
        case Distribution::Integers:
            return random_bounded_uint64_fill(&bits, static_cast<uint64_t>(draw.low), draw.range, n, false,
                                              static_cast<uint64_t *>(out));
    }
}

}  // namespace

Words philox(Words c, std::array<uint64_t, 2> key) {
    for (int round = 0; round < 10; ++round) {
        uint64_t high0, low0, high1, low1;
        multiply(0xD2E7470EE14C6C93ULL, c[0], high0, low0);
        multiply(0xCA5A826395121157ULL, c[2], high1, low1);
        c = {high1 ^ c[1] ^ key[0], low1, high0 ^ c[3] ^ key[1], low0};
        key[0] += 0x9E3779B97F4A7C15ULL;
        key[1] += 0xBB67AE8584CAA73BULL;
    }
    return c;
}

void fill_random(const Draw &draw, int64_t first, int64_t last, void *out) {
    auto *to = static_cast<uint64_t *>(out);  // every result type is 8 bytes wide
    for (int64_t i = first; i < last; i += kRandomBlock, to += kRandomBlock)
        fill_block(draw, static_cast<uint64_t>(i / kRandomBlock), std::min(kRandomBlock, last - i), to);
}

}  // namespace burnish::array
