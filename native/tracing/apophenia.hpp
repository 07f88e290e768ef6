// The reference mode: the published method with its parameters (Yadav et al., ASPLOS 2025), on flat tokens.
#pragma once
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "tracing/recognizer.hpp"
#include "tracing/token.hpp"

namespace burnish::tracing {

// Strings of tokens of which none is a prefix of another.
class PrefixFreeTrie {
public:
    struct End {
        std::vector<Token> string;
        uint64_t op = 0;  // position at which it was inserted
        uint32_t id = 0;
    };

    struct Relation {
        bool covered = false;   // the string is stored or a prefix of a stored one
        uint32_t prefix = 0;    // length of the stored proper prefix of the string, 0: none
    };

    static constexpr uint32_t kRoot = 0;

    PrefixFreeTrie() : nodes_(1) {}

    Relation relation(std::span<const Token> string) const;
    // The string must be unrelated to all stored ones.
    void insert(std::span<const Token> string, uint64_t op, uint32_t id);
    void remove(std::span<const Token> string);
    uint32_t child(uint32_t node, const Token &token) const;
    const End *end(uint32_t node) const {
        const auto it = ends_.find(node);
        return it == ends_.end() ? nullptr : &it->second;
    }

private:
    struct Edge {
        uint32_t node;
        Token token;
        bool operator==(const Edge &) const = default;
    };
    struct EdgeHash {
        size_t operator()(const Edge &e) const { return combine(hash_of(e.token), e.node); }
    };
    struct Node {
        uint32_t children = 0;
    };

    std::vector<Node> nodes_;
    std::unordered_map<Edge, uint32_t, EdgeHash> edges_;
    std::unordered_map<uint32_t, End> ends_;
};

class Apophenia {
public:
    explicit Apophenia(const Config &config);

    // Segments to issue; valid until the next call.
    std::span<const Segment> op(const Token &token);
    std::span<const Segment> separator();
    std::span<const Segment> finish();

    uint64_t position() const { return position_; }
    const FinderStats &finder() const { return finder_; }
    std::span<const Token> string(uint32_t id) const { return strings_[id]; }
    size_t size() const { return strings_.size(); }
    uint64_t replays(uint32_t id) const { return score_[id].replays; }

private:
    struct Pointer {
        uint64_t start;
        uint32_t node;
    };
    struct Complete {
        uint64_t start, length;
        uint32_t id;
        double score;
        uint64_t end() const { return start + length; }
    };
    struct Score {
        uint64_t last = 0, last_back_to_back = 0;
        double visits = 0, back_to_back = 0;
        uint64_t replays = 0;
    };
    struct Sightings {
        uint32_t count = 0;
        uint64_t last = 0;
    };

    void find(const Token &token);
    void start_job(size_t length);
    void insert(std::span<const Token> string);
    void watch(const Token &token);
    void sighted(const PrefixFreeTrie::End &end);
    void match(const Token &token);
    void visit(uint32_t id, uint64_t length);
    double score(uint32_t id, uint64_t length) const;
    void decide();
    void issue_completed();
    void issue(const Complete &c);
    void flush(uint64_t last);
    uint32_t new_string(std::span<const Token> string);
    Token unique();

    const Config config_;
    std::vector<Token> buffer_;
    uint64_t position_ = 0, uniques_ = 0;
    FinderStats finder_;

    PrefixFreeTrie watched_, committed_;
    std::vector<std::vector<Token>> strings_;  // by id
    std::vector<Sightings> sightings_;
    std::vector<Score> score_;
    std::vector<Pointer> watching_, scoring_, active_;
    std::vector<Complete> completed_;
    std::vector<Segment> segments_;
    uint64_t issued_ = 0;
};

}  // namespace burnish::tracing
