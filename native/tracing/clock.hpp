// Processor time, which is what finder jobs are charged.
#pragma once
#include <ctime>

namespace burnish::tracing {

inline double processor_time() {  // of this thread, in seconds
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace burnish::tracing
