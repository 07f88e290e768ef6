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
    uint64_t inserted = 0;        // position from which matches may complete it
    uint64_t last_completed = 0;  // position after the last complete match (or of insertion)
    uint64_t root_hash = 0;       // loops: identifies the loop body up to rotation
    bool remainder = false;       // the same loop body fewer times: what is left of a loop after its last instance
    bool alive = true;
    bool sighted = false;   // matched completely at least once
    bool captured = false;  // the runtime holds a template
    uint32_t refusals = 0;  // captures that the runtime could not make
    uint64_t replays = 0;

    // Events decay by 0.95; overlapping matches count once.
    double ok = 0, tried = 0;
    uint64_t counted_end = 0;
    double reliability() const { return (ok + 0.1) / (tried + 0.2); }
    double expected() const { return length * reliability(); }
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

    explicit Watcher(History &history) : history_(history) {}

    // Adds what a finder job found; matches that are under way in the history are taken up.
    void insert(const Found &found);
    // Removes candidates that have not been completed since position `since`.
    void forget(uint64_t since);

    // Advances all matches by the op that was just appended to the history.
    void op();
    // A separator ends all matches.
    void separator();

    std::span<const Match> live() const { return live_; }
    std::span<const Completion> completions() const { return completions_; }  // by the last op, earliest start first
    const Match *find(uint64_t start) const;
    bool leads_to(const Match &m, uint32_t candidate) const;
    std::span<const uint32_t> below(const Match &m) const { return trie_.below(m.node); }

    const std::vector<Candidate> &candidates() const { return candidates_; }
    Candidate &candidate(uint32_t c) { return candidates_[c]; }
    const Candidate &candidate(uint32_t c) const { return candidates_[c]; }

private:
    Step step_of(const OpView &op);
    void complete(uint32_t candidate, uint64_t start);
    void die(const Match &m, size_t earlier, uint64_t now);
    void leave(const Match &m, uint32_t next, size_t earlier, uint64_t now);
    void failed(uint32_t candidate, const Match &m, size_t earlier, uint32_t depth);
    bool known_rotation(const Found &found) const;
    bool add(const NormalForm &form, uint64_t root_hash, bool remainder);
    // Matches of the ops [from, now) against the trie; replaces the live ones.
    void rescan(uint64_t from);

    History &history_;
    Trie trie_;
    LastUse last_;
    std::vector<Candidate> candidates_;
    std::vector<Match> live_;
    std::vector<Completion> completions_;
    std::vector<uint32_t> distances_;
    uint64_t separator_ = 0;  // position after the last separator
};

}  // namespace burnish::tracing
