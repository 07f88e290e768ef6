#include "tracing/simulate.hpp"

#include <algorithm>
#include <unordered_set>

namespace burnish::tracing {

namespace {

// Eager mode, in the terms of the deferred one: an op counts if it is part of a capture, or was issued through a
// template and lies in a complete match of a captured candidate all of whose ops were so issued. Matches are chosen
// as the deferred mode does: completed leaders, then the longest in what is left.
class EagerLedger {
public:
    EagerLedger(Simulation &result, size_t n) : result_(result) {
        result.trace.assign(n, kNone);
        result.replayed.assign(n, 0);
    }

    void record(const Decision &d, uint64_t now, Recognizer &recognizer) {
        if (d.lead != kNone) result_.replayed[now] = 1;
        add(recognizer.completions());
        if (d.completed) {
            const uint64_t start = now + 1 - recognizer.form(d.lead).length();
            settle(start);
            paint({d.lead, start, now + 1});
        } else if (d.lead == kNone) {
            settle(now);
        }
        if (d.capture == kNone) return;
        for (uint64_t p = now + 1 - d.capture_length; p <= now; ++p)
            if (result_.trace[p] == kNone) result_.trace[p] = d.capture;
        ++result_.captures;
        captured_.insert(d.capture);
        recognizer.mark_captured(d.capture, true);
    }

    void close(uint64_t n, std::span<const Completion> completions) {
        add(completions);
        settle(n);
    }

private:
    void add(std::span<const Completion> completions) {
        matches_.insert(matches_.end(), completions.begin(), completions.end());
    }

    // Counts the complete matches that end at or before `last`, and forgets all.
    void settle(uint64_t last) {
        std::stable_sort(matches_.begin(), matches_.end(),
                         [](const Completion &a, const Completion &b) { return a.end - a.start > b.end - b.start; });
        for (const Completion &c : matches_) {
            bool open = c.end <= last;
            for (uint64_t p = c.start; open && p < c.end; ++p) open = result_.replayed[p] && result_.trace[p] == kNone;
            if (open) paint(c);
        }
        matches_.clear();
    }

    void paint(const Completion &c) {
        for (uint64_t p = c.start; p < c.end; ++p)
            if (result_.replayed[p]) result_.trace[p] = c.candidate;
        ++result_.replays;
    }

    Simulation &result_;
    std::vector<Completion> matches_;
    std::unordered_set<uint32_t> captured_;
};

class DeferredLedger {
public:
    DeferredLedger(Simulation &result, size_t n) : result_(result) {
        result.trace.assign(n, kNone);
        result.replayed.assign(n, 0);
    }

    void record(const Decision &d, uint64_t seen) {
        for (const Segment &s : d.issue) {
            issued_ = s.start + s.length;
            if (s.candidate == kNone) continue;
            std::fill_n(result_.trace.begin() + static_cast<int64_t>(s.start), s.length, s.candidate);
            std::fill_n(result_.replayed.begin() + static_cast<int64_t>(s.start), s.length, s.replay);
            ++(s.replay ? result_.replays : result_.captures);
        }
        result_.max_deferral = std::max(result_.max_deferral, seen - issued_);
    }

private:
    Simulation &result_;
    uint64_t issued_ = 0;
};

const Decision &launch(const Stream &stream, size_t i, Recognizer &recognizer) {
    if (stream.separators[i]) return recognizer.separator();
    const auto roots = stream.roots.subspan(stream.offsets[i], stream.offsets[i + 1] - stream.offsets[i]);
    return recognizer.op({0, stream.signatures[i]}, {0, stream.flats[i]}, roots);
}

}  // namespace

Simulation simulate(const Stream &stream, Config config) {
    Simulation result;
    config.deterministic = true;
    Recognizer recognizer(config);
    const size_t n = stream.size();
    if (config.mode == Mode::eager && config.algorithm != Algorithm::apophenia) {
        EagerLedger ledger(result, n);
        for (size_t i = 0; i < n; ++i) ledger.record(launch(stream, i, recognizer), i, recognizer);
        recognizer.finish();
        ledger.close(n, recognizer.completions());
    } else {
        DeferredLedger ledger(result, n);
        for (size_t i = 0; i < n; ++i) ledger.record(launch(stream, i, recognizer), i + 1);
        ledger.record(recognizer.finish(), n);
    }
    std::unordered_set<uint32_t> distinct(result.trace.begin(), result.trace.end());
    distinct.erase(kNone);
    result.distinct = distinct.size();
    result.finder = recognizer.finder();
    result.collisions = recognizer.collisions();
    return result;
}

}  // namespace burnish::tracing
