"""Messages: what a pickle of a shared array says about its memory."""

from __future__ import annotations

import functools
import os
import traceback
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

from tcuda._base.errors import AcceleratorError
from tcuda._base.statuses import Status
from tcuda._process.captures import capture_on, captures, require_no_capture
from tcuda._process.devices import exchange_device
from tcuda._process.lazy import backend, cuda
from tcuda._runtime.protocol import STREAM_LEGACY, STREAM_PER_THREAD
from tcuda.multiprocessing import _connections, _events, _mappings, _segments
from tcuda.multiprocessing._leases import leases
from tcuda.multiprocessing._received import Loan, Received
from tcuda.multiprocessing._segments import HANDLE, Place, SharedBlock
from tcuda.multiprocessing._server import server, server_if_any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tcuda.multiprocessing._events import EventName, SentEvent
    from tcuda.multiprocessing._wire import Address


class Message(NamedTuple):
    """The memory of an array on its way to another process.

    Attributes:
        runtime: The name of the runtime of the sender.
        device: The UUID of the device: processes may see the devices in another order.
        owner: The process whose memory it is.
        lease: The number of the lease of the owner.
        number: The number of the message.
        place: The block in its segment.
        sender: The process that has recorded the events.
        events: The events for which the receiver waits.
    """

    runtime: str
    device: bytes
    owner: Address
    lease: int
    number: int
    place: Place | None
    sender: Address
    events: tuple[EventName, ...]


@functools.cache
def uuids() -> tuple[bytes, ...]:
    """Return the UUIDs of the visible devices."""
    return tuple(bytes(cuda.getDeviceProperties(device)["uuid"]) for device in range(cuda.getDeviceCount()))


def device_of(runtime: str, device: bytes) -> int:
    """Return the index of the device with the UUID ``device``.

    Raises:
        RuntimeError: The device is not visible in this process, or is of another runtime.
    """
    if cuda.name != runtime:
        raise RuntimeError(
            f"The array is on a device of the runtime {runtime!r}, and this process uses {cuda.name!r}. Set "
            "TCUDA_RUNTIME to the same value in both processes before they start."
        )
    try:
        return uuids().index(device)
    except ValueError:
        shown = f"GPU-{uuid.UUID(bytes=device)}"
        raise RuntimeError(
            f"The array is on the device {shown}, which this process does not see: it sees "
            f"{', '.join(f'GPU-{uuid.UUID(bytes=seen)}' for seen in uuids())}. Change CUDA_VISIBLE_DEVICES of this "
            "process, or send the elements: array.get()."
        ) from None


def send(memory: Any, device: int) -> Message:
    """Return a message about ``memory``, which stays alive until the message is received.

    Args:
        memory: The ``data.mem`` of an array.
        device: The index of the device of the array.

    Raises:
        RuntimeError: Another process cannot open the memory, or a stream that uses the memory is capturing.
    """
    received = backend.owner_of(memory)
    if isinstance(received, Received):
        recorded = _record(device, received.loan.streams)
        try:
            connection, lease = received.loan.connection, received.loan.lease
            number = connection.forward(lease, functools.partial(_give_back, recorded))
        except BaseException:
            _give_back(recorded)
            raise
        return _message(device, connection.owner, lease, number, received.place, recorded)
    place, streams = _segments.place_of(device, memory.ptr)
    recorded = _record(device, streams)
    lease, number = leases.send(SharedBlock(memory, device, place), functools.partial(_give_back, recorded))
    return _message(device, server().address, lease, number, place, recorded)


def _message(
    device: int, owner: Address, lease: int, number: int, place: Place | None, recorded: list[SentEvent]
) -> Message:
    names = tuple(event.name for event in recorded)
    return Message(cuda.name, uuids()[device], owner, lease, number, place, server().address, names)


def _record(device: int, streams: Iterable[int]) -> list[SentEvent]:
    """Record the end of the work on ``streams``, and on the current stream of this thread."""
    used = {*streams, backend.current_stream(device).ptr}
    if STREAM_PER_THREAD in used:  # in another thread the handle means another stream, but this one waits for all
        used.add(STREAM_LEGACY)
    if captures and any(capture_on(stream) is not None for stream in used):
        raise AcceleratorError(
            Status.STREAM_CAPTURE_UNSUPPORTED,
            "sending an array to another process",
            "A stream that uses the array is capturing, and the receiver cannot wait for captured work: send the array "
            "after the capture.",
        )
    previous = exchange_device(device)
    try:
        return _events.record(device, used)
    finally:
        exchange_device(previous)


def _give_back(recorded: list[SentEvent]) -> None:
    for event in recorded:
        event.give_back()


def receive(message: Message) -> Any:
    """Return the memory of ``message``, and let the current stream wait for the work of the sender.

    Raises:
        RuntimeError: The owner has ended or has freed the memory, or this process cannot open the memory.
    """
    try:
        device = device_of(message.runtime, message.device)
    except RuntimeError:
        discard(message)
        raise
    stream = backend.current_stream(device)
    require_no_capture("receiving an array from another process", stream=stream.ptr)
    previous = exchange_device(device)
    try:
        return _receive(message, device, stream)
    finally:
        exchange_device(previous)


def _receive(message: Message, device: int, stream: Any) -> Any:
    failed = _wait(message, stream.ptr)
    if is_own(message.owner):
        memory = leases.take_back(message.lease, message.number)
        if memory is None:
            raise RuntimeError(
                "The array is gone: this process has freed its memory, because the message was received before, and "
                "all arrays that came from the message are gone, or because the message was withdrawn."
            )
        _require_end_of(message.sender, failed)
        return memory
    place = message.place
    assert place is not None
    segment = place.segment
    wanted = 0 if segment.kind == HANDLE or _mappings.is_open(message.owner, device, segment) else len(segment.pieces)
    connection, descriptors = _connections.claim(message.owner, message.lease, message.number, wanted)
    try:
        _require_end_of(message.sender, failed)
        mapping = _mappings.open_segment(
            message.owner,
            device,
            segment,
            # If a mapping has been closed since the claim, the descriptors are still to be asked for.
            lambda count: connection.descriptors(message.lease, count, _taken(descriptors)),
        )
    except BaseException:
        connection.release({message.lease: 1})
        raise
    finally:
        for descriptor in descriptors:  # if another thread has opened the segment since the claim
            os.close(descriptor)
    received = Received(Loan(connection, message.lease, mapping, device, {stream.ptr: stream}), place)
    return backend.foreign_memory(received, received.ptr, place.size, device)


def _taken(descriptors: list[int]) -> list[int]:
    """Return the descriptors, and leave none in the list."""
    taken = descriptors.copy()
    descriptors.clear()
    return taken


def _wait(message: Message, stream: int) -> str | None:
    """Let ``stream`` wait for the events of ``message``; return the text of the error if that is not possible."""
    try:
        if is_own(message.sender):
            _events.wait_for_own(message.events, stream)
        else:
            _events.wait(message.sender, message.events, stream)
    except AcceleratorError as error:
        # A frame that refers to its own error would keep the frames of its callers, and so the array, for long.
        traceback.clear_frames(error.__traceback__)
        return str(error)
    return None


def _require_end_of(sender: Address, failed: str | None) -> None:
    """Raise an error with the text ``failed`` unless ``sender`` has ended: its work is then complete."""
    if failed is None:
        return
    try:
        if _connections.connection_to(sender).has_ended():
            return
    except RuntimeError:
        return
    raise RuntimeError(
        f"The events of the process {sender.pid} cannot be opened: {failed}\nContainers need the same PID and IPC "
        "namespaces and the same devices."
    )


def is_own(address: Address) -> bool:
    """Return whether ``address`` is the address of this process."""
    own = server_if_any()
    return own is not None and own.address == address


def discard(message: Message) -> None:
    """End ``message``, whose memory this process cannot use."""
    if is_own(message.owner):
        leases.take_back(message.lease, message.number)
        return
    try:
        connection, _ = _connections.claim(message.owner, message.lease, message.number)
    except RuntimeError:
        return  # there is nothing to end
    connection.release({message.lease: 1})
