"""The arena against a model of disjoint intervals, and against the kernel's count of its pages."""

import os
import random
import threading

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from burnish.runtime.executors import native

MIB = 1 << 20
SIZES = st.one_of(
    st.integers(0, 700), st.integers(700, 40_000), st.sampled_from([32768, 32769, MIB - 1, MIB, MIB + 1, 3 * MIB])
)


class ArenaModel(RuleBasedStateMachine):
    @initialize(retain=st.sampled_from([0, 2 * MIB, 256 * MIB]))
    def start(self, retain):
        self.arena = native.new_arena(64 * MIB, limit=40 * MIB, retain=retain)
        self.view = native.decoder(self.arena)
        self.live = {}  # offset -> (bytes asked for, fill)

    def bytes_at(self, offset, size):
        return self.view.array(native.array_desc(offset, "|u1", 1, [size], [1], True))

    @rule(size=SIZES, align=st.sampled_from([1, 8, 64, 256, 4096, 65536, MIB]), fill=st.integers(1, 255))
    def alloc(self, size, align, fill):
        try:
            offset = self.arena.alloc(size, align)
        except native.ArenaFull:
            assert self.arena.stats()["used"] + size > 20 * MIB  # never refuses while it is mostly empty
            return
        assert offset % max(align, 64) == 0
        assert self.arena.block_bytes(offset) >= size
        end = offset + self.arena.block_bytes(offset)
        assert all(end <= o or o + self.arena.block_bytes(o) <= offset for o in self.live)
        self.bytes_at(offset, size)[:] = fill
        self.live[offset] = (size, fill)

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def free(self, data):
        offset = data.draw(st.sampled_from(sorted(self.live)))
        size, fill = self.live.pop(offset)
        assert (self.bytes_at(offset, size) == fill).all()
        self.arena.free(offset)
        with pytest.raises(ValueError, match="no live block"):
            self.arena.free(offset)

    @rule()
    def trim(self):
        self.arena.trim()

    @invariant()
    def counts(self):
        if not hasattr(self, "arena"):
            return
        stats = self.arena.stats()
        assert stats["blocks"] == len(self.live)
        assert stats["used"] == sum(self.arena.block_bytes(o) for o in self.live) <= stats["peak"] <= stats["limit"]

    def teardown(self):
        if not hasattr(self, "arena"):
            return
        for offset, (size, fill) in self.live.items():
            assert (self.bytes_at(offset, size) == fill).all()
            self.arena.free(offset)
        assert self.arena.stats()["used"] == 0
        self.arena.alloc(23 * MIB)  # at most one slab of each of 40 size classes may be left in the 64 MiB


TestArenaModel = ArenaModel.TestCase
TestArenaModel.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)


def test_pages_return_to_the_system():
    arena = native.new_arena(256 * MIB, retain=0)
    offset = arena.alloc(32 * MIB)
    native.decoder(arena).array(native.array_desc(offset, "|u1", 1, [32 * MIB], [1], True))[:] = 1
    assert os.fstat(arena.fd).st_blocks * 512 >= 32 * MIB
    arena.free(offset)
    assert os.fstat(arena.fd).st_blocks == 0


def test_retained_pages_return_on_trim():
    arena = native.new_arena(256 * MIB)
    offset = arena.alloc(8 * MIB)
    native.decoder(arena).array(native.array_desc(offset, "|u1", 1, [8 * MIB], [1], True))[:] = 1
    arena.free(offset)
    assert arena.stats()["retained"] == 8 * MIB == os.fstat(arena.fd).st_blocks * 512
    arena.trim()
    assert arena.stats()["retained"] == 0 == os.fstat(arena.fd).st_blocks


def test_full_arena_says_how_full():
    arena = native.new_arena(64 * MIB, limit=8 * MIB)
    arena.alloc(5 * MIB)
    with pytest.raises(native.ArenaFull, match="4 MiB asked for, 5 MiB of 8 MiB in use"):
        arena.alloc(4 * MIB)
    with pytest.raises(native.ArenaFull):
        arena.alloc(1 << 60)


def test_huge_reservation_costs_no_memory():
    arena = native.new_arena(1 << 40)
    assert os.fstat(arena.fd).st_blocks == 0
    view = native.decoder(arena).array(native.array_desc((1 << 40) - 8, "<f8", 8, [1], [8], True))
    view[0] = 4.5
    assert view[0] == 4.5 and os.fstat(arena.fd).st_blocks * 512 == 4096


def test_attached_arena_sees_the_same_bytes_and_does_not_allocate():
    arena = native.new_arena(MIB)
    other = native.attach_arena(os.dup(arena.fd), arena.capacity)
    offset = arena.alloc(800)
    desc = native.array_desc(offset, "<f8", 8, [100], [8], True)
    native.decoder(arena).array(desc)[:] = np.arange(100.0)
    assert (native.decoder(other).array(desc) == np.arange(100.0)).all()
    with pytest.raises(RuntimeError, match="only the driver"):
        other.alloc(8)


def test_threads_never_share_a_block():
    arena = native.new_arena(512 * MIB, retain=0)
    failures = []

    def work(seed):
        rng, view, mine = random.Random(seed), native.decoder(arena), {}
        for _ in range(1500):
            if len(mine) < 20 and rng.random() < 0.6:
                size = rng.choice([8, 64, 200, 5000, 40_000, 2 * MIB])
                offset = arena.alloc(size)
                mine[offset] = view.array(native.array_desc(offset, "<i8", 8, [size // 8], [8], True))
                mine[offset][:: max(1, size // 512)] = seed
            elif mine:
                offset = rng.choice(list(mine))
                array = mine.pop(offset)
                if (array[:: max(1, array.nbytes // 512)] != seed).any():
                    failures.append(offset)
                arena.free(offset)
        for offset in mine:
            arena.free(offset)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and arena.stats()["blocks"] == 0


def test_bad_requests():
    arena = native.new_arena(MIB)
    with pytest.raises(ValueError, match="power of two"):
        arena.alloc(8, 3)
    with pytest.raises(ValueError, match="no live block"):
        arena.free(64)
    with pytest.raises(IndexError, match="outside the shared memory"):
        native.decoder(arena).array(native.array_desc(MIB - 8, "<f8", 8, [2], [8], False))
