#include "tracing/finder.hpp"

#include <ctime>
#include <deque>

namespace burnish::tracing {

namespace {

double processor_time() {  // of this thread
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

class SynchronousFinder final : public Finder {
public:
    explicit SynchronousFinder(const FindOptions &options) : options_(options) {}

    void submit(Window window) override {
        const double begin = processor_time();
        results_.push_back(find_loops(window, options_));
        stats_.seconds += processor_time() - begin;
        stats_.tokens += window.last - window.first;
        ++stats_.jobs;
    }
    uint64_t finished() override { return results_.size(); }
    std::vector<Found> take() override {
        std::vector<Found> found = std::move(results_.front());
        results_.pop_front();
        return found;
    }
    FinderStats stats() const override { return stats_; }

private:
    FindOptions options_;
    std::deque<std::vector<Found>> results_;
    FinderStats stats_;
};

}  // namespace

std::unique_ptr<Finder> make_synchronous_finder(const FindOptions &options) {
    return std::make_unique<SynchronousFinder>(options);
}

}  // namespace burnish::tracing
