#include "body.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace burnish::taskbench;

namespace {

// Patterns are tabulated up to this many (set, point) pairs; beyond, they are computed at each task.
constexpr int64_t table_limit = 1 << 20;

// Rough time of one iteration in ns; decides only whether a Python caller's GIL is released.
double iteration_ns(const Graph &graph, const Kernel &kernel) {
    const auto bytes = static_cast<double>(graph.scratch);
    switch (kernel.type) {
        case KernelType::empty: return 0;
        case KernelType::compute_dgemm: return 0.25 * std::pow(bytes / 24, 1.5);
        case KernelType::memory_bound:
        case KernelType::memory_daxpy: return 0.1 * bytes / kernel.samples;
        case KernelType::io_bound: return 1000;
        default: return 4;
    }
}

int32_t thread_id() {
    thread_local const int32_t own = gettid();
    return own;
}

}  // namespace

std::string Failure::message(const Graph &graph) const {
    const auto point = "graph " + std::to_string(graph.index) + ", point (t=" + std::to_string(t) +
                       ", p=" + std::to_string(p) + ")";
    const auto pair = [](int64_t t, int64_t p) {
        return std::string("(").append(std::to_string(t)).append(", ").append(std::to_string(p)).append(")");
    };
    switch (code) {
        case burnish_taskbench_no_such_point: return point + ": the graph has no such point";
        case burnish_taskbench_input_count:
            return point + ": expected " + std::to_string(expected_p) + " inputs, got " + std::to_string(got_p);
        case burnish_taskbench_scratch: return point + ": scratch memory is missing or its marker was overwritten";
        case burnish_taskbench_io: return point + ": temporary file: " + std::strerror(static_cast<int>(got_p));
        default: break;
    }
    if (input < 0) return point + ": input " + pair(expected_t, expected_p) + " is missing";
    const auto where = point + ", input " + std::to_string(input) + ", position " + std::to_string(position);
    if (expected_p < 0) return where + ": got " + pair(got_t, got_p) + ", which is no dependence of this point";
    return where + ": expected " + pair(expected_t, expected_p) + ", got " + pair(got_t, got_p);
}

burnish_taskbench_body::burnish_taskbench_body(const Graph &graph_, const Kernel &kernel_, bool validate_,
                                               std::shared_ptr<Ledger> ledger_)
    : graph(graph_), kernel(kernel_), validate(validate_), ledger(std::move(ledger_)),
      releases_gil(iteration_ns(graph_, kernel_) * static_cast<double>(kernel_.iterations) > 5000 ||
                   graph_.output >= 1 << 16) {
    if (graph.sets() > table_limit / graph.width) return;
    starts_.push_back(0);
    for (int64_t set = 0; set < graph.sets(); ++set) {
        for (int64_t p = 0; p < graph.width; ++p) {
            const auto own = graph.pattern(set, p);
            intervals_.insert(intervals_.end(), own.begin(), own.end());
            starts_.push_back(static_cast<int64_t>(intervals_.size()));
        }
    }
}

burnish_taskbench_body::Span burnish_taskbench_body::pattern(int64_t set, int64_t p, Intervals &own) const {
    if (starts_.empty()) {
        own = graph.pattern(set, p);
        return {own.data(), own.data() + own.size()};
    }
    const int64_t at = set * graph.width + p;
    return {intervals_.data() + starts_[at], intervals_.data() + starts_[at + 1]};
}

int burnish_taskbench_body::check_buffer(const void *buffer, size_t input, Pair expected, Failure &failure) const {
    const auto *pairs = static_cast<const Pair *>(buffer);
    const int64_t count = graph.output / static_cast<int64_t>(sizeof(Pair));
    int64_t differs = 0;
    for (int64_t i = 0; i < count; ++i) differs |= (pairs[i].t ^ expected.t) | (pairs[i].p ^ expected.p);
    if (differs == 0) return 0;
    int64_t at = 0;
    while (pairs[at].t == expected.t && pairs[at].p == expected.p) ++at;
    failure.input = static_cast<int64_t>(input), failure.position = at;
    failure.expected_t = expected.t, failure.expected_p = expected.p;
    failure.got_t = pairs[at].t, failure.got_p = pairs[at].p;
    return burnish_taskbench_input_value;
}

int burnish_taskbench_body::check_inputs(int64_t t, int64_t p, const void *const *inputs, size_t n_inputs,
                                         bool any_order, Failure &failure) const {
    const int64_t first = graph.offset(t - 1), last = first + graph.width_at(t - 1) - 1;
    Intervals own;
    const auto span = t == 0 ? Span{nullptr, nullptr} : pattern(graph.set_at(t), p, own);
    if (any_order) return check_any_order(t, graph.dependencies(t, p), inputs, n_inputs, failure);
    size_t wanted = 0;
    for (const auto *i = span.begin; i != span.end; ++i) {
        for (int64_t q = std::max(i->first, first); q <= std::min(i->last, last); ++q, ++wanted) {
            if (wanted >= n_inputs) continue;
            if (const int code = check_buffer(inputs[wanted], wanted, {t - 1, q}, failure)) return code;
        }
    }
    if (wanted == n_inputs) return 0;
    failure.expected_p = static_cast<int64_t>(wanted), failure.got_p = static_cast<int64_t>(n_inputs);
    return burnish_taskbench_input_count;
}

int burnish_taskbench_body::check_any_order(int64_t t, const Intervals &wanted, const void *const *inputs,
                                            size_t n_inputs, Failure &failure) const {
    std::vector<int64_t> missing;
    for (const auto &i : wanted)
        for (int64_t q = i.first; q <= i.last; ++q) missing.push_back(q);
    const std::vector<int64_t> all = missing;
    for (size_t input = 0; input < n_inputs; ++input) {
        if (inputs[input] == nullptr) continue;
        const Pair got = *static_cast<const Pair *>(inputs[input]);
        if (got.t != t - 1 || !std::binary_search(all.begin(), all.end(), got.p)) {
            failure.input = static_cast<int64_t>(input), failure.position = 0;
            failure.expected_p = -1, failure.got_t = got.t, failure.got_p = got.p;
            return burnish_taskbench_input_value;
        }
        if (const int code = check_buffer(inputs[input], input, got, failure)) return code;
        std::erase(missing, got.p);
    }
    if (missing.empty()) return 0;
    failure.expected_t = t - 1, failure.expected_p = missing.front();
    return burnish_taskbench_input_value;
}

int burnish_taskbench_body::execute(int64_t t, int64_t p, void *output, const void *const *inputs, size_t n_inputs,
                                    bool any_order, Failure &failure) const {
    const int64_t start = ledger->capacity() > 0 ? now_ns() : 0;
    failure.t = t, failure.p = p;
    if (t < 0 || t >= graph.steps || p < graph.offset(t) || p >= graph.offset(t) + graph.width_at(t))
        return failure.code = burnish_taskbench_no_such_point;
    if (validate && (failure.code = check_inputs(t, p, inputs, n_inputs, any_order, failure))) return failure.code;
    unsigned char *payload = nullptr;
    if (graph.scratch > 0) {
        payload = thread_scratch(graph.scratch);
        if (payload == nullptr) return failure.code = burnish_taskbench_scratch;
        payload += scratch_header;
    }
    const double result = run_kernel(kernel, graph.index, t, p, payload, graph.scratch);
    if (kernel.type == KernelType::io_bound && std::isnan(result)) {
        failure.got_p = errno;
        return failure.code = burnish_taskbench_io;
    }
    asm volatile("" : : "m"(result));  // the work is wanted although its result is not
    auto *pairs = static_cast<Pair *>(output);
    for (int64_t i = 0; i < graph.output / static_cast<int64_t>(sizeof(Pair)); ++i) pairs[i] = {t, p};
    ledger->add();
    if (ledger->capacity() > 0) ledger->record({start, now_ns(), t, p, graph.index, thread_id()});
    return 0;
}

void burnish_taskbench_body::keep(const Failure &failure) const {
    const std::lock_guard guard(lock_);
    if (failure_.code == 0) failure_ = failure;
}

Failure burnish_taskbench_body::first_failure() const {
    const std::lock_guard guard(lock_);
    return failure_;
}

void burnish_taskbench_body::forget_failure() const {
    const std::lock_guard guard(lock_);
    failure_ = {};
}

extern "C" int burnish_taskbench_point(const burnish_taskbench_body *body, int64_t t, int64_t p, void *output,
                                       const void *const *inputs, size_t n_inputs) {
    Failure failure;
    if (body->execute(t, p, output, inputs, n_inputs, false, failure)) body->keep(failure);
    return failure.code;
}

extern "C" int burnish_taskbench_point_any_order(const burnish_taskbench_body *body, int64_t t, int64_t p, void *output,
                                                 const void *const *inputs, size_t n_inputs) {
    Failure failure;
    if (body->execute(t, p, output, inputs, n_inputs, true, failure)) body->keep(failure);
    return failure.code;
}
