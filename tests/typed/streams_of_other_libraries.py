"""A typed program that passes streams of other libraries to tcuda; mypy and pyright check it in their strict modes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tcuda
import tcuda.testing
from tcuda.streams import SupportsCudaStream

if TYPE_CHECKING:
    from tcuda.streams import StreamLike


class ProtocolStream:
    """A stream of a library that follows the protocol ``__cuda_stream__``."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._handle


class TorchsStream:
    """A stream with PyTorch's names."""

    def __init__(self, handle: int) -> None:
        self.cuda_stream = handle
        self.device_index = 0


class CupysStream:
    """A stream with CuPy's names."""

    def __init__(self, handle: int) -> None:
        self.ptr = handle
        self.device_id = 0


def pass_on(stream: StreamLike, array: Any) -> int:
    """Pass the stream to each function that takes a stream."""
    event = tcuda.Event()
    event.record(stream)
    event.wait(stream)
    tcuda.current_stream().wait_stream(stream)
    tcuda.memory.record_stream(array, stream)
    tcuda.caching_allocator_delete(tcuda.caching_allocator_alloc(256, stream=stream))
    with tcuda.stream(stream):
        current: tcuda.Stream = tcuda.current_stream()
    before = tcuda.current_stream()
    tcuda.set_stream(stream)
    tcuda.set_stream(before)
    graph = tcuda.CUDAGraph(keep_graph=True)
    with tcuda.graph(graph, stream=stream):
        array += 1
    graph.replay()
    graph.replay_stepwise(check=tcuda.xp.isfinite)
    tcuda.comm.scatter(array, [0], streams=[stream])
    return current.cuda_stream


def main() -> None:
    """Use a stream of every kind."""
    stream = tcuda.Stream()
    handle = stream.cuda_stream
    array: Any = tcuda.xp.zeros(4)
    tcuda.synchronize()
    kinds: list[StreamLike] = [stream, ProtocolStream(handle), TorchsStream(handle), CupysStream(handle)]
    assert [pass_on(kind, array) for kind in kinds] == [handle] * len(kinds)
    tcuda.synchronize()
    tcuda.testing.assert_array_equal(array, [8] * 4)
    assert isinstance(ProtocolStream(handle), SupportsCudaStream)
    assert not isinstance(TorchsStream(handle), SupportsCudaStream)


def refused() -> None:
    """Pass what is no stream: both checkers must refuse these calls."""
    tcuda.set_stream("side")  # type: ignore[arg-type]
    tcuda.Event().record(1.5)  # type: ignore[arg-type]
    tcuda.Stream().wait_stream(None)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
    print("done")
