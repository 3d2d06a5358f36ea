"""CuPy's binding of NCCL, in the place of which the tests put a binding that takes notes."""

from __future__ import annotations

import ctypes
import functools
import gc
import signal
import types
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from tcuda._base.errors import NcclError, NcclNotFoundError
from tcuda._cupy.nccl import Nccl

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.fixture_types import OutputOf
    from tcuda._backend import Backend

pytestmark = pytest.mark.without_nccl


class BindingError(RuntimeError):
    def __init__(self, status: int) -> None:
        self.status = status


class Binding:
    """A module like ``cupy.cuda.nccl``.

    Args:
        failing: The place of the call that fails, counted from 0; None if all calls succeed.

    Attributes:
        calls: The calls of the binding.
    """

    NcclError = BindingError

    def __init__(self, failing: int | None = None) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self._failing = failing
        self.NcclCommunicator = types.SimpleNamespace(
            allReduce=functools.partial(self._call, "allReduce"), broadcast=functools.partial(self._call, "broadcast")
        )

    def _call(self, *call: Any) -> None:
        self.calls.append(call)
        if len(self.calls) - 1 == self._failing:
            raise BindingError(5)

    def groupStart(self) -> None:
        self._call("groupStart")

    def groupEnd(self) -> None:
        self._call("groupEnd")

    def get_version(self) -> int:
        return 22809

    def get_unique_id(self) -> tuple[int, ...]:
        return tuple(range(-64, 64))


RANKS = ("first", "second"), (0, 1), (10, 11), (100, 101), (200, 201)


def test_a_collective_is_one_group() -> None:
    binding = Binding()
    Nccl(binding).all_reduce(RANKS, 7, 8, 2)
    assert binding.calls == [
        ("groupStart",),
        ("allReduce", "first", 100, 200, 7, 8, 2, 10),
        ("allReduce", "second", 101, 201, 7, 8, 2, 11),
        ("groupEnd",),
    ]


@pytest.mark.parametrize("failing", range(4))
def test_a_group_is_closed_whichever_call_fails(failing: int) -> None:
    binding = Binding(failing)
    with pytest.raises(NcclError, match=r"^NCCL Error 5: invalid usage") as raised:
        Nccl(binding).broadcast(RANKS, 7, 8, 1)
    assert raised.value.status == 5
    names = [call[0] for call in binding.calls]
    assert (
        names
        == [
            ["groupStart"],
            ["groupStart", "broadcast", "groupEnd"],
            ["groupStart", "broadcast", "broadcast", "groupEnd"],
            ["groupStart", "broadcast", "broadcast", "groupEnd"],
        ][failing]
    )


@pytest.fixture
def notes() -> Iterator[list[str]]:
    """Notes of garbage collections and of signal handlers; every allocation of a container may start a collection."""
    noted: list[str] = []

    def collected(phase: str, _: Any) -> None:
        noted.append("collection")

    def handled(*_: Any) -> None:
        noted.append("handler")

    threshold, before = gc.get_threshold(), signal.signal(signal.SIGUSR1, handled)
    gc.callbacks.append(collected)
    yield noted
    gc.callbacks.remove(collected)
    gc.set_threshold(*threshold)
    signal.signal(signal.SIGUSR1, before)


def noting(notes: list[str], call: Any) -> Nccl:
    """Return NCCL with a binding of C functions, as those of CuPy are: the start and the end are noted."""
    return Nccl(
        types.SimpleNamespace(
            NcclError=BindingError,
            NcclCommunicator=types.SimpleNamespace(broadcast=call),
            groupStart=functools.partial(notes.append, "start"),
            groupEnd=functools.partial(notes.append, "end"),
        )
    )


def test_no_garbage_is_collected_while_a_group_is_open(notes: list[str]) -> None:
    nccl = noting(notes, notes.append)
    gc.set_threshold(1, 1, 1)
    nccl._group(notes.append, (("call", "call"),))
    gc.set_threshold(0)
    inside = notes[notes.index("start") : notes.index("end") + 1]
    assert inside == ["start", "call", "call", "end"]
    assert "collection" in notes


def test_no_signal_handler_runs_while_a_group_is_open(notes: list[str]) -> None:
    # The functions of Python that send a signal run the handler themselves.
    send = getattr(ctypes.CDLL(None), "raise")
    noting(notes, send)._group(send, ((int(signal.SIGUSR1),) * 3,))
    assert [note for note in notes if note != "collection"] == ["start", "end", "handler"]


def test_the_version_and_the_unique_id_are_read_from_the_binding() -> None:
    nccl = Nccl(Binding())
    assert nccl.version() == (2, 28, 9)
    assert nccl.unique_id() == bytes([*range(192, 256), *range(64)])


@pytest.fixture
def _without_nccl(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise NcclNotFoundError("NCCL is not installed: install it.")

    monkeypatch.setattr(type(backend), "nccl", lambda self: refuse())
    monkeypatch.setattr(tcuda._process.lazy.backend, "nccl", refuse)


@pytest.mark.usefixtures("_without_nccl")
def test_without_the_library_is_available_warns_and_all_else_is_an_error() -> None:
    arrays = [tcuda.xp.ones(3)]
    with pytest.warns(UserWarning, match="NCCL is not installed: install it.") as warned:
        assert not tcuda.nccl.is_available(arrays)
    assert warned[0].filename == __file__
    for call in (
        tcuda.nccl.version,
        tcuda.nccl.unique_id,
        lambda: tcuda.nccl.init_rank(1, bytes(128), 0),
        lambda: tcuda.nccl.all_reduce(arrays),
    ):
        with pytest.raises(RuntimeError, match="NCCL is not installed: install it."):
            call()


def test_the_version_and_unique_ids_need_no_device(output_of: OutputOf, runtime: Any) -> None:
    code = """
import tcuda
try:
    print(len(tcuda.nccl.unique_id()), tcuda.nccl.version()[0], tcuda.is_initialized())
except RuntimeError as error:
    print(128, 2, tcuda.is_initialized())
    assert "nvidia-nccl-cu" in str(error)
"""
    assert output_of(code) == "128 2 False"


def test_the_error_of_nccl_can_be_pickled() -> None:
    import pickle

    error = pickle.loads(pickle.dumps(NcclError(6, "Rank 1 is gone.")))
    assert (error.status, str(error)) == (
        6,
        "NCCL Error 6: remote process exited or there was a network error\nRank 1 is gone.",
    )
