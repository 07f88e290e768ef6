"""Recovery plans: carried out on a simulated machine and compared with replaying everything; smallest by enumeration."""

import math
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burnish.runtime.lineage.slice import (
    INITIAL,
    Datum,
    History,
    Load,
    Place,
    Plan,
    Task,
    TaskId,
    UnrecoverableError,
    Version,
    checkpoint_period,
    plan_recovery,
)

DATA = [Datum(0, piece, 0) for piece in range(3)] + [Datum(1, 0, field) for field in range(2)]


def body(task, inputs):
    """Any change of any input, or of their assignment, changes the result."""
    return hash((task.id, tuple(sorted(inputs.items()))))


def run(task, state):
    """New values of what the task changes, from a mapping datum -> value."""
    h = body(task, {d: state[d] for d in task.reads + task.updates})
    new = {d: hash((h, d)) for d in task.writes + task.updates}
    return new | {d: hash((state[d], h, d)) for d in task.reduces}


def replay_everything(tasks):
    """Value of every version."""
    state = {d: hash(("initial", d)) for d in DATA}
    values = {Version(d, INITIAL): v for d, v in state.items()}
    for task in tasks:
        state |= (new := run(task, state))
        values |= {Version(d, task.id): v for d, v in new.items()}
    return values


def versions_before(tasks, upto):
    current = dict.fromkeys(DATA, INITIAL)
    for task in tasks[:upto]:
        current |= dict.fromkeys(task.changes, task.id)
    return current


def carry_out(plan, tasks, lost, copies):
    """The homes after recovery; fails if a step uses what is not there."""
    values, by_id = replay_everything(tasks), {t.id: t for t in tasks}
    latest = versions_before(tasks, len(tasks))
    memory = {(d, Place.HOME): values[Version(d, latest[d])] for d in DATA if d not in lost}
    for step in plan.steps:
        if isinstance(step, Load):
            datum, by = step.version
            assert by == INITIAL or step.version in copies or (datum not in lost and latest[datum] == by)
            memory[datum, step.place] = values[step.version]
            changed = {datum: step.place}
        else:
            task, inputs, outputs = by_id[step.task], dict(step.inputs), dict(step.outputs)
            assert set(inputs) == {*task.reads, *task.updates} and set(outputs) == set(task.changes)
            assert all(outputs[d] == inputs[d] for d in task.updates)
            state = {d: memory[d, place] for d, place in inputs.items()}
            state |= {d: memory[d, outputs[d]] for d in task.reduces if outputs[d] is not Place.NONE}
            new = run(task, {d: state.get(d) for d in DATA})
            assert all(place is not Place.NONE or d in task.reduces for d, place in outputs.items())
            changed = {d: place for d, place in outputs.items() if place in (Place.HOME, Place.SHADOW)}
            memory |= {(d, place): new[d] for d, place in changed.items()}
        assert all((place is Place.HOME) == (d in lost) for d, place in changed.items())
        assert {d for d, place in changed.items() if place is Place.SHADOW} <= plan.shadows
    return {d: memory[d, Place.HOME] for d in DATA}


def recoverable_with(subset, tasks, lost, copies):
    """Whether running just these tasks again, in order, brings everything back."""
    latest = versions_before(tasks, len(tasks))
    there = set(copies) | {Version(d, INITIAL) for d in DATA}
    there |= {Version(d, latest[d]) for d in DATA if d not in lost}
    for i in subset:
        task, before = tasks[i], versions_before(tasks, i)
        if all(Version(d, before[d]) in there for d in task.reads + task.updates):
            there |= {Version(d, task.id) for d in task.writes + task.updates}
            there |= {Version(d, task.id) for d in task.reduces if Version(d, before[d]) in there}
    return all(Version(d, latest[d]) in there for d in lost)


def smallest(tasks, allowed, lost, copies):
    for size in range(len(allowed) + 1):
        if any(recoverable_with(subset, tasks, lost, copies) for subset in combinations(allowed, size)):
            return size
    return None


@st.composite
def programs(draw, max_tasks):
    tasks, lsn, point = [], 1, 0
    for _ in range(draw(st.integers(0, max_tasks))):
        roles = draw(st.lists(st.sampled_from("-----rrwwux"), min_size=len(DATA), max_size=len(DATA)))
        of = {c: tuple(d for d, role in zip(DATA, roles, strict=True) if role == c) for c in "rwux"}
        lsn, point = draw(st.sampled_from([(lsn + 1, 0), (lsn + 3, 0), (lsn, point + 1)]))
        tasks.append(
            Task(TaskId(lsn, point), of["r"], of["w"], of["u"], of["x"], deterministic=draw(st.integers(0, 9)) > 0)
        )
    made = [Version(d, t.id) for t in tasks for d in t.changes]
    copies = set(draw(st.lists(st.sampled_from(made), max_size=6))) if made else set()
    lost = draw(st.sets(st.sampled_from(DATA), min_size=1))
    return tasks, lost, copies


@settings(max_examples=150, deadline=None)
@given(programs(max_tasks=6), st.data())
def test_plans_recover_bitwise_with_the_fewest_tasks(program, data):
    check_plan(program, data)


@pytest.mark.nightly
@settings(max_examples=5000, deadline=None)
@given(programs(max_tasks=10), st.data())
def test_more_plans_recover_bitwise_with_the_fewest_tasks(program, data):
    check_plan(program, data)


def check_plan(program, data):
    tasks, lost, copies = program
    cut = data.draw(st.integers(0, len(tasks)))  # the log was truncated there
    history = History(tasks[cut:], base=versions_before(tasks, cut))
    allowed = [i for i in range(cut, len(tasks)) if tasks[i].deterministic]
    fewest = smallest(tasks, allowed, lost, copies)
    if fewest is None:
        with pytest.raises(UnrecoverableError, match="is lost: the task is n"):
            plan_recovery(history, lost, copies)
        return
    plan = plan_recovery(history, lost, copies)
    assert len(plan.tasks) == fewest and list(plan.tasks) == sorted(plan.tasks)
    values, latest = replay_everything(tasks), versions_before(tasks, len(tasks))
    assert carry_out(plan, tasks, lost, copies) == {d: values[Version(d, latest[d])] for d in DATA}


@settings(max_examples=30, deadline=None)
@given(programs(max_tasks=40))
def test_long_programs_recover_bitwise(program):
    tasks, lost, copies = program
    values, latest = replay_everything(tasks), versions_before(tasks, len(tasks))
    try:
        plan = plan_recovery(History(tasks), lost, copies)
    except UnrecoverableError:
        assert not all(t.deterministic for t in tasks)
        return
    assert carry_out(plan, tasks, lost, copies) == {d: values[Version(d, latest[d])] for d in DATA}


A, B, C = DATA[:3]


def test_nothing_lost_or_all_copied_runs_nothing():
    tasks = [Task(TaskId(1, 0), writes=(A,)), Task(TaskId(2, 0), reads=(A,), writes=(B,))]
    assert plan_recovery(History(tasks), [], []) == Plan((), (), frozenset())
    copy = Version(B, TaskId(2, 0))
    assert plan_recovery(History(tasks), [B], [copy]) == Plan((Load(copy, Place.HOME),), (), frozenset())


def ring(pieces, steps):
    """A stencil on a ring, from u to v and back: step t writes v if t is odd."""
    u, v = [Datum(0, i, 0) for i in range(pieces)], [Datum(1, i, 0) for i in range(pieces)]
    tasks = []
    for t in range(1, steps + 1):
        old, new = (u, v) if t % 2 else (v, u)
        for i in range(pieces):
            tasks.append(Task(TaskId(t, i), reads=(old[i - 1], old[i], old[(i + 1) % pieces]), writes=(new[i],)))
    return u, v, tasks


def test_stencil_runs_again_only_the_cone_back_to_what_exists():
    u, v, tasks = ring(16, 5)
    history = History(tasks)
    last = plan_recovery(history, [v[7]], [])  # its inputs, step 4 in u, are all there
    assert last.tasks == ((5, 7),) and not last.shadows
    checkpoint = [Version(d, TaskId(1, d.piece)) for d in v]
    cone = plan_recovery(history, [u[7]], checkpoint)  # v has moved on to step 5
    assert cone.tasks == (*((2, i) for i in range(5, 10)), *((3, i) for i in range(6, 9)), (4, 7))
    assert cone.shadows == {*v[4:11], u[5], u[6], u[8], u[9]}
    assert len(plan_recovery(history, [*u, *v], []).tasks) == len(tasks)


def test_update_chain_restarts_from_its_newest_copy_in_a_shadow_when_home_has_moved_on():
    tasks = [Task(TaskId(1, 0), writes=(A,)), *(Task(TaskId(i, 0), updates=(A,)) for i in range(2, 8))]
    tasks.insert(5, Task(TaskId(5, 1), reads=(A,), writes=(B,)))
    plan = plan_recovery(History(tasks), [B], [Version(A, TaskId(2, 0)), Version(A, TaskId(3, 0))])
    assert plan.tasks == ((4, 0), (5, 0), (5, 1)) and plan.shadows == {A}
    assert plan.steps[0] == Load(Version(A, TaskId(3, 0)), Place.SHADOW)


def test_reductions_are_folded_again_in_order_but_only_where_needed():
    tasks = [
        Task(TaskId(1, 0), writes=(A, B)),
        Task(TaskId(2, 0), reads=(C,), reduces=(A, B)),
        Task(TaskId(2, 1), reduces=(A,)),
    ]
    plan = plan_recovery(History(tasks), [A], [])
    assert plan.tasks == ((1, 0), (2, 0), (2, 1))
    outputs = [dict(step.outputs) for step in plan.steps if not isinstance(step, Load)]
    assert outputs == [{A: Place.HOME, B: Place.SCRATCH}, {A: Place.HOME, B: Place.NONE}, {A: Place.HOME}]


def test_why_recovery_is_impossible():
    roll = Task(TaskId(4, 2), writes=(A,), deterministic=False)
    use = Task(TaskId(5, 0), reads=(A,), writes=(B,))
    over = Task(TaskId(6, 0), writes=(A,))
    names = {roll.id: "'roll' at app.py:7", use.id: "'use' at app.py:8"}
    with pytest.raises(
        UnrecoverableError,
        match=r"^root 0, piece 0, field 0 as 'roll' at app.py:7 left it, which 'use' at app.py:8 reads is lost: "
        r"the task is not deterministic$",
    ):
        plan_recovery(History([roll, use, over]), [B], [], names=names)
    assert plan_recovery(History([roll, use, over]), [B], [Version(A, roll.id)]).tasks == (use.id,)
    with pytest.raises(
        UnrecoverableError, match=r"as a task left it, which task 5.0 reads is lost: the task is no longer"
    ):
        plan_recovery(History([use, over], base={}), [B], [])


@given(st.floats(0.01, 1e3), st.floats(1.0, 1e7))
def test_youngs_period_minimizes_the_expected_waste(cost, mtbf):
    def waste(period):  # first order: checkpoints made, and half a period lost for each failure
        return cost / period + period / (2 * mtbf)

    period = checkpoint_period(cost, mtbf)
    if period > cost:
        assert waste(period) <= min(waste(period * 1.01), waste(period / 1.01))
        assert math.isclose(waste(period), math.sqrt(2 * cost / mtbf))
    else:
        assert period == cost


@pytest.mark.parametrize(("cost", "mtbf"), [(-1.0, 10.0), (1.0, 0.0), (math.nan, 1.0)])
def test_impossible_costs(cost, mtbf):
    with pytest.raises(ValueError, match="must not be negative"):
        checkpoint_period(cost, mtbf)
