#include "tracing/watcher.hpp"

#include <algorithm>

namespace burnish::tracing {

namespace {
constexpr double kDecay = 0.95;
}

Step Watcher::step_of(const OpView &op) {
    distances_.clear();
    const uint64_t horizon = live_.empty() ? op.operand : live_.front().start_operand;
    for (size_t i = 0; i < op.roots.size(); ++i)
        distances_.push_back(last_.distance(op.roots[i], op.operand + i, horizon));
    return {op.signature, op.operand, distances_};
}

void Watcher::op() {
    completions_.clear();
    const uint64_t now = history_.size() - 1;
    const OpView view = history_.at(now);
    if (live_.empty() && !trie_.begins(view.signature)) return;
    const Step step = step_of(view);
    size_t kept = 0;
    for (const Match &m : live_) {
        const uint32_t next = trie_.advance(m.node, step, m.start_operand);
        if (next == kNone) {
            die(m, kept, now);
            continue;
        }
        if (trie_[next].group != trie_[m.node].group) leave(m, next, kept, now);
        live_[kept++] = {m.start, m.start_operand, next};
    }
    live_.resize(kept);
    if (live_.size() < kMaxLive) {
        const uint32_t node = trie_.begin(step);
        if (node != kNone) live_.push_back({now, step.operand, node});
    }
    for (const Match &m : live_) {
        const uint32_t c = trie_[m.node].ends;
        if (c != kNone && candidates_[c].alive) complete(c, m.start);
    }
    // Where nothing is stored below, the match is over.
    std::erase_if(live_, [&](const Match &m) { return trie_[m.node].child == kNone; });
}

void Watcher::separator() {
    completions_.clear();
    const uint64_t now = history_.size() - 1;
    for (size_t i = 0; i < live_.size(); ++i) die(live_[i], 0, now);
    live_.clear();
    separator_ = history_.size();
}

const Match *Watcher::find(uint64_t start) const {
    for (const Match &m : live_)
        if (m.start == start) return &m;
    return nullptr;
}

bool Watcher::leads_to(const Match &m, uint32_t candidate) const {
    const auto below = trie_.below(m.node);
    return std::find(below.begin(), below.end(), candidate) != below.end();
}

void Watcher::complete(uint32_t c, uint64_t start) {
    Candidate &candidate = candidates_[c];
    completions_.push_back({c, start});
    candidate.sighted = true;
    candidate.last_completed = history_.size();
    if (start < candidate.counted_end) return;
    candidate.ok = candidate.ok * kDecay + 1;
    candidate.tried = candidate.tried * kDecay + 1;
    candidate.counted_end = history_.size();
}

// A match that died counts against its candidate, unless an earlier one (live_[0 .. earlier)) may still complete it:
// loop bodies often contain false starts of themselves.
void Watcher::failed(uint32_t c, const Match &m, size_t earlier, uint32_t depth) {
    Candidate &candidate = candidates_[c];
    if (depth >= candidate.length || depth < std::max(2u, candidate.length / 4)) return;
    if (m.start < candidate.counted_end) return;
    for (size_t i = 0; i < earlier; ++i)
        if (leads_to(live_[i], c)) return;
    candidate.ok *= kDecay;
    candidate.tried = candidate.tried * kDecay + 1;
    candidate.counted_end = m.start + depth;
}

void Watcher::die(const Match &m, size_t earlier, uint64_t now) {
    const auto depth = static_cast<uint32_t>(now - m.start);
    if (depth < 2) return;
    for (const uint32_t c : trie_.below(m.node)) failed(c, m, earlier, depth);
}

// The match goes on, but no longer towards some of the candidates.
void Watcher::leave(const Match &m, uint32_t next, size_t earlier, uint64_t now) {
    const auto depth = static_cast<uint32_t>(now - m.start);
    if (depth < 2) return;
    const auto still = trie_.below(next);
    for (const uint32_t c : trie_.below(m.node))
        if (std::find(still.begin(), still.end(), c) == still.end()) failed(c, m, earlier, depth);
}

bool Watcher::known_rotation(const Found &found) const {
    for (const Candidate &c : candidates_)
        if (c.alive && c.root_hash == found.root_hash && c.length == found.form.length()) return true;
    return false;
}

bool Watcher::add(const NormalForm &form, uint64_t root_hash, bool remainder) {
    const auto id = static_cast<uint32_t>(candidates_.size());
    if (trie_.insert(form, id) != id) return false;
    Candidate candidate;
    candidate.form = form;
    candidate.length = form.length();
    candidate.inserted = candidate.last_completed = history_.size();
    candidate.root_hash = root_hash;
    candidate.remainder = remainder;
    candidates_.push_back(std::move(candidate));
    return true;
}

void Watcher::insert(const Found &found) {
    if (found.loop && known_rotation(found)) return;
    if (!add(found.form, found.loop ? found.root_hash : 0, false)) return;
    uint64_t from = std::max(separator_, history_.oldest());
    if (history_.size() - from >= found.form.length()) from = history_.size() - found.form.length() + 1;
    if (found.remainder) add(found.form.slice(0, found.remainder), 0, true);
    if (!live_.empty()) from = std::min(from, live_.front().start);
    rescan(from);
}

void Watcher::forget(uint64_t since) {
    bool any = false;
    for (Candidate &c : candidates_) {
        if (!c.alive || c.last_completed >= since) continue;
        c.alive = c.captured = false;
        c.form = NormalForm{};
        any = true;
    }
    if (!any) return;
    trie_.clear();
    for (uint32_t c = 0; c < candidates_.size(); ++c)
        if (candidates_[c].alive) trie_.insert(candidates_[c].form, c);
    if (!live_.empty()) rescan(live_.front().start);
}

void Watcher::rescan(uint64_t from) {
    std::vector<Match> matches;
    last_ = LastUse();
    const uint64_t horizon = from < history_.size() ? history_.at(from).operand : 0;
    std::vector<uint32_t> distances;
    for (uint64_t p = from; p < history_.size(); ++p) {
        const OpView view = history_.at(p);
        distances.clear();
        for (size_t i = 0; i < view.roots.size(); ++i)
            distances.push_back(last_.distance(view.roots[i], view.operand + i, horizon));
        const Step step{view.signature, view.operand, distances};
        size_t kept = 0;
        for (const Match &m : matches) {
            const uint32_t next = trie_.advance(m.node, step, m.start_operand);
            if (next != kNone && trie_[next].child != kNone) matches[kept++] = {m.start, m.start_operand, next};
        }
        matches.resize(kept);
        const uint32_t node = matches.size() < kMaxLive ? trie_.begin(step) : kNone;
        if (node != kNone && trie_[node].child != kNone) matches.push_back({p, step.operand, node});
    }
    live_ = std::move(matches);
}

}  // namespace burnish::tracing
