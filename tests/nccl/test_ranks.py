"""Ranks that join a clique one by one, in threads and in processes."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.device_arrays import on_each, read
from tcuda import nccl, xp
from tcuda.emulation.backend.nccl import door, meeting, member
from tcuda.emulation.backend.nccl.door import Hello, address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from support.fixture_types import OutputOf


def in_threads(work: Callable[[int], Any], ranks: int = 2, devices: Sequence[int] = (0, 1)) -> list[Any]:
    """Return what ``work`` returns, or the error that it raises, in one thread for each rank on its device."""
    results: list[Any] = [None] * ranks

    def run(rank: int) -> None:
        try:
            with tcuda.device(devices[rank]):
                results[rank] = work(rank)
        except Exception as error:
            results[rank] = error

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    return results


def joined(ranks: int = 2, devices: Sequence[int] = (0, 1)) -> list[Any]:
    """Return the communicators of a clique of threads."""
    uid = nccl.unique_id()
    return in_threads(lambda rank: nccl.init_rank(ranks, uid, rank), ranks, devices)


@pytest.fixture(scope="module")
def clique(nccl_on_two_devices: None) -> list[Any]:
    """The communicators of a clique of two threads, on the devices 0 and 1."""
    return joined()


def test_ranks_in_threads_work_together(clique: list[Any]) -> None:
    def work(rank: int) -> Any:
        array = xp.arange(100_000.0) * (rank + 1)
        nccl.all_reduce([array], comms=clique[rank])
        return array.get()

    for got in in_threads(work):
        np.testing.assert_array_equal(got, 3 * np.arange(100_000.0))


def test_a_communicator_tells_its_rank_and_is_no_value(clique: list[Any]) -> None:
    communicator = clique[1]
    assert (communicator.rank, communicator.ranks, communicator.device) == (1, 2, 1)
    assert repr(communicator) == "<communicator of rank 1 of 2 on device 1>"
    with pytest.raises(TypeError, match="cannot copy or pickle 'Communicator' object"):
        pickle.dumps(communicator)


def test_one_call_may_concern_all_ranks_of_a_process(clique: list[Any]) -> None:
    given = [np.full(200_000, 1.0), np.full(200_000, 2.0)]
    arrays = on_each(given, [1, 0])
    nccl.all_reduce(arrays, comms=clique[::-1])
    nccl.broadcast(arrays, 1, comms=clique[::-1])
    assert all((got == 3).all() for got in read(arrays))


def test_root_is_a_rank_of_the_clique(clique: list[Any]) -> None:
    def work(rank: int) -> list[Any]:
        array, output = xp.full(4, rank + 1.0), xp.zeros(4)
        nccl.broadcast([array], 1, comms=clique[rank])
        copied = array.get().tolist()
        nccl.reduce([array], output, root=1, comms=clique[rank])
        nccl.reduce([array], root=0, comms=clique[rank])
        return [copied, output.get().tolist(), array.get().tolist()]

    first, second = in_threads(work)
    assert first == [[2] * 4, [0] * 4, [4] * 4]
    assert second == [[2] * 4, [4] * 4, [2] * 4]
    with pytest.raises(RuntimeError, match="invalid root: root is 2, and there are 2 ranks"):
        nccl.broadcast(on_each([np.zeros(3)]), 2, comms=clique[0])


def test_outputs_have_the_size_for_all_ranks(clique: list[Any]) -> None:
    def work(rank: int) -> list[Any]:
        array, gathered, part = xp.arange(4.0) + rank, xp.zeros(8), xp.zeros(2)
        nccl.all_gather([array], [gathered], comms=clique[rank])
        nccl.reduce_scatter([array], [part], comms=clique[rank])
        return [gathered.get().tolist(), part.get().tolist()]

    first, second = in_threads(work)
    assert first == [[0, 1, 2, 3, 1, 2, 3, 4], [1, 3]]
    assert second == [[0, 1, 2, 3, 1, 2, 3, 4], [5, 7]]
    with pytest.raises(RuntimeError, match="it must have 8"):
        nccl.all_gather(on_each([np.zeros(4)]), on_each([np.zeros(4)]), comms=clique[0])


def test_a_communicator_belongs_to_its_device(clique: list[Any]) -> None:
    arrays = on_each([np.zeros(4)] * 2)
    with pytest.raises(RuntimeError, match=r"input and communicator must be on the same device: inputs\[0\] is on"):
        nccl.all_reduce(arrays, comms=clique[::-1])
    with pytest.raises(RuntimeError, match="number of communicators is not equal to number of inputs"):
        nccl.all_reduce(arrays, comms=clique[0])


def test_communicators_of_cliques_of_other_sizes_do_not_mix(clique: list[Any]) -> None:
    with tcuda.device(1):
        alone = nccl.init_rank(1, nccl.unique_id(), 0)
    with pytest.raises(RuntimeError, match="all communicators of a call must be of one clique"):
        nccl.all_reduce(on_each([np.zeros(4)] * 2), comms=[clique[0], alone])


@pytest.mark.emulated
def test_a_captured_collective_meets_at_every_launch(clique: list[Any]) -> None:
    arrays = on_each([np.ones(4), np.full(4, 2.0)])
    graphs = [tcuda.CUDAGraph(), tcuda.CUDAGraph()]
    for rank in (0, 1):
        with tcuda.device(rank), tcuda.graph(graphs[rank], capture_error_mode="thread_local"):
            nccl.all_reduce([arrays[rank]], comms=clique[rank])
    for expected in (3, 6):
        in_threads(lambda rank: graphs[rank].replay())
        assert [got.tolist() for got in read(arrays)] == [[expected] * 4] * 2


@pytest.mark.emulated
def test_two_ranks_on_one_device_are_refused() -> None:
    for error in joined(devices=(1, 1)):
        assert isinstance(error, RuntimeError)
        assert str(error).startswith("NCCL Error 5: invalid usage")
        assert "both on device 1" in str(error)


@pytest.mark.emulated
def test_ranks_that_do_not_fit_together_are_refused() -> None:
    uid = nccl.unique_id()
    for error in in_threads(lambda rank: nccl.init_rank(2 + rank, uid, rank)):
        assert "NCCL Error 5" in str(error)
        assert "Rank 1 joins 3 ranks, and rank 0 joins 2." in str(error)
    uid = nccl.unique_id()
    errors = in_threads(lambda thread: nccl.init_rank(3, uid, min(thread, 1)), 3, (0, 1, 1))
    assert {str(error).splitlines()[1] for error in errors} == {"Two ranks 1 have joined the clique."}


@pytest.mark.emulated
def test_ranks_that_call_different_collectives_get_an_error() -> None:
    communicators = joined()

    def work(rank: int) -> None:
        nccl.broadcast([xp.zeros(4 + rank)], comms=communicators[rank])

    for error in in_threads(work):
        assert str(error).startswith("NCCL Error 5: invalid usage")
        assert "'count': 4" in str(error)
        assert "'count': 5" in str(error)


@pytest.mark.emulated
def test_a_rank_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meeting, "TIMEOUT", 0.05)
    with pytest.raises(RuntimeError, match=r"NCCL Error 6.*\n(The ranks \[1\]|The other ranks) have not"):
        nccl.init_rank(2, nccl.unique_id(), 0)
    with pytest.raises(RuntimeError, match=r"NCCL Error 6.*\nRank 0 has not joined the clique for 0.05 seconds"):
        nccl.init_rank(2, nccl.unique_id(), 1)


@pytest.mark.emulated
def test_rank_0_gets_its_result_last_because_its_process_serves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    from tcuda.emulation.backend.nccl import wire

    ranks = joined()
    results: list[float] = []
    send = wire.send

    def note(connection: Any, header: dict[str, Any], payload: bytes | memoryview = b"") -> None:
        if threading.current_thread().name == "tcuda-nccl":
            results.extend(np.frombuffer(payload).tolist())
        send(connection, header, payload)

    monkeypatch.setattr(wire, "send", note)

    def work(rank: int) -> None:
        nccl.reduce_scatter([xp.array([10.0, 20.0])], [xp.zeros(1)], comms=ranks[rank])

    assert in_threads(work) == [None, None]
    assert results == [40.0, 20.0]


# Processes

_WORKER = """
import sys
import tcuda
from tcuda import nccl, xp

uid, ranks, rank = bytes.fromhex(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
tcuda.set_device(rank % tcuda.device_count())
communicator = nccl.init_rank(ranks, uid, rank)
"""
_SUM = """
array = xp.arange(100_000.0) + rank
nccl.all_reduce([array], comms=communicator)
whole = xp.zeros(2 * ranks, "complex64")
nccl.all_gather([xp.full(2, 1j * rank, "complex64")], [whole], comms=communicator)
import json
print(json.dumps([float(array.sum()), whole.imag.tolist()]))
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a process that joins a clique and then runs ``code``."""
    started: list[subprocess.Popen[str]] = []

    def begin(code: str, uid: bytes, ranks: int, rank: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-W", "error", "-c", _WORKER + code, uid.hex(), str(ranks), str(rank)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started.append(subprocess.Popen(command, text=True, cwd=tmp_path, **pipes))  # type: ignore[call-overload]
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def test_ranks_in_processes_work_together(start: Callable[..., subprocess.Popen[str]]) -> None:
    uid = nccl.unique_id()
    processes = [start(_SUM, uid, 2, rank) for rank in range(2)]
    for process in processes:
        output, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        assert json.loads(output) == [2 * 4999950000.0 + 100_000, [0, 0, 1, 1]]


def test_a_process_with_communicators_ends(start: Callable[..., subprocess.Popen[str]]) -> None:
    code = """
arrays = []
for device in (0, 1):
    with tcuda.device(device):
        arrays.append(xp.ones(3))
nccl.all_reduce(arrays)
nccl.all_reduce([arrays[0]], comms=communicator)
"""
    process = start(code, nccl.unique_id(), 1, 0)
    output, errors = process.communicate(timeout=120)
    assert (process.returncode, output, errors) == (0, "", "")


def test_a_forked_child_has_no_communicators(output_of: OutputOf) -> None:
    code = """
import os
import tcuda
from tcuda import nccl, xp

arrays = [xp.ones(3)]
nccl.all_reduce(arrays)
communicator = nccl.init_rank(1, nccl.unique_id(), 0)
child = os.fork()
if not child:
    try:
        nccl.init_rank(1, nccl.unique_id(), 0)
    except RuntimeError as error:
        print(str(error).splitlines()[0], flush=True)
    os._exit(0)
os.waitpid(child, 0)
nccl.all_reduce(arrays, comms=communicator)
print(arrays[0].get().tolist())
"""
    # Python 3.12 warns of forks of processes with threads, which both NCCL and its emulation have.
    first, second = output_of(f"import warnings\nwarnings.simplefilter('ignore')\n{code}").splitlines()
    assert first.startswith("Cannot re-initialize CUDA in forked subprocess")
    assert second == "[1.0, 1.0, 1.0]"


@pytest.mark.emulated
@pytest.mark.parametrize("dying", [0, 1])
def test_the_death_of_a_process_is_an_error_of_the_others(
    start: Callable[..., subprocess.Popen[str]], dying: int
) -> None:
    uid = nccl.unique_id()
    process = start("print('joined', flush=True)\nsys.stdin.read()\n", uid, 2, dying)
    communicator = nccl.init_rank(2, uid, 1 - dying)
    assert process.stdout is not None
    assert process.stdout.readline() == "joined\n"
    process.kill()
    process.wait()
    with pytest.raises(RuntimeError, match=r"NCCL Error 6: remote process exited or there was a network error"):
        nccl.all_reduce([xp.zeros(4)], comms=communicator)
    with pytest.raises(RuntimeError, match=r"NCCL Error 6"):
        nccl.all_reduce([xp.zeros(4)], comms=communicator)


@pytest.mark.emulated
def test_the_death_of_a_process_interrupts_a_collective(start: Callable[..., subprocess.Popen[str]]) -> None:
    uid = nccl.unique_id()
    process = start("print('joined', flush=True)\nsys.stdin.read()\n", uid, 2, 1)
    communicator = nccl.init_rank(2, uid, 0)
    timer = threading.Timer(0.05, process.kill)
    timer.start()
    with pytest.raises(RuntimeError, match=r"NCCL Error 6.*\nRank 1 is gone"):
        nccl.all_reduce([xp.zeros(4)], comms=communicator)
    timer.join()


@pytest.mark.emulated
def test_the_death_of_a_process_that_has_forked_is_an_error_of_the_others(
    start: Callable[..., subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meeting, "TIMEOUT", 30)
    fork = """
import os, warnings

warnings.simplefilter("ignore")
if not os.fork():
    sys.stdin.read()  # lives on
    os._exit(0)
print("joined", flush=True)
sys.stdin.read()
"""
    uid = nccl.unique_id()
    process = start(fork, uid, 2, 0)
    communicator = nccl.init_rank(2, uid, 1)
    assert process.stdout is not None
    assert process.stdout.readline() == "joined\n"
    process.kill()
    with pytest.raises(RuntimeError, match=r"NCCL Error 6.*\nA rank of the clique is gone|reset by peer|Broken pipe"):
        nccl.all_reduce([xp.zeros(4)], comms=communicator)


NONSENSE = {
    "silence": b"",
    "little": b"x",
    "a list": b"\0\0\0\2" + bytes(8) + b"[]",
    "deep": b"\0\0\xff\xff" + bytes(8) + b"[" * 65_535,
    "much": b"\0\0\0\2" + (1 << 62).to_bytes(8, "big") + b"{}",
    "another proof": Hello(1, 2, 5, 0).packed(bytes(128)),
}


@pytest.mark.emulated
@pytest.mark.parametrize("said", NONSENSE.values(), ids=NONSENSE)
def test_a_stranger_at_the_address_of_the_meeting_changes_nothing(said: bytes) -> None:
    uid = nccl.unique_id()
    results: list[Any] = []
    first = threading.Thread(target=lambda: results.append(nccl.init_rank(2, uid, 0)), daemon=True)
    first.start()
    strangers = [socket.socket(socket.AF_UNIX) for _ in range(100)]
    for stranger in strangers:
        while stranger.connect_ex(address(uid)):
            pass
        with contextlib.suppress(ConnectionError):
            stranger.sendall(said)
    with tcuda.device(1):
        communicator = nccl.init_rank(2, uid, 1)
    first.join(60)
    assert (communicator.rank, results[0].rank) == (1, 0)
    for stranger in strangers:  # all are sent away, at the latest when the ranks have met
        stranger.settimeout(60)
        with contextlib.suppress(ConnectionError):
            assert stranger.recv(1) == b""
        stranger.close()


@pytest.mark.emulated
def test_processes_of_other_users_do_not_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    uid = nccl.unique_id()
    meeting.Meeting(1, uid)
    with monkeypatch.context() as patch:
        patch.setattr(door, "user_of", lambda connection: os.geteuid() + 1)
        with pytest.raises(RuntimeError, match="NCCL Error 6"):
            member.Member(1, uid, 1, 0)
    with monkeypatch.context() as patch:
        patch.setattr(member, "user_of", lambda connection: os.geteuid() + 1)
        with pytest.raises(RuntimeError, match="Rank 0 is a process of another user"):
            member.Member(1, uid, 1, 0)
    with pytest.raises(RuntimeError, match="NCCL Error 5"):  # so the meeting still waits, and refuses this rank
        member.Member(2, uid, 1, 0)
