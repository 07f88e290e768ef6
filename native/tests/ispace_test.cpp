// Fuzz of the index-space algebra and the partition builders against membership masks, meant for sanitizer builds:
//   ispace_test [rounds] [seed]
#include <algorithm>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "runtime/intervals.hpp"
#include "runtime/ispace.hpp"
#include "tests/check.hpp"

using namespace burnish::runtime;
using burnish::test::Random;

namespace {

using Mask = std::vector<char>;   // one entry per linear position of the root

struct Case {
    Space space;
    Mask mask;
};

Coord coordinates(const Rect &root, int64_t linear) {
    Coord x{};
    for (int d = root.dim - 1; d >= 0; --d) {
        const int64_t n = root.hi[d] - root.lo[d];
        x[d] = root.lo[d] + linear % n;
        linear /= n;
    }
    return x;
}

Rect random_root(Random &random) {
    Rect root;
    root.dim = static_cast<int>(random.between(1, 4));
    const int64_t largest[] = {200, 20, 8, 5};
    for (int d = 0; d < root.dim; ++d) {
        root.lo[d] = random.between(-5, 5);
        root.hi[d] = root.lo[d] + random.between(random.chance(5) ? 0 : 1, largest[root.dim - 1]);
    }
    return root;
}

Rect random_rect(Random &random, const Rect &root) {
    Rect r = root;
    for (int d = 0; d < root.dim; ++d) {
        r.lo[d] = random.between(root.lo[d] - 2, root.hi[d] + 1);
        r.hi[d] = random.between(r.lo[d] - 1, root.hi[d] + 2);
    }
    return r;
}

Mask mask_of(const Rect &root, const Rect &r) {
    Mask mask(static_cast<size_t>(root.volume()));
    for (size_t x = 0; x < mask.size(); ++x) {
        const Coord at = coordinates(root, static_cast<int64_t>(x));
        mask[x] = 1;
        for (int d = 0; d < root.dim; ++d) mask[x] = mask[x] && r.lo[d] <= at[d] && at[d] < r.hi[d];
    }
    return mask;
}

Mask mask_of(const IndexSpace &space) {
    Mask mask(static_cast<size_t>(space.root().volume()));
    int64_t end = -1, volume = 0;
    for (const Interval &run : space.intervals()) {
        CHECK(end < run.lo && run.lo < run.hi);
        end = run.hi;
        volume += run.hi - run.lo;
        for (int64_t x = run.lo; x < run.hi; ++x) mask.at(static_cast<size_t>(x)) = 1;
    }
    CHECK(volume == space.volume());
    return mask;
}

Case random_case(Random &random, const Rect &root) {
    const Rect r = random_rect(random, root);
    if (random.chance(40)) return {IndexSpace::rect(root, r), mask_of(root, r)};
    Mask mask = mask_of(root, r);
    std::vector<int64_t> points;
    const int keep = static_cast<int>(random.between(0, 100));
    for (size_t x = 0; x < mask.size(); ++x) {
        mask[x] = mask[x] && random.chance(keep);
        for (int copies = mask[x] ? 1 + random.chance(10) : 0; copies > 0; --copies) points.push_back(static_cast<int64_t>(x));
    }
    std::shuffle(points.begin(), points.end(), std::mt19937_64(1));
    return {IndexSpace::points(root, std::move(points)), mask};
}

template <class Combine>
Mask combined(const Mask &a, const Mask &b, Combine combine) {
    Mask out(a.size());
    for (size_t x = 0; x < a.size(); ++x) out[x] = combine(a[x] != 0, b[x] != 0);
    return out;
}

int64_t count(const Mask &mask) {
    int64_t n = 0;
    for (const char bit : mask) n += bit;
    return n;
}

void check_algebra(const Case &a, const Case &b) {
    const Mask both = combined(a.mask, b.mask, [](bool x, bool y) { return x && y; });
    const Mask either = combined(a.mask, b.mask, [](bool x, bool y) { return x || y; });
    const Mask rest = combined(a.mask, b.mask, [](bool x, bool y) { return x && !y; });
    CHECK(mask_of(*intersection(a.space, b.space)) == both);
    CHECK(mask_of(*unite(a.space, b.space)) == either);
    CHECK(mask_of(*difference(a.space, b.space)) == rest);
    CHECK(intersects(*a.space, *b.space) == (count(both) > 0));
    CHECK(covers(*a.space, *b.space) == (both == b.mask));
    CHECK(equal(*a.space, *b.space) == (a.mask == b.mask));
    CHECK(overlap_volume(*a.space, *b.space) == count(both));
    CHECK(equal(*unite(difference(a.space, b.space), intersection(a.space, b.space)), *a.space));
    const Space list[] = {a.space, b.space, difference(b.space, a.space), a.space};
    CHECK(mask_of(*unite_all(a.space->root(), list)) == either);
}

void check_one(const Case &a) {
    CHECK(mask_of(*a.space) == a.mask);
    int64_t rank = 0;
    for (size_t x = 0; x < a.mask.size(); ++x) {
        const auto at = static_cast<int64_t>(x);
        CHECK(a.space->contains(at) == (a.mask[x] != 0));
        CHECK(a.space->rank(at) == (a.mask[x] ? rank++ : -1));
    }
    CHECK(static_cast<int64_t>(a.space->linear_points().size()) == rank);
}

void check_runs(const Case &whole, const Case &other) {
    const Space part = intersection(whole.space, other.space);
    int64_t copied = 0;
    for (const Run &run : runs(*whole.space, *part))
        for (int64_t i = 0; i < run.length; ++i, ++copied) {
            CHECK(part->contains(run.linear + i));
            CHECK(whole.space->rank(run.linear + i) == run.packed + i);
        }
    CHECK(copied == part->volume());
}

void check_facts(const Pieces &pieces, const Space &parent) {
    std::vector<int64_t> times(static_cast<size_t>(parent->root().volume()));
    int64_t reached = 0, twice = 0;
    for (const Space &space : pieces.spaces) {
        CHECK(covers(*parent, *space));
        const Mask mask = mask_of(*space);
        for (size_t x = 0; x < mask.size(); ++x) {
            times[x] += mask[x];
            reached += mask[x] && times[x] == 1;
            twice += mask[x] && times[x] == 2;
        }
    }
    CHECK(pieces.disjoint == (twice == 0));
    CHECK(pieces.complete == (reached == parent->volume()));
}

std::vector<int64_t> random_values(Random &random, int64_t n, int64_t below) {
    std::vector<int64_t> values;
    for (int64_t i = 0; i < n; ++i) values.push_back(random.between(-1, below - 1));
    return values;
}

void check_geometric(Random &random, const Rect &root, const Case &parent) {
    std::vector<int64_t> colors, width, transform, extent, offset;
    for (int d = 0; d < root.dim; ++d) {
        colors.push_back(random.between(0, 4));
        width.push_back(random.between(0, random.chance(10) ? 300 : 3));
        extent.push_back(random.between(0, 9));
        offset.push_back(random.between(-4, 4));
        for (int k = 0; k < root.dim; ++k) transform.push_back(random.between(-3, 3));
    }
    const std::vector<int64_t> by_rank = {random.between(0, 7)};
    const Pieces blocks = block(parent.space, parent.space->dense() ? colors : by_rank);
    check_facts(blocks, parent.space);
    check_facts(restrict(parent.space, colors, transform, extent, offset), parent.space);
    const bool wrap = random.chance(50);
    const Pieces around = ghost(parent.space, blocks.spaces, width, wrap, true);
    const Pieces halo = ghost(parent.space, blocks.spaces, width, wrap, false);
    check_facts(around, parent.space);
    check_facts(halo, parent.space);
    for (size_t c = 0; c < blocks.spaces.size(); ++c) {
        CHECK(covers(*around.spaces[c], *blocks.spaces[c]));
        CHECK(equal(*halo.spaces[c], *difference(around.spaces[c], blocks.spaces[c])));
    }
}

void check_data(Random &random, const Rect &root, const Case &parent) {
    const int64_t k = random.between(0, 6);
    const std::vector<int64_t> color = random_values(random, parent.space->volume(), k);
    const Pieces colored = by_color(parent.space, color, k);
    check_facts(colored, parent.space);
    for (size_t c = 0; c < colored.spaces.size(); ++c)
        for (const int64_t x : colored.spaces[c]->linear_points())
            CHECK(color[static_cast<size_t>(parent.space->rank(x))] == static_cast<int64_t>(c));

    const Rect other = random_root(random);
    const Case target = random_case(random, other);
    std::vector<int64_t> pointer = random_values(random, root.volume(), other.volume());
    const Pieces images = image(colored.spaces, pointer, target.space);
    check_facts(images, target.space);
    for (size_t c = 0; c < images.spaces.size(); ++c) {
        std::set<int64_t> expected;
        for (const int64_t x : colored.spaces[c]->linear_points())
            if (const int64_t v = pointer[static_cast<size_t>(x)]; v >= 0 && target.space->contains(v)) expected.insert(v);
        const std::vector<int64_t> found = images.spaces[c]->linear_points();
        CHECK(std::vector<int64_t>(expected.begin(), expected.end()) == found);
    }
    const Pieces back = preimage(images.spaces, pointer, parent.space);
    check_facts(back, parent.space);
    for (size_t c = 0; c < back.spaces.size(); ++c)
        for (const int64_t x : parent.space->linear_points()) {
            const int64_t v = pointer[static_cast<size_t>(x)];
            CHECK(back.spaces[c]->contains(x) == (v >= 0 && images.spaces[c]->contains(v)));
        }
    if (pointer.empty() || colored.spaces.empty()) return;
    const auto wrong = static_cast<size_t>(random.between(0, root.volume() - 1));
    pointer[wrong] = other.volume() + random.between(0, 3);
    bool thrown = false;
    try {
        image(colored.spaces, pointer, target.space);
    } catch (const PointerError &error) {
        thrown = error.position == static_cast<int64_t>(wrong) && error.value == pointer[wrong];
    }
    bool followed = false;
    for (const Space &space : colored.spaces) followed = followed || space->contains(static_cast<int64_t>(wrong));
    CHECK(thrown == followed);
}

// The lists of a space are made on demand; many threads may ask first.
void check_shared_use() {
    Rect root;
    root.dim = 2;
    root.hi = {300, 300, 1, 1};
    Rect inner = root;
    inner.lo = {1, 1, 0, 0};
    inner.hi = {299, 299, 1, 1};
    for (int round = 0; round < 20; ++round) {
        const Space dense = IndexSpace::rect(root, inner);
        const Space sparse = IndexSpace::points(root, {1, 5, 900, 77, 78});
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; ++t)
            threads.emplace_back([&] {
                CHECK(dense->intervals().size() == 298);
                CHECK(sparse->rank(900) == 4);
                CHECK(sparse->rank(78) == 3);
            });
    }
}

// Builders with threads: pieces large enough that several start.
void check_large(Random &random) {
    Rect root;
    root.hi = {600'000, 1, 1, 1};
    const Space all = IndexSpace::rect(root, root);
    const std::vector<int64_t> pointer = random_values(random, root.volume(), root.volume());
    set_build_threads(4);
    for (const int64_t k : {1, 5, 64}) {
        const std::vector<int64_t> colors = {k};
        const Pieces blocks = block(all, colors);
        const Pieces images = image(blocks.spaces, pointer, all);
        const Pieces back = preimage(images.spaces, pointer, all);
        for (size_t c = 0; c < blocks.spaces.size(); ++c) CHECK(back.spaces[c]->volume() >= images.spaces[c]->volume());
        const std::vector<int64_t> color = random_values(random, root.volume(), k);
        const Pieces colored = by_color(all, color, k);
        int64_t volume = 0;
        for (const Space &space : colored.spaces) volume += space->volume();
        CHECK(unite_all(root, colored.spaces)->volume() == volume);
    }
    set_build_threads(0);
}

}  // namespace

int main(int argc, char **argv) {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 2000;
    const int seed = argc > 2 ? std::atoi(argv[2]) : 0;
    check_shared_use();
    for (int round = 0; round < rounds; ++round) {
        Random random(static_cast<uint64_t>(seed) << 32 | static_cast<uint64_t>(round));
        const Rect root = random_root(random);
        const Case a = random_case(random, root), b = random_case(random, root);
        check_one(a);
        check_algebra(a, b);
        check_runs(a, b);
        check_geometric(random, root, a);
        check_data(random, root, a);
    }
    Random random(static_cast<uint64_t>(seed));
    check_large(random);
    std::printf("%d rounds from seed %d: no difference\n", rounds, seed);
}
