#include "tracing/loops.hpp"

#include <algorithm>
#include <unordered_map>

#include "tracing/repeats.hpp"
#include "tracing/suffix.hpp"

namespace burnish::tracing {

int32_t shortest_period(std::span<const int32_t> text) {
    const auto n = static_cast<int32_t>(text.size());
    std::vector<int32_t> border(n);
    for (int32_t i = 1; i < n; ++i) {
        int32_t b = border[i - 1];
        while (b > 0 && text[i] != text[b]) b = border[b - 1];
        border[i] = b + (text[i] == text[b]);
    }
    return n - border[n - 1];
}

int32_t least_rotation(std::span<const int32_t> text) {
    const auto n = static_cast<int32_t>(text.size());
    int32_t i = 0, j = 1, k = 0;
    while (i < n && j < n && k < n) {
        const int32_t a = text[(i + k) % n], b = text[(j + k) % n];
        if (a == b) {
            ++k;
            continue;
        }
        (a > b ? i : j) += k + 1;
        if (i == j) ++j;
        k = 0;
    }
    return std::min(i, j);
}

namespace {

// A window laid out flat: ranks of signatures for the suffix array, operand distances for normal forms.
class Text {
public:
    explicit Text(const Window &window) {
        const size_t n = window.last - window.first;
        signatures_.reserve(n), operand_.reserve(n + 1), ranks.reserve(n);
        operand_.push_back(0);
        std::unordered_map<uint64_t, std::vector<int32_t>> known;
        for (uint64_t p = window.first; p < window.last; ++p) {
            const Block &b = *window.blocks[p / Block::kSize - window.first / Block::kSize];
            const uint32_t i = p % Block::kSize;
            signatures_.push_back(b.signature[i]);
            ranks.push_back(b.separator(i) ? alphabet++ : rank(known, b.signature[i]));
            for (const uint32_t root : b.operands(i)) distances_.push_back(last_.distance(root, distances_.size(), 0));
            operand_.push_back(distances_.size());
        }
    }

    uint64_t hash(int32_t first, int32_t length) const {
        uint64_t h = static_cast<uint64_t>(length);
        for (int32_t k = first; k < first + length; ++k) {
            h = combine(h, hash_of(signatures_[k]));
            for (size_t i = operand_[k]; i < operand_[k + 1]; ++i) h = combine(h, seen(i, operand_[first]));
        }
        return h;
    }

    NormalForm form(int32_t first, int32_t length) const {
        NormalForm form;
        for (int32_t k = first; k < first + length; ++k) {
            for (size_t i = operand_[k]; i < operand_[k + 1]; ++i) form.distances.push_back(seen(i, operand_[first]));
            form.push(signatures_[k]);
        }
        return form;
    }

    uint64_t hash_signatures(int32_t first, int32_t length, int32_t rotation) const {
        uint64_t h = static_cast<uint64_t>(length);
        for (int32_t k = 0; k < length; ++k) h = combine(h, hash_of(signatures_[first + (rotation + k) % length]));
        return h;
    }

    std::vector<int32_t> ranks;
    int32_t alphabet = 0;

private:
    uint32_t seen(size_t i, size_t start) const { return distances_[i] <= i - start ? distances_[i] : 0; }

    int32_t rank(std::unordered_map<uint64_t, std::vector<int32_t>> &known, const Token &signature) {
        auto &same_hash = known[hash_of(signature)];
        for (const int32_t r : same_hash)
            if (by_rank_[r] == signature) return r;
        same_hash.push_back(alphabet);
        by_rank_.resize(alphabet + 1);
        by_rank_[alphabet] = signature;
        return alphabet++;
    }

    std::vector<Token> signatures_, by_rank_;
    std::vector<size_t> operand_;
    std::vector<uint32_t> distances_;
    LastUse last_;
};

// The normal form that most of the positions share (ties: the first); count 0 if no two of them agree.
std::pair<int32_t, uint32_t> most_common(const Text &text, const std::vector<int32_t> &positions, int32_t length) {
    std::vector<std::pair<uint64_t, int32_t>> forms;
    for (const int32_t p : positions) forms.emplace_back(text.hash(p, length), p);
    std::sort(forms.begin(), forms.end());
    std::pair<int32_t, uint32_t> best{0, 0};
    for (size_t i = 0; i < forms.size();) {
        size_t j = i;
        while (j < forms.size() && forms[j].first == forms[i].first) ++j;
        const auto count = static_cast<uint32_t>(j - i);
        if (count >= 2 && (count > best.second || (count == best.second && forms[i].second < best.first)))
            best = {forms[i].second, count};
        i = j;
    }
    return best;
}

bool adjacent(const std::vector<int32_t> &starts, int32_t distance) {
    for (size_t i = 1; i < starts.size(); ++i)
        if (starts[i] - starts[i - 1] == distance) return true;
    return false;
}

}  // namespace

std::vector<Found> find_loops(const Window &window, const FindOptions &options) {
    const Text text(window);
    std::vector<Found> result;
    for (const Repeat &r : find_repeats_ranked(text.ranks, text.alphabet, static_cast<int32_t>(options.min_length))) {
        const int32_t length = r.end - r.start;
        const std::span<const int32_t> string(text.ranks.data() + r.start, length);
        int32_t period = shortest_period(string);
        if (length % period != 0) period = length;
        const auto short_loop = static_cast<int32_t>(options.short_loop);
        const int32_t kept = std::min(period * ((short_loop + period - 1) / period), length);
        std::vector<int32_t> positions;
        for (const int32_t s : r.starts)
            for (int32_t p = s; p + kept <= s + length; p += period) positions.push_back(p);
        const auto [position, count] = most_common(text, positions, kept);
        if (count < 2) continue;
        Found found;
        found.loop = period < length || adjacent(r.starts, length);
        const int32_t rotation = found.loop ? least_rotation(string.first(period)) : 0;
        found.root_hash = found.loop ? text.hash_signatures(position, period, rotation) : 0;
        found.occurrences = count;
        const int32_t fewest = std::max(1, (static_cast<int32_t>(options.min_length) + period - 1) / period) * period;
        if (fewest < kept) found.remainder = static_cast<uint32_t>(fewest);
        const NormalForm form = text.form(position, kept);
        const uint32_t piece = options.max_length;
        if (piece != kNone && form.length() > piece + options.min_length) {
            for (uint32_t k = 0; k < form.length(); k += piece) {
                const uint32_t part = std::min(piece, form.length() - k);
                if (part < options.min_length) break;
                found.form = form.slice(k, part);
                found.loop = false;
                found.remainder = 0;
                result.push_back(found);
            }
        } else {
            found.form = form;
            result.push_back(std::move(found));
        }
    }
    return result;
}

}  // namespace burnish::tracing
