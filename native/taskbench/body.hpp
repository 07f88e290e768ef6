// A task body: graph, kernel, what it checks and where it counts. Immutable after construction except for counters.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "graph.hpp"
#include "kernel.hpp"
#include "ledger.hpp"
#include "point.hpp"

namespace burnish::taskbench {

// Why a task was refused; `input` and `position` are -1 where they say nothing.
struct Failure {
    int code = 0;
    int64_t t = 0, p = 0, input = -1, position = -1;
    int64_t expected_t = 0, expected_p = 0, got_t = 0, got_p = 0;
    std::string message(const Graph &graph) const;
};

// What a buffer is filled with, again and again.
struct Pair {
    int64_t t, p;
};

}  // namespace burnish::taskbench

struct burnish_taskbench_body {
    burnish_taskbench_body(const burnish::taskbench::Graph &graph, const burnish::taskbench::Kernel &kernel,
                           bool validate, std::shared_ptr<burnish::taskbench::Ledger> ledger);

    const burnish::taskbench::Graph graph;
    const burnish::taskbench::Kernel kernel;
    const bool validate;
    const std::shared_ptr<burnish::taskbench::Ledger> ledger;
    const bool releases_gil;  // long enough to be worth it

    // Validates, runs, fills, counts. Thread-safe.
    int execute(int64_t t, int64_t p, void *output, const void *const *inputs, size_t n_inputs, bool any_order,
                burnish::taskbench::Failure &failure) const;
    void keep(const burnish::taskbench::Failure &failure) const;  // the first one
    burnish::taskbench::Failure first_failure() const;
    void forget_failure() const;

private:
    struct Span {
        const burnish::taskbench::Interval *begin, *end;
    };
    Span pattern(int64_t set, int64_t p, burnish::taskbench::Intervals &own) const;
    int check_inputs(int64_t t, int64_t p, const void *const *inputs, size_t n_inputs, bool any_order,
                     burnish::taskbench::Failure &failure) const;
    int check_any_order(int64_t t, const burnish::taskbench::Intervals &wanted, const void *const *inputs,
                        size_t n_inputs, burnish::taskbench::Failure &failure) const;
    int check_buffer(const void *buffer, size_t input, burnish::taskbench::Pair expected,
                     burnish::taskbench::Failure &failure) const;

    std::vector<int64_t> starts_;  // pattern of (set, p) is intervals_[starts_[set * width + p] ..)
    std::vector<burnish::taskbench::Interval> intervals_;
    mutable std::mutex lock_;
    mutable burnish::taskbench::Failure failure_;
};
