// Holding ops back until it is clear which complete matches to issue them in.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "tracing/recognizer.hpp"
#include "tracing/watcher.hpp"

namespace burnish::tracing {

class Deferred {
public:
    explicit Deferred(Watcher &watcher) : watcher_(watcher) {}

    // After the watcher has seen position n - 1; the segments are valid until the next call.
    std::span<const Segment> op(uint64_t n);
    std::span<const Segment> separator(uint64_t n);  // also at the end

    uint64_t issued() const { return issued_; }

private:
    struct Complete {
        uint32_t candidate, length;
        uint64_t start;
        uint64_t end() const { return start + length; }
    };

    const Complete *longest(uint64_t first, uint64_t last) const;
    bool worth_waiting(const Complete &match, uint64_t n) const;
    void commit(uint64_t first, uint64_t last);
    void issue(const Complete &match);
    void analyse(uint64_t last);

    Watcher &watcher_;
    std::vector<Complete> completed_;
    std::vector<Segment> segments_;
    uint64_t issued_ = 0;  // all positions before were issued
};

}  // namespace burnish::tracing
