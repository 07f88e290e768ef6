/* What a compiled system gets: all tasks of a run, their buffers, and the function to call for each.
   Filled by compiled.py; the arrays belong to Python and live until the next run. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define JOB_MAX_INPUTS 64 /* more go through the heap */

typedef struct {
    int64_t id; /* the same number means the same arrays */
    int64_t tasks;
    const void *const *bodies;    /* per task */
    const int64_t *t, *p;         /* per task */
    const int64_t *slots;         /* per task: where its output goes */
    const int64_t *input_starts;  /* tasks + 1 */
    const int64_t *input_ids;     /* ids of tasks */
    char *const *buffers;         /* per slot */
    const int64_t *buffer_bytes;  /* per slot */
    int64_t buffer_count;
    int (*point)(const void *body, int64_t t, int64_t p, void *output, const void *const *inputs, size_t n_inputs);
} Job;

static inline void job_execute(const Job *job, int64_t task) {
    const int64_t first = job->input_starts[task], count = job->input_starts[task + 1] - first;
    const void *few[JOB_MAX_INPUTS];
    const void **inputs = count > JOB_MAX_INPUTS ? new const void *[count] : few;
    for (int64_t i = 0; i < count; ++i) inputs[i] = job->buffers[job->slots[job->input_ids[first + i]]];
    job->point(job->bodies[task], job->t[task], job->p[task], job->buffers[job->slots[task]], inputs, (size_t)count);
    if (inputs != few) delete[] inputs;
}

/* What each system implements: launched gets the seconds until all tasks were handed over. */
extern "C" {
void *system_start(int workers, int variant);
int system_run(void *state, const Job *job, double *launched);
void system_stop(void *state);
}
