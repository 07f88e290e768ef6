// What the recognizer sees of a launch.
#pragma once
#include <compare>
#include <cstdint>

namespace burnish::tracing {

inline constexpr uint32_t kNone = 0xFFFFFFFFu;

// 128-bit hash of what replay may not vary. Ordered by (hi, lo): a strict weak order.
struct Token {
    uint64_t hi = 0, lo = 0;
    friend bool operator==(const Token &, const Token &) = default;
    friend std::strong_ordering operator<=>(const Token &, const Token &) = default;
};

inline uint64_t mix(uint64_t x) {  // finalizer of MurmurHash3: a bijection with full avalanche
    x = (x ^ (x >> 33)) * 0xFF51AFD7ED558CCDull;
    x = (x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53ull;
    return x ^ (x >> 33);
}
inline uint64_t combine(uint64_t h, uint64_t x) { return mix(h * 0x9E3779B97F4A7C15ull + x); }
inline uint64_t hash_of(const Token &t) { return (t.hi * 0x9E3779B97F4A7C15ull) ^ mix(t.lo); }

}  // namespace burnish::tracing
