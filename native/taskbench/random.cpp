#include "random.hpp"

#include <bit>
#include <cstring>

namespace burnish::taskbench {

namespace {

struct SipState {
    uint64_t v0, v1, v2, v3;

    void round() {
        v0 += v1, v1 = std::rotl(v1, 13) ^ v0, v0 = std::rotl(v0, 32);
        v2 += v3, v3 = std::rotl(v3, 16) ^ v2;
        v0 += v3, v3 = std::rotl(v3, 21) ^ v0;
        v2 += v1, v1 = std::rotl(v1, 17) ^ v2, v2 = std::rotl(v2, 32);
    }

    void absorb(uint64_t word) {
        v3 ^= word;
        round(), round();
        v0 ^= word;
    }
};

}  // namespace

uint64_t siphash24(const void *data, size_t size, uint64_t k0, uint64_t k1) {
    SipState state{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573};
    const auto *bytes = static_cast<const unsigned char *>(data);
    size_t at = 0;
    for (; at + 8 <= size; at += 8) {
        uint64_t word;
        std::memcpy(&word, bytes + at, 8);
        state.absorb(word);
    }
    uint64_t last = static_cast<uint64_t>(size & 0xff) << 56;
    for (size_t i = 0; at + i < size; ++i) last |= static_cast<uint64_t>(bytes[at + i]) << (8 * i);
    state.absorb(last);
    state.v2 ^= 0xff;
    for (int i = 0; i < 4; ++i) state.round();
    return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

double uniform(const int64_t *values, size_t count) {
    static_assert(std::endian::native == std::endian::little, "the hash reads little-endian words");
    constexpr uint64_t k0 = 0x0807060504030201, k1 = 0x000f0e0d0c0b0a09;
    return static_cast<double>(siphash24(values, count * sizeof(int64_t), k0, k1)) * 0x1p-64;
}

}  // namespace burnish::taskbench
