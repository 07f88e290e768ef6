// OpenMP tasks with dependences on the buffers' slots, launched by one thread.
#include <omp.h>

#include "job.hpp"

extern "C" void *system_start(int workers, int) { return new int(workers); }
extern "C" void system_stop(void *state) { delete static_cast<int *>(state); }

extern "C" int system_run(void *state, const Job *job, double *launched) {
    const double start = omp_get_wtime();
    char *done = new char[job->tasks];  // only its addresses are used
#pragma omp parallel num_threads(*static_cast<int *>(state))
#pragma omp single
    {
        for (int64_t i = 0; i < job->tasks; ++i) {
            const int64_t first = job->input_starts[i], last = job->input_starts[i + 1];
            const int64_t *ids = job->input_ids;
            if (first == last) {
#pragma omp task depend(out : done[i]) firstprivate(i)
                job_execute(job, i);
            } else {
#pragma omp task depend(iterator(int64_t k = first : last), in : done[ids[k]]) depend(out : done[i]) firstprivate(i)
                job_execute(job, i);
            }
        }
        *launched = omp_get_wtime() - start;
    }
    delete[] done;
    return 0;
}
