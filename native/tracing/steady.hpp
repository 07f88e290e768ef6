// The same template replayed back to back: only its next op is compared.
//
// When a third instance of one candidate in a row begins, only the leading match is followed from then on. When it
// ends, the others are brought up to date: those that were live, relative to the start, at the beginning of both the
// second and the third instance recur, so they are taken to be live at the beginning of the current one, and advanced
// from there. Other matches are given up, which is why none may be under way that could still matter.
#pragma once
#include <cstdint>
#include <vector>

#include "tracing/coverage.hpp"
#include "tracing/history.hpp"
#include "tracing/recognizer.hpp"
#include "tracing/watcher.hpp"

namespace burnish::tracing {

class Steady {
public:
    Steady(Watcher &watcher, const History &history, Coverage &coverage)
        : watcher_(watcher), history_(history), coverage_(coverage) {}

    bool on() const { return on_; }

    // The op or separator just appended; false: no longer steady. The watcher is then up to date with all ops before.
    bool op(const OpView &op, uint64_t now, Decision &decision);
    bool separator();
    // Brings the watcher up to date with all ops but the last `behind`.
    void leave(uint64_t behind);

    // An instance of `candidate` began with the op at `now`; the watcher is up to date with it.
    void begins(uint32_t candidate, uint64_t now, uint64_t operand);
    void ended(uint32_t candidate, uint64_t end) { last_ = candidate, last_end_ = end; }

    // The instance under way when `leave` was called; slot 0: none.
    uint32_t candidate() const { return candidate_; }
    uint64_t start() const { return start_; }
    uint32_t slot() const { return slot_; }

private:
    bool keep_recurring(uint64_t now, uint64_t operand);
    bool negligible(const Match &m) const;

    Watcher &watcher_;
    const History &history_;
    Coverage &coverage_;
    bool on_ = false;
    uint32_t candidate_ = kNone, slot_ = 0;
    uint64_t start_ = 0, start_operand_ = 0;  // of the current or last instance
    uint64_t gap_ = 0;                        // separators between instances: 0 or 1
    uint64_t epoch_ = 0;
    std::vector<Match> live_;                 // at the start of the instance at `origin_`
    uint64_t origin_ = 0, origin_operand_ = 0;
    uint32_t last_ = kNone;                   // the candidate completed last
    uint64_t last_end_ = 0;
};

}  // namespace burnish::tracing
