#include "tracing/steady.hpp"

#include <algorithm>

namespace burnish::tracing {

// Keeps the matches that were there, relative to the start, when the last instance began too. False if one of the
// others matters.
bool Steady::keep_recurring(uint64_t now, uint64_t operand) {
    std::vector<Match> recurring;
    for (const Match &a : watcher_.live()) {
        const bool recurs = std::any_of(live_.begin(), live_.end(), [&](const Match &b) {
            return a.node == b.node && now - a.start == origin_ - b.start &&
                   operand - a.start_operand == origin_operand_ - b.start_operand;
        });
        if (recurs) {
            recurring.push_back(a);
        } else if (!negligible(a)) {
            return false;
        }
    }
    live_ = std::move(recurring);
    return true;
}

bool Steady::negligible(const Match &m) const {
    for (const uint32_t c : watcher_.below(m)) {
        const Candidate &candidate = watcher_.candidate(c);
        if (candidate.captured ? candidate.trusted() : !candidate.dull && !(candidate.remainder)) return false;
    }
    return true;
}

void Steady::begins(uint32_t candidate, uint64_t now, uint64_t operand) {
    const uint64_t gap = now - last_end_;
    on_ = candidate == candidate_ && candidate == last_ && last_end_ == origin_ + watcher_.candidate(candidate).length &&
          (gap == 0 || (gap == 1 && history_.at(last_end_).separator)) && gap == gap_ && epoch_ == watcher_.epoch() &&
          keep_recurring(now, operand);
    if (!on_) live_.assign(watcher_.live().begin(), watcher_.live().end());
    candidate_ = candidate;
    gap_ = gap;
    epoch_ = watcher_.epoch();
    origin_ = start_ = now;
    origin_operand_ = start_operand_ = operand;
    slot_ = 1;
}

bool Steady::op(const OpView &op, uint64_t now, Decision &decision) {
    const bool first = slot_ == 0;
    if ((first && now != last_end_ + gap_) ||
        !watcher_.follows(op, candidate_, slot_, first ? op.operand : start_operand_)) {
        leave(1);
        return false;
    }
    if (first) {
        start_ = now;
        start_operand_ = op.operand;
        coverage_.mark(now, Coverage::begins);
    }
    decision.lead = candidate_;
    decision.slot = slot_;
    coverage_.mark(now, Coverage::issued);
    Candidate &candidate = watcher_.candidate(candidate_);
    if (++slot_ < candidate.length) return true;
    decision.completed = true;
    ++candidate.replays;
    watcher_.follow_completed(candidate_, start_);
    coverage_.mark(start_, now + 1, Coverage::complete);
    ended(candidate_, now + 1);
    slot_ = 0;
    return true;
}

bool Steady::separator() {
    const uint64_t now = history_.size() - 1;
    if (slot_ == 0 && gap_ == 1 && now == last_end_) return true;
    leave(1);
    return false;
}

void Steady::leave(uint64_t behind) {
    on_ = false;
    candidate_ = slot_ > 0 ? candidate_ : kNone;
    for (Match &m : live_) {
        m.start += start_ - origin_;
        m.start_operand += start_operand_ - origin_operand_;
    }
    watcher_.resume(live_, start_, behind);
}

}  // namespace burnish::tracing
