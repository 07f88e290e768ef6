"""Kernels against exact arithmetic, validation against deliberate mistakes, in all four languages."""

from __future__ import annotations

import ctypes
import pickle
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from burnish.taskbench import Graph, GraphError, Kernel, ValidationError, _native, execute_point
from burnish.taskbench.bodies import Body, expected_output, make_body
from burnish.taskbench.kernel import KERNELS, Impl
from burnish.taskbench.ledger import shared_ledger

IMPLS: tuple[Impl, ...] = ("native", "numba", "numpy", "python")
GRAPH = Graph(8, 6, "stencil_1d", output=48, scratch=16 * 16 * 4)
COMPUTED = [name for name in KERNELS if name != "gpu_compute"]


def _inputs(graph: Graph, t: int, p: int) -> list[np.ndarray]:
    return [expected_output(graph, t - 1, q) for q in graph.inputs(t, p)]


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize("name", COMPUTED)
def test_body_fills_its_output(impl: Impl, name: str) -> None:
    body = make_body(GRAPH, Kernel(name, 3, imbalance=1.0, impl=impl))
    assert np.array_equal(body.produce(2, 3, *_inputs(GRAPH, 2, 3)), expected_output(GRAPH, 2, 3))
    output = np.zeros(48, np.uint8)
    body(0, 5, output, [])
    assert np.array_equal(output, expected_output(GRAPH, 0, 5))


@pytest.mark.parametrize("impl", IMPLS)
def test_wrong_inputs_are_refused(impl: Impl) -> None:
    body = make_body(GRAPH, Kernel(impl=impl))
    good = _inputs(GRAPH, 3, 2)
    with pytest.raises(ValidationError, match=r"graph 0, point \(t=3, p=2\): expected 3 inputs, got 2"):
        body.produce(3, 2, *good[:2])
    late = good[1].copy()
    late.view(np.int64)[4] = 1  # the third pair comes from step 1
    with pytest.raises(
        ValidationError, match=r"point \(t=3, p=2\), input 1, position 2: expected \(2, 2\), got \(1, 2\)"
    ):
        body.produce(3, 2, good[0], late, good[2])
    with pytest.raises(ValidationError, match=r"input 0, position 0: expected \(2, 1\), got \(2, 3\)"):
        body.produce(3, 2, good[2], good[1], good[0])


def test_every_single_wrong_byte_is_noticed() -> None:
    body, good = make_body(GRAPH, Kernel()), _inputs(GRAPH, 3, 2)
    for number in range(3):
        for byte in range(GRAPH.output):
            bad = [buffer.copy() for buffer in good]
            bad[number][byte] ^= 1
            with pytest.raises(ValidationError):
                body.produce(3, 2, *bad)


def test_without_validation_anything_goes() -> None:
    body = make_body(GRAPH, Kernel(validate=False))
    assert np.array_equal(body.produce(3, 2), expected_output(GRAPH, 3, 2))


def test_buffers_of_any_kind_but_of_the_right_size() -> None:
    body = make_body(GRAPH, Kernel())
    output = bytearray(48)
    body(1, 0, output, [bytes(buffer) for buffer in _inputs(GRAPH, 1, 0)])
    assert output == bytes(expected_output(GRAPH, 1, 0))
    with pytest.raises(ValueError, match="have 48 bytes, got 16"):
        body(0, 0, np.zeros(16, np.uint8), [])
    with pytest.raises(ValueError, match="contiguous"):
        body(0, 0, np.zeros(96, np.uint8)[::2], [])
    with pytest.raises((ValueError, BufferError)):
        body(0, 0, bytes(48), [])


def test_any_order_takes_shifted_and_clipped_inputs_but_nothing_else() -> None:
    body = make_body(GRAPH, Kernel())
    left, right = (expected_output(GRAPH, 0, q) for q in (0, 1))
    output = np.zeros(48, np.uint8)
    body.execute(1, 0, output, [right, None, left, left], any_order=True)  # type: ignore[attr-defined]
    with pytest.raises(ValidationError, match=r"input \(0, 0\) is missing"):
        body.execute(1, 0, output, [right], any_order=True)  # type: ignore[attr-defined]
    with pytest.raises(ValidationError, match="no dependence of this point"):
        body.execute(1, 0, output, [left, right, expected_output(GRAPH, 0, 2)], any_order=True)  # type: ignore[attr-defined]


def test_plain_c_function() -> None:
    body = make_body(GRAPH, Kernel("compute_bound", 2))
    point = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p,
        ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t,
    )(_native.point_function())  # fmt: skip
    inputs, output = _inputs(GRAPH, 1, 3), np.zeros(48, np.uint8)
    pointers = (ctypes.c_void_p * 3)(*[buffer.ctypes.data for buffer in inputs])
    address = body.address  # type: ignore[attr-defined]
    assert point(address, 1, 3, output.ctypes.data, pointers, 3) == 0
    assert np.array_equal(output, expected_output(GRAPH, 1, 3))
    assert point(address, 1, 2, output.ctypes.data, pointers, 3) == 3
    assert "expected (0, 1), got (0, 2)" in body.failure  # type: ignore[attr-defined]
    body.forget_failure()  # type: ignore[attr-defined]
    assert point(address, 1, 9, output.ctypes.data, pointers, 3) == 1


@pytest.mark.parametrize("impl", IMPLS)
def test_bodies_survive_pickling(impl: Impl) -> None:
    body: Body = pickle.loads(pickle.dumps(make_body(GRAPH, Kernel("busy_wait", 3, impl=impl))))
    assert np.array_equal(body.produce(0, 1), expected_output(GRAPH, 0, 1))


def test_tasks_count_themselves_and_leave_records() -> None:
    with shared_ledger(capacity=8) as ledger:
        for impl in IMPLS:
            make_body(GRAPH, Kernel(impl=impl, ledger=ledger.path)).produce(0, 4)
        assert ledger.executed == 4
        records = ledger.records()
        assert records.shape == (4, 5) and (records[:, 1] >= records[:, 0]).all()
        assert records[:, 2].tolist() == [0] * 4 and records[:, 3].tolist() == [4] * 4
        ledger.reset()
        assert ledger.executed == 0 and len(ledger.records()) == 0


def test_execute_point_is_the_body() -> None:
    output = np.zeros(48, np.uint8)
    execute_point(GRAPH, 1, 5, output, _inputs(GRAPH, 1, 5), Kernel("compute_bound", 1))
    assert np.array_equal(output, expected_output(GRAPH, 1, 5))


# --- what the kernels compute ------------------------------------------------------------------------------------


def _value(name: str, n: int, impl: Impl, t: int = 2, p: int = 3, **more: float) -> float:
    kernel = Kernel(name, n, impl=impl, **more)  # type: ignore[arg-type]
    if impl == "native":
        return float(kernel.native.run(GRAPH.index, t, p, 0))
    return float(make_body(GRAPH, kernel).run(t, p))  # type: ignore[attr-defined]


def _fused(n: int) -> Fraction:
    a = Fraction(1.2345)
    for _ in range(n):
        a = Fraction(float(a * a + a))  # rounded once: what a fused multiply-add gives
    return a


@pytest.mark.parametrize("impl", IMPLS)
def test_busy_wait_by_modular_powers(impl: Impl) -> None:
    for n in (0, 1, 1000):
        assert _value("busy_wait", n, impl) == 113 * pow(139, n, 2**31 - 1) % (2**31 - 1)


@pytest.mark.parametrize("impl", IMPLS)
def test_compute_bound_by_exact_arithmetic(impl: Impl) -> None:
    for n in (0, 1, 3):
        assert _value("compute_bound", n, impl) == pytest.approx(float(_fused(n) ** 64), rel=1e-12)


@pytest.mark.parametrize("impl", IMPLS)
def test_compute_bound2_by_exact_arithmetic(impl: Impl) -> None:
    for n in (0, 1, 100):
        exact = 32 * n * Fraction(1.2345) * Fraction(1.010101)
        assert _value("compute_bound2", n, impl) == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("impl", IMPLS)
def test_load_imbalance_draws_from_the_point(impl: Impl) -> None:
    for p in range(4):
        n = round((1 + (_native.uniform(0, 2, p) - 0.5) * 2.0) * 2)
        assert _value("load_imbalance", 2, impl, p=p, imbalance=2.0) == pytest.approx(float(_fused(n) ** 64), rel=1e-12)


def _scratch_kernel(name: str, n: int, impl: Impl, scratch: int, samples: int, calls: Sequence[int]) -> float:
    """The last value of a kernel run at steps ``calls`` on fresh scratch, in a thread of its own."""
    import threading

    graph, out = Graph(max(calls) + 1, 1, "trivial", scratch=scratch), []
    kernel = Kernel(name, n, samples=samples, impl=impl)
    body = make_body(graph, kernel)

    def work() -> None:
        for t in calls:
            out.append(kernel.native.run(0, t, 0, scratch) if impl == "native" else body.run(t, 0))  # type: ignore[attr-defined]

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return float(out[-1])


@pytest.mark.parametrize("impl", IMPLS)
def test_dgemm_by_its_closed_form(impl: Impl) -> None:
    size, n = 5, 3
    expected = 1.2345 + n * size * 1.2345**2  # every entry of A, B, C starts as 1.2345
    assert _scratch_kernel("compute_dgemm", n, impl, 24 * size * size, 1, [0]) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("impl", IMPLS)
def test_daxpy_visits_its_chunks_in_turn(impl: Impl) -> None:
    # 4 chunks, 3 per call: chunks 0 1 2, then 3 0 1, then 2 3 0; chunk 0 has been added to three times.
    assert _scratch_kernel("memory_daxpy", 3, impl, 4 * 64, 4, [0, 1, 2]) == pytest.approx(1.2345 * 4)
    assert _scratch_kernel("memory_bound", 3, impl, 4 * 64, 4, [0, 1, 2]) == 1.2345


def test_values_never_become_denormal() -> None:
    for impl in IMPLS:
        assert _value("compute_bound", 200, impl) == np.inf


def test_work_is_counted_as_specified() -> None:
    graph = Graph(3, 4, "trivial", scratch=24 * 100 + 8)
    tasks = 12
    assert Kernel("compute_bound", 10).flops(graph) == tasks * (2 * 64 * 10 + 64)
    assert Kernel("compute_bound2", 10).flops(graph) == tasks * 2 * 32 * 10
    assert Kernel("compute_dgemm", 10).flops(graph) == tasks * 2 * 10**3 * 10
    assert Kernel("memory_bound", 8, samples=4).bytes(Graph(3, 4, scratch=256)) == tasks * 256 * 8 // 4
    assert Kernel("empty").flops(graph) == Kernel("busy_wait", 9).flops(graph) == 0
    n = sum(round((1 + (_native.uniform(0, t, p) - 0.5) * 1.5) * 100) for t in range(3) for p in range(4))
    assert Kernel("load_imbalance", 100, imbalance=1.5).flops(graph) == 2 * 64 * n + 64 * tasks


@pytest.mark.parametrize(
    ("kernel", "graph", "message"),
    [
        ({"name": "memory_bound"}, {}, "memory_bound needs scratch of at least 256 bytes, got 0"),
        ({"name": "compute_dgemm"}, {"scratch": 8}, "compute_dgemm needs scratch of at least 24 bytes, got 8"),
        ({"name": "compute_bond"}, {}, "unknown kernel 'compute_bond'; did you mean 'compute_bound'?"),
        ({"name": "empty", "imbalance": 3.0}, {}, "imbalance must be in [0, 2], got 3"),
        ({"name": "empty", "impl": "rust"}, {}, "unknown impl 'rust'; write one of native, numba, numpy, python"),
    ],
)
def test_bad_kernels_say_what_is_wrong(kernel: dict[str, object], graph: dict[str, int], message: str) -> None:
    with pytest.raises(GraphError) as caught:
        make_body(Graph(2, 2, **graph), Kernel(**kernel))  # type: ignore[arg-type]
    assert str(caught.value) == message
