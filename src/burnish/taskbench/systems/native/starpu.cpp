// StarPU: one registered handle per slot, dependences found by StarPU from the access modes.
#include <starpu.h>

#include <vector>

#include "job.hpp"

namespace {

struct State {
    int64_t registered = -1;
    std::vector<starpu_data_handle_t> handles;
};

struct Argument {
    const Job *job;
    int64_t task;
};

void execute(void *buffers[], void *argument) {
    const auto *a = static_cast<const Argument *>(argument);
    const Job *job = a->job;
    const int64_t count = job->input_starts[a->task + 1] - job->input_starts[a->task];
    std::vector<const void *> inputs(count);
    for (int64_t i = 0; i < count; ++i) inputs[i] = (const void *)STARPU_VARIABLE_GET_PTR(buffers[i + 1]);
    void *output = (void *)STARPU_VARIABLE_GET_PTR(buffers[0]);
    job->point(job->bodies[a->task], job->t[a->task], job->p[a->task], output, inputs.data(), inputs.size());
}

starpu_codelet *codelet() {
    static starpu_codelet own;
    static const bool once = [] {
        starpu_codelet_init(&own);
        own.cpu_funcs[0] = execute;
        own.nbuffers = STARPU_VARIABLE_NBUFFERS;
        own.name = "point";
        return true;
    }();
    (void)once;
    return &own;
}

void forget(State &state) {
    for (auto handle : state.handles) starpu_data_unregister(handle);
    state.handles.clear();
}

void registered(State &state, const Job *job) {
    if (state.registered == job->id) return;
    forget(state);
    state.handles.resize(job->buffer_count);
    for (int64_t i = 0; i < job->buffer_count; ++i)
        starpu_variable_data_register(&state.handles[i], STARPU_MAIN_RAM, (uintptr_t)job->buffers[i],
                                      (size_t)job->buffer_bytes[i]);
    state.registered = job->id;
}

int submit(State &state, const Job *job, int64_t i, Argument *argument) {
    starpu_task *task = starpu_task_create();
    const int64_t first = job->input_starts[i];
    const int count = static_cast<int>(job->input_starts[i + 1] - first) + 1;
    task->cl = codelet();
    task->cl_arg = argument;
    task->nbuffers = count;
    if (count > STARPU_NMAXBUFS) {
        task->dyn_handles = (starpu_data_handle_t *)malloc(count * sizeof *task->dyn_handles);
        task->dyn_modes = (starpu_data_access_mode *)malloc(count * sizeof *task->dyn_modes);
    }
    starpu_data_handle_t *handles = count > STARPU_NMAXBUFS ? task->dyn_handles : task->handles;
    starpu_data_access_mode *modes = count > STARPU_NMAXBUFS ? task->dyn_modes : task->modes;
    handles[0] = state.handles[job->slots[i]], modes[0] = STARPU_W;
    for (int k = 1; k < count; ++k)
        handles[k] = state.handles[job->slots[job->input_ids[first + k - 1]]], modes[k] = STARPU_R;
    return starpu_task_submit(task);
}

}  // namespace

extern "C" void *system_start(int workers, int) {
    starpu_conf conf;
    starpu_conf_init(&conf);
    conf.ncpus = workers;
    conf.ncuda = conf.nopencl = 0;
    return starpu_init(&conf) == 0 ? new State : nullptr;
}

extern "C" int system_run(void *handle, const Job *job, double *launched) {
    auto &state = *static_cast<State *>(handle);
    registered(state, job);
    const double start = starpu_timing_now();
    std::vector<Argument> arguments(job->tasks);
    for (int64_t i = 0; i < job->tasks; ++i) {
        arguments[i] = {job, i};
        if (const int error = submit(state, job, i, &arguments[i])) return error;
    }
    *launched = (starpu_timing_now() - start) * 1e-6;
    return starpu_task_wait_for_all();
}

extern "C" void system_stop(void *handle) {
    auto *state = static_cast<State *>(handle);
    forget(*state);
    delete state;
    starpu_shutdown();
}
