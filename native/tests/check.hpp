// The two things a standalone native test needs: a check that reports its place, and a small random generator.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

#define CHECK(CONDITION)                                                                              \
    do {                                                                                              \
        if (!(CONDITION)) {                                                                           \
            std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #CONDITION);        \
            std::abort();                                                                             \
        }                                                                                             \
    } while (false)

namespace burnish::test {

class Random {
   public:
    explicit Random(uint64_t seed) : engine_(seed) {}
    int64_t between(int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(engine_); }   // inclusive
    bool chance(int percent) { return between(0, 99) < percent; }

   private:
    std::mt19937_64 engine_;
};

}  // namespace burnish::test
