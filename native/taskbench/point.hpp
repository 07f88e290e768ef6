// One task of a graph as a plain C function: native runtimes call it as a task body, without Python.
//
//     const burnish_taskbench_body *body = ...;                // Body.address of burnish.taskbench
//     const void *inputs[] = {left, mid, right};               // outputs of step t-1, in ascending order of point
//     int error = burnish_taskbench_point(body, t, p, output, inputs, 3);
//
// A buffer has graph.output bytes. The function checks that the inputs are those that the graph asks for, runs the
// kernel, fills the output and counts the task. It may be called by any number of threads at once; it takes no lock.
#pragma once
#include <cstddef>
#include <cstdint>

#if defined(__cplusplus)
extern "C" {
#endif

typedef struct burnish_taskbench_body burnish_taskbench_body;

// 0, or one of burnish_taskbench_error; the first failure of a body is kept for Body.failure.
int burnish_taskbench_point(const burnish_taskbench_body *body, int64_t t, int64_t p, void *output,
                            const void *const *inputs, size_t n_inputs);

// The same where a runtime cannot promise the order or number of inputs (shifted partitions with clipped or wrapped
// edges): null inputs are ignored, the others may come in any order and more than once, none may be missing.
int burnish_taskbench_point_any_order(const burnish_taskbench_body *body, int64_t t, int64_t p, void *output,
                                      const void *const *inputs, size_t n_inputs);

enum burnish_taskbench_error {
    burnish_taskbench_no_such_point = 1,
    burnish_taskbench_input_count = 2,
    burnish_taskbench_input_value = 3,
    burnish_taskbench_scratch = 4,
    burnish_taskbench_io = 5,
};

#if defined(__cplusplus)
}
#endif
