// Recognition of repeated op sequences on the launching thread. No Python, no locks in steady state.
//
// Protocol, mode eager. For every launch, before it is analysed:
//
//     const Decision &d = recognizer.op(signature, flat, roots);
//
//   1. d.died:      the instance of candidate d.died ends early; its slots [d.died_from, d.died_slots) were issued
//                   through the template: bring the analysis state forward by its first d.died_slots slots (fold).
//   2. d.lead:      this op is slot d.slot of an instance of candidate d.lead, whose template is captured: issue it
//                   through the template. kNone: analyse it. The instance starts with this op if d.slot == 0; it is
//                   adopted in the middle if d.adopted: slots 0 .. d.slot-1 are the last d.slot ops, in order, already
//                   issued by whatever means.
//   3. d.completed: this op is the last slot of that instance.
//   4. d.capture:   the last d.capture_length ops, this one included, are a complete match of candidate d.capture,
//                   which has no template. After issuing this op build one from the records of these ops and call
//                   mark_captured(d.capture, true); mark_captured(d.capture, false) if that is not possible (it is
//                   offered again, less often). Later mark_captured(c, false) says that a template was dropped.
//
// A launch that cannot be traced, a blocking read, a fence: separator() instead of op(); its decision can only say died.
// The operands of matching instances correspond one to one: slot s, operand i is parameter
// form(c).parameters()[form(c).offsets[s] + i], and equal parameters are equal roots, different ones different roots.
//
// Protocol, mode deferred (and algorithm apophenia): ops are held back by the caller. After each op() or separator()
// d.issue lists which held ops to issue now, in order: runs of ops to analyse (candidate kNone), and complete matches,
// captured the first time, replayed later.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tracing/token.hpp"
#include "tracing/trie.hpp"

namespace burnish::tracing {

enum class Algorithm : uint8_t { burnish, apophenia, off };
enum class Mode : uint8_t { eager, deferred };

struct Config {
    Algorithm algorithm = Algorithm::burnish;
    Mode mode = Mode::eager;
    uint32_t history = 8192;
    uint32_t ruler = 64;
    uint32_t min_length = 4;
    uint32_t max_length = kNone;
    bool deterministic = false;  // finder jobs run at once, on the launching thread
    double budget = 0.02;        // share of one core for finder jobs
    bool parametric = true;      // match up to renaming of roots; else by flat tokens
    uint32_t visits = 10;        // apophenia: sightings before a string is committed
    uint32_t token_bits = 128;   // fewer: tests of hash collisions
};

// Ops [start, start + length) to be issued; positions count ops and separators.
struct Segment {
    uint64_t start;
    uint32_t length;
    uint32_t candidate;  // kNone: analyse
    bool replay;         // false: capture (first time)
};

struct Decision {
    uint32_t died = kNone, died_from = 0, died_slots = 0;
    uint32_t lead = kNone, slot = 0;
    bool adopted = false;
    bool completed = false;
    uint32_t capture = kNone, capture_length = 0;
    std::span<const Segment> issue;
};

// A complete match of a candidate that ends with the last op; leading or not.
struct Completion {
    uint32_t candidate;
    uint64_t start;
};

struct CandidateInfo {
    uint32_t id;
    uint32_t length;
    bool alive, captured;
    uint64_t replays;
    double reliability;
};

struct FinderStats {
    uint64_t jobs = 0, skipped = 0;
    uint64_t tokens = 0;   // analysed
    double seconds = 0;    // of processor time
};

// What the ranks of a replicated program agree on: how many finder results all of them have.
class Agreement {
public:
    virtual ~Agreement() = default;
    // Returns the minimum over ranks of what they posted last time, and posts `finished` for the next call. Called at
    // the same op on every rank; waits for the previous round only.
    virtual uint64_t exchange(uint64_t finished) = 0;
};

class Recognizer {
public:
    explicit Recognizer(const Config &config, std::unique_ptr<Agreement> agreement = nullptr);
    ~Recognizer();
    Recognizer(Recognizer &&) noexcept;

    // `signature`: what replay may not vary, without root ids. `flat`: the same with region ids. `roots`: operand list.
    const Decision &op(const Token &signature, const Token &flat, std::span<const uint32_t> roots);
    const Decision &separator();
    // End of the program or of tracing: like a separator that is no position of the stream.
    const Decision &finish();

    void mark_captured(uint32_t candidate, bool captured);

    const NormalForm &form(uint32_t candidate) const;  // valid while the candidate is alive
    std::vector<CandidateInfo> candidates() const;
    std::span<const Completion> completions() const;
    uint64_t position() const;  // ops and separators seen
    uint64_t collisions() const;
    FinderStats finder() const;

    class Implementation;

private:
    std::unique_ptr<Implementation> implementation_;
};

}  // namespace burnish::tracing
