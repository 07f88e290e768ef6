#include "tracing/watcher.hpp"

#include <algorithm>
#include <functional>

namespace burnish::tracing {

namespace {
constexpr double kDecay = 0.95;
}

void Watcher::op(const OpView &op) {
    if (live_.empty() && !trie_.begins(op.signature)) return;
    advance(history_.size() - 1, step_of(op, last_, live_.empty() ? op.operand : live_.front().start_operand));
}

void Watcher::advance(uint64_t now, const Step &step) {
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
    bool over = false;
    for (const Match &m : live_) {
        const uint32_t c = trie_[m.node].ends;
        if (c != kNone && candidates_[c].alive) complete(c, m.start, now + 1);
        over |= trie_[m.node].child == kNone;
    }
    if (over) std::erase_if(live_, [&](const Match &m) { return trie_[m.node].child == kNone; });
}

void Watcher::follow_completed(uint32_t candidate, uint64_t start) { complete(candidate, start, history_.size()); }

void Watcher::resume(std::vector<Match> live, uint64_t at, uint64_t behind) {
    live_ = std::move(live);
    LastUse last;
    for (uint64_t p = live_.empty() ? at + 1 : live_.front().start; p + behind < history_.size(); ++p) {
        const OpView view = history_.at(p);
        if (view.separator) {
            end_all(p);
            continue;
        }
        const Step step = step_of(view, last, 0);
        if (p > at) advance(p, step);
    }
}

void Watcher::separator() {
    end_all(history_.size() - 1);
}

void Watcher::end_all(uint64_t now) {
    for (size_t i = 0; i < live_.size(); ++i) die(live_[i], 0, now);
    live_.clear();
    separator_ = now + 1;
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

void Watcher::complete(uint32_t c, uint64_t start, uint64_t end) {
    Candidate &candidate = candidates_[c];
    completions_.push_back({c, start, end});
    candidate.sighted = true;
    candidate.last_completed = end;
    if (start < candidate.counted_end) return;
    candidate.ok = candidate.ok * kDecay + 1;
    candidate.tried = candidate.tried * kDecay + 1;
    candidate.counted_end = end;
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
        if (c.alive && c.root_hash == found.root_hash && 4 * c.length >= 3 * found.form.length()) return true;
    return false;
}

bool Watcher::novel(const Found &found) const {
    return !(found.loop && known_rotation(found)) && !trie_.contains(found.form);
}

bool Watcher::add(const NormalForm &form, uint64_t root_hash, bool remainder) {
    const auto id = static_cast<uint32_t>(candidates_.size());
    std::vector<uint32_t> path = trie_.insert(form, id);
    if (path.empty()) return false;
    Candidate candidate;
    candidate.form = form;
    candidate.length = form.length();
    candidate.path = std::move(path);
    candidate.last_completed = history_.size();
    candidate.root_hash = root_hash;
    candidate.remainder = remainder;
    candidates_.push_back(std::move(candidate));
    ++epoch_;
    return true;
}

void Watcher::insert(const std::vector<Found> &all) {
    uint32_t longest = 0;
    for (const Found &found : all) {
        if (!novel(found)) continue;  // also of those just added
        add(found.form, found.loop ? found.root_hash : 0, false);
        longest = std::max(longest, found.form.length());
        if (found.remainder) add(found.form.slice(0, found.remainder), 0, true);
    }
    limit_idle();
    uint64_t from = std::max(separator_, history_.oldest());
    if (history_.size() - from >= longest) from = history_.size() - longest + 1;
    rescan(live_.empty() ? from : std::min(from, live_.front().start));
}

void Watcher::forget(uint64_t since) {
    drop_if([&](const Candidate &c) { return c.last_completed < since; });
}

// Of the candidates that were never worth a template those that completed last are kept.
void Watcher::limit_idle() {
    std::vector<uint64_t> completed;
    for (const Candidate &c : candidates_)
        if (c.alive && !c.captured) completed.push_back(c.last_completed);
    if (completed.size() <= kMaxIdle) return;
    const auto middle = completed.begin() + kMaxIdle / 2;
    std::nth_element(completed.begin(), middle, completed.end(), std::greater<>());
    drop_if([&](const Candidate &c) { return !c.captured && c.last_completed < *middle; });
}

template <class F>
void Watcher::drop_if(F condition) {
    const uint64_t before = epoch_;
    for (Candidate &c : candidates_) {
        if (!c.alive || !condition(c)) continue;
        c.alive = c.captured = false;
        c.form = NormalForm{};
        c.path = {};
        ++epoch_;
    }
    if (epoch_ == before) return;
    trie_.clear();
    for (uint32_t c = 0; c < candidates_.size(); ++c)
        if (candidates_[c].alive) candidates_[c].path = trie_.insert(candidates_[c].form, c);
    rescan(live_.empty() ? history_.size() : live_.front().start);
}

void Watcher::rescan(uint64_t from) {
    live_.clear();
    last_ = LastUse();
    for (uint64_t p = from; p < history_.size(); ++p) {
        const Step step = step_of(history_.at(p), last_, 0);
        size_t kept = 0;
        for (const Match &m : live_) {
            const uint32_t next = trie_.advance(m.node, step, m.start_operand);
            if (next != kNone && trie_[next].child != kNone) live_[kept++] = {m.start, m.start_operand, next};
        }
        live_.resize(kept);
        const uint32_t node = live_.size() < kMaxLive ? trie_.begin(step) : kNone;
        if (node != kNone && trie_[node].child != kNone) live_.push_back({p, step.operand, node});
    }
}

}  // namespace burnish::tracing
