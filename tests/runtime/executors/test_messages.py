"""What a task receives and returns; oracle: the same objects without any process in between."""

import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from burnish.runtime.executors import Pool, RemoteTaskError, TaskTransferError, message, native
from tests.runtime.executors.arena_arrays import describe, empty

RAISED, NOT_RECEIVED, NOT_RETURNED = 1, 2, 3


@pytest.fixture(scope="module")
def pool():
    with Pool(1, arena=native.new_arena(256 << 20)) as pool:
        yield pool


def run(pool, *tasks, wants_result=True):
    """Send tasks ``(function, build)`` as one request; ``build(request)`` writes the arguments and returns how many."""
    request = native.request(message.pack)
    for function, count, build in tasks:
        request.task(count, wants_result)
        request.object(pool.publish(message.pack_function(function, "f")))
        build(request)
    worker = pool[0]
    assert worker.channel.send(request.finish(), worker.pidfd) == native.OK
    status, response = worker.channel.wait(worker.pidfd, 30.0)
    assert status == native.OK
    return native.decoder(pool.arena).outcomes(response)


def identity(value):
    return value


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(),
    st.floats(),
    st.text(),
    st.just("\udc80"),
    st.binary(max_size=50),
    st.complex_numbers(),
    st.builds(np.float32, st.floats(width=32)),
    st.lists(st.one_of(st.integers(), st.text()), max_size=5),
    st.builds(np.arange, st.integers(0, 2000)),
)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=VALUES)
def test_values_arrive_with_their_type(pool, value):
    ((status, begin, end, back),) = run(pool, (identity, 1, lambda r: r.value(value)))
    assert status == 0 and begin <= end
    assert type(back) is type(value)
    assert pickle.dumps(back) == pickle.dumps(value) or back == value


def slices(n):
    return st.slices(n).filter(lambda s: len(range(*s.indices(n))) > 0)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.data(),
    shape=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    dtype=st.sampled_from(["f8", "i4", "u1", "c16", "?", "S3", "U2", "M8[ns]"]),
)
def test_views_are_numpys_views(pool, data, shape, dtype):
    base = empty(pool.arena, shape, dtype)
    base.reshape(-1).view("u1")[:] = np.resize(np.arange(97, dtype="u1") % 2, base.nbytes)
    view = base[tuple(data.draw(slices(n)) for n in shape)]
    view = view.transpose(data.draw(st.permutations(range(view.ndim))))

    def look(a):
        return a.shape, a.strides, a.dtype.str, a.flags.writeable, a.tobytes()

    ((status, _, _, seen),) = run(pool, (look, 1, lambda r: r.array(describe(pool.arena, view, False))))
    assert status == 0, seen
    assert seen == (view.shape, view.strides, view.dtype.str, False, view.tobytes())
    pool.arena.free(base.__array_interface__["data"][0] - pool.arena.address)


def test_writes_land_in_the_memory_of_the_driver(pool):
    a = empty(pool.arena, (6, 8))
    a[:] = 0

    def fill(x):
        x[:] = np.arange(x.size).reshape(x.shape)

    ((status, _, _, value),) = run(pool, (fill, 1, lambda r: r.array(describe(pool.arena, a[1::2, ::-2]))))
    expected = np.zeros((6, 8))
    expected[1::2, ::-2] = np.arange(12).reshape(3, 4)
    assert (status, value) == (0, None)
    assert (a == expected).all()


def test_read_only_views_cannot_be_made_writeable(pool):
    a = empty(pool.arena, 4)
    a[:] = 7

    def write(x):
        x[0] = 1

    def force(x):
        x.setflags(write=True)

    for body in (write, force):
        ((status, _, _, parts),) = run(pool, (body, 1, lambda r: r.array(describe(pool.arena, a, False))))
        assert status == RAISED and parts[1] == "ValueError"
    assert (a == 7).all()


def test_structured_dtype_travels_as_stored_object(pool):
    dtype = np.dtype([("id", "<i4"), ("mass", "<f8")])
    ref = pool.publish(pickle.dumps(dtype))
    a = empty(pool.arena, 5, np.dtype((np.void, dtype.itemsize))).view(dtype)
    a["id"], a["mass"] = np.arange(5), 0.5

    def total(x):
        x["mass"] *= 2
        return float((x["id"] * x["mass"]).sum())

    ((status, _, _, value),) = run(pool, (total, 1, lambda r: r.array(describe(pool.arena, a, dtype=ref))))
    assert (status, value) == (0, 10.0)


def test_apply_gives_arguments_their_shape(pool):
    a, b = empty(pool.arena, 3), empty(pool.arena, 3)
    a[:], b[:] = 1, 2
    pair = pool.publish(message.pack_function(lambda x, y: {"x": x, "y": y, "both": [x, y]}, "pair"))

    def build(request):
        request.apply(pair, 2)
        request.array(describe(pool.arena, a))
        request.apply(pair, 2)
        request.value("inner")
        request.array(describe(pool.arena, b, False))
        request.value(10.0)

    def body(fields, factor):
        fields["x"][:] = factor * fields["y"]["y"]
        return fields["y"]["x"], fields["y"]["y"].flags.writeable

    ((status, _, _, value),) = run(pool, (body, 2, build))
    assert (status, value) == (0, ("inner", False))
    assert (a == 20).all()


def test_a_request_of_several_tasks_goes_on_after_an_error(pool):
    def boom(x):
        raise KeyError(x)

    outcomes = run(pool, *[(f, 1, lambda r, i=i: r.value(i)) for i, f in enumerate([identity, boom, identity])])
    assert [o[0] for o in outcomes] == [0, RAISED, 0]
    assert (outcomes[0][3], outcomes[2][3]) == (0, 2)
    assert pool[0].channel.done == 3
    assert all(x[2] <= y[1] for x, y in itertools.pairwise(outcomes))


def test_results_that_nobody_wants_are_not_sent(pool):
    ((status, _, _, value),) = run(pool, (lambda: 5, 0, lambda r: None), wants_result=False)
    assert (status, value) == (0, None)


class Odd(Exception):
    def __init__(self, a, b):
        super().__init__(f"{a} and {b}")


def test_errors_come_back_with_their_traceback(pool):
    def body():
        local = [1, 2]
        return local[2]

    ((status, _, _, parts),) = run(pool, (body, 0, lambda r: None))
    error = message.rebuild_error(parts)
    assert status == RAISED and type(error) is IndexError
    assert f'File "{__file__}"' in str(error.__cause__) and "local[2]" in str(error.__cause__)


def test_errors_that_do_not_unpickle_are_described(pool):
    def body():
        raise Odd("this", "that")

    ((_, _, _, parts),) = run(pool, (body, 0, lambda r: None))
    error = message.rebuild_error(parts)
    assert type(error) is RemoteTaskError and str(error) == "Odd: this and that"


def test_even_exits_and_broken_errors_are_outcomes(pool):
    def leave():
        raise SystemExit(3)

    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("no words")

    def mute():
        raise Mute

    ((status, _, _, parts),) = run(pool, (leave, 0, lambda r: None))
    assert status == RAISED and isinstance(message.rebuild_error(parts), SystemExit)
    ((status, _, _, parts),) = run(pool, (mute, 0, lambda r: None))
    assert status == RAISED and "Mute" in parts[1]


def test_what_cannot_be_unpickled_or_pickled_is_told_apart(pool):
    ((status, _, _, parts),) = run(pool, (identity, 1, lambda r: r.pickled(b"cno_such_module\nf\n.")))
    assert status == NOT_RECEIVED and parts[1] == "ModuleNotFoundError"
    ((status, _, _, parts),) = run(pool, (lambda: (x for x in "ab"), 0, lambda r: None))
    assert status == NOT_RETURNED and "generator" in parts[2]


def test_function_that_holds_a_lock_cannot_be_sent():
    import threading

    lock = threading.Lock()

    def body():
        with lock:
            return 1

    with pytest.raises(TaskTransferError, match=r"^task 'body' cannot be sent: it closes over <lock>$"):
        message.pack_function(body, "body")


def test_array_outside_the_memory_is_refused(pool):
    desc = native.array_desc(pool.arena.capacity - 8, "<f8", 8, [3], [8], True)
    ((status, _, _, parts),) = run(pool, (identity, 1, lambda r: r.array(desc)))
    assert status == NOT_RECEIVED and "outside the shared memory" in parts[2]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), shape=st.lists(st.integers(0, 5), min_size=1, max_size=4))
def test_undo_restores_exactly_the_pieces(pool, data, shape):
    size = math.prod(shape)
    base = empty(pool.arena, shape, "i8")
    base[...] = np.arange(size).reshape(shape)
    pieces = []
    for _ in range(data.draw(st.integers(1, 3))):
        view = base[tuple(data.draw(st.slices(n)) for n in shape)]
        pieces.append(view.transpose(data.draw(st.permutations(range(view.ndim)))))
    before, mask = base.copy(), np.zeros(shape, bool)
    for piece in pieces:
        where = piece.copy()
        mask |= np.isin(before, where)
    undo = native.undo(pool.arena)
    used = pool.arena.stats()["used"]
    undo.save([describe(pool.arena, piece) for piece in pieces])
    assert undo.bytes == sum(piece.nbytes for piece in pieces)
    base[...] = -1
    undo.restore()
    assert (base == np.where(mask, before, -1)).all()
    undo.release()
    assert pool.arena.stats()["used"] == used
    pool.arena.free(base.__array_interface__["data"][0] - pool.arena.address)
