// Candidates (normal forms of op sequences) in a trie whose paths are walked by live matches.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "tracing/token.hpp"

namespace burnish::tracing {

// A sequence of ops up to renaming of roots: signatures, and per operand the distance to the previous use of the same
// root inside the sequence (0: first use).
struct NormalForm {
    std::vector<Token> signatures;
    std::vector<uint32_t> offsets{0};  // operands of slot k: distances[offsets[k] .. offsets[k + 1])
    std::vector<uint32_t> distances;

    uint32_t length() const { return static_cast<uint32_t>(signatures.size()); }
    void push(const Token &signature) {
        signatures.push_back(signature);
        offsets.push_back(static_cast<uint32_t>(distances.size()));
    }
    // Parameter number of every operand, numbered by first occurrence.
    std::vector<uint32_t> parameters() const;
    // Slots [first, first + length) on their own.
    NormalForm slice(uint32_t first, uint32_t length) const;
};

// The current op as live matches see it.
struct Step {
    Token signature;
    uint64_t operand;                     // stream position of its first operand
    std::span<const uint32_t> distances;  // to the previous use of each operand's root
};

class Trie {
public:
    Trie() { clear(); }

    struct Node {
        Token signature;
        uint32_t distances = 0;  // offset into the pool
        uint32_t arity = 0;
        uint32_t child = kNone, sibling = kNone;
        uint32_t depth = 0;
        uint32_t ends = kNone;   // candidate that ends here
        uint32_t group = 0;      // candidates that end here or below
    };

    static constexpr uint32_t kRoot = 0;

    void clear();
    const Node &operator[](uint32_t node) const { return nodes_[node]; }
    std::span<const uint32_t> below(uint32_t node) const { return groups_[nodes_[node].group]; }
    bool empty() const { return nodes_.size() == 1; }
    size_t size() const { return nodes_.size(); }

    // Stores `form` as `candidate` (larger than all stored ones); returns the candidate that ends there, which is
    // another one if an equal form is stored.
    uint32_t insert(const NormalForm &form, uint32_t candidate);

    // Child of `node` for the op `step` of a match whose operands start at stream position `start`, or kNone.
    uint32_t advance(uint32_t node, const Step &step, uint64_t start) const {
        for (uint32_t c = nodes_[node].child; c != kNone; c = nodes_[c].sibling)
            if (accepts(c, step, start)) return c;
        return kNone;
    }
    // The same from the root, by hash (it has many children).
    uint32_t begin(const Step &step) const {
        const uint32_t c = first(step.signature);
        for (uint32_t n = c; n != kNone && nodes_[n].signature == step.signature; n = nodes_[n].sibling)
            if (accepts(n, step, step.operand)) return n;
        return kNone;
    }
    bool begins(const Token &signature) const { return first(signature) != kNone; }

private:
    bool accepts(uint32_t n, const Step &step, uint64_t start) const {
        const Node &node = nodes_[n];
        if (node.signature != step.signature || node.arity != step.distances.size()) return false;
        const uint32_t *expected = pool_.data() + node.distances;
        for (uint32_t i = 0; i < node.arity; ++i) {
            const uint32_t d = step.distances[i];
            const uint32_t seen = d <= step.operand + i - start ? d : 0;
            if (seen != expected[i]) return false;
        }
        return true;
    }
    uint32_t first(const Token &signature) const {
        size_t h = hash_of(signature) & (starts_.size() - 1);
        while (starts_[h] != kNone && nodes_[starts_[h]].signature != signature) h = (h + 1) & (starts_.size() - 1);
        return starts_[h];
    }
    bool same(const Node &node, const NormalForm &form, uint32_t k) const;
    uint32_t find_child(uint32_t node, const NormalForm &form, uint32_t k) const;
    uint32_t append(uint32_t parent, const NormalForm &form, uint32_t k, uint32_t group);
    void link_start(uint32_t node);
    void add_to_path(const std::vector<uint32_t> &path, uint32_t candidate);

    std::vector<Node> nodes_;
    std::vector<uint32_t> pool_;
    std::vector<std::vector<uint32_t>> groups_;
    std::vector<uint32_t> starts_;  // open addressing: first child of the root with a given signature
    size_t start_count_ = 0;
};

}  // namespace burnish::tracing
