#include "runtime/intervals.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

#include "runtime/clones.hpp"

namespace burnish::runtime {

size_t skip_to(IntervalView a, size_t i, int64_t x) {
    const size_t n = a.size();
    size_t step = 1;
    size_t hi = i;
    while (hi < n && a[hi].hi <= x) {
        i = hi + 1;
        hi += step;
        step *= 2;
    }
    hi = std::min(hi, n);
    while (i < hi) {
        const size_t mid = i + (hi - i) / 2;
        if (a[mid].hi <= x) {
            i = mid + 1;
        } else {
            hi = mid;
        }
    }
    return i;
}

namespace {

// Calls found(lo, hi) for every maximal common run, ascending, until it returns false.
template <class Found>
void each_common(IntervalView a, IntervalView b, Found found) {
    size_t i = 0, j = 0;
    while (i < a.size() && j < b.size()) {
        const int64_t lo = std::max(a[i].lo, b[j].lo);
        const int64_t hi = std::min(a[i].hi, b[j].hi);
        if (lo < hi && !found(lo, hi)) return;
        if (a[i].hi <= b[j].hi) {
            i = skip_to(a, i + 1, b[j].lo);
        } else {
            j = skip_to(b, j + 1, a[i].lo);
        }
    }
}

}  // namespace

bool intersects(IntervalView a, IntervalView b) {
    bool any = false;
    each_common(a, b, [&](int64_t, int64_t) {
        any = true;
        return false;
    });
    return any;
}

bool covers(IntervalView a, IntervalView b) {
    size_t i = 0;
    for (const Interval &run : b) {
        i = skip_to(a, i, run.lo);
        if (i == a.size() || a[i].lo > run.lo || a[i].hi < run.hi) return false;
    }
    return true;
}

namespace {

// The output of a merge that writes every candidate and then decides whether to keep it: the data decide the branches
// of these merges at random, and a mispredicted one costs more than the whole step. `Merge` is called as merge(put) with
// put(lo, hi, keep); counts and buffer stay local so that they live in registers.
template <class Merge>
IntervalList collected(size_t expected, Merge merge) {
    constexpr size_t kBuffer = 512;
    Interval buffer[kBuffer];
    size_t n = 0;
    IntervalList out;
    out.reserve(expected);
    merge([&](int64_t lo, int64_t hi, bool keep) {
        buffer[n] = {lo, hi};
        n += keep;
        if (n == kBuffer) [[unlikely]] {
            out.insert(out.end(), buffer, buffer + n);
            n = 0;
        }
    });
    out.insert(out.end(), buffer, buffer + n);
    return out;
}

// The gaps of a list, as a list with one entry more.
struct Gaps {
    IntervalView list;
    size_t size() const { return list.size() + 1; }
    Interval operator[](size_t j) const {
        return {j == 0 ? std::numeric_limits<int64_t>::min() : list[j - 1].hi,
                j == list.size() ? std::numeric_limits<int64_t>::max() : list[j].lo};
    }
};

template <class B, class Each>
void merge_common(IntervalView a, const B &b, Each each) {
    size_t i = 0, j = 0;
    while (i < a.size() && j < b.size()) {
        const Interval x = a[i], y = b[j];
        each(std::max(x.lo, y.lo), std::min(x.hi, y.hi));
        const bool first = x.hi <= y.hi;
        i += first;
        j += !first;
    }
}

// Galloping wins when one list is much the shorter.
bool lopsided(size_t a, size_t b) { return std::max(a, b) / 16 > std::min(a, b); }

}  // namespace

int64_t overlap_volume(IntervalView a, IntervalView b) {
    int64_t volume = 0;
    if (lopsided(a.size(), b.size())) {
        each_common(a, b, [&](int64_t lo, int64_t hi) {
            volume += hi - lo;
            return true;
        });
    } else {
        merge_common(a, b, [&](int64_t lo, int64_t hi) { volume += std::max<int64_t>(0, hi - lo); });
    }
    return volume;
}

IntervalList intersection(IntervalView a, IntervalView b) {
    if (lopsided(a.size(), b.size())) {
        IntervalList out;
        each_common(a, b, [&](int64_t lo, int64_t hi) {
            out.push_back({lo, hi});
            return true;
        });
        return out;
    }
    return collected(std::min(a.size(), b.size()), [&](auto put) {
        merge_common(a, b, [&](int64_t lo, int64_t hi) { put(lo, hi, lo < hi); });
    });
}

IntervalList difference(IntervalView a, IntervalView b) {
    if (!lopsided(a.size(), b.size()))
        return collected(a.size(), [&](auto put) {
            merge_common(a, Gaps{b}, [&](int64_t lo, int64_t hi) { put(lo, hi, lo < hi); });
        });
    IntervalList out;
    out.reserve(a.size());
    size_t j = 0;
    for (const Interval &run : a) {
        int64_t lo = run.lo;
        j = skip_to(b, j, lo);
        for (; j < b.size() && b[j].lo < run.hi; ++j) {
            if (lo < b[j].lo) out.push_back({lo, b[j].lo});
            lo = b[j].hi;
            if (lo >= run.hi) break;
        }
        if (lo < run.hi) out.push_back({lo, run.hi});
    }
    return out;
}

IntervalList unite(IntervalView a, IntervalView b) {
    if (a.empty() || b.empty()) return {(a.empty() ? b : a).begin(), (a.empty() ? b : a).end()};
    return collected(std::max(a.size(), b.size()), [&](auto put) {
        Interval open{std::min(a[0].lo, b[0].lo), std::min(a[0].lo, b[0].lo)};
        const auto add = [&](Interval run) {
            const bool fresh = run.lo > open.hi;
            put(open.lo, open.hi, fresh);
            open.lo = select(fresh, run.lo, open.lo);
            open.hi = std::max(open.hi, run.hi);   // also when fresh: run.hi > run.lo > open.hi
        };
        size_t i = 0, j = 0;
        while (i < a.size() && j < b.size()) {
            const Interval x = a[i], y = b[j];
            const bool first = x.lo <= y.lo;
            add({select(first, x.lo, y.lo), select(first, x.hi, y.hi)});
            i += first;
            j += !first;
        }
        for (; i < a.size(); ++i) add(a[i]);
        for (; j < b.size(); ++j) add(b[j]);
        put(open.lo, open.hi, true);
    });
}

IntervalList unite_all(std::vector<IntervalView> lists) {
    std::erase_if(lists, [](IntervalView list) { return list.empty(); });
    if (lists.empty()) return {};
    if (lists.size() == 1) return {lists[0].begin(), lists[0].end()};
    if (lists.size() == 2) return unite(lists[0], lists[1]);
    int64_t lo = lists[0].front().lo, hi = lists[0].back().hi;
    int64_t total = 0;
    for (IntervalView list : lists) {
        lo = std::min(lo, list.front().lo);
        hi = std::max(hi, list.back().hi);
        total += static_cast<int64_t>(list.size());
    }
    if (bitmap_pays(hi - lo, total)) {
        Bitmap bits(lo, hi - lo);
        for (IntervalView list : lists) bits.add(list);
        return bits.intervals();
    }
    std::vector<IntervalList> level;   // merge neighbours until one list is left
    for (size_t i = 0; i + 1 < lists.size(); i += 2) level.push_back(unite(lists[i], lists[i + 1]));
    if (lists.size() % 2) level.emplace_back(lists.back().begin(), lists.back().end());
    while (level.size() > 1) {
        std::vector<IntervalList> next;
        for (size_t i = 0; i + 1 < level.size(); i += 2) next.push_back(unite(level[i], level[i + 1]));
        if (level.size() % 2) next.push_back(std::move(level.back()));
        level = std::move(next);
    }
    return std::move(level[0]);
}

BURNISH_CLONES int64_t Bitmap::add(IntervalView runs) {
    uint64_t *const words = words_.data();
    int64_t fresh = 0;
    for (const Interval &run : runs) {
        const auto lo = static_cast<uint64_t>(run.lo - base_);
        const auto last = static_cast<uint64_t>(run.hi - 1 - base_);
        const uint64_t head = ~uint64_t{0} << (lo & 63);
        const uint64_t tail = ~uint64_t{0} >> (63 - (last & 63));
        const auto merge = [&](uint64_t word, uint64_t mask) {
            fresh += std::popcount(mask & ~words[word]);
            words[word] |= mask;
        };
        if (lo >> 6 == last >> 6) {
            merge(lo >> 6, head & tail);
            continue;
        }
        merge(lo >> 6, head);
        for (uint64_t word = (lo >> 6) + 1; word < last >> 6; ++word) merge(word, ~uint64_t{0});
        merge(last >> 6, tail);
    }
    return fresh;
}

BURNISH_CLONES IntervalList Bitmap::intervals() const {
    static_assert(sizeof(Interval) == 2 * sizeof(int64_t));
    // Bits that differ from the one below are, alternately, starts and ends.
    size_t starts = 0;
    uint64_t below = 0;
    for (const uint64_t word : words_) {
        starts += static_cast<size_t>(std::popcount(word & ~(word << 1 | below)));
        below = word >> 63;
    }
    constexpr int kBlock = 8;   // written unconditionally: a loop to the last bit would mispredict once per word
    IntervalList out(starts + kBlock / 2);
    auto *at = reinterpret_cast<int64_t *>(out.data());
    below = 0;
    int64_t base = base_;
    for (const uint64_t word : words_) {
        uint64_t changes = word ^ (word << 1 | below);
        below = word >> 63;
        const int count = std::popcount(changes);
        for (int done = 0; done < count; done += kBlock) {
            for (int i = 0; i < kBlock; ++i) {
                at[done + i] = base + std::countr_zero(changes);
                changes &= changes - 1;
            }
        }
        at += count;
        base += 64;
    }
    if (below) *at = base;   // the last run ends with the bitmap
    out.resize(starts);
    return out;
}

void radix_sort(std::vector<int64_t> &values, int64_t min, int64_t max) {
    if (values.size() < 256) {
        std::sort(values.begin(), values.end());
        return;
    }
    constexpr int kBits = 8;
    constexpr uint64_t kMask = (uint64_t{1} << kBits) - 1;
    const auto key = [min](int64_t v) { return static_cast<uint64_t>(v) - static_cast<uint64_t>(min); };
    const int significant = std::bit_width(key(max));
    std::vector<int64_t> other(values.size());
    for (int shift = 0; shift < significant; shift += kBits) {
        std::array<size_t, kMask + 1> at{};
        for (int64_t v : values) ++at[key(v) >> shift & kMask];
        size_t sum = 0;
        for (size_t &slot : at) sum += std::exchange(slot, sum);
        for (int64_t v : values) other[at[key(v) >> shift & kMask]++] = v;
        values.swap(other);
    }
}

IntervalList intervals_of(std::vector<int64_t> &values, int64_t min, int64_t max) {
    if (values.empty()) return {};
    if (bitmap_pays(max - min + 1, static_cast<int64_t>(values.size()))) {
        Bitmap bits(min, max - min + 1);
        for (int64_t v : values) bits.set(v);
        return bits.intervals();
    }
    radix_sort(values, min, max);
    IntervalList out;
    for (int64_t v : values) append(out, v, v + 1);
    return out;
}

IntervalList sorted(IntervalList runs) {
    if (runs.empty()) return runs;
    int64_t lo = runs[0].lo, hi = runs[0].hi;
    bool ascending = true;
    for (size_t i = 1; i < runs.size(); ++i) {
        ascending = ascending && runs[i - 1].hi < runs[i].lo;
        lo = std::min(lo, runs[i].lo);
        hi = std::max(hi, runs[i].hi);
    }
    if (ascending) return runs;
    if (bitmap_pays(hi - lo, static_cast<int64_t>(runs.size()))) {
        Bitmap bits(lo, hi - lo);
        bits.add(runs);
        return bits.intervals();
    }
    std::ranges::sort(runs, {}, &Interval::lo);
    IntervalList out;
    for (const Interval &run : runs) append(out, run.lo, run.hi);
    return out;
}

}  // namespace burnish::runtime
