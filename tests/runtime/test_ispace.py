"""Index spaces and partitions against Python twins on sets of coordinate tuples."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burnish import _native

isp = _native.ispace
Point = tuple[int, ...]
Points = frozenset[Point]
checked = settings(deadline=None, max_examples=60)


@dataclass(frozen=True)
class Root:
    """The twin of a root rectangle: enumerates its points in row-major order."""

    lo: Point
    hi: Point

    @property
    def dim(self) -> int:
        return len(self.lo)

    def points(self) -> list[Point]:
        return list(itertools.product(*(range(a, b) for a, b in zip(self.lo, self.hi, strict=True))))

    def volume(self) -> int:
        return len(self.points())

    def box(self, lo: Point, hi: Point) -> Points:
        return frozenset(p for p in self.points() if all(a <= x < b for a, x, b in zip(lo, p, hi, strict=True)))

    def native_rect(self, lo: Point, hi: Point) -> Any:
        return isp.rect(self.lo, self.hi, lo, hi)

    def native(self, points: Points) -> Any:
        linear = {p: i for i, p in enumerate(self.points())}
        return isp.points(self.lo, self.hi, np.array([linear[p] for p in points], dtype=np.int64))

    def whole(self) -> Any:
        return self.native_rect(self.lo, self.hi)


def points_of(space: Any) -> Points:
    """The points of a native space, read back through its intervals."""
    root = Root(*space.root)
    order = root.points()
    return frozenset(order[x] for lo, hi in space.intervals() for x in range(lo, hi))


def bounding_box(points: Points) -> tuple[Point, Point]:
    columns = list(zip(*points, strict=True))
    return tuple(map(min, columns)), tuple(max(c) + 1 for c in columns)


def is_box(points: Points) -> bool:
    lo, hi = bounding_box(points)
    return math.prod(b - a for a, b in zip(lo, hi, strict=True)) == len(points)


def check_pieces(result: tuple[list[Any], bool, bool], expected: list[Points], parent: Points) -> None:
    spaces, disjoint, complete = result
    assert [points_of(s) for s in spaces] == expected
    assert disjoint == (sum(map(len, expected)) == len(frozenset().union(*expected)))
    assert complete == (frozenset().union(*expected) == parent)


@st.composite
def roots(draw: st.DrawFn, dims: st.SearchStrategy[int] = st.integers(1, 4)) -> Root:
    dim = draw(dims)
    largest = {1: 40, 2: 8, 3: 5, 4: 3}[dim]
    lo = draw(st.lists(st.integers(-3, 3), min_size=dim, max_size=dim))
    extent = draw(st.lists(st.integers(0, largest), min_size=dim, max_size=dim))
    return Root(tuple(lo), tuple(a + n for a, n in zip(lo, extent, strict=True)))


@st.composite
def boxes(draw: st.DrawFn, root: Root) -> tuple[Point, Point]:
    """A rectangle that may stick out of the root or be empty."""
    corners = [draw(st.tuples(st.integers(a - 2, b + 2), st.integers(a - 2, b + 2)))
               for a, b in zip(root.lo, root.hi, strict=True)]  # fmt: skip
    return tuple(c[0] for c in corners), tuple(c[1] for c in corners)


@st.composite
def subsets(draw: st.DrawFn, root: Root) -> Points:
    """A rectangle, a scatter of points, or a rectangle with holes."""
    order = root.points()
    kind = draw(st.sampled_from(["box", "scatter", "holes", "empty", "one"]))
    if kind == "empty" or not order:
        return frozenset()
    if kind == "one":
        return frozenset([draw(st.sampled_from(order))])
    scatter = frozenset(draw(st.lists(st.sampled_from(order), max_size=len(order))))
    if kind == "scatter":
        return scatter
    box = root.box(*draw(boxes(root)))
    return box if kind == "box" else box - scatter


@st.composite
def rooted_sets(draw: st.DrawFn, n: int) -> tuple[Root, list[Points]]:
    root = draw(roots())
    return root, [draw(subsets(root)) for _ in range(n)]


@st.composite
def partitioned(draw: st.DrawFn) -> tuple[Root, Points, list[Points]]:
    """A root, a parent, and subsets of the parent (possibly none)."""
    root = draw(roots())
    parent = draw(st.one_of(st.just(frozenset(root.points())), subsets(root)))
    return root, parent, [parent & draw(subsets(root)) for _ in range(draw(st.integers(0, 5)))]


# ---- one space ----


@checked
@given(st.data())
def test_rect_is_the_clipped_box(data: st.DataObject) -> None:
    root = data.draw(roots())
    lo, hi = data.draw(boxes(root))
    space = root.native_rect(lo, hi)
    expected = root.box(lo, hi)
    assert points_of(space) == expected
    assert space.dense
    assert space.volume == len(space) == len(expected)
    if expected:
        assert space.bounds == bounding_box(expected)


@checked
@given(rooted_sets(1))
def test_space_of_points(case: tuple[Root, list[Points]]) -> None:
    root, [points] = case
    space = root.native(points)
    assert points_of(space) == points
    assert space.volume == len(points)
    assert space.dense == (not points or is_box(points))
    if points:
        assert space.bounds == bounding_box(points)
    runs = space.intervals()
    assert (runs[:, 0] < runs[:, 1]).all()
    assert (runs[1:, 0] > runs[:-1, 1]).all()
    order = {p: i for i, p in enumerate(root.points())}
    linear = sorted(order[p] for p in points)
    assert space.linear_points().tolist() == linear
    rank = {x: i for i, x in enumerate(linear)}
    for x in range(-2, root.volume() + 2):
        assert space.rank(x) == rank.get(x, -1)
        assert (x in space) == (x in rank)


@checked
@given(rooted_sets(1))
def test_sparse_rebuilds_the_space_from_its_intervals(case: tuple[Root, list[Points]]) -> None:
    root, [points] = case
    space = root.native(points)
    again = isp.sparse(root.lo, root.hi, space.intervals())
    assert again == space
    assert hash(again) == hash(space)
    assert again.dense == space.dense


@pytest.mark.parametrize("runs", [[[3, 3]], [[5, 2]], [[1, 3], [3, 5]], [[4, 6], [1, 2]], [[1, 4], [2, 6]], [[-1, 2]]])
def test_sparse_refuses_lists_that_are_not_canonical(runs: list[list[int]]) -> None:
    with pytest.raises(ValueError, match="ascending"):
        isp.sparse([0], [10], np.array(runs, dtype=np.int64))


def test_points_outside_the_root_are_refused() -> None:
    with pytest.raises(IndexError, match="interval ends at 11"):
        isp.sparse([0], [10], np.array([[4, 11]], dtype=np.int64))
    for bad in (-1, 10):
        with pytest.raises(IndexError, match=f"point {bad} is outside"):
            isp.points([0], [10], np.array([3, bad], dtype=np.int64))


def test_rank_of_huge_spaces_needs_no_memory() -> None:
    space = isp.rect([0] * 3, [2**20] * 3, [1] * 3, [2**20 - 1] * 3)
    inner = 2**20 - 2
    assert space.volume == inner**3
    corner = (2**20 - 2) * (2**40 + 2**20 + 1)
    assert space.rank(corner) == inner**3 - 1
    with pytest.raises(ValueError, match="2\\^62"):
        isp.rect([0] * 4, [2**20] * 4, [0] * 4, [2**20] * 4)


# ---- algebra ----


@settings(checked, max_examples=200)
@given(rooted_sets(2))
def test_algebra_of_two_spaces(case: tuple[Root, list[Points]]) -> None:
    root, [a, b] = case
    x, y = root.native(a), root.native(b)
    assert isp.intersects(x, y) == bool(a & b)
    assert isp.covers(x, y) == (a >= b)
    assert isp.overlap_volume(x, y) == len(a & b)
    assert (x == y) == (a == b)
    for result, expected in (
        (isp.intersection(x, y), a & b),
        (isp.difference(x, y), a - b),
        (isp.unite(x, y), a | b),
    ):
        assert points_of(result) == expected
        assert result == root.native(expected)  # one representation per set, whichever way it was made


@checked
@given(rooted_sets(7), st.integers(0, 7))
def test_unite_all(case: tuple[Root, list[Points]], n: int) -> None:
    root, sets = case
    result = isp.unite_all(root.lo, root.hi, [root.native(s) for s in sets[:n]])
    assert points_of(result) == frozenset().union(*sets[:n])


@pytest.mark.parametrize("n", [3, 4, 17])
def test_unite_all_of_far_apart_points_merges_lists(n: int) -> None:
    random = np.random.default_rng(n)
    sets = [random.integers(0, 2**50, 40) for _ in range(n)]
    spaces = [isp.points([0], [2**50], s) for s in sets]
    expected = np.unique(np.concatenate(sets))
    assert np.array_equal(isp.unite_all([0], [2**50], spaces).linear_points(), expected)


@checked
@given(rooted_sets(2))
def test_runs_copy_the_part_out_of_the_whole(case: tuple[Root, list[Points]]) -> None:
    root, [whole, other] = case
    part = whole & other
    order = root.points()
    packed = [p for p in order if p in whole]
    runs = isp.runs(root.native(whole), root.native(part))
    assert (runs[:, 2] > 0).all()
    copied = [x for at, _, n in runs for x in packed[at : at + n]]
    placed = [x for _, at, n in runs for x in order[at : at + n]]
    assert copied == placed == [p for p in order if p in part]
    ends = runs[:-1] + runs[:-1, 2:]
    assert not ((ends[:, 0] == runs[1:, 0]) & (ends[:, 1] == runs[1:, 1])).any()  # no run could be longer


def test_runs_need_a_subset() -> None:
    root = Root((0,), (9,))
    with pytest.raises(ValueError, match="not a subset"):
        isp.runs(root.native_rect((2,), (5,)), root.native_rect((3,), (6,)))


def test_spaces_of_different_roots_do_not_mix() -> None:
    a, b = isp.rect([0], [9], [0], [9]), isp.rect([0], [8], [0], [8])
    with pytest.raises(ValueError, match="different roots"):
        isp.unite(a, b)


# ---- partition builders ----


def block_twin(lo: int, hi: int, c: int, k: int) -> range:
    return range(lo + c * (hi - lo) // k, lo + (c + 1) * (hi - lo) // k)


@checked
@given(st.data())
def test_block_of_a_rectangle(data: st.DataObject) -> None:
    root = data.draw(roots())
    parent = root.box(*data.draw(boxes(root)))
    colors = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=root.dim))
    lo, hi = bounding_box(parent) if parent else (root.lo, root.lo)
    expected = []
    for color in itertools.product(*map(range, colors)):
        ranges = [block_twin(lo[d], hi[d], c, colors[d]) for d, c in enumerate(color)]
        expected.append(frozenset(p for p in parent if all(p[d] in r for d, r in enumerate(ranges))))
    check_pieces(isp.block(root.native(parent), colors), expected, parent)


@checked
@given(st.integers(0, 6), st.data())
def test_block_of_a_sparse_space_goes_by_rank(k: int, data: st.DataObject) -> None:
    root = data.draw(roots())
    parent = data.draw(subsets(root))
    if not parent or is_box(parent):
        return
    order = [p for p in root.points() if p in parent]
    expected = [frozenset(order[i] for i in block_twin(0, len(order), c, k)) for c in range(k)]
    check_pieces(isp.block(root.native(parent), [k]), expected, parent)


@checked
@given(st.data())
def test_restrict(data: st.DataObject) -> None:
    root = data.draw(roots())
    parent = data.draw(st.one_of(st.just(frozenset(root.points())), subsets(root)))
    cdim = data.draw(st.integers(1, 3))
    numbers = st.integers(-3, 3)
    colors = data.draw(st.lists(st.integers(0, 3), min_size=cdim, max_size=cdim))
    matrix = np.array(data.draw(st.lists(numbers, min_size=root.dim * cdim, max_size=root.dim * cdim)), dtype=np.int64)
    extent = data.draw(st.lists(st.integers(0, 5), min_size=root.dim, max_size=root.dim))
    offset = data.draw(st.lists(numbers, min_size=root.dim, max_size=root.dim))
    expected = []
    for color in itertools.product(*map(range, colors)):
        lo = matrix.reshape(root.dim, cdim) @ np.array(color, dtype=np.int64) + offset
        expected.append(parent & root.box(tuple(lo.tolist()), tuple((lo + extent).tolist())))
    result = isp.restrict(root.native(parent), colors, matrix.tolist(), extent, offset)
    check_pieces(result, expected, parent)


def ghost_twin(parent: Points, piece: Points, width: list[int], wrap: bool) -> Points:
    if not parent or not piece:
        return frozenset()
    lo, hi = bounding_box(parent)
    found = set()
    for p in piece:
        axes = [range(x - w, x + w + 1) for x, w in zip(p, width, strict=True)]
        if wrap:
            axes = [{lo[d] + (x - lo[d]) % (hi[d] - lo[d]) for x in axis} for d, axis in enumerate(axes)]
        found.update(itertools.product(*axes))
    return parent & found


@checked
@given(partitioned(), st.booleans(), st.booleans(), st.data())
def test_ghost(case: tuple[Root, Points, list[Points]], wrap: bool, include_self: bool, data: st.DataObject) -> None:
    root, parent, pieces = case
    widest = st.sampled_from([0, 1, 1, 2, 3, 50] if root.dim == 1 else [0, 1, 1, 2, 9] if root.dim == 2 else [0, 1, 4])
    width = data.draw(st.lists(widest, min_size=root.dim, max_size=root.dim))
    expected = [ghost_twin(parent, p, width, wrap) - (frozenset() if include_self else p) for p in pieces]
    result = isp.ghost(root.native(parent), [root.native(p) for p in pieces], width, wrap, include_self)
    check_pieces(result, expected, parent)


@checked
@given(st.integers(0, 5), st.data())
def test_by_color(k: int, data: st.DataObject) -> None:
    root = data.draw(roots())
    parent = data.draw(st.one_of(st.just(frozenset(root.points())), subsets(root)))
    order = [p for p in root.points() if p in parent]
    colors = data.draw(st.lists(st.integers(-1, k - 1), min_size=len(order), max_size=len(order)))
    expected = [frozenset(p for p, mine in zip(order, colors, strict=True) if mine == c) for c in range(k)]
    check_pieces(isp.by_color(root.native(parent), np.array(colors, dtype=np.int64), k), expected, parent)


def test_by_color_names_the_first_color_that_does_not_exist() -> None:
    parent = isp.rect([0], [6], [0], [6])
    with pytest.raises(IndexError, match=r"point 2 has color 7, outside -1\.\.2"):
        isp.by_color(parent, np.array([0, 1, 7, -1, -2, 2]), 3)
    with pytest.raises(ValueError, match="5 colors for 6 points"):
        isp.by_color(parent, np.zeros(5, dtype=np.int64), 3)


@checked
@given(partitioned())
def test_by_spaces_computes_disjoint_and_complete(case: tuple[Root, Points, list[Points]]) -> None:
    root, parent, pieces = case
    check_pieces(isp.by_spaces(root.native(parent), [root.native(p) for p in pieces]), pieces, parent)


def test_by_spaces_names_the_color_that_sticks_out() -> None:
    root = Root((0, 0), (4, 4))
    parts = [root.native_rect((0, 0), (2, 2)), root.native_rect((1, 1), (3, 4))]
    with pytest.raises(IndexError, match="color 1"):
        isp.by_spaces(root.native_rect((0, 0), (3, 3)), parts)


@st.composite
def pointers(draw: st.DrawFn, n: int, target: Root) -> list[int]:
    return draw(st.lists(st.integers(-1, target.volume() - 1), min_size=n, max_size=n))


@checked
@given(partitioned(), st.data())
def test_image(case: tuple[Root, Points, list[Points]], data: st.DataObject) -> None:
    root, _, pieces = case
    target = data.draw(roots())
    into = data.draw(st.one_of(st.just(frozenset(target.points())), subsets(target)))
    pointer = data.draw(pointers(root.volume(), target))
    order = target.points()
    to = {p: order[v] for p, v in zip(root.points(), pointer, strict=True) if v >= 0}
    expected = [into & {to[p] for p in piece if p in to} for piece in pieces]
    result = isp.image([root.native(p) for p in pieces], np.array(pointer, dtype=np.int64), target.native(into))
    check_pieces(result, expected, into)


@checked
@given(partitioned(), st.data())
def test_preimage(case: tuple[Root, Points, list[Points]], data: st.DataObject) -> None:
    target, _, pieces = case
    root = data.draw(roots())
    source = data.draw(st.one_of(st.just(frozenset(root.points())), subsets(root)))
    pointer = data.draw(pointers(root.volume(), target))
    order = target.points()
    to = {p: order[v] for p, v in zip(root.points(), pointer, strict=True) if v >= 0}
    expected = [frozenset(p for p in source if to.get(p) in piece) for piece in pieces]
    result = isp.preimage([target.native(p) for p in pieces], np.array(pointer, dtype=np.int64), root.native(source))
    check_pieces(result, expected, source)


@pytest.mark.parametrize("bad", [-2, 10, 2**62])
def test_the_lowest_pointer_outside_the_target_is_named(bad: int) -> None:
    source, target = isp.rect([0], [8], [0], [8]), isp.rect([0], [10], [0], [10])
    pointer = np.array([0, -1, 3, 9, 9, bad, 1, bad + 7 if bad > 0 else bad - 7])
    with pytest.raises(IndexError, match=rf"pointer\[5\] = {bad} is outside"):
        isp.image([isp.rect([0], [8], [4], [8]), isp.rect([0], [8], [0], [6])], pointer, target)
    with pytest.raises(IndexError, match=rf"pointer\[5\] = {bad} is outside"):
        isp.preimage(isp.block(target, [3])[0], pointer, source)
    isp.image([isp.rect([0], [8], [0], [5])], pointer, target)  # only what the pieces hold is followed


# ---- the paths that only large inputs take: radix sort, bitmaps, threads ----


@pytest.fixture(params=[1, 4], ids=["one-thread", "four-threads"])
def threads(request: pytest.FixtureRequest) -> Any:
    isp.set_build_threads(request.param)
    yield request.param
    isp.set_build_threads(0)


@pytest.mark.parametrize("span", [5_000, 3 * 10**5, 2**40], ids=["dense", "loose", "far-apart"])
@pytest.mark.parametrize("colors", [1, 40])
def test_large_image_and_preimage(threads: int, span: int, colors: int) -> None:
    n = 300_000
    random = np.random.default_rng(colors)
    pointer = np.where(random.random(n) < 0.05, -1, random.integers(0, span, n))
    source, target = isp.rect([0], [n], [0], [n]), isp.rect([0], [span], [0], [span])
    pieces, _, _ = isp.block(source, [colors])
    images, disjoint, complete = isp.image(pieces, pointer, target)
    edges = [c * n // colors for c in range(colors + 1)]
    expected = [np.unique(pointer[a:b][pointer[a:b] >= 0]) for a, b in itertools.pairwise(edges)]
    for mine, theirs in zip(images, expected, strict=True):
        assert np.array_equal(mine.linear_points(), theirs)
    union = np.unique(np.concatenate(expected))
    assert disjoint == (union.size == sum(map(len, expected)))
    assert complete == (union.size == span)

    aliased = [isp.rect([0], [span], [c * span // colors], [(c + 2) * span // colors]) for c in range(colors)]
    for parts, reach in ((isp.block(target, [colors])[0], 1), (aliased, 2)):
        found, disjoint, complete = isp.preimage(parts, pointer, source)
        for c, mine in enumerate(found):
            lo, hi = c * span // colors, (c + reach) * span // colors
            assert np.array_equal(mine.linear_points(), np.flatnonzero((pointer >= lo) & (pointer < min(hi, span))))
        assert disjoint == (reach == 1 or colors == 1)
        assert complete == bool((pointer >= 0).all())


@pytest.mark.parametrize("colors", [1, 2, 1000])
@pytest.mark.parametrize("run", [1, 50])
def test_large_by_color(threads: int, colors: int, run: int) -> None:
    n = 400_000
    random = np.random.default_rng(run)
    color = np.repeat(random.integers(-1, colors, n // run), run)
    pieces, disjoint, complete = isp.by_color(isp.rect([0], [n], [0], [n]), color, colors)
    order = np.argsort(color, kind="stable")
    edges = np.searchsorted(color[order], np.arange(colors + 1))
    for c, mine in enumerate(pieces):
        assert np.array_equal(mine.linear_points(), order[edges[c] : edges[c + 1]])
    assert disjoint
    assert complete == bool((color >= 0).all())
    with pytest.raises(IndexError, match=rf"point {n // 3} has color {colors}"):
        color[[n // 3, n // 2, n - 1]] = colors
        isp.by_color(isp.rect([0], [n], [0], [n]), color, colors)


def test_disjointness_of_many_rectangles() -> None:
    root = ((0, 0), (500, 700))
    parent = isp.rect(*root, *root)
    pieces, disjoint, complete = isp.block(parent, [50, 70])
    assert disjoint and complete
    one_less = pieces[:-1]
    assert isp.by_spaces(parent, one_less)[1:] == (True, False)
    moved = isp.rect(*root, (489, 689), (500, 700))
    assert isp.by_spaces(parent, [*one_less, moved])[1:] == (False, True)
