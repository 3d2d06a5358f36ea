"""The search for races against the definition of a race, on random programs.

One kernel interprets a program: in each step, some threads read or write, or threads meet. The oracle goes by the
definition: each thread knows the steps of other threads with which it has met since. The search must find a race where
the oracle has one, and no pair of threads of which the oracle has none.
"""

from __future__ import annotations

import itertools
import random
from typing import NamedTuple

import numpy as np
import pytest

from support.racing_kernels import launch

BLOCKS, THREADS, WORDS = 2, 96, 6
READ, WRITE, READ_SHARED, WRITE_SHARED, READ_BYTE, WRITE_BYTE, ADD, ADD_SHARED, READ_LONG, BARRIER, MEET = range(1, 12)
"""What a thread does in a step; 0 is nothing."""

KERNEL = r"""
extern "C" __global__ void kernel(const int* ops, const unsigned* places, int steps, unsigned* words, unsigned* seen) {
    __shared__ unsigned own[8];
    int t = threadIdx.x, b = blockIdx.x;
    unsigned all = 0;
    for (int s = 0; s < steps; s++) {
        int at = (b * steps + s) * blockDim.x + t;
        unsigned place = places[at], found = 0;
        switch (ops[at]) {
            case 1: found = words[place]; break;
            case 2: words[place] = t; break;
            case 3: found = own[place]; break;
            case 4: own[place] = t; break;
            case 5: found = ((unsigned char*)words)[place]; break;
            case 6: ((unsigned char*)words)[place] = t; break;
            case 7: atomicAdd(&words[place], t); break;
            case 8: atomicAdd(&own[place], t); break;
            case 9: found = ((unsigned long long*)words)[place]; break;
            case 10: __syncthreads(); break;
            case 11: __syncwarp(place); break;
        }
        all += found;
    }
    seen[b * blockDim.x + t] = all;
}
"""

WRITES = {WRITE, WRITE_SHARED, WRITE_BYTE, ADD, ADD_SHARED}
ATOMICS = {ADD, ADD_SHARED}
SHARED = {READ_SHARED, WRITE_SHARED, ADD_SHARED}
SIZES = {READ_BYTE: 1, WRITE_BYTE: 1, READ_LONG: 8}


class Access(NamedTuple):
    """An access of a thread in a step."""

    op: int
    block: int
    thread: int
    step: int
    begin: int
    end: int
    known: np.ndarray  # for each thread of the block, the number of its steps of which the thread knows

    def races(self, other: Access) -> bool:
        near = self.block == other.block
        if (self.block, self.thread) == (other.block, other.thread) or not {self.op, other.op} & WRITES:
            return False
        if (self.op in SHARED) != (other.op in SHARED) or (self.op in SHARED and not near):
            return False
        if {self.op, other.op} <= ATOMICS or self.end <= other.begin or other.end <= self.begin:
            return False
        return not near or not (self.known[other.thread] > other.step or other.known[self.thread] > self.step)


class Program:
    """A program of random steps."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.steps = self._random.randint(2, 9)
        self.ops = np.zeros((BLOCKS, self.steps, THREADS), np.int32)
        self.places = np.zeros((BLOCKS, self.steps, THREADS), np.uint32)
        self._likely = self._random.sample(range(READ, BARRIER), self._random.randint(1, 3))
        for step in range(self.steps):
            self._make(step)

    def _make(self, step: int) -> None:
        choice = self._random.random()
        if choice < 0.25:
            self.ops[:, step] = BARRIER
        elif choice < 0.45:
            self.ops[:, step] = MEET
            for first in range(0, THREADS, 32):
                parts = self._random.choice([1, 1, 2, 3])
                part = np.array([self._random.randrange(parts) for _ in range(32)])
                masks = [sum(1 << lane for lane in range(32) if part[lane] == each) for each in range(parts)]
                self.places[:, step, first : first + 32] = [masks[each] for each in part]
        else:
            for block in range(BLOCKS):
                if self._random.random() < 0.7:
                    self._access(block, step)

    def _access(self, block: int, step: int) -> None:
        op = self._random.choice(self._likely)
        first = self._random.randrange(THREADS)
        count = self._random.choice([1, 1, 1, 2, 3, 32, THREADS])
        words = WORDS // 2 if op == READ_LONG else WORDS * 4 if SIZES.get(op) == 1 else WORDS
        place, stride = self._random.randrange(words), self._random.choice([0, 0, 1])
        for number in range(count):
            thread = (first + number) % THREADS
            self.ops[block, step, thread] = op
            self.places[block, step, thread] = (place + number * stride) % words

    def accesses(self) -> list[Access]:
        found = []
        for block in range(BLOCKS):
            known = np.zeros((THREADS, THREADS), np.int64)
            for step in range(self.steps):
                ops, places = self.ops[block, step], self.places[block, step]
                if ops[0] == BARRIER:
                    known[:] = step + 1
                    continue
                if ops[0] == MEET:
                    for first in range(0, THREADS, 32):
                        for mask in set(places[first : first + 32].tolist()):
                            lanes = [first + lane for lane in range(32) if mask >> lane & 1]
                            together = known[lanes].max(axis=0)
                            together[lanes] = step + 1
                            known[lanes] = together
                    continue
                for thread in np.flatnonzero(ops):
                    op, place = int(ops[thread]), int(places[thread])
                    size = SIZES.get(op, 4)
                    found.append(
                        Access(op, block, int(thread), step, place * size, (place + 1) * size, known[thread].copy())
                    )
        return found


@pytest.mark.emulated
@pytest.mark.parametrize("first", range(0, 1000, 250))
def test_random_programs(first: int) -> None:
    racing = 0
    for seed in range(first, first + 250):
        program = Program(seed)
        accesses = program.accesses()
        by_thread: dict[tuple[int, int], list[Access]] = {}
        for access in accesses:
            by_thread.setdefault((access.block, access.thread), []).append(access)
        written = [access for access in accesses if access.op in WRITES]
        expected = any(one.races(other) for one, other in itertools.product(written, accesses))
        words, seen = np.zeros(8, np.uint32), np.zeros(BLOCKS * THREADS, np.uint32)
        run = launch(KERNEL, program.ops, program.places, program.steps, words, seen, grid=BLOCKS, block=THREADS)
        assert run.run() is None
        races = run.races()
        assert bool(races) == expected, f"seed {seed}"
        racing += expected
        for race in races:
            pairs = itertools.product(
                by_thread[race.first.block[0], race.first.thread[0]],
                by_thread[race.second.block[0], race.second.thread[0]],
            )
            assert any(one.races(other) for one, other in pairs), f"seed {seed}"
    assert 25 < racing < 225
