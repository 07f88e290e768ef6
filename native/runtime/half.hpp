// IEEE 754 binary16 to and from binary32, round to nearest even.
#pragma once
#include <bit>
#include <cstdint>

namespace burnish::runtime {

struct Half {
    uint16_t bits;
};

inline float to_float(Half h) {
    const uint32_t sign = static_cast<uint32_t>(h.bits & 0x8000) << 16;
    const uint32_t magnitude = h.bits & 0x7fff;
    if (magnitude >= 0x7c00)   // infinity, NaN
        return std::bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
    if (magnitude >= 0x400)    // normal: the exponent bias grows from 15 to 127
        return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
    const float tiny = static_cast<float>(magnitude) * 0x1p-24f;   // exact
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(tiny));
}

inline Half to_half(float f) {
    const auto bits = std::bit_cast<uint32_t>(f);
    const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
    const uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) {   // NaN: keep the payload's upper bits, and that it is one
        const auto payload = static_cast<uint16_t>(magnitude >> 13 & 0x3ff);
        return {static_cast<uint16_t>(sign | 0x7c00 | (payload ? payload : 1))};
    }
    if (magnitude >= 0x477ff000) return {static_cast<uint16_t>(sign | 0x7c00)};   // from 65520 on: infinity
    if (magnitude >= 0x38800000) {                                                // normal half
        const uint32_t odd = magnitude >> 13 & 1;
        return {static_cast<uint16_t>(sign | ((magnitude - (112u << 23) + 0xfff + odd) >> 13))};
    }
    // Subnormal: at this exponent the float addition rounds to multiples of 2^-24.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return {static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5f)))};
}

}  // namespace burnish::runtime
