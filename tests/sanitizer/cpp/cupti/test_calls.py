"""What the detector is told of each call of the driver."""

from __future__ import annotations

import ctypes
import json
import struct
from typing import TYPE_CHECKING, Any

import pytest

from support.core import for_tests
from support.cupti import (
    BLOCKING,
    CONTEXT,
    EVENT,
    FAILURE,
    FAR,
    FUNCTION,
    LOCKED,
    MAIN,
    MEMORY,
    MEMORY_SIZE,
    MORE_MEMORY,
    OTHER_CONTEXT,
    PAGEABLE,
    SIDE,
    Cupti,
    Parameters,
    Use,
    Watched,
)
from support.folders import DATA

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LEGACY, PER_THREAD = 0, 2
TARGET, SOURCE = MEMORY, MEMORY + 4096


def written(address: int, *shape: int, strides: Sequence[int] = (1,), stream: int = MAIN, name: str = "memset") -> Use:
    return Use(name, 0, stream, "write", address, shape, tuple(strides), "exact")


def read(address: int, *shape: int, strides: Sequence[int] = (1,), stream: int = MAIN, name: str = "memcpy") -> Use:
    return Use(name, 0, stream, "read", address, shape, tuple(strides), "exact")


def both_variants(name: str, suffix: str = "_ptsz") -> list[tuple[str, int]]:
    """The call and its variant for per-thread default streams, each with the stream that 0 means."""
    return [(name, LEGACY), (name + suffix, PER_THREAD)]


def flat(*groups: list[tuple[str, int]]) -> list[tuple[str, int]]:
    return [pair for group in groups for pair in group]


def test_the_ids_are_those_of_the_driver() -> None:
    ids = json.loads((DATA / "cupti_calls.json").read_text())
    assert for_tests.watched_calls() == {name: ids[name] for name in for_tests.watched_calls()}


# Launches

FIRST = Use("kernel", 0, MAIN, "read and write", MEMORY, (MEMORY_SIZE,), (1,), "possible")
SECOND = Use("kernel", 0, MAIN, "read and write", MORE_MEMORY + 3072, (MEMORY_SIZE - 3072,), (1,), "possible")


def expected(stream: int) -> list[Use]:
    return [FIRST._replace(stream=stream), SECOND._replace(stream=stream)]


def launch(cupti: Cupti, name: str, stream: int, parameters: int, **options: Any) -> None:
    common = (FUNCTION, 1, 1, 1, 32, 1, 1, 0, stream, parameters)
    if "Ex" in name:
        configuration = (ctypes.c_byte * 64)()
        layout = cupti_struct("7IPPI", 1, 1, 1, 32, 1, 1, 0, stream, 0, 0)
        ctypes.memmove(configuration, layout, len(layout))
        cupti.call(name, "4P", ctypes.addressof(configuration), FUNCTION, parameters, 0, symbol=b"kernel", **options)
    elif "Cooperative" in name:
        cupti.call(name, "P7IPP", *common, symbol=b"kernel", **options)
    else:
        cupti.call(name, "P7IPPP", *common, 0, symbol=b"kernel", **options)


def cupti_struct(layout: str, *values: Any) -> bytes:
    return struct.pack("@" + layout, *values)


LAUNCHES = flat(*map(both_variants, ("cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel")))


@pytest.mark.parametrize(("name", "default"), LAUNCHES)
def test_every_variant_of_a_launch_is_an_operation(cupti: Cupti, watched: Watched, name: str, default: int) -> None:
    with Parameters(MEMORY, MORE_MEMORY + 3072) as parameters:
        launch(cupti, name, MAIN, parameters)
        assert watched.uses() == expected(MAIN)
        watched.detector.device_synchronized(0)
        launch(cupti, name, 0, parameters)
        assert watched.uses() == expected(default)


def test_parameters_in_one_block_are_read(cupti: Cupti, watched: Watched) -> None:
    block = (ctypes.c_uint64 * 2)(5, MEMORY + 2048)
    size = ctypes.c_size_t(16)
    extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(block), 2, ctypes.addressof(size), 0)
    cupti.call("cuLaunchKernel", "P7IPPP", FUNCTION, 1, 1, 1, 1, 1, 1, 0, MAIN, 0, ctypes.addressof(extra))
    assert watched.uses() == [
        Use("kernel", 0, MAIN, "read and write", MEMORY + 2048, (MEMORY_SIZE - 2048,), (1,), "possible")
    ]


class TestWithoutMemory:
    """A detector that knows no allocation, as long as no array is made."""

    @pytest.fixture
    def watched(self, cupti: Cupti) -> Iterator[Watched]:
        made = Watched(cupti, ())
        yield made
        made.watch.end()

    def test_a_launch_is_an_operation_without_a_stack(self, cupti: Cupti, watched: Watched) -> None:
        cupti.launch(MAIN)
        (step,) = for_tests.recent_steps(watched.detector)
        assert (step["kind"], step["stream"], step["name"], step["stack"]) == ("work", MAIN, "kernel", [])
        assert watched.detector.operations == 1
        assert watched.uses() == []

    def test_a_launch_has_a_stack_and_uses_as_soon_as_memory_is_known(self, cupti: Cupti, watched: Watched) -> None:
        cupti.launch(MAIN)
        watched.own(MEMORY)
        cupti.launch(SIDE)
        cupti.fill(MAIN)
        (race,) = watched.found()
        assert (race.previous.operation, race.previous.stream) == ("kernel", SIDE)
        assert race.previous.stack

    def test_a_launch_on_the_legacy_stream_orders_the_blocking_streams(self, cupti: Cupti, watched: Watched) -> None:
        cupti.stub.stub_set_stream(SIDE, CONTEXT, 0, 0)
        for between in (True, False):
            cupti.fill(BLOCKING)
            if between:
                cupti.launch(LEGACY)
            cupti.fill(SIDE)
            assert len(watched.found()) == (not between)
            watched.detector.device_synchronized(0)

    def test_a_captured_launch_is_no_operation_yet(self, cupti: Cupti, watched: Watched) -> None:
        cupti.call("cuStreamBeginCapture_v2", "PI", MAIN, 0, sides=1)
        cupti.capture(MAIN, 7)
        cupti.call("cuStreamBeginCapture_v2", "PI", MAIN, 0, sides=2)
        cupti.launch(MAIN)
        assert watched.detector.operations == 0


def test_a_launch_on_several_devices_joins_the_streams(cupti: Cupti, watched: Watched) -> None:
    cupti.fill(MAIN)
    with Parameters(MEMORY, MEMORY) as parameters:
        one, other = (
            cupti_struct("P7IPP", FUNCTION, 1, 1, 1, 1, 1, 1, 0, stream, parameters) for stream in (MAIN, FAR)
        )
        launches = ctypes.create_string_buffer(one + other)
        cupti.call("cuLaunchCooperativeKernelMultiDevice", "PII", ctypes.addressof(launches), 2, 0, symbol=b"kernel")
    assert {(race.previous.operation, race.current.operation) for race in watched.found()} == {("kernel", "kernel")}


HOST_FUNCTIONS = flat(*map(both_variants, ("cuLaunchHostFunc", "cuStreamAddCallback")))


@pytest.mark.parametrize(("name", "default"), HOST_FUNCTIONS)
def test_a_host_function_is_an_operation_without_accesses(
    cupti: Cupti, watched: Watched, name: str, default: int
) -> None:
    cupti.call(name, "PPPI", MAIN, 1, 0, 0)
    cupti.call(name, "PPPI", 0, 1, 0, 0)
    assert watched.steps() == [("work", 0, MAIN, None), ("work", 0, default, None)]
    assert watched.uses() == []


# Copies

COPY_ARGUMENTS: dict[str, tuple[str, tuple[int, ...]]] = {
    "cuMemcpy": ("QQN", (TARGET, SOURCE, 1024)),
    "cuMemcpy_v2": ("QQN", (TARGET, SOURCE, 1024)),
    "cuMemcpyDtoD_v2": ("QQN", (TARGET, SOURCE, 1024)),
    "cuMemcpyPeer": ("QPQPN", (TARGET, CONTEXT, SOURCE, CONTEXT, 1024)),
}
BLOCKING_COPIES = flat(
    both_variants("cuMemcpy", "_ptds"),
    [("cuMemcpy_v2", LEGACY)],
    both_variants("cuMemcpyDtoD_v2", "_ptds"),
    both_variants("cuMemcpyPeer", "_ptds"),
)


@pytest.mark.parametrize(("name", "stream"), BLOCKING_COPIES)
def test_a_blocking_copy_between_devices_runs_on_the_default_stream(
    cupti: Cupti, watched: Watched, name: str, stream: int
) -> None:
    layout, arguments = COPY_ARGUMENTS[name.removesuffix("_ptds")]
    cupti.call(name, layout, *arguments)
    assert watched.uses() == [
        read(SOURCE, 1024, stream=stream),
        written(TARGET, 1024, stream=stream, name="memcpy"),
    ]


ASYNCHRONOUS_COPIES = {
    "cuMemcpyAsync": ("QQN", (TARGET, SOURCE, 1024)),
    "cuMemcpyDtoDAsync_v2": ("QQN", (TARGET, SOURCE, 1024)),
    "cuMemcpyPeerAsync": ("QPQPN", (TARGET, CONTEXT, SOURCE, CONTEXT, 1024)),
}


@pytest.mark.parametrize(("name", "default"), flat(*map(both_variants, ASYNCHRONOUS_COPIES)))
def test_an_asynchronous_copy_between_devices_runs_on_its_stream(
    cupti: Cupti, watched: Watched, name: str, default: int
) -> None:
    layout, arguments = ASYNCHRONOUS_COPIES[name.removesuffix("_ptsz")]
    for handle, stream in ((MAIN, MAIN), (0, default)):
        cupti.call(name, layout + "P", *arguments, handle)
        assert watched.uses() == [
            read(SOURCE, 1024, stream=stream),
            written(TARGET, 1024, stream=stream, name="memcpy"),
        ]
        watched.detector.device_synchronized(0)


UPLOADS = [
    *both_variants("cuMemcpyHtoDAsync_v2"),
    *both_variants("cuMemcpyAsync"),
]
DOWNLOADS = [
    *both_variants("cuMemcpyDtoHAsync_v2"),
    *both_variants("cuMemcpyAsync"),
]


@pytest.mark.parametrize(("name", "default"), UPLOADS)
def test_an_upload_reads_page_locked_memory(cupti: Cupti, watched: Watched, name: str, default: int) -> None:
    cupti.call(name, "QQNP", TARGET, LOCKED, 512, 0)
    assert watched.uses() == [read(LOCKED, 512, stream=default), written(TARGET, 512, stream=default, name="memcpy")]


@pytest.mark.parametrize(("name", "default"), UPLOADS)
def test_an_upload_from_pageable_memory_has_left_the_memory(
    cupti: Cupti, watched: Watched, name: str, default: int
) -> None:
    cupti.call(name, "QQNP", TARGET, PAGEABLE, 512, 0)
    assert watched.uses() == [written(TARGET, 512, stream=default, name="memcpy")]


@pytest.mark.parametrize(("name", "default"), DOWNLOADS)
def test_a_download_writes_page_locked_memory(cupti: Cupti, watched: Watched, name: str, default: int) -> None:
    cupti.call(name, "QQNP", LOCKED, SOURCE, 512, 0)
    assert watched.uses() == [read(SOURCE, 512, stream=default), written(LOCKED, 512, stream=default, name="memcpy")]


@pytest.mark.parametrize(("name", "default"), DOWNLOADS)
def test_a_download_to_pageable_memory_waits(cupti: Cupti, watched: Watched, name: str, default: int) -> None:
    cupti.call(name, "QQNP", PAGEABLE, SOURCE, 512, 0)
    assert watched.steps() == [("work", 0, default, None), ("sync", 0, default, None)]
    assert watched.uses() == []


@pytest.mark.parametrize(("name", "stream"), both_variants("cuMemcpyHtoD_v2", "_ptds"))
def test_a_blocking_upload_waits_as_cuda_promises(cupti: Cupti, watched: Watched, name: str, stream: int) -> None:
    cupti.fill(stream, TARGET + 2048)
    cupti.call(name, "QQN", TARGET, PAGEABLE, 512)  # waits for the stream before the copy, which may be under way
    assert watched.uses() == [written(TARGET, 512, stream=stream, name="memcpy")]
    cupti.call(name, "QQN", TARGET, LOCKED, 512)
    assert watched.uses() == []


@pytest.mark.parametrize(("name", "stream"), both_variants("cuMemcpyDtoH_v2", "_ptds"))
@pytest.mark.parametrize("target", [LOCKED, PAGEABLE])
def test_a_blocking_download_waits(cupti: Cupti, watched: Watched, name: str, stream: int, target: int) -> None:
    cupti.fill(stream, TARGET + 2048)
    cupti.call(name, "QQN", target, SOURCE, 512)
    assert watched.steps()[-1] == ("sync", 0, stream, None)
    assert watched.uses() == []


def box_end(kind: int, address: int, *, x: int = 0, y: int = 0, z: int = 0, pitch: int = 0, height: int = 0) -> bytes:
    host, device = (address, 0) if kind == 1 else (0, address)
    return cupti_struct("NNNNiQQPPNN0Q", x, y, z, 0, kind, host, device, 0, 0, pitch, height)


def row_end(kind: int, address: int, *, x: int = 0, y: int = 0, pitch: int = 0) -> bytes:
    host, device = (address, 0) if kind == 1 else (0, address)
    return cupti_struct("NNiQQPN0Q", x, y, kind, host, device, 0, pitch)


ROWS = [
    *((name, False) for name, _ in both_variants("cuMemcpy2DAsync_v2")),
    *((name, True) for name, _ in both_variants("cuMemcpy2D_v2", "_ptds")),
    *((name, True) for name, _ in both_variants("cuMemcpy2DUnaligned_v2", "_ptds")),
]


@pytest.mark.parametrize(("name", "blocking"), ROWS)
def test_copies_of_rows_have_exact_regions(cupti: Cupti, watched: Watched, name: str, blocking: bool) -> None:
    source, target = row_end(2, SOURCE, x=4, y=1, pitch=128), row_end(4, TARGET, pitch=64)
    copy = ctypes.create_string_buffer(source + target + cupti_struct("NN", 32, 5))
    if blocking:
        cupti.call(name, "P", ctypes.addressof(copy))
        stream = PER_THREAD if name.endswith("_ptds") else LEGACY
    else:
        cupti.call(name, "PP", ctypes.addressof(copy), SIDE)
        stream = SIDE
    assert watched.uses() == [
        read(SOURCE + 128 + 4, 5, 32, strides=(128, 1), stream=stream),
        written(TARGET, 5, 32, strides=(64, 1), stream=stream, name="memcpy"),
    ]


BOXES = [
    *((name, False) for name, _ in both_variants("cuMemcpy3DAsync_v2")),
    *((name, True) for name, _ in both_variants("cuMemcpy3D_v2", "_ptds")),
    *((name, False) for name, _ in both_variants("cuMemcpy3DPeerAsync")),
    *((name, True) for name, _ in both_variants("cuMemcpy3DPeer", "_ptds")),
]


@pytest.mark.parametrize(("name", "blocking"), BOXES)
def test_copies_of_boxes_have_exact_regions(cupti: Cupti, watched: Watched, name: str, blocking: bool) -> None:
    source = box_end(2, SOURCE, x=8, y=1, z=1, pitch=64, height=4)
    target = box_end(2, TARGET)
    copy = ctypes.create_string_buffer(source + target + cupti_struct("NNN", 16, 2, 3))
    if blocking:
        cupti.call(name, "P", ctypes.addressof(copy))
        stream = PER_THREAD if name.endswith("_ptds") else LEGACY
    else:
        cupti.call(name, "PP", ctypes.addressof(copy), SIDE)
        stream = SIDE
    assert watched.uses() == [
        read(SOURCE + 256 + 64 + 8, 3, 2, 16, strides=(256, 64, 1), stream=stream),
        written(TARGET, 3, 2, 16, strides=(32, 16, 1), stream=stream, name="memcpy"),
    ]


def test_copies_of_rows_from_the_host_have_exact_regions(cupti: Cupti, watched: Watched) -> None:
    copy = ctypes.create_string_buffer(row_end(1, LOCKED, pitch=100) + row_end(2, TARGET, pitch=64) +
                                       cupti_struct("NN", 32, 2))  # fmt: skip
    cupti.call("cuMemcpy2DAsync_v2", "PP", ctypes.addressof(copy), MAIN)
    assert watched.uses() == [
        read(LOCKED, 2, 32, strides=(100, 1)),
        written(TARGET, 2, 32, strides=(64, 1), name="memcpy"),
    ]


BATCHES = [
    *((name, "PPPNPPNPP") for name, _ in both_variants("cuMemcpyBatchAsync")),
    *((name, "PPPNPPNP") for name, _ in both_variants("cuMemcpyBatchAsync_v2")),
]


@pytest.mark.parametrize(("name", "layout"), BATCHES)
def test_each_copy_of_a_batch_counts(cupti: Cupti, watched: Watched, name: str, layout: str) -> None:
    targets = (ctypes.c_uint64 * 2)(TARGET, TARGET + 1024)
    sources = (ctypes.c_uint64 * 2)(SOURCE, LOCKED)
    sizes = (ctypes.c_size_t * 2)(256, 512)
    failed = (0,) if len(layout) == 9 else ()
    cupti.call(name, layout, *map(ctypes.addressof, (targets, sources, sizes)), 2, 0, 0, 0, *failed, SIDE)
    assert set(watched.uses()) == {
        read(SOURCE, 256, stream=SIDE),
        read(LOCKED, 512, stream=SIDE),
        written(TARGET, 256, stream=SIDE, name="memcpy"),
        written(TARGET + 1024, 512, stream=SIDE, name="memcpy"),
    }


BOX_BATCHES = [
    *((name, "NPPQP") for name, _ in both_variants("cuMemcpy3DBatchAsync")),
    *((name, "NPQP") for name, _ in both_variants("cuMemcpy3DBatchAsync_v2")),
]


@pytest.mark.parametrize(("name", "layout"), BOX_BATCHES)
def test_each_box_of_a_batch_counts(cupti: Cupti, watched: Watched, name: str, layout: str) -> None:
    pointer, array = 1, 2

    def operation(kind: int, target: int) -> bytes:
        source = cupti_struct("iQNNii0Q", kind, SOURCE, 64, 4, 0, 0)
        made = cupti_struct("iQNNii0Q", pointer, target, 0, 0, 0, 0)
        return source + made + cupti_struct("NNNiI0Q", 16, 2, 3, 0, 0)

    operations = ctypes.create_string_buffer(operation(pointer, TARGET) + operation(array, TARGET + 2048))
    failed = (0,) if "PP" in layout else ()
    cupti.call(name, layout, 2, ctypes.addressof(operations), *failed, 0, SIDE)
    assert watched.uses() == [
        read(SOURCE, 3, 2, 16, strides=(256, 64, 1), stream=SIDE),
        written(TARGET, 3, 2, 16, strides=(32, 16, 1), stream=SIDE, name="memcpy"),
    ]


ARRAY_COPIES: dict[str, tuple[str, tuple[int, ...], list[tuple[str, int]]]] = {
    "cuMemcpyDtoA_v2": ("PNQN", (1, 0, SOURCE, 256), [("read", SOURCE)]),
    "cuMemcpyAtoD_v2": ("QPNN", (TARGET, 1, 0, 256), [("write", TARGET)]),
    "cuMemcpyHtoA_v2": ("PNPN", (1, 0, LOCKED, 256), []),
    "cuMemcpyAtoH_v2": ("PPNN", (LOCKED, 1, 0, 256), []),
    "cuMemcpyHtoAAsync_v2": ("PNPN", (1, 0, LOCKED, 256), [("read", LOCKED)]),
    "cuMemcpyAtoHAsync_v2": ("PPNN", (LOCKED, 1, 0, 256), [("write", LOCKED)]),
}


@pytest.mark.parametrize("name", ARRAY_COPIES)
def test_copies_with_arrays_use_the_memory_at_the_other_end(cupti: Cupti, watched: Watched, name: str) -> None:
    layout, arguments, uses = ARRAY_COPIES[name]
    asynchronous = "Async" in name
    for variant, default in both_variants(name, "_ptsz" if asynchronous else "_ptds"):
        stream = (0,) if asynchronous else ()
        cupti.call(variant, layout + "P" * len(stream), *arguments, *stream)
        assert [(use.kind, use.address, use.stream) for use in watched.uses()] == [(*use, default) for use in uses]
        watched.detector.device_synchronized(0)


# Fills

WIDTHS = {8: "B", 16: "H", 32: "I"}
FILLS = [(f"cuMemsetD{width}{suffix}", width, suffix) for width in WIDTHS for suffix in
         ("_v2", "_v2_ptds", "Async", "Async_ptsz")]  # fmt: skip


@pytest.mark.parametrize(("name", "width", "suffix"), FILLS)
def test_every_fill_has_its_bytes(cupti: Cupti, watched: Watched, name: str, width: int, suffix: str) -> None:
    asynchronous = "Async" in suffix
    cupti.call(name, f"Q{WIDTHS[width]}N" + "P" * asynchronous, TARGET, 1, 100, *[0] * asynchronous)
    default = PER_THREAD if "_pt" in suffix else LEGACY
    assert watched.uses() == [written(TARGET, 100 * width // 8, stream=default)]
    if asynchronous:
        watched.detector.device_synchronized(0)
        cupti.call(name, f"Q{WIDTHS[width]}NP", TARGET, 1, 100, SIDE)
        assert watched.uses() == [written(TARGET, 100 * width // 8, stream=SIDE)]


ROW_FILLS = [(name.replace("cuMemsetD", "cuMemsetD2D"), width, suffix) for name, width, suffix in FILLS]


@pytest.mark.parametrize(("name", "width", "suffix"), ROW_FILLS)
def test_every_fill_of_rows_has_its_bytes(cupti: Cupti, watched: Watched, name: str, width: int, suffix: str) -> None:
    asynchronous = "Async" in suffix
    cupti.call(name, f"QN{WIDTHS[width]}NN" + "P" * asynchronous, TARGET, 256, 1, 10, 3, *[SIDE] * asynchronous)
    default = SIDE if asynchronous else PER_THREAD if "_pt" in suffix else LEGACY
    assert watched.uses() == [written(TARGET, 3, 10 * width // 8, strides=(256, 1), stream=default)]


# Streams and events


@pytest.mark.parametrize(
    ("name", "default"), flat(both_variants("cuStreamSynchronize"), both_variants("cuStreamQuery"))
)
def test_the_host_waits_for_a_stream(cupti: Cupti, watched: Watched, name: str, default: int) -> None:
    cupti.call(name, "P", MAIN)
    cupti.call(name, "P", 0)
    assert watched.steps() == [("sync", 0, MAIN, None), ("sync", 0, default, None)]


@pytest.mark.parametrize("name", ["cuCtxSynchronize", "cuCtxSynchronize_v2"])
def test_the_host_waits_for_a_device(cupti: Cupti, watched: Watched, name: str) -> None:
    cupti.call(name, "P", 0, context=OTHER_CONTEXT)
    assert watched.steps() == [("sync", 1, None, None)]


def test_the_host_waits_for_the_device_of_a_named_context(cupti: Cupti, watched: Watched) -> None:
    cupti.call("cuCtxSynchronize_v2", "P", OTHER_CONTEXT)
    assert watched.steps() == [("sync", 1, None, None)]


@pytest.mark.parametrize(("name", "default"), flat(*map(both_variants, ("cuEventRecord", "cuEventRecordWithFlags"))))
def test_an_event_is_recorded(cupti: Cupti, watched: Watched, name: str, default: int) -> None:
    cupti.call(name, "PPI", EVENT, FAR, 0)
    cupti.call(name, "PPI", EVENT, 0, 0)
    assert watched.steps() == [("record", 1, FAR, EVENT), ("record", 0, default, EVENT)]


@pytest.mark.parametrize(("name", "default"), both_variants("cuStreamWaitEvent"))
def test_a_stream_waits_for_an_event(cupti: Cupti, watched: Watched, name: str, default: int) -> None:
    cupti.call(name, "PPI", FAR, EVENT, 0)
    cupti.call(name, "PPI", 0, EVENT, 0)
    assert watched.steps() == [("wait", 1, FAR, EVENT), ("wait", 0, default, EVENT)]


@pytest.mark.parametrize("name", ["cuEventQuery", "cuEventSynchronize"])
def test_the_host_waits_for_an_event(cupti: Cupti, watched: Watched, name: str) -> None:
    cupti.fill(MAIN)
    cupti.record(MAIN)
    cupti.call(name, "P", EVENT)
    assert watched.uses() == []


@pytest.mark.parametrize("name", ["cuEventElapsedTime", "cuEventElapsedTime_v2"])
def test_measured_events_are_complete(cupti: Cupti, watched: Watched, name: str) -> None:
    cupti.fill(MAIN)
    cupti.record(MAIN)
    cupti.fill(SIDE, SOURCE)
    cupti.record(SIDE, EVENT + 16)
    cupti.call(name, "PPP", 0, EVENT, EVENT + 16)
    assert watched.uses() == []


@pytest.mark.parametrize("name", ["cuEventDestroy", "cuEventDestroy_v2"])
def test_a_destroyed_event_orders_nothing(cupti: Cupti, watched: Watched, name: str) -> None:
    cupti.fill(MAIN)
    cupti.record(MAIN)
    cupti.call(name, "P", EVENT, sides=1)
    assert for_tests.sizes_of_detector(watched.detector)["events"] == 0


VALUES = [(f"cuStream{{}}Value{bits}{version}", suffix) for bits in (32, 64) for version in ("", "_v2") for suffix in
          ("", "_ptsz")]  # fmt: skip


@pytest.mark.parametrize(("name", "suffix"), VALUES)
def test_a_wait_for_a_value_comes_after_the_write_of_the_value(
    cupti: Cupti, watched: Watched, name: str, suffix: str
) -> None:
    cupti.fill(MAIN)
    cupti.call(name.format("Write") + suffix, "PQQI", MAIN, SOURCE, 1, 0)
    cupti.call(name.format("Wait") + suffix, "PQQI", SIDE, SOURCE, 1, 0)
    cupti.fill(SIDE)
    assert watched.found() == []


@pytest.mark.parametrize(("name", "layout"), [("cuStreamCreate", "PI"), ("cuStreamCreateWithPriority", "PIi")])
@pytest.mark.parametrize("flags", [0, 1])
def test_a_created_stream_is_known(cupti: Cupti, watched: Watched, name: str, layout: str, flags: int) -> None:
    handle = ctypes.c_uint64(0x500)
    cupti.call(name, layout, ctypes.addressof(handle), flags, *[0] * (len(layout) - 2), context=OTHER_CONTEXT)
    asked = cupti.stub.stub_questions()
    cupti.fill(0x500)
    assert cupti.stub.stub_questions() == asked
    assert watched.uses() == [written(TARGET, 1024, stream=0x500)._replace(device=1)]
    cupti.call("cuMemsetD8Async", "QBNP", TARGET, 0, 16, 0, context=OTHER_CONTEXT)
    assert len(watched.found()) == flags  # the default stream waits for a blocking stream


@pytest.mark.parametrize("name", ["cuStreamDestroy", "cuStreamDestroy_v2"])
def test_a_handle_that_is_used_again_is_another_stream(cupti: Cupti, watched: Watched, name: str) -> None:
    cupti.fill(MAIN)
    cupti.call(name, "P", MAIN, sides=1)
    cupti.stub.stub_set_stream(MAIN, CONTEXT, 1, 0)
    cupti.fill(MAIN)
    assert [race.kind for race in watched.found()] == ["write after write"]


# Memory


def test_memory_is_forgotten_at_its_free(cupti: Cupti, watched: Watched) -> None:
    other = 0x7E0000000000
    cupti.stub.stub_set_memory_size(other, 4096)
    cupti.fill(MAIN, other + 1024)
    cupti.fill(SIDE, other + 1024)
    assert [race.kind for race in watched.found()] == ["write after write"]
    cupti.call("cuMemFree_v2", "Q", other, sides=1)
    cupti.fill(FAR, other + 1024)  # another thread has the memory by now
    assert watched.found() == []


def test_the_free_of_memory_waits_for_the_device(cupti: Cupti, watched: Watched) -> None:
    cupti.fill(MAIN)
    cupti.call("cuMemFree_v2", "Q", MEMORY + 4096)
    assert watched.steps()[-1] == ("sync", 0, None, None)
    assert watched.uses() == []


def test_the_free_of_no_memory_waits_for_nothing(cupti: Cupti, watched: Watched) -> None:
    cupti.fill(MAIN)
    before = watched.steps()
    cupti.call("cuMemFree_v2", "Q", 0)  # cuRAND and others make this call to get a context
    assert watched.steps() == before
    cupti.fill(SIDE)
    assert [race.kind for race in watched.found()] == ["write after write"]


ALLOCATIONS = [
    *((name, "PNP") for name, _ in both_variants("cuMemAllocAsync")),
    *((name, "PNPP") for name, _ in both_variants("cuMemAllocFromPoolAsync")),
]


@pytest.mark.parametrize(("name", "layout"), ALLOCATIONS)
def test_stream_ordered_memory_is_used_between_its_allocation_and_its_free(
    cupti: Cupti, watched: Watched, name: str, layout: str
) -> None:
    address = ctypes.c_uint64(0x7E0000000000)
    pool = (1,) if layout == "PNPP" else ()

    def allocate(stream: int) -> None:
        cupti.call(name, layout, ctypes.addressof(address), 4096, *pool, stream)

    allocate(MAIN)
    cupti.fill(SIDE, address.value, 4096)  # without a wait for the allocation
    assert [(race.previous.operation, race.current.operation) for race in watched.found()] == [("allocation", "memset")]
    cupti.call("cuMemFreeAsync" + name[len(name.removesuffix("_ptsz")) :], "QP", address.value, MAIN, sides=1)
    assert [(race.previous.operation, race.current.operation) for race in watched.found()] == [("memset", "free")]
    allocate(FAR)  # the driver has ordered the memory
    cupti.fill(FAR, address.value, 4096)
    assert watched.found() == []


LOCKING = [
    ("cuMemHostAlloc", "cuMemFreeHost"),
    ("cuMemHostAlloc_v2", "cuMemFreeHost"),
    ("cuMemAllocHost_v2", "cuMemFreeHost"),
    ("cuMemHostRegister", "cuMemHostUnregister"),
    ("cuMemHostRegister_v2", "cuMemHostUnregister"),
]


@pytest.mark.parametrize(("name", "end"), LOCKING)
def test_page_locked_memory_is_known_until_its_end(cupti: Cupti, watched: Watched, name: str, end: str) -> None:
    pointer = ctypes.c_uint64(LOCKED)
    first = LOCKED if "Register" in name else ctypes.addressof(pointer)
    cupti.call(name, "PNI", first, 4096, 0)
    cupti.copy(MAIN, TARGET, LOCKED)
    assert for_tests.ranges_in_use(watched.detector) == [(LOCKED, LOCKED + 1024, False)]
    cupti.call(end, "P", LOCKED, sides=1)
    assert watched.uses() == [written(TARGET, 1024, name="memcpy")]


# Failures

FAILING = [
    ("cuLaunchKernel", "P7IPPP", (FUNCTION, 1, 1, 1, 1, 1, 1, 0, MAIN, 0, 0)),
    ("cuMemcpyAsync", "QQNP", (TARGET, SOURCE, 16, MAIN)),
    ("cuMemsetD8Async", "QBNP", (TARGET, 0, 16, MAIN)),
    ("cuEventRecord", "PP", (EVENT, MAIN)),
    ("cuStreamWaitEvent", "PPI", (MAIN, EVENT, 0)),
    ("cuStreamSynchronize", "P", (MAIN,)),
    ("cuStreamQuery", "P", (MAIN,)),
    ("cuEventQuery", "P", (EVENT,)),
    ("cuCtxSynchronize", "P", (0,)),
    ("cuMemFree_v2", "Q", (TARGET + 512,)),
    ("cuMemAllocAsync", "PNP", (0, 16, MAIN)),
    ("cuStreamCreate", "PI", (0, 1)),
    ("cuGraphLaunch", "PP", (1, MAIN)),
]


@pytest.mark.parametrize(("name", "layout", "parameters"), FAILING)
def test_a_call_that_fails_tells_nothing(
    cupti: Cupti, watched: Watched, name: str, layout: str, parameters: tuple[int, ...]
) -> None:
    cupti.fill(SIDE, SOURCE)
    before = watched.steps(), for_tests.sizes_of_detector(watched.detector)
    cupti.call(name, layout, *parameters, status=FAILURE)
    assert (watched.steps(), for_tests.sizes_of_detector(watched.detector)) == before


@pytest.mark.parametrize("name", sorted(set(for_tests.watched_calls())))
def test_the_begin_of_a_call_alone_is_no_operation(cupti: Cupti, watched: Watched, name: str) -> None:
    zeros = "P" * 16
    cupti.call(name, zeros, *[0] * 16, sides=1)
    assert watched.steps() == []
