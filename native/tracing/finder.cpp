#include "tracing/finder.hpp"

#include <deque>

#include "tracing/clock.hpp"

namespace burnish::tracing {

namespace {

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
