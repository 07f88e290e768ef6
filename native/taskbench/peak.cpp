#include "peak.hpp"

#include <time.h>

#include <stdexcept>
#include <thread>
#include <vector>

#include "ledger.hpp"

namespace burnish::taskbench {

namespace {

struct Slot {
    int64_t runs = 0, iterations = 0, wall_ns = 0, cpu_ns = 0;
    bool failed = false;
};

int64_t thread_cpu_ns() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

void work(const Graph &graph, const Kernel &kernel, int64_t thread, int64_t budget_ns, Slot &slot) {
    unsigned char *payload = graph.scratch > 0 ? thread_scratch(graph.scratch) : nullptr;
    if (graph.scratch > 0 && payload == nullptr) {
        slot.failed = true;
        return;
    }
    payload = payload ? payload + scratch_header : nullptr;
    const int64_t cpu = thread_cpu_ns(), start = now_ns();
    int64_t batch = 1;  // runs between two looks at the clock; grows until a look costs less than 1 %
    do {
        for (int64_t i = 0; i < batch; ++i, ++slot.runs) {
            const double result = run_kernel(kernel, graph.index, slot.runs, thread, payload, graph.scratch);
            asm volatile("" : : "m"(result));
            slot.iterations += kernel.type == KernelType::load_imbalance
                                   ? imbalanced_iterations(kernel, graph.index, slot.runs, thread)
                                   : kernel.iterations;
        }
        slot.wall_ns = now_ns() - start;
        if (slot.wall_ns < 4000 * slot.runs / batch) batch *= 2;
    } while (slot.wall_ns < budget_ns);
    slot.cpu_ns = thread_cpu_ns() - cpu;
}

}  // namespace

Peak peak(const Graph &graph, const Kernel &kernel, int threads, double seconds) {
    std::vector<Slot> slots(threads);
    std::vector<std::thread> others;
    const auto budget = static_cast<int64_t>(seconds * 1e9);
    for (int i = 1; i < threads; ++i)
        others.emplace_back([&, i] { work(graph, kernel, i, budget, slots[i]); });
    work(graph, kernel, 0, budget, slots[0]);
    for (auto &thread : others) thread.join();
    Peak out;
    double runs = 0, cpu = 0, iterations = 0;
    for (const auto &slot : slots) {
        if (slot.failed) throw std::runtime_error("scratch memory for the peak cannot be had");
        out.runs_per_second += static_cast<double>(slot.runs) / (static_cast<double>(slot.wall_ns) * 1e-9);
        runs += static_cast<double>(slot.runs);
        cpu += static_cast<double>(slot.cpu_ns) * 1e-9;
        iterations += static_cast<double>(slot.iterations);
    }
    out.cpu_per_run = cpu / runs;
    out.mean_iterations = iterations / runs;
    return out;
}

}  // namespace burnish::taskbench
