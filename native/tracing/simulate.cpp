#include "tracing/simulate.hpp"

#include <algorithm>
#include <unordered_set>

namespace burnish::tracing {

namespace {

class Accounting {
public:
    Accounting(Simulation &result, size_t n) : result_(result) {
        result.trace.assign(n, kNone);
        result.replayed.assign(n, 0);
    }

    void eager(const Decision &d, uint64_t now, Recognizer &recognizer) {
        if (d.lead != kNone) result_.replayed[now] = 1;
        if (d.completed) {
            const uint32_t length = recognizer.form(d.lead).length();
            for (uint64_t p = now + 1 - length; p <= now; ++p)
                if (result_.replayed[p]) result_.trace[p] = d.lead;
            ++result_.replays;
            distinct_.insert(d.lead);
        }
        if (d.capture == kNone) return;
        for (uint64_t p = now + 1 - d.capture_length; p <= now; ++p)
            if (result_.trace[p] == kNone) result_.trace[p] = d.capture;
        ++result_.captures;
        distinct_.insert(d.capture);
        recognizer.mark_captured(d.capture, true);
    }

    void deferred(const Decision &d, uint64_t now) {
        for (const Segment &s : d.issue) {
            issued_ = s.start + s.length;
            if (s.candidate == kNone) continue;
            std::fill_n(result_.trace.begin() + static_cast<int64_t>(s.start), s.length, s.candidate);
            std::fill_n(result_.replayed.begin() + static_cast<int64_t>(s.start), s.length, s.replay);
            ++(s.replay ? result_.replays : result_.captures);
            distinct_.insert(s.candidate);
        }
        result_.max_deferral = std::max(result_.max_deferral, now + 1 - std::min(now + 1, issued_));
    }

    void close() {
        result_.distinct = distinct_.size();
        for (const uint32_t t : result_.trace) result_.covered += t != kNone;
    }

private:
    Simulation &result_;
    uint64_t issued_ = 0;
    std::unordered_set<uint32_t> distinct_;
};

}  // namespace

Simulation simulate(const Stream &stream, Config config) {
    Simulation result;
    config.deterministic = true;
    Recognizer recognizer(config);
    Accounting accounting(result, stream.size());
    const bool eager = config.mode == Mode::eager && config.algorithm == Algorithm::burnish;
    for (size_t i = 0; i < stream.size(); ++i) {
        const std::span<const uint32_t> roots =
            stream.roots.subspan(stream.offsets[i], stream.offsets[i + 1] - stream.offsets[i]);
        const Decision &d = stream.separators[i]
                                ? recognizer.separator()
                                : recognizer.op({0, stream.signatures[i]}, {0, stream.flats[i]}, roots);
        if (eager) {
            accounting.eager(d, i, recognizer);
        } else {
            accounting.deferred(d, i);
        }
    }
    const Decision &last = recognizer.finish();
    if (!eager && stream.size() > 0) accounting.deferred(last, stream.size() - 1);
    accounting.close();
    result.finder = recognizer.finder();
    result.collisions = recognizer.collisions();
    return result;
}

}  // namespace burnish::tracing
