"""Leases, fencing and the checker, against a plain model of who may write what."""

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from burnish.runtime.lineage import LineageCorruptError, LineageLog, MemoryStore
from burnish.runtime.lineage.ledger import (
    Channel,
    Fence,
    FencedError,
    Lease,
    Ledger,
    Out,
    Span,
    TaskName,
    TaskRecord,
    check_ledger,
    from_user,
    to_user,
)
from burnish.runtime.lineage.records import Kind, User, encode

JOB = bytes(range(16))
SMALL = st.integers(0, 2**40)
TEXT = st.text(max_size=20)


def record(channel, seq, attempt, worker, **more):
    return TaskRecord(channel.job, TaskName(channel.stage, channel.channel, seq), attempt, worker, **more)


ITEM = st.one_of(
    st.builds(
        TaskRecord,
        st.binary(min_size=16, max_size=16),
        st.builds(TaskName, SMALL, SMALL, SMALL),
        SMALL,
        TEXT,
        st.lists(st.builds(Span, SMALL, SMALL, SMALL, SMALL), max_size=3).map(tuple),
        st.binary(max_size=50),
        st.lists(st.builds(Out, SMALL, SMALL, SMALL, SMALL), max_size=3).map(tuple),
        st.booleans(),
    ),
    st.builds(Lease, st.builds(Channel, st.binary(max_size=16), SMALL, SMALL), SMALL, TEXT),
    st.builds(Fence, TEXT),
)


@given(ITEM)
def test_items_survive_the_log(item):
    assert from_user(to_user(item)) == item


def test_a_typical_record_takes_less_than_200_bytes():
    item = record(
        Channel(JOB, 3, 7), 1234, 2, "worker-12", inputs=(Span(2, 5, 100, 108),), outputs=(Out(0, 65536, 10**7, 2**63),)
    )
    assert len(encode(to_user(item))) + 24 < 200


CHANNELS = [Channel(JOB, 0, 0), Channel(JOB, 0, 1)]
WORKERS = ["ann", "bob"]


class LedgerModel(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.store = MemoryStore()
        self.ledger = Ledger(LineageLog(self.store))
        self.holder = dict.fromkeys(CHANNELS)
        self.epoch = dict.fromkeys(CHANNELS, 0)
        self.tasks = {channel: [] for channel in CHANNELS}

    @rule(channel=st.sampled_from(CHANNELS), worker=st.sampled_from(WORKERS))
    def lease(self, channel, worker):
        self.epoch[channel] += 1
        self.holder[channel] = worker
        assert self.ledger.lease(channel, worker) == self.epoch[channel]

    @rule(worker=st.sampled_from(WORKERS))
    def fence(self, worker):
        self.ledger.fence(worker)
        for channel in CHANNELS:
            if self.holder[channel] == worker:
                self.holder[channel] = None

    @rule(
        channel=st.sampled_from(CHANNELS),
        worker=st.sampled_from(WORKERS),
        late=st.integers(0, 1),
        skip=st.sampled_from([0, 0, 0, 1, -1]),
        final=st.integers(0, 9),
    )
    def commit(self, channel, worker, late, skip, final):
        tasks = self.tasks[channel]
        item = record(channel, max(0, len(tasks) + skip), self.epoch[channel] - late, worker, final=final == 0)
        allowed = (
            self.holder[channel] == worker
            and late == 0
            and item.task.seq == len(tasks)
            and not (tasks and tasks[-1].final)
        )
        if allowed:
            (lsn,) = self.ledger.commit([item])
            assert self.ledger.log.durable >= lsn
            tasks.append(item)
        else:
            with pytest.raises(FencedError, match="is refused"):
                self.ledger.commit([item])

    @rule()
    def reopen(self):
        self.ledger.log.close()
        self.ledger = Ledger(LineageLog(self.store))

    @invariant()
    def agrees(self):
        for channel in CHANNELS:
            assert self.ledger.holder(channel) == (self.holder[channel], self.epoch[channel])
            assert self.ledger.committed(channel) == len(self.tasks[channel])

    def teardown(self):
        for channel in CHANNELS:
            assert list(self.ledger.scan(channel)) == self.tasks[channel]
            assert list(self.ledger.scan(channel, 2)) == self.tasks[channel][2:]
        assert check_ledger(self.ledger.log.read())["tasks"] == sum(map(len, self.tasks.values()))
        self.ledger.log.close()


TestLedgerModel = LedgerModel.TestCase
TestLedgerModel.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


def test_of_two_workers_with_one_lease_each_only_one_writes_each_record():
    ledger, channel, results = Ledger(LineageLog(MemoryStore())), CHANNELS[0], []
    old = ledger.lease(channel, "ann")

    def zombie():
        for seq in range(200):
            try:
                ledger.commit([record(channel, seq, old, "ann")])
                results.append(("ann", seq))
            except FencedError:
                return

    thread = threading.Thread(target=zombie)
    thread.start()
    while not results:
        pass
    new = ledger.lease(channel, "bob")
    for seq in range(ledger.committed(channel), 210):
        ledger.commit([record(channel, seq, new, "bob")])
    thread.join()
    tape = [(item.worker, item.task.seq) for item in ledger.scan(channel)]
    assert [seq for _, seq in tape] == list(range(210))
    assert [entry for entry in tape if entry[0] == "ann"] == results
    assert check_ledger(ledger.log.read()) == {"tasks": 210, "leases": 2, "fences": 0, "channels": 1}
    ledger.log.close()


P, C = Channel(JOB, 0, 0), Channel(JOB, 1, 0)
GOOD = [
    Lease(P, 1, "ann"),
    Lease(C, 1, "bob"),
    record(P, 0, 1, "ann"),
    record(P, 1, 1, "ann"),
    record(C, 0, 1, "bob", inputs=(Span(0, 0, 0, 1),)),
    Fence("ann"),
    Lease(P, 2, "bob"),
    record(P, 2, 2, "bob", final=True),
    record(C, 1, 1, "bob", inputs=(Span(0, 0, 1, 3),)),
]


def check(items):
    with LineageLog(MemoryStore()) as log:
        for item in items:
            log.append(Kind.USER, to_user(item))
        return check_ledger(log.read())


def test_checker_accepts_a_good_log():
    assert check(GOOD) == {"tasks": 5, "leases": 3, "fences": 1, "channels": 2}


@pytest.mark.parametrize(
    ("at", "item", "reason"),
    [
        (2, record(P, 1, 1, "ann"), "record 3 .* task 1 is not the next one, 0"),
        (3, record(P, 1, 2, "ann"), "record 4 .* worker 'ann', epoch 2 does not hold it; worker 'ann', epoch 1 does"),
        (4, record(C, 0, 1, "bob", inputs=(Span(0, 0, 0, 3),)), r"record 5 .* input 0..2 of .* was not committed yet"),
        (4, record(C, 0, 1, "bob", inputs=(Span(0, 0, 1, 2),)), "record 5 .* does not continue at 0"),
        (6, Lease(P, 4, "bob"), "record 7 .* epoch 4 does not follow 1"),
        (7, record(P, 2, 1, "ann"), "record 8 .* worker 'ann', epoch 1 does not hold it; worker 'bob', epoch 2 does"),
        (8, record(P, 3, 2, "bob"), "record 9 .* task 3 comes after the final one"),
    ],
)
def test_checker_names_the_first_record_that_breaks_a_rule(at, item, reason):
    with pytest.raises(LineageCorruptError, match=reason):
        check([*GOOD[:at], item, *GOOD[at + 1 :]])


@pytest.mark.parametrize("payload", [b"", b"\x91\x09", b"\x92\x00\x01", b"\x05", b"\x93\x02a"])
def test_strange_user_records_are_refused(payload):
    with pytest.raises(LineageCorruptError, match="USER record"):
        from_user(User(0, 0, 0, payload))
