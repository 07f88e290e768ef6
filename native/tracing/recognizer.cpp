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
          eager_(history_, watcher_, coverage_),
          deferred_(watcher_),
          finder_(make_synchronous_finder(find_options(config))),
          agreement_(std::move(agreement)) {}

    const Decision &op(const Token &signature, const Token &flat, std::span<const uint32_t> roots) {
        begin();
        const uint64_t now = history_.size();
        OpView view{signature, history_.operands(), roots};
        if (!config_.parametric) view.signature = flat, view.roots = {};
        history_.append(view.signature, view.roots);
        coverage_.extend(now);
        if (config_.mode == Mode::deferred) {
            watcher_.op(view);
            issue(deferred_.op(now + 1));
        } else {
            eager_.op(view, now, decision_);
        }
        if (--until_ruler_ == 0) at_ruler();
        return decision_;
    }

    const Decision &separator() {
        begin();
        const uint64_t now = history_.size();
        history_.append_separator();
        coverage_.extend(now);
        coverage_.mark(now, Coverage::complete);
        if (config_.mode == Mode::deferred) {
            watcher_.separator();
            issue(deferred_.separator(now + 1));
        } else {
            eager_.separator(now, decision_);
        }
        if (--until_ruler_ == 0) at_ruler();
        return decision_;
    }

    const Decision &finish() {
        begin();
        if (config_.mode == Mode::deferred) {
            issue(deferred_.separator(history_.size()));
        } else {
            eager_.finish(history_.size(), decision_);
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
    void begin() {
        decision_ = Decision{};
        watcher_.clear_completions();
        if (results_) take_up();
    }

    void issue(std::span<const Segment> segments) {
        decision_.issue = segments;
        for (const Segment &s : segments)
            if (s.candidate != kNone) coverage_.mark(s.start, s.start + s.length, Coverage::complete);
    }

    void take_up() {
        results_ = false;
        for (uint64_t n = finder_->finished(); n > 0; --n) {
            std::vector<Found> found = finder_->take();
            std::erase_if(found, [&](const Found &f) { return !watcher_.novel(f); });
            if (found.empty()) continue;
            eager_.settle();
            watcher_.insert(found);
        }
    }

    void at_ruler() {
        until_ruler_ = config_.ruler;
        const uint64_t n = history_.size();
        const uint64_t window = std::min(ruler_window(n, config_.ruler, limit_), n);
        if (quiet(window)) {
            ++skipped_;
        } else {
            finder_->submit(Window{n - window, n, history_.share(window)});
            results_ = true;
        }
        if (n >= forget_at_) {
            forget_at_ = n + config_.history;
            eager_.settle();
            watcher_.forget(n - kForgetAfter * config_.history);
        }
    }

    bool quiet(uint64_t window) const {
        const uint64_t n = history_.size(), length = std::min(n, std::max(window, kQuietWindow));
        // Ops of the match under way count: with finished replays alone the finder would never rest.
        uint64_t live = config_.mode == Mode::deferred ? deferred_.issued() : eager_.led_since(n);
        live = std::max(live, n - length);
        const uint64_t covered = n - live + coverage_.count(n - length, live, Coverage::complete);
        return static_cast<double>(covered) >= kQuiet * static_cast<double>(length);
    }

    bool results_ = false;  // of finder jobs, not yet taken up
    uint64_t until_ruler_ = config_.ruler;
    uint64_t forget_at_ = kForgetAfter * config_.history;
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
    implementation_->eager_.settle();
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
