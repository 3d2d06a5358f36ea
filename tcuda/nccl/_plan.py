"""The plan of a collective: the arrays, the streams and the communicators, which are checked before any work."""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Any

from tcuda._backend import array_module
from tcuda._base.arguments import a_kind
from tcuda._process.lazy import backend
from tcuda._process.streams import handle_and_device
from tcuda._runtime import runtime
from tcuda.nccl._communicators import Communicator, clique

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import NoReturn

    from tcuda._process.streams import StreamLike

_NO_LOCK = contextlib.nullcontext()


@functools.cache
def array_type() -> type[Any]:
    """Return the type of the arrays of the runtime in use."""
    kind: type[Any] = array_module(runtime()).ndarray
    return kind


def require_collection(arrays: Any) -> None:
    """Refuse ``arrays`` unless they are a collection.

    Raises:
        TypeError: ``arrays`` is an array, or is not a collection.
    """
    if isinstance(arrays, (list, tuple)):
        return
    if not isinstance(arrays, Container) or isinstance(arrays, (str, bytes)) or hasattr(arrays, "dtype"):
        raise TypeError(f"Inputs should be a collection of tensors; got {a_kind(arrays)}.")  # torch's sentence


class Plan:
    """The part of this process in a collective.

    Args:
        inputs: The inputs, one on each device.
        streams: The streams, one for each input; None, or None in a place, means the current stream.
        comms: The communicators, one for each input, or one alone; None for those of the devices.
        root: The rank of the root; None for a collective without a root.

    Attributes:
        dtype: The dtype of the arrays.
        size: The number of elements of each input.
        ranks: The number of devices in the clique, also those of other processes.
        root: The rank of the root; 0 if the collective has no root.

    Raises:
        RuntimeError: There is no input, an input is not a dense array of a device, or ``root``, ``streams`` or
            ``comms`` do not fit the inputs.
        TypeError: An input is not an array, or ``root`` is not an integer.
        ValueError: ``comms`` has an object that is not a communicator.
    """

    def __init__(self, inputs: Iterable[Any], streams: Any, comms: Any, root: Any = None) -> None:
        # The texts are torch's, up to the first colon.
        kind = self._type = array_type()
        self._sources = self._arrays(inputs, "inputs")
        given = _given_streams(streams, len(self._sources))
        self._communicators = _given_communicators(comms, len(self._sources))
        self.ranks = len(self._sources)
        if self._communicators is not None:
            self.ranks = self._communicators[0].ranks
            if any(communicator.ranks != self.ranks for communicator in self._communicators):
                raise RuntimeError(f"all communicators of a call must be of one clique; got {self._communicators}.")
        self.root = 0
        if root is not None:
            self.root = operator.index(root)
            if not 0 <= self.root < self.ranks:
                raise RuntimeError(f"invalid root: root is {self.root}, and there are {self.ranks} ranks.")
        if not self._sources:
            raise RuntimeError("input sequence can't be empty")
        dtype = self.dtype = self._sources[0].dtype
        size = self.size = self._sources[0].size
        devices: list[int] = []
        self._given: list[Any] = []
        for place, array in enumerate(self._sources):
            if not isinstance(array, kind) or array.dtype != dtype or not array.flags.c_contiguous:
                self._refuse(array, "inputs", place)
            if array.size != size:
                raise RuntimeError(
                    f"all inputs must have the same number of elements: inputs[0] has {size}, inputs[{place}] "
                    f"has {array.size}."
                )
            memory = array.data
            device = memory.device_id
            if device in devices:
                first = devices.index(device)
                raise RuntimeError(
                    f"inputs must be on unique devices: inputs[{first}] and inputs[{place}] are on device {device}."
                )
            self._given.append(memory)
            devices.append(device)
        self._got: list[Any] = [None] * len(devices)
        self._devices = tuple(devices)
        if streams is None:
            self._streams = [backend.current_stream(device).ptr for device in devices]
        else:
            self._streams = [
                _handle(stream, device, place)
                for place, (stream, device) in enumerate(zip(given, devices, strict=True))
            ]
        for place, communicator in enumerate(self._communicators or ()):
            if communicator.device != self._devices[place]:
                raise RuntimeError(
                    f"input and communicator must be on the same device: inputs[{place}] is on device "
                    f"{self._devices[place]}, and its communicator is {communicator}."
                )

    def into(self, outputs: Iterable[Any], *, times: int = 1, parts: int = 1) -> None:
        """Let the ranks write to ``outputs``, in the order of the inputs.

        Args:
            outputs: The outputs.
            times: How many times the elements of an input an output has.
            parts: In how many parts the elements of an input are cut, of which an output is one.

        Raises:
            RuntimeError: An output does not fit its input.
            TypeError: An output is not an array.
        """
        targets = self._arrays(outputs, "outputs")
        if len(targets) != len(self._sources):
            raise RuntimeError(
                "inputs and outputs sequences have to be of the same length, but got input of length "
                f"{len(self._sources)} and output of length {len(targets)}"
            )
        for place, target in enumerate(targets):
            self._into(place, target, "outputs", times, parts)

    def into_root(self, output: Any) -> None:
        """Let the root write to ``output``, or to its input if None, if the root is an input of this process.

        Raises:
            RuntimeError: ``output`` does not fit the input of the root.
            TypeError: ``output`` is not an array.
        """
        for place, source in enumerate(self._sources):
            rank = place if self._communicators is None else self._communicators[place].rank
            if rank == self.root:
                [target] = self._arrays([source if output is None else output], "output")
                self._into(place, target, "output", 1, 1)

    def in_place(self) -> None:
        """Let every rank write to its input."""
        self._got = self._given

    def run(self, collective: str, count: int, *arguments: int) -> None:
        """Call a collective of the library for the ranks of this process.

        Args:
            collective: The name of the method.
            count: The number of elements that the method is told.
            arguments: The further arguments of the method.

        Raises:
            AcceleratorError: The collective needs new communicators, and a capture in progress forbids to make them.
            NcclError: NCCL refuses the call.
        """
        library = backend.nccl()
        if self._communicators is None:
            handles, lock = clique(library, self._devices)
        else:
            handles, lock = tuple([communicator.handle for communicator in self._communicators]), _NO_LOCK
        if not self.size:
            return
        sources = tuple([given.ptr for given in self._given])  # a list is faster than a generator
        targets = sources if self._got is self._given else tuple([0 if got is None else got.ptr for got in self._got])
        ranks = handles, self._devices, tuple(self._streams), sources, targets
        with lock:
            getattr(library, collective)(ranks, count, *arguments)

    def _into(self, place: int, target: Any, name: str, times: int, parts: int) -> None:
        if not isinstance(target, self._type) or target.dtype != self.dtype or not target.flags.c_contiguous:
            self._refuse(target, name, place)
        memory = target.data
        if memory.device_id != self._devices[place]:
            raise RuntimeError(
                f"input and output must be on the same device: inputs[{place}] is on device {self._devices[place]}, "
                f"{_named(name, place)} is on device {memory.device_id}."
            )
        if target.size * parts != self.size * times:
            expected = f"{self.size * times}" if parts == 1 else f"{self.size} / {parts}"
            raise RuntimeError(
                f"output must be of size input_size * size_multiplier: {_named(name, place)} has {target.size} "
                f"elements; it must have {expected}."
            )
        self._got[place] = memory

    def _refuse(self, array: Any, name: str, place: int) -> NoReturn:
        """Refuse ``array``, which is no contiguous array of the dtype of the first input."""
        if not isinstance(array, self._type):
            raise RuntimeError(
                f"input and output elements have to be cuda dense Tensors: {_named(name, place)} is {a_kind(array)}."
            )
        if array.dtype != self.dtype:
            raise RuntimeError(
                f"all inputs and outputs must be of the same Tensor dtype: inputs[0] has {self.dtype}, "
                f"{_named(name, place)} has {array.dtype}."
            )
        raise RuntimeError(
            f"all inputs and outputs have to be contiguous: {_named(name, place)} is not; xp.ascontiguousarray() "
            "makes a copy that is."
        )

    def _arrays(self, arrays: Iterable[Any], name: str) -> list[Any]:
        """Return ``arrays`` as a list, in which no object is without the attributes of an array."""
        found = list(arrays)
        for place, array in enumerate(found):
            if not isinstance(array, self._type) and not hasattr(array, "dtype"):
                raise TypeError(f"expected Tensor at {place} (got {type(array).__name__}): {name} must be arrays.")
        return found


def _named(name: str, place: int) -> str:
    return name if name == "output" else f"{name}[{place}]"


def _given_streams(streams: Any, expected: int) -> Sequence[Any]:
    if streams is None:
        return [None] * expected
    if not isinstance(streams, Sequence):
        raise RuntimeError(f"streams must be a sequence of streams; got {a_kind(streams)}.")
    if len(streams) != expected:
        raise RuntimeError(
            f"number of streams is not equal to number of inputs: {len(streams)} streams, {expected} inputs."
        )
    return streams


def _given_communicators(comms: Any, expected: int) -> list[Communicator] | None:
    if comms is None:
        return None
    given = [comms] if isinstance(comms, Communicator) else list(comms)
    for communicator in given:
        if not isinstance(communicator, Communicator):
            raise ValueError(f"comms must be communicators, which init_rank() returns; got {a_kind(communicator)}.")
    if len(given) != expected or not given:
        raise RuntimeError(
            f"number of communicators is not equal to number of inputs: {len(given)} communicators, {expected} inputs."
        )
    return given


def _handle(stream: StreamLike | None, device: int, place: int) -> int:
    """Return the handle of ``stream``, which must be on ``device``; the handle of the current stream if None."""
    if stream is None:
        return backend.current_stream(device).ptr
    try:
        handle, index = handle_and_device(stream)
    except RuntimeError:
        raise RuntimeError(
            f"Unknown data type found in stream list. Need torch.cuda.Stream or None: streams[{place}] is "
            f"{a_kind(stream)}."
        ) from None
    if index != device and getattr(stream, "device_id", -1) != -1:
        raise RuntimeError(
            f"input and stream must be on the same device: inputs[{place}] is on device {device}, streams[{place}] is "
            f"on device {index}."
        )
    return handle
