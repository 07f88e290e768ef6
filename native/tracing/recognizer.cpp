#include "tracing/recognizer.hpp"

#include <algorithm>

#include "tracing/apophenia.hpp"
#include "tracing/coverage.hpp"
#include "tracing/deferred.hpp"
#include "tracing/eager.hpp"
#include "tracing/finder.hpp"
#include "tracing/history.hpp"
#include "tracing/watcher.hpp"

namespace burnish::tracing {

class Recognizer::Implementation {
public:
    virtual ~Implementation() = default;

    virtual void op(const Token &signature, const Token &flat, std::span<const uint32_t> roots, Decision &d) = 0;
    virtual void separator(Decision &d) = 0;
    virtual void finish(Decision &d) = 0;
    virtual void mark_captured(uint32_t, bool) {}
    virtual const NormalForm &form(uint32_t candidate) const = 0;
    virtual std::vector<CandidateInfo> candidates() const = 0;
    virtual std::span<const Completion> completions() const { return {}; }
    virtual uint64_t position() const = 0;
    virtual uint64_t collisions() const { return 0; }
    virtual FinderStats finder() const = 0;

    Decision decision;
};

namespace {

constexpr double kQuiet = 0.98;          // share of covered positions above which no job is started
constexpr uint64_t kQuietWindow = 1024;  // positions looked at, at least
constexpr uint64_t kForgetAfter = 16;    // histories

FindOptions find_options(const Config &config) {
    FindOptions options;
    options.min_length = config.min_length;
    options.max_length = config.max_length;
    return options;
}

// Analyses everything.
class Off final : public Recognizer::Implementation {
public:
    void op(const Token &, const Token &, std::span<const uint32_t>, Decision &) override { ++position_; }
    void separator(Decision &) override { ++position_; }
    void finish(Decision &) override {}
    const NormalForm &form(uint32_t) const override { return none_; }
    std::vector<CandidateInfo> candidates() const override { return {}; }
    uint64_t position() const override { return position_; }
    FinderStats finder() const override { return {}; }

private:
    NormalForm none_;
    uint64_t position_ = 0;
};

class Reference final : public Recognizer::Implementation {
public:
    explicit Reference(const Config &config) : apophenia_(config) {}

    void op(const Token &, const Token &flat, std::span<const uint32_t>, Decision &d) override {
        d.issue = apophenia_.op(flat);
    }
    void separator(Decision &d) override { d.issue = apophenia_.separator(); }
    void finish(Decision &d) override { d.issue = apophenia_.finish(); }
    const NormalForm &form(uint32_t candidate) const override {
        form_ = NormalForm{};
        for (const Token &token : apophenia_.string(candidate)) form_.push(token);
        return form_;
    }
    std::vector<CandidateInfo> candidates() const override {
        std::vector<CandidateInfo> infos;
        for (uint32_t c = 0; c < apophenia_.size(); ++c) {
            const uint64_t replays = apophenia_.replays(c);
            infos.push_back({c, static_cast<uint32_t>(apophenia_.string(c).size()), true, replays > 0, replays, 1.0});
        }
        return infos;
    }
    uint64_t position() const override { return apophenia_.position(); }
    FinderStats finder() const override { return apophenia_.finder(); }

private:
    Apophenia apophenia_;
    mutable NormalForm form_;
};

class Burnish final : public Recognizer::Implementation {
public:
    Burnish(const Config &config, std::unique_ptr<Agreement> agreement)
        : config_(config),
          limit_(2 * static_cast<uint64_t>(config.history)),
          history_(limit_),
          watcher_(history_),
          coverage_(limit_),
          eager_(history_, watcher_, coverage_),
          deferred_(watcher_),
          finder_(make_synchronous_finder(find_options(config))),
          agreement_(std::move(agreement)),
          until_ruler_(config.ruler),
          forget_at_(kForgetAfter * config.history) {}

    void op(const Token &signature, const Token &flat, std::span<const uint32_t> roots, Decision &d) override {
        begin();
        const uint64_t now = history_.size();
        OpView view{signature, history_.operands(), roots};
        if (!config_.parametric) view.signature = flat, view.roots = {};
        history_.append(view.signature, view.roots);
        coverage_.extend(now);
        if (config_.mode == Mode::deferred) {
            watcher_.op(view);
            issue(deferred_.op(now + 1), d);
        } else {
            eager_.op(view, now, d);
        }
        if (--until_ruler_ == 0) at_ruler();
    }

    void separator(Decision &d) override {
        begin();
        const uint64_t now = history_.size();
        history_.append_separator();
        coverage_.extend(now);
        coverage_.mark(now, Coverage::complete);
        if (config_.mode == Mode::deferred) {
            watcher_.separator();
            issue(deferred_.separator(now + 1), d);
        } else {
            eager_.separator(now, d);
        }
        if (--until_ruler_ == 0) at_ruler();
    }

    void finish(Decision &d) override {
        watcher_.clear_completions();
        if (config_.mode == Mode::deferred) {
            issue(deferred_.separator(history_.size()), d);
        } else {
            eager_.finish(history_.size(), d);
        }
    }

    void mark_captured(uint32_t candidate, bool captured) override {
        eager_.settle();
        Candidate &c = watcher_.candidate(candidate);
        c.captured = captured && c.alive;
    }

    const NormalForm &form(uint32_t candidate) const override { return watcher_.candidate(candidate).form; }

    std::vector<CandidateInfo> candidates() const override {
        std::vector<CandidateInfo> infos;
        const auto &all = watcher_.candidates();
        for (uint32_t c = 0; c < all.size(); ++c)
            infos.push_back({c, all[c].length, all[c].alive, all[c].captured, all[c].replays, all[c].reliability()});
        return infos;
    }

    std::span<const Completion> completions() const override { return watcher_.completions(); }
    uint64_t position() const override { return history_.size(); }
    FinderStats finder() const override {
        FinderStats stats = finder_->stats();
        stats.skipped = skipped_;
        return stats;
    }

private:
    void begin() {
        watcher_.clear_completions();
        if (results_) take_up();
    }

    void issue(std::span<const Segment> segments, Decision &d) {
        d.issue = segments;
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
        const uint64_t n = history_.size(), length = std::min({n, std::max(window, kQuietWindow), limit_});
        // Ops of the match under way count: with finished replays alone the finder would never rest.
        uint64_t live = config_.mode == Mode::deferred ? deferred_.issued() : eager_.led_since(n);
        live = std::max(live, n - length);
        const uint64_t covered = n - live + coverage_.count(n - length, live, Coverage::complete);
        return static_cast<double>(covered) >= kQuiet * static_cast<double>(length);
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
    bool results_ = false;  // of finder jobs, not yet taken up
    uint64_t until_ruler_, forget_at_;
    uint64_t skipped_ = 0;
};

std::unique_ptr<Recognizer::Implementation> make(const Config &config, std::unique_ptr<Agreement> agreement) {
    switch (config.algorithm) {
        case Algorithm::apophenia: return std::make_unique<Reference>(config);
        case Algorithm::off: return std::make_unique<Off>();
        default: return std::make_unique<Burnish>(config, std::move(agreement));
    }
}

}  // namespace

Recognizer::Recognizer(const Config &config, std::unique_ptr<Agreement> agreement)
    : implementation_(make(config, std::move(agreement))) {}
Recognizer::~Recognizer() = default;
Recognizer::Recognizer(Recognizer &&) noexcept = default;

const Decision &Recognizer::op(const Token &signature, const Token &flat, std::span<const uint32_t> roots) {
    implementation_->decision = Decision{};
    implementation_->op(signature, flat, roots, implementation_->decision);
    return implementation_->decision;
}
const Decision &Recognizer::separator() {
    implementation_->decision = Decision{};
    implementation_->separator(implementation_->decision);
    return implementation_->decision;
}
const Decision &Recognizer::finish() {
    implementation_->decision = Decision{};
    implementation_->finish(implementation_->decision);
    return implementation_->decision;
}

void Recognizer::mark_captured(uint32_t c, bool captured) { implementation_->mark_captured(c, captured); }
const NormalForm &Recognizer::form(uint32_t c) const { return implementation_->form(c); }
std::vector<CandidateInfo> Recognizer::candidates() const { return implementation_->candidates(); }
std::span<const Completion> Recognizer::completions() const { return implementation_->completions(); }
uint64_t Recognizer::position() const { return implementation_->position(); }
uint64_t Recognizer::collisions() const { return implementation_->collisions(); }
FinderStats Recognizer::finder() const { return implementation_->finder(); }

}  // namespace burnish::tracing
