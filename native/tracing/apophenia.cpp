#include "tracing/apophenia.hpp"

#include <algorithm>
#include <cmath>

#include "tracing/clock.hpp"
#include "tracing/finder.hpp"
#include "tracing/repeats.hpp"
#include "tracing/suffix.hpp"

namespace burnish::tracing {

uint32_t PrefixFreeTrie::child(uint32_t node, const Token &token) const {
    const auto it = edges_.find({node, token});
    return it == edges_.end() ? kNone : it->second;
}

PrefixFreeTrie::Relation PrefixFreeTrie::relation(std::span<const Token> string) const {
    uint32_t node = kRoot;
    for (uint32_t k = 0; k < string.size(); ++k) {
        node = child(node, string[k]);
        if (node == kNone) return {};
        if (k + 1 < string.size() && ends_.contains(node)) return {false, k + 1};
    }
    return {true, 0};
}

void PrefixFreeTrie::insert(std::span<const Token> string, uint64_t op, uint32_t id) {
    uint32_t node = kRoot;
    for (const Token &token : string) {
        const auto [it, added] = edges_.try_emplace({node, token}, static_cast<uint32_t>(nodes_.size()));
        if (added) {
            ++nodes_[node].children;
            nodes_.emplace_back();
        }
        node = it->second;
    }
    ends_[node] = {{string.begin(), string.end()}, op, id};
}

void PrefixFreeTrie::remove(std::span<const Token> string) {
    std::vector<uint32_t> path{kRoot};
    for (const Token &token : string) path.push_back(child(path.back(), token));
    ends_.erase(path.back());
    for (size_t k = string.size(); k > 0 && nodes_[path[k]].children == 0; --k) {
        edges_.erase({path[k - 1], string[k - 1]});
        --nodes_[path[k - 1]].children;
    }
}

Apophenia::Apophenia(const Config &config) : config_(config) {}

// Tokens that occur once: separators and sentinels.
Token Apophenia::unique() { return {~uint64_t{0}, uniques_++}; }

std::span<const Segment> Apophenia::op(const Token &token) {
    segments_.clear();
    watch(token);
    match(token);
    find(token);
    ++position_;
    decide();
    return segments_;
}

std::span<const Segment> Apophenia::separator() {
    segments_.clear();
    find(unique());
    watching_.clear();
    scoring_.clear();
    active_.clear();
    issue_completed();
    ++position_;
    flush(position_);
    return segments_;
}

std::span<const Segment> Apophenia::finish() {
    segments_.clear();
    active_.clear();
    issue_completed();
    flush(position_);
    return segments_;
}

void Apophenia::find(const Token &token) {
    buffer_.push_back(token);
    const size_t n = buffer_.size();
    if (n == 2 * static_cast<size_t>(config_.history)) {
        buffer_.push_back(unique());
        start_job(n + 1);
        buffer_.clear();
    } else if (n % config_.ruler == 0) {
        start_job(std::min<uint64_t>(ruler_window(n, config_.ruler, n), n));
    }
}

void Apophenia::start_job(size_t length) {
    const double begin = processor_time();
    const std::span<const Token> window(buffer_.data() + buffer_.size() - length, length);
    std::vector<int32_t> text;
    const int32_t alphabet = rank_tokens(window, text);
    const auto repeats = find_repeats_ranked(text, alphabet, static_cast<int32_t>(config_.min_length));
    finder_.seconds += processor_time() - begin;
    finder_.tokens += length;
    ++finder_.jobs;
    for (const Repeat &r : repeats) insert(window.subspan(r.start, r.end - r.start));
}

void Apophenia::insert(std::span<const Token> string) {
    while (config_.max_length != kNone && string.size() > config_.max_length + size_t{config_.min_length}) {
        insert(string.first(config_.max_length));
        string = string.subspan(config_.max_length);
    }
    while (string.size() >= config_.min_length) {
        const auto relation = watched_.relation(string);
        if (relation.covered) return;
        if (relation.prefix == 0) {
            watched_.insert(string, position_, new_string(string));
            return;
        }
        string = string.subspan(relation.prefix);
    }
}

uint32_t Apophenia::new_string(std::span<const Token> string) {
    strings_.emplace_back(string.begin(), string.end());
    sightings_.emplace_back();
    score_.emplace_back();
    return static_cast<uint32_t>(strings_.size() - 1);
}

void Apophenia::watch(const Token &token) {
    watching_.push_back({position_, PrefixFreeTrie::kRoot});
    std::vector<Pointer> kept;
    std::vector<PrefixFreeTrie::End> reached;
    for (const Pointer &p : watching_) {
        const uint32_t node = watched_.child(p.node, token);
        if (node == kNone) continue;
        const auto *end = watched_.end(node);
        if (!end) {
            kept.push_back({p.start, node});
        } else if (end->op <= p.start) {
            reached.push_back(*end);
        }
    }
    watching_ = std::move(kept);
    for (const auto &end : reached) sighted(end);
}

void Apophenia::sighted(const PrefixFreeTrie::End &end) {
    Sightings &s = sightings_[end.id];
    if (s.count > 0 && position_ - s.last < end.string.size()) return;
    s.last = position_;
    if (++s.count != config_.visits) return;
    std::span<const Token> string(end.string);
    if (committed_.relation(string).covered) return;
    committed_.insert(string, position_, end.id);
}

void Apophenia::visit(uint32_t id, uint64_t length) {
    Score &s = score_[id];
    const uint64_t missed = (position_ - s.last) / length;
    if (missed == 0) return;
    s.visits = std::pow(0.99, static_cast<double>(missed)) * s.visits + 1;
    if (s.last != 0 && position_ - s.last == length) {
        const auto since = static_cast<double>((position_ - s.last_back_to_back) / length);
        s.back_to_back = std::pow(0.99, since) * s.back_to_back + 1;
        s.last_back_to_back = position_;
    }
    s.last = position_;
}

double Apophenia::score(uint32_t id, uint64_t length) const {
    const Score &s = score_[id];
    const auto l = static_cast<double>(length);
    const double decay = std::pow(0.99, static_cast<double>((position_ - s.last) / length));
    return std::min((decay * s.visits + 1) * l, 10 * l) * std::clamp(static_cast<double>(s.replays), 1.0, 1.75) *
           std::clamp(s.back_to_back, 1.0, 2.0);
}

void Apophenia::match(const Token &token) {
    const auto advance = [&](std::vector<Pointer> &pointers, auto reached) {
        pointers.push_back({position_, PrefixFreeTrie::kRoot});
        size_t kept = 0;
        for (const Pointer &p : pointers) {
            const uint32_t node = committed_.child(p.node, token);
            if (node == kNone) continue;
            const auto *end = committed_.end(node);
            if (!end) {
                pointers[kept++] = {p.start, node};
            } else if (end->op <= p.start) {
                reached(p, *end);
            }
        }
        pointers.resize(kept);
    };
    advance(scoring_, [&](const Pointer &, const PrefixFreeTrie::End &end) { visit(end.id, end.string.size()); });
    advance(active_, [&](const Pointer &p, const PrefixFreeTrie::End &end) {
        const uint64_t length = end.string.size();
        completed_.push_back({p.start, length, end.id, score(end.id, length)});
    });
    std::stable_sort(completed_.begin(), completed_.end(), [](const Complete &a, const Complete &b) {
        return a.score > b.score || (a.score == b.score && a.start < b.start);
    });
}

void Apophenia::decide() {
    uint64_t first_active = position_, first_completed = position_;
    for (const Pointer &p : active_) first_active = std::min(first_active, p.start);
    for (const Complete &c : completed_) first_completed = std::min(first_completed, c.start);
    flush(std::min(first_active, first_completed));
    if (completed_.empty()) return;
    if (active_.empty()) {
        issue_completed();
        flush(position_);
    } else if (first_completed < first_active) {
        std::vector<Complete> kept;
        for (const Complete &c : completed_) {
            const bool overlaps = std::any_of(kept.begin(), kept.end(), [&](const Complete &k) {
                return c.start < k.end() && k.start < c.end();
            });
            if (c.end() > first_active || overlaps) {
                kept.push_back(c);
            } else {
                issue(c);
            }
        }
        std::erase_if(kept, [&](const Complete &c) { return c.start < issued_; });
        completed_ = std::move(kept);
    }
}

void Apophenia::issue_completed() {
    for (const Complete &c : completed_) issue(c);
    completed_.clear();
}

void Apophenia::issue(const Complete &c) {
    if (c.start < issued_) return;
    flush(c.start);
    Score &s = score_[c.id];
    segments_.push_back({c.start, static_cast<uint32_t>(c.length), c.id, s.replays > 0});
    ++s.replays;
    issued_ = c.end();
}

void Apophenia::flush(uint64_t last) {
    if (last <= issued_) return;
    segments_.push_back({issued_, static_cast<uint32_t>(last - issued_), kNone, false});
    issued_ = last;
}

}  // namespace burnish::tracing
