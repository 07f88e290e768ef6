// Taskflow. Variant 0: graph built and run; 1: graph of the last job kept and run again; 2: dependent_async.
#include <chrono>
#include <optional>
#include <vector>

#include <taskflow/taskflow.hpp>

#include "job.hpp"

namespace {

struct State {
    tf::Executor executor;
    int variant;
    int64_t built = -1;
    std::optional<tf::Taskflow> flow;
    State(int workers, int variant_) : executor(workers), variant(variant_) {}
};

void build(State &state, const Job *job) {
    if (state.variant == 1 && state.built == job->id) return;
    state.flow.emplace();
    std::vector<tf::Task> tasks;
    tasks.reserve(job->tasks);
    for (int64_t i = 0; i < job->tasks; ++i) {
        tasks.push_back(state.flow->emplace([job, i] { job_execute(job, i); }));
        for (int64_t k = job->input_starts[i]; k < job->input_starts[i + 1]; ++k)
            tasks[job->input_ids[k]].precede(tasks[i]);
    }
    state.built = job->id;
}

void launch_async(State &state, const Job *job) {
    std::vector<tf::AsyncTask> tasks, inputs;
    tasks.reserve(job->tasks);
    for (int64_t i = 0; i < job->tasks; ++i) {
        inputs.clear();
        for (int64_t k = job->input_starts[i]; k < job->input_starts[i + 1]; ++k)
            inputs.push_back(tasks[job->input_ids[k]]);
        tasks.push_back(
            state.executor.silent_dependent_async([job, i] { job_execute(job, i); }, inputs.begin(), inputs.end()));
    }
}

}  // namespace

extern "C" void *system_start(int workers, int variant) { return new State(workers, variant); }
extern "C" void system_stop(void *state) { delete static_cast<State *>(state); }

extern "C" int system_run(void *handle, const Job *job, double *launched) {
    auto &state = *static_cast<State *>(handle);
    const auto start = std::chrono::steady_clock::now();
    const auto since = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
    if (state.variant == 2) {
        launch_async(state, job);
        *launched = since();
        state.executor.wait_for_all();
        return 0;
    }
    build(state, job);
    auto future = state.executor.run(*state.flow);
    *launched = since();
    future.wait();
    return 0;
}
