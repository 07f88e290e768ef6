// A loop over independent items on short-lived threads, for the builders of large partitions.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace burnish::runtime {

int build_threads();   // see set_build_threads

// Threads worth starting for `work` elementary steps: each one costs some 20 us.
inline size_t threads_for(int64_t work) {
    constexpr int64_t kStepsPerThread = 1 << 17;
    return static_cast<size_t>(std::clamp<int64_t>(work / kStepsPerThread, 1, build_threads()));
}

// Calls body(i) for each i < n, items handed out in order. An exception stops the hand-out and is rethrown here.
template <class Body>
void parallel_for(size_t n, int64_t work, Body body) {
    const size_t threads = std::min(threads_for(work), n);
    if (threads <= 1) {
        for (size_t i = 0; i < n; ++i) body(i);
        return;
    }
    std::atomic<size_t> next{0};
    std::exception_ptr error;
    std::mutex mutex;
    const auto run = [&] {
        try {
            for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < n;) body(i);
        } catch (...) {
            next.store(n, std::memory_order_relaxed);
            const std::lock_guard lock(mutex);
            if (!error) error = std::current_exception();
        }
    };
    {
        std::vector<std::jthread> helpers;
        for (size_t t = 1; t < threads; ++t) helpers.emplace_back(run);
        run();
    }
    if (error) std::rethrow_exception(error);
}

}  // namespace burnish::runtime
