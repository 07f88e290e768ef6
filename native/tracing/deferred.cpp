#include "tracing/deferred.hpp"

#include <algorithm>

namespace burnish::tracing {

std::span<const Segment> Deferred::op(uint64_t n) {
    segments_.clear();
    for (const Completion &c : watcher_.completions())
        if (c.start >= issued_) completed_.push_back({c.candidate, watcher_.candidate(c.candidate).length, c.start});
    for (const Complete *best; (best = longest(issued_, n)) && !worth_waiting(*best, n);) {
        const Complete chosen = *best;
        commit(issued_, chosen.start);
        issue(chosen);
        std::erase_if(completed_, [&](const Complete &c) { return c.start < issued_; });
    }
    uint64_t held = n;
    for (const Match &m : watcher_.live())
        if (m.start >= issued_) held = std::min(held, m.start);
    for (const Complete &c : completed_) held = std::min(held, c.start);
    analyse(held);
    return segments_;
}

std::span<const Segment> Deferred::separator(uint64_t n) {
    segments_.clear();
    commit(issued_, n);
    completed_.clear();
    analyse(n);
    return segments_;
}

const Deferred::Complete *Deferred::longest(uint64_t first, uint64_t last) const {
    const Complete *best = nullptr;
    for (const Complete &c : completed_) {
        if (c.start < first || c.end() > last) continue;
        if (!best || c.length > best->length || (c.length == best->length && c.start < best->start)) best = &c;
    }
    return best;
}

bool Deferred::worth_waiting(const Complete &match, uint64_t n) const {
    const bool remainder = watcher_.candidate(match.candidate).remainder;
    for (const Match &m : watcher_.live()) {
        if (m.start < issued_ || m.start >= match.end()) continue;
        for (const uint32_t c : watcher_.below(m)) {
            const Candidate &p = watcher_.candidate(c);
            if (!(p.sighted || remainder) || n - m.start >= p.length) continue;
            if (p.trusted() && p.expected() > match.length) return true;
        }
    }
    return false;
}

// Issues the complete matches inside [first, last), longest first where they overlap.
void Deferred::commit(uint64_t first, uint64_t last) {
    const Complete *best = longest(first, last);
    if (!best) return;
    const Complete chosen = *best;
    commit(first, chosen.start);
    issue(chosen);
    commit(chosen.end(), last);
}

void Deferred::issue(const Complete &match) {
    analyse(match.start);
    Candidate &candidate = watcher_.candidate(match.candidate);
    segments_.push_back({match.start, match.length, match.candidate, candidate.captured});
    if (candidate.captured) ++candidate.replays;
    candidate.captured = true;
    issued_ = match.end();
}

void Deferred::analyse(uint64_t last) {
    if (last <= issued_) return;
    segments_.push_back({issued_, static_cast<uint32_t>(last - issued_), kNone, false});
    issued_ = last;
}

}  // namespace burnish::tracing
