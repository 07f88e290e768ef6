#include "tracing/suffix.hpp"

#include <algorithm>
#include <bit>

namespace burnish::tracing {

namespace {

constexpr int32_t kEmpty = -1;

// One level of induced sorting. The end of the text acts as a sentinel smaller than every symbol.
class InducedSort {
public:
    InducedSort(const int32_t *text, int32_t *array, int32_t n, int32_t alphabet)
        : text_(text), array_(array), n_(n), bucket_(static_cast<size_t>(alphabet) + 1), cursor_(alphabet), small_(n) {
        for (int32_t i = 0; i < n; ++i) ++bucket_[text[i] + 1];
        for (int32_t c = 0; c < alphabet; ++c) bucket_[c + 1] += bucket_[c];
        for (int32_t i = n - 2; i >= 0; --i)  // the last suffix is larger than the sentinel that follows it
            small_[i] = text[i] < text[i + 1] || (text[i] == text[i + 1] && small_[i + 1]);
    }

    void run() {
        std::vector<int32_t> leftmost;  // positions of leftmost-small suffixes, ascending
        for (int32_t i = 1; i < n_; ++i)
            if (is_leftmost(i)) leftmost.push_back(i);
        const auto m = static_cast<int32_t>(leftmost.size());

        place_leftmost(leftmost.begin(), leftmost.end());
        induce();
        const std::vector<int32_t> order = order_of_leftmost(leftmost, m);
        place_leftmost(order.begin(), order.end());
        induce();
    }

private:
    bool is_leftmost(int32_t i) const { return i > 0 && small_[i] && !small_[i - 1]; }

    void to_starts() { std::copy_n(bucket_.begin(), cursor_.size(), cursor_.begin()); }
    void to_ends() { std::copy_n(bucket_.begin() + 1, cursor_.size(), cursor_.begin()); }

    template <class It>
    void place_leftmost(It first, It last) {
        std::fill_n(array_, n_, kEmpty);
        to_ends();
        while (last != first) {
            const int32_t i = *--last;
            array_[--cursor_[text_[i]]] = i;
        }
    }

    void induce() {
        to_starts();
        if (n_ > 0) array_[cursor_[text_[n_ - 1]]++] = n_ - 1;  // induced by the sentinel
        for (int32_t k = 0; k < n_; ++k) {
            const int32_t j = array_[k] - 1;
            if (j >= 0 && !small_[j]) array_[cursor_[text_[j]]++] = j;
        }
        to_ends();
        for (int32_t k = n_ - 1; k >= 0; --k) {
            const int32_t j = array_[k] - 1;
            if (j >= 0 && small_[j]) array_[--cursor_[text_[j]]] = j;
        }
    }

    // Sorted leftmost-small suffixes: names of their substrings form a string of half the length or less.
    std::vector<int32_t> order_of_leftmost(const std::vector<int32_t> &leftmost, int32_t m) {
        if (m == 0) return {};
        std::vector<int32_t> name(static_cast<size_t>(n_ / 2) + 1, kEmpty);  // no two of them are neighbours
        int32_t names = 0, previous = -1;
        for (int32_t k = 0; k < n_; ++k) {
            const int32_t i = array_[k];
            if (!is_leftmost(i)) continue;
            if (previous >= 0 && !same_substring(previous, i)) ++names;
            name[i / 2] = names;
            previous = i;
        }
        ++names;
        std::vector<int32_t> reduced(m), order(m);
        for (int32_t k = 0; k < m; ++k) reduced[k] = name[leftmost[k] / 2];
        if (names == m) {
            for (int32_t k = 0; k < m; ++k) order[reduced[k]] = k;
        } else {
            InducedSort(reduced.data(), order.data(), m, names).run();
        }
        for (int32_t &k : order) k = leftmost[k];
        return order;
    }

    bool same_substring(int32_t a, int32_t b) const {
        for (int32_t k = 0;; ++k) {
            if (a + k == n_ || b + k == n_) return false;  // one of them ends at the sentinel
            if (text_[a + k] != text_[b + k] || small_[a + k] != small_[b + k]) return false;
            if (k > 0 && (is_leftmost(a + k) || is_leftmost(b + k))) return is_leftmost(a + k) && is_leftmost(b + k);
        }
    }

    const int32_t *text_;
    int32_t *array_;
    int32_t n_;
    std::vector<int32_t> bucket_, cursor_;
    std::vector<uint8_t> small_;  // suffix i is smaller than suffix i + 1
};

}  // namespace

std::vector<int32_t> suffix_array(std::span<const int32_t> text, int32_t alphabet) {
    std::vector<int32_t> array(text.size());
    InducedSort(text.data(), array.data(), static_cast<int32_t>(text.size()), alphabet).run();
    return array;
}

std::vector<int32_t> common_prefixes(std::span<const int32_t> text, std::span<const int32_t> array) {
    const auto n = static_cast<int32_t>(text.size());
    // Permuted form (Karkkainen, Manzini, Puglisi 2009): walks the text in order, so that reads are mostly sequential.
    std::vector<int32_t> next(n), lcp(n);
    if (n == 0) return lcp;
    for (int32_t i = 0; i + 1 < n; ++i) next[array[i]] = array[i + 1];
    next[array[n - 1]] = kEmpty;
    int32_t length = 0;
    for (int32_t i = 0; i < n; ++i) {
        const int32_t j = next[i];
        if (j == kEmpty) {
            length = 0;
            next[i] = 0;
            continue;
        }
        while (i + length < n && j + length < n && text[i + length] == text[j + length]) ++length;
        next[i] = length;
        if (length > 0) --length;
    }
    for (int32_t i = 0; i < n; ++i) lcp[i] = next[array[i]];
    return lcp;
}

namespace {

uint64_t hash_of(uint64_t token) { return token * 0x9E3779B97F4A7C15ull; }

template <class T>
int32_t rank(std::span<const T> tokens, std::vector<int32_t> &ranks) {
    ranks.resize(tokens.size());
    // Distinct values are few in programs that repeat: hash them, sort only the distinct ones.
    size_t capacity = 64;
    std::vector<int32_t> table(capacity, kEmpty);
    std::vector<T> distinct;
    const auto slot_of = [&](const T &token) {
        size_t h = hash_of(token) >> (64 - std::countr_zero(capacity));
        while (table[h] != kEmpty && distinct[table[h]] != token) h = (h + 1) & (capacity - 1);
        return h;
    };
    for (size_t i = 0; i < tokens.size(); ++i) {
        size_t h = slot_of(tokens[i]);
        if (table[h] == kEmpty) {
            if (2 * (distinct.size() + 1) > capacity) {
                capacity *= 4;
                table.assign(capacity, kEmpty);
                for (size_t k = 0; k < distinct.size(); ++k) table[slot_of(distinct[k])] = static_cast<int32_t>(k);
                h = slot_of(tokens[i]);
            }
            table[h] = static_cast<int32_t>(distinct.size());
            distinct.push_back(tokens[i]);
        }
        ranks[i] = table[h];
    }
    std::vector<int32_t> order(distinct.size()), rank(distinct.size());
    for (size_t k = 0; k < order.size(); ++k) order[k] = static_cast<int32_t>(k);
    std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return distinct[a] < distinct[b]; });
    for (size_t k = 0; k < order.size(); ++k) rank[order[k]] = static_cast<int32_t>(k);
    for (int32_t &r : ranks) r = rank[r];
    return static_cast<int32_t>(distinct.size());
}

}  // namespace

int32_t rank_tokens(std::span<const Token> tokens, std::vector<int32_t> &ranks) { return rank(tokens, ranks); }
int32_t rank_tokens(std::span<const uint64_t> tokens, std::vector<int32_t> &ranks) { return rank(tokens, ranks); }

}  // namespace burnish::tracing
