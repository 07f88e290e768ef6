#include "tracing/eager.hpp"

#include <algorithm>

namespace burnish::tracing {

namespace {
// Costs relative to that of a replayed op, and the saving per op from which another template is captured.
constexpr double kAnalysisCost = 8, kInstanceCost = 16, kWorthwhile = 0.4;
}

void Eager::op(const OpView &op, uint64_t now, Decision &decision) {
    if (steady_.on()) {
        if (steady_.op(op, now, decision)) return;
        assume();
    }
    watcher_.op(op);
    if (leader_ != kNone) follow(now, decision);
    if (decision.lead == kNone) choose(now, decision);
    if (decision.lead != kNone) {
        coverage_.mark(now, Coverage::issued);
        if (now == led_since_) coverage_.mark(now, Coverage::begins);
        if (now == start_) steady_.begins(decision.lead, now, op.operand);
        if (decision.completed) {
            coverage_.mark(led_since_, now + 1, Coverage::complete);
            steady_.ended(decision.lead, now + 1);
        }
    }
    if (!watcher_.completions().empty()) offer_capture(now, decision);
}

void Eager::separator(uint64_t now, Decision &decision) {
    if (steady_.on()) {
        if (steady_.separator()) return;
        assume();
    }
    watcher_.separator();
    if (leader_ != kNone) end(now, decision);
}

void Eager::finish(uint64_t now, Decision &decision) {
    settle();
    if (leader_ != kNone) end(now, decision);
}

uint64_t Eager::led_since(uint64_t none) const {
    if (steady_.on()) return steady_.slot() > 0 ? steady_.start() : none;
    return leader_ != kNone ? led_since_ : none;
}

void Eager::settle() {
    if (!steady_.on()) return;
    steady_.leave(0);
    assume();
}

// Takes over the instance that was under way while steady.
void Eager::assume() {
    leader_ = steady_.slot() > 0 ? steady_.candidate() : kNone;
    start_ = led_since_ = steady_.start();
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

void Eager::end(uint64_t now, Decision &decision) {
    decision.died = leader_;
    decision.died_from = static_cast<uint32_t>(led_since_ - start_);
    decision.died_slots = static_cast<uint32_t>(now - start_);
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
            if (depth > 0 && !candidate.trusted()) continue;
            const double value = (candidate.length - depth) * candidate.reliability();
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
        Candidate &candidate = watcher_.candidate(c.candidate);
        if (c.end != now + 1 || candidate.captured || candidate.remainder || candidate.length <= decision.capture_length) continue;
        candidate.dull = !worth_capturing(candidate, now);
        if (candidate.dull) continue;
        decision.capture = c.candidate;
        decision.capture_length = candidate.length;
    }
    if (decision.capture != kNone) coverage_.mark(now + 1 - decision.capture_length, now + 1, Coverage::complete);
}

// Whether a template would have saved enough on the match just seen, in units of the cost of a replayed op. Programs
// that are well covered by few templates are left alone; merely joining replays has to be worth it twice.
bool Eager::worth_capturing(const Candidate &candidate, uint64_t now) const {
    const uint64_t first = now + 1 - candidate.length, last = now + 1;
    const uint64_t analysed = candidate.length - coverage_.count(first, last, Coverage::issued, Coverage::complete);
    const uint64_t instances = coverage_.count(first, last, Coverage::begins);
    const double analysis = kAnalysisCost * static_cast<double>(analysed);
    const double overhead = kInstanceCost * static_cast<double>(instances > 0 ? instances - 1 : 0);
    const double worthwhile = kWorthwhile * candidate.length;
    return analysis >= worthwhile || (analysis + overhead >= worthwhile && candidate.ok > 1);
}

}  // namespace burnish::tracing
