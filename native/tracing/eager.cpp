#include "tracing/eager.hpp"

#include <algorithm>

namespace burnish::tracing {

namespace {
constexpr double kTrusted = 0.3;  // reliability from which a match may be adopted in its middle

// Costs relative to that of a replayed op, and the saving per op from which another template is captured.
constexpr double kAnalysisCost = 8, kInstanceCost = 16, kWorthwhile = 0.4;
}

void Eager::op(uint64_t now, Decision &decision) {
    if (leader_ != kNone) follow(now, decision);
    if (leader_ == kNone && decision.lead == kNone) choose(now, decision);
    if (decision.lead != kNone) {
        coverage_.mark(now, now + 1, Coverage::issued);
        if (now == led_since_) coverage_.mark(now, now + 1, Coverage::begins);
        if (decision.completed) coverage_.mark(led_since_, now + 1, Coverage::complete);
    }
    if (!watcher_.completions().empty()) offer_capture(now, decision);
}

void Eager::separator(uint64_t now, Decision &decision) {
    if (leader_ != kNone) end(now, decision);
}

void Eager::end(uint64_t now, Decision &decision) {
    decision.died = leader_;
    decision.died_from = static_cast<uint32_t>(led_since_ - start_);
    decision.died_slots = static_cast<uint32_t>(now - start_);
    leader_ = kNone;
}

void Eager::follow(uint64_t now, Decision &decision) {
    const uint32_t slot = static_cast<uint32_t>(now - start_);
    const Candidate &candidate = watcher_.candidate(leader_);
    const bool completes = slot + 1 == candidate.length;
    bool alive = false;
    if (candidate.captured) {
        if (completes) {
            for (const Completion &c : watcher_.completions()) alive |= c.candidate == leader_ && c.start == start_;
        } else {
            const Match *m = watcher_.find(start_);
            alive = m && watcher_.leads_to(*m, leader_);
        }
    }
    if (!alive) return end(now, decision);
    decision.lead = leader_;
    decision.slot = slot;
    if (!completes) return;
    decision.completed = true;
    ++watcher_.candidate(leader_).replays;
    leader_ = kNone;
}

// The live match with the most ops still to come, weighted with its reliability.
void Eager::choose(uint64_t now, Decision &decision) {
    double best = 0;
    for (const Match &m : watcher_.live()) {
        const auto depth = static_cast<uint32_t>(now - m.start);
        for (const uint32_t c : watcher_.below(m)) {
            const Candidate &candidate = watcher_.candidate(c);
            if (!candidate.captured || depth + 1 >= candidate.length) continue;
            const double r = candidate.reliability();
            if (depth > 0 && r < kTrusted) continue;
            const double value = (candidate.length - depth) * r;
            if (value < best || (value == best && m.start < start_)) continue;  // ties: the later start
            best = value;
            leader_ = c;
            start_ = m.start;
        }
    }
    if (leader_ == kNone) return;
    led_since_ = now;
    decision.lead = leader_;
    decision.slot = static_cast<uint32_t>(now - start_);
    decision.adopted = decision.slot > 0;
}

void Eager::offer_capture(uint64_t now, Decision &decision) {
    for (const Completion &c : watcher_.completions()) {
        const Candidate &candidate = watcher_.candidate(c.candidate);
        if (candidate.captured || candidate.remainder || candidate.length <= decision.capture_length) continue;
        if (!worth_capturing(candidate, now)) continue;
        decision.capture = c.candidate;
        decision.capture_length = candidate.length;
    }
    if (decision.capture != kNone) coverage_.mark(now + 1 - decision.capture_length, now + 1, Coverage::complete);
}

// What this template would have saved on the match just seen, in units of the cost of a replayed op. Programs that
// are well covered by few templates are left alone.
bool Eager::worth_capturing(const Candidate &candidate, uint64_t now) const {
    const uint64_t first = now + 1 - candidate.length, last = now + 1;
    const uint64_t analysed = candidate.length - coverage_.count(first, last, Coverage::issued | Coverage::complete);
    const uint64_t instances = coverage_.count(first, last, Coverage::begins);
    const double saved = kAnalysisCost * static_cast<double>(analysed) +
                         kInstanceCost * static_cast<double>(instances > 0 ? instances - 1 : 0);
    return saved >= kWorthwhile * candidate.length;
}

}  // namespace burnish::tracing
