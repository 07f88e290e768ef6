// Parameterized task graphs: which points exist at a step, and on which points of the step before they depend.
// Patterns after Slaughter et al., "Task Bench" (SC 2020); stencil_2d/3d, sweep_2d, vcycle and random_spread are ours.
#pragma once
#include <cstdint>
#include <vector>

namespace burnish::taskbench {

enum class Type : int32_t {
    trivial, no_comm, stencil_1d, stencil_1d_periodic, dom, tree, fft, all_to_all, nearest, spread, random_nearest,
    random_spread, stencil_2d, stencil_3d, sweep_2d, vcycle,
};

// An inclusive interval of points.
struct Interval {
    int64_t first, last;
    int64_t size() const { return last - first + 1; }
    bool operator==(const Interval &) const = default;
};

using Intervals = std::vector<Interval>;  // ascending, disjoint, not adjacent

// Plain data (it travels to worker processes as bytes); validated by the Python side.
struct Graph {
    int64_t steps, width;
    Type type;
    int32_t index;
    int64_t radix, period;
    double fraction;
    int64_t output, scratch;
    int64_t shape[3];  // grid of stencil_2d, stencil_3d, sweep_2d; unused sides are 1

    int64_t offset(int64_t t) const;
    int64_t width_at(int64_t t) const;  // 0 outside [0, steps)
    int64_t sets() const;               // number of dependence sets
    int64_t set_at(int64_t t) const;

    // Points of step t-1 that (t, p) depends on, and points of step t+1 that depend on (t, p).
    Intervals dependencies(int64_t t, int64_t p) const;
    Intervals reverse_dependencies(int64_t t, int64_t p) const;

    // The pattern alone, clipped to [0, width), whether or not the points exist.
    Intervals pattern(int64_t set, int64_t p) const;
    Intervals reverse_pattern(int64_t set, int64_t p) const;

    // Where task (t, p) stands in the order t ascending, p ascending.
    std::vector<int64_t> first_ids() const;  // steps + 1 entries
};

struct Counts {
    int64_t tasks = 0, dependencies = 0, local = 0, nonlocal = 0;
};

// With nodes > 0, dependences are split by the block distribution node(p) = p * nodes div width.
Counts count(const Graph &graph, int64_t nodes);

}  // namespace burnish::taskbench
