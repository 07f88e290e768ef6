"""Random programs on every executor against an interpreter of plain arrays: equal to the last bit.

Threads run under an adversarial scheduler (random order, random delays, 1 to 8 workers, small windows) and bodies that
hash their inputs, so a missing dependence changes bits. A program that fails is shrunk before it is shown.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import pytest

from . import random_programs
from .program_oracle import interpret
from .program_runner import Setting, differences, run, setting
from .random_programs import Launch, Program, shrunk

PROGRAMS, CHUNK = 2000, 100


def wrong(program: Program, how: Setting, tries: int = 1) -> list[str]:
    """What differs from the oracle, in the first of ``tries`` runs that differs."""
    expected, _ = interpret(program)
    for _ in range(tries):
        try:
            found = differences(expected, run(program, how))
        except Exception as error:  # the report names the program
            found = [f"raised {error!r}"]
        if found:
            return found
    return []


def report(program: Program, how: Setting, found: list[str], seconds: float = 60) -> str:
    """The smallest program found in the time given that still goes wrong, and how."""
    stop = time.monotonic() + seconds
    tries = 1 if how.executor == "serial" else 10
    small = shrunk(program, lambda p: time.monotonic() < stop and bool(wrong(p, how, tries)))
    found = wrong(small, how, tries) or found
    return "\n".join([str(how), *map(str, small), *found])


@dataclass
class Tally:
    """What a set of programs contained: a generator that makes nothing interesting tests nothing."""

    launches: int = 0
    refused: int = 0
    kinds: set[str] = field(default_factory=set)

    def add(self, program: Program, refused: int) -> None:
        self.launches += sum(isinstance(s, Launch) for s in program)
        self.refused += refused
        self.kinds |= {type(s).__name__ for s in program}


def check(seed: int, tally: Tally | None = None) -> None:
    """One program, with the serial executor and with threads; every fourth one loops and is traced."""
    loops = seed % 4 == 3
    program = random_programs.generate(seed, loops=loops)
    expected, _ = interpret(program)
    if tally:
        tally.add(program, len(expected.refused))
    for how in (Setting("serial", trace=loops), setting(seed, trace=loops or seed % 4 == 2)):
        if found := differences(expected, run(program, how)):
            pytest.fail(f"seed {seed}: {report(program, how, found)}", pytrace=False)


@pytest.mark.parametrize("chunk", range(PROGRAMS // CHUNK))
def test_programs_have_the_sequential_result(chunk: int) -> None:
    tally = Tally()
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        check(seed, tally)
    assert tally.launches > 10 * CHUNK
    assert 0 < tally.refused < tally.launches / 10
    wanted: set[Any] = {"Launch", "Host", "Fill", "MakePartition", "FoldFutures", "Get", "Fence", "DropRoot", "Mark"}
    assert wanted <= tally.kinds


@pytest.mark.nightly
@pytest.mark.parametrize("chunk", range(100))
def test_many_programs_have_the_sequential_result(chunk: int) -> None:
    for seed in range(10_000 + chunk * 1000, 10_000 + (chunk + 1) * 1000):
        check(seed)


def test_shrinking_keeps_what_matters() -> None:
    """The shrinker of this test: of a program that is wrong because of one launch, little more than it is left."""
    program = random_programs.generate(5)
    culprit = [s for s in program if isinstance(s, Launch)][-1]
    small = shrunk(program, lambda p: culprit in p)
    assert culprit in small
    assert len([s for s in small if isinstance(s, Launch)]) <= 3
