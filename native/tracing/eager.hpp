// Which template an op is issued through, decided when it is launched.
#pragma once
#include <cstdint>

#include "tracing/coverage.hpp"
#include "tracing/recognizer.hpp"
#include "tracing/watcher.hpp"

namespace burnish::tracing {

class Eager {
public:
    Eager(Watcher &watcher, Coverage &coverage) : watcher_(watcher), coverage_(coverage) {}

    // After the watcher has seen the op at position `now`.
    void op(uint64_t now, Decision &decision);
    void separator(uint64_t now, Decision &decision);

    bool leading() const { return leader_ != kNone; }
    uint64_t led_since() const { return led_since_; }  // first position of the instance issued through its template

private:
    void follow(uint64_t now, Decision &decision);
    void end(uint64_t now, Decision &decision);
    void choose(uint64_t now, Decision &decision);
    void offer_capture(uint64_t now, Decision &decision);
    bool worth_capturing(const Candidate &candidate, uint64_t now) const;

    Watcher &watcher_;
    Coverage &coverage_;
    uint32_t leader_ = kNone;
    uint64_t start_ = 0, led_since_ = 0;
};

}  // namespace burnish::tracing
