// What the machine can do with a kernel when nothing but the kernel runs.
#pragma once
#include "graph.hpp"
#include "kernel.hpp"

namespace burnish::taskbench {

struct Peak {
    double runs_per_second = 0;   // kernel runs, all threads together
    double cpu_per_run = 0;       // seconds of CPU time
    double mean_iterations = 0;   // mean iterations of a run (load_imbalance varies them)
};

// `threads` plain threads run the kernel for about `seconds` (each at least once).
Peak peak(const Graph &graph, const Kernel &kernel, int threads, double seconds);

}  // namespace burnish::taskbench
