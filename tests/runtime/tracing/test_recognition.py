"""Repeats against known strings and brute force; the recognizer against the figures of its specification."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burnish.core.errors import BurnishError
from burnish.runtime import tracing
from burnish.runtime.tracing.repeats import suffix_array

# Tail coverage and warm-up to reach (specification, section 10), goals beyond the table included.
TABLE = {
    "stencil": (0.995, 36), "circuit": (0.986, 39), "pennant": (1.0, 82), "pennant_nb": (1.0, 77), "s3d": (0.995, 260),
    "jacobi": (0.976, 45), "cg": (0.998, 39), "cg_nb": (0.999, 51), "swe": (1.0, 46), "swe_res": (0.995, 51),
    "cfd": (1.0, 1100), "dnn": (0.986, 352), "amr": (0.93, 1090),
}  # fmt: skip
tokens = st.lists(st.integers(0, 3), max_size=60)


@pytest.mark.parametrize("index", range(11))
def test_known_strings(shared_data: Callable[[str], Path], index: int) -> None:
    case = json.loads((shared_data("tracing") / "strings.json").read_text())["strings"][index]
    order, common = suffix_array(case["tokens"])
    assert order.tolist() == case["suffix_array"]
    assert common.tolist() == case["lcp"]
    found = tracing.find_repeats(case["tokens"], case["min_length"])
    assert [(r.start, r.end, len(r.starts)) for r in found] == [
        (r["start"], r["end"], r["count"]) for r in case["repeats"]
    ]


@pytest.mark.parametrize("index", range(5))
def test_generated_strings(shared_data: Callable[[str], Path], index: int) -> None:
    case = json.loads((shared_data("tracing") / "strings.json").read_text())["generated"][index]
    text: list[int] = []
    for outer in range(case["outer_repeats"]):
        for _ in range(case["inner_repeats"]):
            for kind in range(case["token_kinds"]):
                text += [kind] * case["token_repeats"]
        text.append(outer + case["token_kinds"])
    found = tracing.find_repeats(text, case["min_length"])
    assert [(r.start, r.end, len(r.starts)) for r in found] == [
        (r["start"], r["end"], r["count"]) for r in case["repeats"]
    ]


@settings(max_examples=300, deadline=None)
@given(tokens)
def test_suffixes_are_sorted_and_share_what_is_said(text: list[int]) -> None:
    order, common = suffix_array(text)
    assert order.tolist() == sorted(range(len(text)), key=lambda i: text[i:])
    for a, b, shared in zip(order, order[1:], common, strict=False):
        x, y = text[a:], text[b:]
        assert shared == next((k for k, (p, q) in enumerate(zip(x, y, strict=False)) if p != q), min(len(x), len(y)))


@settings(max_examples=300, deadline=None)
@given(tokens, st.integers(1, 5))
def test_repeats_are_disjoint_and_occur(text: list[int], min_length: int) -> None:
    taken = np.zeros(len(text), bool)
    for repeat in tracing.find_repeats(text, min_length):
        length = repeat.end - repeat.start
        assert length >= min_length and len(repeat.starts) >= 2 and repeat.start == repeat.starts[0]
        for start in repeat.starts:
            assert text[start : start + length] == text[repeat.start : repeat.end]
            assert not taken[start : start + length].any()
            taken[start : start + length] = True


@pytest.mark.parametrize("name", TABLE)
def test_coverage_of_the_streams(shared_data: Callable[[str], Path], name: str) -> None:
    stream = tracing.read_stream(shared_data("tracing") / "streams" / f"{name}.txt.gz")
    found = tracing.simulate(stream)
    tail, warmup = TABLE[name]
    assert found.tail_coverage >= tail - 0.005
    assert found.warmup is not None and found.warmup <= 1.25 * warmup
    assert found.max_deferral == 0


def test_noise_has_no_traces(shared_data: Callable[[str], Path]) -> None:
    stream = tracing.read_stream(shared_data("tracing") / "streams" / "noise.txt.gz")
    assert tracing.simulate(stream).replays == 0


def _loop(body: int, times: int) -> tracing.TokenStream:
    n = body * times
    signatures = np.tile(np.arange(1, body + 1, dtype=np.uint64), times)
    zeros = np.zeros(n + 1, np.uint64)
    return tracing.TokenStream(signatures, signatures, np.zeros(n, np.uint8), zeros, np.zeros(0, np.uint32))


@pytest.mark.parametrize("algorithm", ["burnish", "apophenia"])
def test_a_plain_loop_is_covered(algorithm: str) -> None:
    found = tracing.simulate(_loop(7, 400), tracing.TraceConfig(algorithm=algorithm))  # type: ignore[arg-type]
    assert found.tail_coverage > 0.9


def test_fresh_regions_do_not_hide_a_loop() -> None:
    times = 300
    roots = np.arange(1, 2 * times + 1, dtype=np.uint32)  # never the same twice
    offsets = np.arange(2 * times + 1, dtype=np.uint64)
    signatures = np.tile(np.array([1, 2], np.uint64), times)
    flats = np.arange(2 * times, dtype=np.uint64) + 10
    stream = tracing.TokenStream(signatures, flats, np.zeros(2 * times, np.uint8), offsets, roots)
    assert tracing.simulate(stream).tail_coverage > 0.9
    assert tracing.simulate(stream, tracing.TraceConfig(parametric=False)).coverage == 0.0


def test_streams_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "s.txt.gz"
    path_plain = tmp_path / "s.txt"
    path_plain.write_text("3 5 1 2\n-\n4 6\n")
    stream = tracing.read_stream(path_plain)
    tracing.write_stream(path, stream)
    again = tracing.read_stream(path)
    assert again.signatures.tolist() == [3, 0, 4] and again.separators.tolist() == [0, 1, 0]
    assert again.roots.tolist() == [1, 2] and again.offsets.tolist() == [0, 2, 2, 2]


@pytest.mark.parametrize("line", ["x", "1", "1 -2", "1 2 3.5", "1 2 99999999999"])
def test_bad_lines_are_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "bad.txt"
    path.write_text(f"1 2\n{line}\n")
    with pytest.raises(BurnishError, match=r"bad\.txt:2:1: expected 'signature flat operand"):
        tracing.read_stream(path)


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"history": 1}, "TraceConfig.history=1 must be an integer from 64"),
        ({"budget": 0}, "TraceConfig.budget=0 must be above 0"),
        ({"algorithm": "x"}, "TraceConfig.algorithm='x' is none of"),
        ({"memory": 1 << 16}, "TraceConfig.history=8192 needs 1048576 bytes"),
    ],
)
def test_settings_out_of_range_are_named(settings_: dict[str, object], message: str) -> None:
    with pytest.raises(BurnishError, match=message.replace("(", r"\(")):
        tracing.TraceConfig(**settings_)  # type: ignore[arg-type]
