"""Random programs with all their waits, for two emulated devices.

The file prints a digest of the results of each program. Its arguments are the seed of the first program, the number
of programs, and, for programs that do not wait for writers, ``without``.
"""

from __future__ import annotations

import hashlib
import random
import sys
from typing import Any

import numpy as np

import tcuda
from tcuda._runtime import runtime
from tcuda.emulation import xp

N = 64
STEPS = 60


class Shared:
    """An array that several streams use.

    Args:
        array: The array, or page-locked memory of the host.
        device: The device of the array, -1 for the host.
        home: The stream whose memory the array uses.

    Attributes:
        written: The event after the last write.
        read: The events after the reads since then.
    """

    def __init__(self, array: Any, device: int, home: tcuda.Stream) -> None:
        self.array = array
        self.device = device
        self.home = home
        self.written = home.record_event()
        self.read: list[Any] = []

    def used(self, device: int, stream: tcuda.Stream) -> None:
        """Keep the memory until the work of ``stream`` is done, if the array is freed now."""
        if device == self.device:
            tcuda.memory.record_stream(self.array, stream)
        else:
            self.home.wait_stream(stream)


class Program:
    """A random program, whose operations wait for the events of the arrays that they read and write.

    Args:
        seed: The seed of the program.
        waits: Whether readers wait for the writers.
    """

    def __init__(self, seed: int, *, waits: bool) -> None:
        self.waits = waits
        self.random = random.Random(seed)
        self.streams = [[tcuda.Stream(device=index) for _ in range(3)] for index in range(2)]
        self.digest = hashlib.sha256()
        self.shared: list[Shared] = []
        for index in range(2):
            for _ in range(3):
                self.new(index)
        self.hosts = [np.arange(float(N)) + place for place in range(2)]
        for host in self.hosts:
            runtime().hostRegister(host.ctypes.data, host.nbytes, 0)
        self.host_events: list[Any] = [None, None]
        self.graphs: list[tuple[Any, Any, Any]] = []

    def new(self, index: int) -> None:
        """Make an array on a random stream of the device ``index``."""
        stream = self.random.choice(self.streams[index])
        with tcuda.device(index), tcuda.stream(stream):
            array = xp.full(N, float(self.random.randrange(100)))
            self.shared.append(Shared(array, index, stream))

    def operate(self, index: int, reads: list[Shared], writes: list[Shared], work: Any) -> None:
        """Do ``work`` on a random stream of the device ``index``, in order with what reads and writes the arrays."""
        stream = self.random.choice(self.streams[index])
        for shared in reads if self.waits else ():
            stream.wait_event(shared.written)
        for shared in writes:
            stream.wait_event(shared.written)
            for event in shared.read:
                stream.wait_event(event)
        with tcuda.device(index), tcuda.stream(stream):
            work(stream)
            event = stream.record_event()
        for shared in reads:
            shared.used(index, stream)
            shared.read.append(event)
        for shared in writes:
            shared.used(index, stream)
            shared.written, shared.read = event, []

    def of_device(self, index: int) -> Shared:
        return self.random.choice([shared for shared in self.shared if shared.device == index])

    def step(self) -> None:
        """Do a random operation."""
        index = self.random.randrange(2)
        a, b, out = (self.of_device(index) for _ in range(3))
        kind = self.random.choice(
            ["add", "add", "scale", "in place", "temporary", "replace", "far", "up", "down", "item"]
        )
        if kind == "add":
            self.operate(index, [a, b], [out], lambda _: xp.add(a.array, b.array, out=out.array))
        elif kind == "scale":
            self.operate(index, [a], [out], lambda _: xp.multiply(a.array[::-1], 0.5, out=out.array))
        elif kind == "in place":
            self.operate(index, [a], [out], lambda _: out.array.__iadd__(a.array))
        elif kind == "temporary":
            self.operate(index, [a, b], [out], lambda _: xp.copyto(out.array, xp.sort(a.array) % 7 + b.array.sum() % 5))
        elif kind == "replace":
            self.shared.remove(out)
            self.new(index)
        elif kind == "far":
            far = self.of_device(1 - index)
            nbytes = a.array.nbytes

            def copy(stream: Any) -> None:
                runtime().memcpyPeerAsync(
                    far.array.data.ptr, far.device, a.array.data.ptr, a.device, nbytes, stream.cuda_stream
                )

            self.operate(index, [a], [far], copy)
        elif kind == "up":
            place = self.random.randrange(2)
            if self.host_events[place] is not None:
                self.host_events[place].synchronize()
            self.hosts[place] += self.random.randrange(10)
            self.operate(index, [], [out], lambda _: out.array.set(self.hosts[place]))
            self.host_events[place] = out.written
        elif kind == "down":
            self.operate(index, [a], [], lambda _: self.digest.update((a.array % 1000).get().tobytes()))
        else:
            self.operate(index, [a], [], lambda _: self.digest.update(repr(float(a.array[3] % 100)).encode()))

    def capture(self) -> None:
        """Capture a graph with two branches, and replay the graph three times."""
        x = xp.zeros(N)
        tcuda.synchronize()
        graph, side = tcuda.CUDAGraph(), tcuda.Stream()
        with tcuda.graph(graph):
            main = tcuda.current_stream()
            side.wait_stream(main)
            with tcuda.stream(side):
                left = x * 3
            right = x + xp.random.random_sample(N)
            main.wait_stream(side)
            total = left + right
        for step in range(3):
            x.fill(step)
            graph.replay()
            self.digest.update(total.get().tobytes())

    def run(self) -> str:
        """Run the program and return the digest."""
        for place in range(STEPS):
            self.step()
            if place % 30 == 29:
                self.capture()
        for shared in self.shared:
            with tcuda.device(shared.device):
                shared.written.synchronize()
                self.digest.update((shared.array % 1000).get().tobytes())
        for index in range(2):
            tcuda.synchronize(index)
        for host in self.hosts:
            runtime().hostUnregister(host.ctypes.data)
        return self.digest.hexdigest()[:16]


def main() -> None:
    first, count = map(int, sys.argv[1:3])
    for seed in range(first, first + count):
        xp.random.seed(seed)
        print(Program(seed, waits="without" not in sys.argv).run())


if __name__ == "__main__":
    main()
