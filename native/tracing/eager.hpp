// Which template an op is issued through, decided when it is launched.
#pragma once
#include <cstdint>

#include "tracing/coverage.hpp"
#include "tracing/history.hpp"
#include "tracing/recognizer.hpp"
#include "tracing/steady.hpp"
#include "tracing/watcher.hpp"

namespace burnish::tracing {

class Eager {
public:
    Eager(const History &history, Watcher &watcher, Coverage &coverage)
        : watcher_(watcher), coverage_(coverage), steady_(watcher, history, coverage) {}

    // The op or separator at position `now` was just appended to the history.
    void op(const OpView &op, uint64_t now, Decision &decision);
    void separator(uint64_t now, Decision &decision);
    void finish(uint64_t now, Decision &decision);

    // Brings the watcher up to date; needed before candidates change.
    void settle();

    // First position of the instance under way that was issued through its template, or `none`.
    uint64_t led_since(uint64_t none) const;

private:
    void assume();
    void follow(uint64_t now, Decision &decision);
    void end(uint64_t now, Decision &decision);
    void choose(uint64_t now, Decision &decision);
    void offer_capture(uint64_t now, Decision &decision);
    bool worth_capturing(const Candidate &candidate, uint64_t now) const;

    Watcher &watcher_;
    Coverage &coverage_;
    Steady steady_;
    uint32_t leader_ = kNone;
    uint64_t start_ = 0, led_since_ = 0;
};

}  // namespace burnish::tracing
