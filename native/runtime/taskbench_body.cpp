// The point of a Task Bench graph as a native body of the runtime: the first array is the output, the others inputs.
#include "bind.hpp"
#include "launch.hpp"
#include "taskbench/point.hpp"

namespace burnish::runtime {

namespace {

constexpr size_t kInputs = 64;

// Scalars: t, p.
template <auto kPoint>
void run_point(NativeCall *call) {
    auto *body = static_cast<const burnish_taskbench_body *>(call->user);
    const void *few[kInputs];
    size_t n = static_cast<size_t>(call->scalars[2].i);
    for (size_t i = 0; i < n; ++i) few[i] = call->arrays[i + 1].data;
    call->status = kPoint(body, call->scalars[0].i, call->scalars[1].i, call->arrays[0].data, few, n);
    if (call->status) call->message = "an input of a point is not what its graph asks for";
}

}  // namespace

}  // namespace burnish::runtime

BURNISH_BIND(taskbench_body) {
    using namespace burnish::runtime;
    m.attr("point") = reinterpret_cast<uintptr_t>(&run_point<burnish_taskbench_point>);
    m.attr("point_any_order") = reinterpret_cast<uintptr_t>(&run_point<burnish_taskbench_point_any_order>);
    m.attr("most_inputs") = kInputs;
}
