#include "tracing/repeats.hpp"

#include <algorithm>

#include "tracing/suffix.hpp"

namespace burnish::tracing {

namespace {

// An occurrence of a repeated string; occurrences of one class carry the same string.
struct Occurrence {
    int32_t length, klass, position;
};

std::vector<Occurrence> neighbours_in_suffix_order(std::span<const int32_t> array, std::span<const int32_t> lcp) {
    std::vector<Occurrence> found;
    const auto n = static_cast<int32_t>(array.size());
    found.reserve(2 * static_cast<size_t>(n));
    int32_t klass = 0, last_length = -1;
    const auto emit = [&](int32_t length, int32_t position) {
        // Length 0 is emitted too: it separates two classes of equal length.
        if (length != last_length) ++klass, last_length = length;
        if (length > 0) found.push_back({length, klass, position});
    };
    for (int32_t i = 0; i + 1 < n; ++i) {
        const int32_t length = lcp[i], a = array[i], b = array[i + 1];
        const int32_t low = std::min(a, b), distance = std::abs(a - b);
        if (distance >= length) {
            emit(length, a);
            emit(length, b);
        } else {  // a run of period `distance`: the largest multiple of it of which two copies fit
            const int32_t copy = (length + distance) / 2 / distance * distance;
            emit(copy, low);
            emit(copy, low + copy);
        }
    }
    return found;
}

// Order by (length descending, class, position). Classes are numbered in order of emission, so that a stable
// counting sort by length keeps them together; positions inside a class are then sorted.
void sort_occurrences(std::vector<Occurrence> &found, int32_t n) {
    std::vector<int32_t> offset(static_cast<size_t>(n) + 2);
    for (const Occurrence &o : found) ++offset[n - o.length + 1];
    for (int32_t k = 0; k <= n; ++k) offset[k + 1] += offset[k];
    std::vector<Occurrence> sorted(found.size());
    for (const Occurrence &o : found) sorted[offset[n - o.length]++] = o;
    for (auto first = sorted.begin(); first != sorted.end();) {
        auto last = first;
        while (last != sorted.end() && last->klass == first->klass) ++last;
        std::sort(first, last, [](const Occurrence &a, const Occurrence &b) { return a.position < b.position; });
        first = last;
    }
    found = std::move(sorted);
}

}  // namespace

std::vector<Repeat> find_repeats_ranked(std::span<const int32_t> text, int32_t alphabet, int32_t min_length) {
    const std::vector<int32_t> array = suffix_array(text, alphabet);
    std::vector<Occurrence> found = neighbours_in_suffix_order(array, common_prefixes(text, array));
    sort_occurrences(found, static_cast<int32_t>(text.size()));

    std::vector<Repeat> repeats;
    std::vector<uint8_t> taken(text.size());
    std::vector<int32_t> accepted;
    const int32_t shortest = std::max(1, min_length);
    for (size_t i = 0; i < found.size();) {
        const int32_t length = found[i].length, klass = found[i].klass;
        if (length < shortest) break;
        accepted.clear();
        int32_t end = 0;
        for (; i < found.size() && found[i].klass == klass; ++i) {
            const int32_t k = found[i].position;
            // Longer ones were taken first, so a taken position inside implies a taken one at an end.
            if (k < end || taken[k] || taken[k + length - 1]) continue;
            accepted.push_back(k);
            end = k + length;
        }
        if (accepted.size() < 2) continue;
        for (const int32_t k : accepted) std::fill_n(taken.begin() + k, length, uint8_t{1});
        repeats.push_back({accepted.front(), accepted.front() + length, accepted});
    }
    return repeats;
}

std::vector<Repeat> find_repeats(std::span<const uint64_t> tokens, int32_t min_length) {
    std::vector<int32_t> text;
    const int32_t alphabet = rank_tokens(tokens, text);
    return find_repeats_ranked(text, alphabet, min_length);
}

}  // namespace burnish::tracing
