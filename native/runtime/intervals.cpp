#include "runtime/intervals.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

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

int64_t overlap_volume(IntervalView a, IntervalView b) {
    int64_t volume = 0;
    each_common(a, b, [&](int64_t lo, int64_t hi) {
        volume += hi - lo;
        return true;
    });
    return volume;
}

IntervalList intersection(IntervalView a, IntervalView b) {
    IntervalList out;
    out.reserve(std::min(a.size(), b.size()));
    each_common(a, b, [&](int64_t lo, int64_t hi) {
        out.push_back({lo, hi});
        return true;
    });
    return out;
}

IntervalList difference(IntervalView a, IntervalView b) {
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
    IntervalList out;
    out.reserve(a.size() + b.size());
    size_t i = 0, j = 0;
    while (i < a.size() && j < b.size()) {
        const Interval &run = a[i].lo <= b[j].lo ? a[i++] : b[j++];
        append(out, run.lo, run.hi);
    }
    for (; i < a.size(); ++i) append(out, a[i].lo, a[i].hi);
    for (; j < b.size(); ++j) append(out, b[j].lo, b[j].hi);
    return out;
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
        for (IntervalView list : lists)
            for (const Interval &run : list) bits.add(run);
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

int64_t Bitmap::add(Interval run) {
    if (run.lo >= run.hi) return 0;
    const auto lo = static_cast<uint64_t>(run.lo - base_);
    const auto last = static_cast<uint64_t>(run.hi - 1 - base_);
    const uint64_t head = ~uint64_t{0} << (lo & 63);
    const uint64_t tail = ~uint64_t{0} >> (63 - (last & 63));
    int64_t fresh = 0;
    const auto merge = [&](uint64_t word, uint64_t mask) {
        fresh += std::popcount(mask & ~words_[word]);
        words_[word] |= mask;
    };
    if (lo >> 6 == last >> 6) {
        merge(lo >> 6, head & tail);
        return fresh;
    }
    merge(lo >> 6, head);
    for (uint64_t word = (lo >> 6) + 1; word < last >> 6; ++word) merge(word, ~uint64_t{0});
    merge(last >> 6, tail);
    return fresh;
}

IntervalList Bitmap::intervals() const {
    // A run starts where a bit is set and the bit below is not; it ends where the opposite holds. So count first.
    size_t count = 0;
    uint64_t below = 0;
    for (uint64_t word : words_) {
        count += static_cast<size_t>(std::popcount(word & ~(word << 1 | below)));
        below = word >> 63;
    }
    IntervalList out(count);
    size_t starts = 0, ends = 0;
    below = 0;
    for (size_t w = 0; w < words_.size(); ++w) {
        const uint64_t word = words_[w];
        const uint64_t shifted = word << 1 | below;
        const int64_t at = base_ + static_cast<int64_t>(w * 64);
        for (uint64_t bits = word & ~shifted; bits; bits &= bits - 1) out[starts++].lo = at + std::countr_zero(bits);
        for (uint64_t bits = shifted & ~word; bits; bits &= bits - 1) out[ends++].hi = at + std::countr_zero(bits);
        below = word >> 63;
    }
    if (ends < starts) out[ends].hi = base_ + static_cast<int64_t>(words_.size() * 64);
    return out;
}

void radix_sort(std::vector<int64_t> &values, int64_t min, int64_t max) {
    if (values.size() < 256) {
        std::sort(values.begin(), values.end());
        return;
    }
    constexpr int kBits = 11;
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

}  // namespace burnish::runtime
