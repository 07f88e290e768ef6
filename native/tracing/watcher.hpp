// Live matches of the program against the candidates, and how reliable each candidate is.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "tracing/history.hpp"
#include "tracing/loops.hpp"
#include "tracing/recognizer.hpp"
#include "tracing/trie.hpp"

namespace burnish::tracing {

struct Candidate {
    NormalForm form;
    uint32_t length = 0;
    std::vector<uint32_t> path;   // its nodes in the trie
    uint64_t last_completed = 0;  // position after the last complete match (or of insertion)
    uint64_t root_hash = 0;       // loops: identifies the loop body up to rotation
    bool remainder = false;       // the same loop body fewer times: what is left of a loop after its last instance
    bool alive = true;
    bool sighted = false;   // matched completely at least once
    bool captured = false;  // the runtime holds a template
    bool dull = false;      // a template would not have helped at the last complete match
    uint64_t replays = 0;

    // Events decay by 0.95; overlapping matches count once.
    double ok = 0, tried = 0;
    uint64_t counted_end = 0;
    double reliability() const { return (ok + 0.1) / (tried + 0.2); }
    double expected() const { return length * reliability(); }
    // From which on a match is worth waiting for or taking up in its middle.
    bool trusted() const { return reliability() >= 0.3; }
};

// The ops [start, now] are a prefix of every candidate below `node`.
struct Match {
    uint64_t start;          // position of its first op
    uint64_t start_operand;  // operands before it
    uint32_t node;
};

class Watcher {
public:
    static constexpr size_t kMaxLive = 64;
    static constexpr size_t kMaxIdle = 96;  // candidates without a template

    explicit Watcher(History &history) : history_(history) {}

    // Whether `found` would be a new candidate.
    bool novel(const Found &found) const;
    // Adds new candidates; matches of them that are under way in the history are taken up.
    void insert(const std::vector<Found> &found);
    // Removes candidates that have not been completed since position `since`.
    void forget(uint64_t since);

    // Advances all matches by the op just appended to the history.
    void op(const OpView &op);
    // A separator ends all matches.
    void separator();

    // Whether the op just appended is slot `slot` of a match of `candidate` whose operands start at `start_operand`.
    // Looks at nothing else: all other matches are out of date until `resume`.
    bool follows(const OpView &op, uint32_t candidate, uint32_t slot, uint64_t start_operand) {
        return trie_.accepts(candidates_[candidate].path[slot], step_of(op, last_, start_operand), start_operand);
    }
    // A complete match found by `follows`.
    void follow_completed(uint32_t candidate, uint64_t start);
    // Takes `live` as the matches after the op at position `at`, and advances them to the last op but `behind`.
    void resume(std::vector<Match> live, uint64_t at, uint64_t behind);

    std::span<const Match> live() const { return live_; }
    std::span<const Completion> completions() const { return completions_; }  // since they were cleared
    void clear_completions() { completions_.clear(); }
    const Match *find(uint64_t start) const;
    bool leads_to(const Match &m, uint32_t candidate) const;
    std::span<const uint32_t> below(const Match &m) const { return trie_.below(m.node); }

    const std::vector<Candidate> &candidates() const { return candidates_; }
    Candidate &candidate(uint32_t c) { return candidates_[c]; }
    const Candidate &candidate(uint32_t c) const { return candidates_[c]; }
    uint64_t epoch() const { return epoch_; }  // changes whenever candidates do

private:
    Step step_of(const OpView &op, LastUse &last, uint64_t horizon) {
        const size_t n = op.roots.size();
        if (n > distances_.size()) [[unlikely]]
            distances_.resize(2 * n);
        last.reserve(n, horizon);
        for (size_t i = 0; i < n; ++i) distances_[i] = last.distance(op.roots[i], op.operand + i);
        return {op.signature, op.operand, {distances_.data(), n}};
    }
    void advance(uint64_t now, const Step &step);
    void end_all(uint64_t now);
    void complete(uint32_t candidate, uint64_t start, uint64_t end);
    void die(const Match &m, size_t earlier, uint64_t now);
    void leave(const Match &m, uint32_t next, size_t earlier, uint64_t now);
    void failed(uint32_t candidate, const Match &m, size_t earlier, uint32_t depth);
    bool known_rotation(const Found &found) const;
    bool add(const NormalForm &form, uint64_t root_hash, bool remainder);
    void limit_idle();
    template <class F>
    void drop_if(F condition);
    // Matches of the ops from position `from` on, as if all candidates had been known; replaces the live ones.
    void rescan(uint64_t from);

    History &history_;
    Trie trie_;
    LastUse last_;
    std::vector<Candidate> candidates_;
    std::vector<Match> live_;
    std::vector<Completion> completions_;
    std::vector<uint32_t> distances_;
    uint64_t separator_ = 0;  // position after the last separator
    uint64_t epoch_ = 0;
};

}  // namespace burnish::tracing
