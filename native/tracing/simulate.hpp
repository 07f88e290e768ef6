// Runs a recognizer over a recorded stream and accounts for what it covers.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "tracing/recognizer.hpp"

namespace burnish::tracing {

// n positions; operands of position i: roots[offsets[i] .. offsets[i + 1]).
struct Stream {
    std::span<const uint64_t> signatures, flats;
    std::span<const uint8_t> separators;
    std::span<const uint64_t> offsets;
    std::span<const uint32_t> roots;

    size_t size() const { return signatures.size(); }
};

struct Simulation {
    std::vector<uint32_t> trace;   // per position: candidate whose complete instance covers it, or kNone
    std::vector<uint8_t> replayed; // per position: issued through a template (eager) or in a replay (deferred)
    uint64_t replays = 0, captures = 0;
    uint64_t max_deferral = 0;
    uint64_t distinct = 0;
    FinderStats finder;
    uint64_t collisions = 0;
};

// Finder jobs run synchronously whatever `config` says: a stream has no clock.
Simulation simulate(const Stream &stream, Config config);

}  // namespace burnish::tracing
