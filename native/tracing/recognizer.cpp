#include "tracing/recognizer.hpp"

#include <algorithm>

#include "tracing/coverage.hpp"
#include "tracing/deferred.hpp"
#include "tracing/eager.hpp"
#include "tracing/finder.hpp"
#include "tracing/history.hpp"
#include "tracing/watcher.hpp"

namespace burnish::tracing {

namespace {

constexpr double kQuiet = 0.98;          // share of covered positions above which no job is started
constexpr uint64_t kQuietWindow = 1024;   // positions looked at, at least
constexpr uint64_t kForgetAfter = 16;    // histories

FindOptions find_options(const Config &config) {
    FindOptions options;
    options.min_length = config.min_length;
    options.max_length = config.max_length;
    return options;
}

}  // namespace

class Recognizer::Implementation {
public:
    explicit Implementation(const Config &config, std::unique_ptr<Agreement> agreement)
        : config_(config),
          limit_(2 * static_cast<uint64_t>(config.history)),
          history_(limit_),
          watcher_(history_),
          coverage_(limit_),
          eager_(watcher_, coverage_),
          deferred_(watcher_),
          finder_(make_synchronous_finder(find_options(config))),
          agreement_(std::move(agreement)) {}

    const Decision &op(const Token &signature, const Token &flat, std::span<const uint32_t> roots) {
        decision_ = Decision{};
        take_up();
        const uint64_t now = history_.size();
        if (config_.parametric) {
            history_.append(signature, roots);
        } else {
            history_.append(flat, {});
        }
        watcher_.op();
        coverage_.reset(now);
        if (config_.mode == Mode::eager) {
            eager_.op(now, decision_);
        } else {
            issue(deferred_.op(now + 1));
        }
        after();
        return decision_;
    }

    const Decision &separator() {
        decision_ = Decision{};
        take_up();
        const uint64_t now = history_.size();
        history_.append_separator();
        watcher_.separator();
        coverage_.reset(now);
        coverage_.mark(now, now + 1, Coverage::complete);
        if (config_.mode == Mode::eager) {
            eager_.separator(now, decision_);
        } else {
            issue(deferred_.separator(now + 1));
        }
        after();
        return decision_;
    }

    const Decision &finish() {
        decision_ = Decision{};
        if (config_.mode == Mode::eager) {
            eager_.separator(history_.size(), decision_);
        } else {
            issue(deferred_.separator(history_.size()));
        }
        return decision_;
    }

    const Config config_;
    const uint64_t limit_;
    History history_;
    Watcher watcher_;
    Coverage coverage_;
    Eager eager_;
    Deferred deferred_;
    std::unique_ptr<Finder> finder_;
    std::unique_ptr<Agreement> agreement_;
    Decision decision_;
    uint64_t skipped_ = 0;

private:
    void issue(std::span<const Segment> segments) {
        decision_.issue = segments;
        for (const Segment &s : segments)
            if (s.candidate != kNone) coverage_.mark(s.start, s.start + s.length, Coverage::complete);
    }

    void take_up() {
        for (uint64_t n = finder_->finished(); n > 0; --n)
            for (const Found &found : finder_->take()) watcher_.insert(found);
    }

    void after() {
        const uint64_t n = history_.size();
        if (n % config_.ruler != 0) return;
        const uint64_t window = std::min(ruler_window(n, config_.ruler, limit_), n);
        if (quiet(window)) {
            ++skipped_;
        } else {
            finder_->submit(Window{n - window, n, history_.share(window)});
        }
        if (n % config_.history == 0 && n > kForgetAfter * config_.history)
            watcher_.forget(n - kForgetAfter * config_.history);
    }

    bool quiet(uint64_t window) {
        const uint64_t n = history_.size(), length = std::min(n, std::max(window, kQuietWindow));
        // Ops of the match under way count: with finished replays alone the finder would never rest.
        uint64_t live = n;
        if (config_.mode == Mode::deferred) live = deferred_.issued();
        else if (eager_.leading()) live = eager_.led_since();
        live = std::max(live, n - length);
        const uint64_t covered = n - live + coverage_.count(n - length, live, Coverage::complete);
        return static_cast<double>(covered) >= kQuiet * static_cast<double>(length);
    }
};

Recognizer::Recognizer(const Config &config, std::unique_ptr<Agreement> agreement)
    : implementation_(std::make_unique<Implementation>(config, std::move(agreement))) {}
Recognizer::~Recognizer() = default;
Recognizer::Recognizer(Recognizer &&) noexcept = default;

const Decision &Recognizer::op(const Token &signature, const Token &flat, std::span<const uint32_t> roots) {
    return implementation_->op(signature, flat, roots);
}
const Decision &Recognizer::separator() { return implementation_->separator(); }
const Decision &Recognizer::finish() { return implementation_->finish(); }

void Recognizer::mark_captured(uint32_t candidate, bool captured) {
    Candidate &c = implementation_->watcher_.candidate(candidate);
    c.captured = captured && c.alive;
}

const NormalForm &Recognizer::form(uint32_t candidate) const {
    return implementation_->watcher_.candidate(candidate).form;
}

std::vector<CandidateInfo> Recognizer::candidates() const {
    std::vector<CandidateInfo> infos;
    const auto &all = implementation_->watcher_.candidates();
    for (uint32_t c = 0; c < all.size(); ++c)
        infos.push_back({c, all[c].length, all[c].alive, all[c].captured, all[c].replays, all[c].reliability()});
    return infos;
}

std::span<const Completion> Recognizer::completions() const { return implementation_->watcher_.completions(); }
uint64_t Recognizer::position() const { return implementation_->history_.size(); }
uint64_t Recognizer::collisions() const { return 0; }
FinderStats Recognizer::finder() const {
    FinderStats stats = implementation_->finder_->stats();
    stats.skipped = implementation_->skipped_;
    return stats;
}

}  // namespace burnish::tracing
