#include "lineage/crc32c.hpp"

#include <array>
#include <bit>
#include <cstring>
#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace burnish::lineage {

namespace {

constexpr uint32_t polynomial = 0x82F63B78;

// tables[k][b]: the effect of byte b followed by k zero bytes ("slicing by 8").
constexpr auto tables = [] {
    std::array<std::array<uint32_t, 256>, 8> t{};
    for (uint32_t b = 0; b < 256; ++b) {
        uint32_t c = b;
        for (int bit = 0; bit < 8; ++bit) c = c >> 1 ^ (c & 1 ? polynomial : 0);
        t[0][b] = c;
    }
    for (size_t k = 1; k < 8; ++k)
        for (size_t b = 0; b < 256; ++b) t[k][b] = t[k - 1][b] >> 8 ^ t[0][t[k - 1][b] & 0xff];
    return t;
}();

uint64_t load64(const std::byte *p) {
    static_assert(std::endian::native == std::endian::little);
    uint64_t v;
    std::memcpy(&v, p, 8);
    return v;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t crc32c_sse42(const std::byte *p, size_t n, uint32_t crc) {
    uint64_t c = ~crc;
    for (; n >= 8; p += 8, n -= 8) c = _mm_crc32_u64(c, load64(p));
    auto c32 = static_cast<uint32_t>(c);
    for (; n; ++p, --n) c32 = _mm_crc32_u8(c32, static_cast<uint8_t>(*p));
    return ~c32;
}
const bool have_sse42 = __builtin_cpu_supports("sse4.2");
#endif

}  // namespace

uint32_t crc32c_table(std::span<const std::byte> data, uint32_t crc) {
    const std::byte *p = data.data();
    size_t n = data.size();
    uint32_t c = ~crc;
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t v = load64(p) ^ c;
        c = 0;
        for (size_t k = 0; k < 8; ++k) c ^= tables[7 - k][v >> (8 * k) & 0xff];
    }
    for (; n; ++p, --n) c = c >> 8 ^ tables[0][(c ^ static_cast<uint32_t>(*p)) & 0xff];
    return ~c;
}

uint32_t crc32c(std::span<const std::byte> data, uint32_t crc) {
#if defined(__x86_64__)
    if (have_sse42) return crc32c_sse42(data.data(), data.size(), crc);
#endif
    return crc32c_table(data, crc);
}

}  // namespace burnish::lineage
