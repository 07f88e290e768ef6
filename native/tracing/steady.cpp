#include "tracing/steady.hpp"

namespace burnish::tracing {

bool Steady::same_matches(uint64_t now, uint64_t operand) const {
    const auto live = watcher_.live();
    if (live.size() != live_.size()) return false;
    for (size_t i = 0; i < live.size(); ++i) {
        const Match &a = live[i], &b = live_[i];
        if (now - a.start != origin_ - b.start || operand - a.start_operand != origin_operand_ - b.start_operand ||
            a.node != b.node)
            return false;
    }
    return true;
}

void Steady::begins(uint32_t candidate, uint64_t now, uint64_t operand) {
    const uint64_t length = watcher_.candidate(candidate).length;
    const uint64_t gap = now - last_end_;
    const bool again = candidate == candidate_ && candidate == last_ && last_end_ == origin_ + length &&
                       (gap == 0 || (gap == 1 && history_.at(last_end_).separator)) && gap == gap_ &&
                       epoch_ == watcher_.epoch() && same_matches(now, operand);
    candidate_ = candidate;
    gap_ = gap;
    epoch_ = watcher_.epoch();
    origin_ = start_ = now;
    origin_operand_ = start_operand_ = operand;
    slot_ = 1;
    live_.assign(watcher_.live().begin(), watcher_.live().end());
    on_ = again;
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
