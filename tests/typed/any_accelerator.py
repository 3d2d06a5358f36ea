"""A typed program for ``torch.accelerator``, of which only the imports were changed; see also ``arrays.py``."""

from __future__ import annotations

from tcuda import Event, Stream, accelerator, xp


def free_memory() -> dict[int, int]:
    """Return the free bytes of each device."""
    return {index: accelerator.get_memory_info(index)[0] for index in range(accelerator.device_count())}


def peak_of_a_step(device: int | None) -> int:
    """Return the peak of the memory in a step on a device, in bytes."""
    with accelerator.device_index(device):
        accelerator.reset_peak_memory_stats()
        x = xp.ones(1 << 20, xp.float32)
        y = x * 2
        accelerator.synchronize()
        assert float(y[0]) == 2
        return accelerator.max_memory_allocated() - accelerator.memory_allocated()


def time_on(stream: Stream) -> float:
    """Return the milliseconds of a kernel on a stream."""
    before = accelerator.current_stream()
    begin, end = Event(enable_timing=True), Event(enable_timing=True)
    accelerator.set_stream(stream)
    begin.record()
    x = xp.ones(1000)
    end.record()
    accelerator.set_stream(before)
    accelerator.synchronize(stream.device_index)
    assert float(x.sum()) == 1000
    return begin.elapsed_time(end)


def replayed() -> float:
    """Return an element to which five replays have added."""
    x = xp.zeros(3)
    accelerator.synchronize()
    graph = accelerator.Graph()
    with Stream(), graph:
        x += 1
    for _ in range(5):
        graph.replay()
    return float(x[0])


def main() -> None:
    """Use each group of names."""
    kind = accelerator.current_accelerator(check_available=True)
    assert kind is not None
    assert f"{kind}:{accelerator.current_device_index()}" == "cuda:0"
    assert xp.dtype("float32") in accelerator.get_device_capability(kind)["supported_dtypes"]
    assert all(free > 0 for free in free_memory().values())
    assert peak_of_a_step(None) >= 0
    assert time_on(Stream()) > 0
    assert replayed() == 5
    accelerator.set_device_index(-1)  # does nothing
    accelerator.empty_cache()
    print("done")


if __name__ == "__main__":
    main()
