"""The work of an array library on arrays of several devices."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.busy_streams import each_busy, keep_busy, let_pass
from support.devices import allocated
from support.placed_arrays import on
from support.statuses import status_of
from tcuda._backend.transfers import Hop
from tcuda._base.statuses import Status
from tcuda.comm import reduce_add

if TYPE_CHECKING:
    from tcuda._backend import Backend
    from tcuda._backend.transfers import Transfers

pytestmark = pytest.mark.skipif(tcuda.device_count() < 2, reason="needs two devices")
DTYPES = ["?", "b", "H", "i", "q", "e", "f", "d", "F", "D"]


@pytest.fixture
def transfers(backend: Backend) -> Transfers:
    return backend.transfers()


def test_the_object_is_always_the_same(backend: Backend) -> None:
    assert backend.transfers() is backend.transfers()


def test_the_module_makes_arrays_of_the_type(transfers: Transfers) -> None:
    assert transfers.xp is tcuda.xp
    assert type(transfers.xp.ones(3)) is transfers.array


@pytest.mark.parametrize("shape", [(), (3,), (0, 3), (2, 3, 4)])
def test_a_new_array_is_on_its_device(transfers: Transfers, shape: tuple[int, ...]) -> None:
    made = transfers.empty(shape, np.dtype("f"), 1)
    assert (made.shape, made.dtype, made.device.id, made.flags.c_contiguous) == (shape, np.dtype("f"), 1, True)
    assert tcuda.current_device() == 0


def copy(transfers: Transfers, target: Any, source: Any) -> None:
    transfers.relay([source, target], [Hop(0, 1, 0, source.nbytes, 0)])


@pytest.mark.parametrize("device", [0, 1])
def test_an_array_of_any_dense_layout_is_copied(transfers: Transfers, device: int) -> None:
    values = np.arange(12).reshape(3, 4, order="F")
    source, target = on(0, values), on(device, np.zeros_like(values))
    copy(transfers, target, source)
    np.testing.assert_array_equal(target.get(), values)


def test_no_hops_change_nothing(transfers: Transfers) -> None:
    transfers.relay([], [])
    transfers.relay([on(0, np.ones((0, 3))), on(1, np.ones((0, 3)))], [Hop(0, 1, 0, 0, 0)])


def test_rows_are_copied(transfers: Transfers) -> None:
    values = np.arange(24, dtype="f").reshape(4, 6)
    source, target = on(0, values), on(1, np.zeros((4, 5), "f"))
    transfers.copy_rows(target, 20, source[:, 2:], 24, 8, 4)
    np.testing.assert_array_equal(target.get(), np.pad(values[:, 2:4], ((0, 0), (0, 3))))


def test_a_copy_of_no_rows_changes_nothing(transfers: Transfers) -> None:
    source, target = on(0, np.ones((4, 6))), on(1, np.zeros((4, 6)))
    transfers.copy_rows(target, 48, source, 48, 0, 4)
    transfers.copy_rows(target, 48, source, 48, 48, 0)
    assert not target.get().any()


def test_pieces_are_relayed(transfers: Transfers) -> None:
    values = np.arange(100, dtype="i")
    arrays = [on(0, values), on(1, np.zeros_like(values)), on(0, np.zeros_like(values))]
    pieces = (0, 48), (48, 48), (48, 400)
    hops = [Hop(place, place + 1, *piece, piece[0]) for piece in pieces for place in (0, 1)]
    transfers.relay(arrays, hops)
    for array in arrays:
        np.testing.assert_array_equal(array.get(), values)


@pytest.mark.alone
def test_a_copy_waits_for_the_streams_of_both_devices_and_the_target_waits_for_the_copy(transfers: Transfers) -> None:
    source, target = on(0, np.ones(100)), on(1, np.zeros(100))
    here, there, bystander = tcuda.Stream(0), tcuda.Stream(1), tcuda.Stream(1)
    copy(transfers, target, source)  # the first copy enables the access to the other device, which takes long
    let_pass(bystander)  # the race detector reads the code of a kernel when the driver loads the kernel
    for _ in each_busy(here, there):
        with tcuda.stream(here), tcuda.stream(there):
            copy(transfers, target, source)
        let_pass(bystander)  # the copy would be complete by now
        assert (here.query(), there.query(), bystander.query()) == (False, False, True)
        there.synchronize()
        assert here.query()


def test_a_stream_that_copies_does_not_keep_the_source_waiting_for_later_work_of_the_target(
    transfers: Transfers,
) -> None:
    source, target = on(0, np.ones(100)), on(1, np.zeros(100))
    here, there = tcuda.Stream(0), tcuda.Stream(1)
    for device in (0, 1):
        tcuda.synchronize(device)
    with tcuda.stream(here), tcuda.stream(there):
        copy(transfers, target, source)
    keep_busy(there)
    here.synchronize()
    assert not there.query()
    there.synchronize()


def test_arrays_are_packed_and_seen_in_the_packed_bytes(transfers: Transfers) -> None:
    values = [np.arange(5, dtype="i"), np.ones((0, 3)), np.array(2 + 1j), np.ones((3, 7), "?")]
    made = transfers.pack([on(1, each) for each in values], 1, 9999)
    assert made is not None
    flat, offsets = made
    assert (offsets, flat.dtype, flat.size) == ([0, 32, 32, 48], np.uint8, 80)
    seen = transfers.views(flat, [on(0, each) for each in values], offsets)
    for array, each in zip(seen, values, strict=True):
        assert array.device.id == 1
        np.testing.assert_array_equal(array.get(), each, strict=True)
    with tcuda.device(1):
        seen[0][...] = 9
    assert flat[:4].get().view("i").tolist() == [9]


@pytest.mark.parametrize(("full", "expected"), [(1, None), (33, [0, 32]), (48, [0, 32]), (49, [0, 32, 48])])
def test_an_array_takes_no_more_arrays_when_it_is_full(
    transfers: Transfers, full: int, expected: list[int] | None
) -> None:
    arrays = [on(1, np.ones(count, "B")) for count in (32, 16, 5)]
    made = transfers.pack(arrays, 1, full)
    assert (made and made[1]) == expected


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_arrays_are_not_packed(transfers: Transfers, count: int) -> None:
    assert transfers.pack([on(1, np.ones(3)) for _ in range(count)], 1, 9999) is None


@pytest.mark.parametrize(
    "other", [lambda: on(1, np.ones(2)), lambda: on(0, np.ones((2, 3))).T, lambda: np.ones(2), lambda: None]
)
def test_arrays_of_another_device_or_layout_and_other_objects_are_not_packed(transfers: Transfers, other: Any) -> None:
    assert transfers.pack([on(0, np.ones(3)), other()], 0, 9999) is None


def test_views_have_the_attributes_of_arrays_that_the_library_makes(transfers: Transfers) -> None:
    xp = tcuda.xp
    like = [xp.ones(shape, dtype) for shape, dtype in (((), "f"), ((3, 4), "d"), ((0, 2), "?"), ((2, 1, 3), "F"))]
    flat = xp.arange(256, dtype=xp.uint8)
    for view, array in zip(transfers.views(flat, like, [0, 16, 112, 128]), like, strict=True):
        for name in ("shape", "strides", "dtype", "size", "nbytes", "ndim"):
            assert getattr(view, name) == getattr(array, name), name
        assert view.flags.c_contiguous == array.flags.c_contiguous
        assert view.flags.f_contiguous == array.flags.f_contiguous
        assert (view + array).shape == array.shape


def test_a_view_keeps_the_memory_alive(transfers: Transfers) -> None:
    xp = tcuda.xp
    like = xp.empty(8)
    before = tcuda.memory_allocated()
    flat = xp.zeros(4096, xp.uint8)
    (view,) = transfers.views(flat, [like], [512])
    del flat
    assert tcuda.memory_allocated() == before + 4096
    del view
    assert tcuda.memory_allocated() == before


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_have_the_arithmetic_of_the_dtype(dtype: str) -> None:
    random = np.random.default_rng(0)
    values = [random.integers(0, 2 if dtype == "?" else 120, 1000).astype(dtype) for _ in range(4)]
    arrays = [on(place % 2, each) for place, each in enumerate(values)]
    out = reduce_add([*arrays[1:], arrays[0]], 0)
    expected = values[0] + (values[1] + (values[2] + values[3]))
    assert out.get().tobytes() == expected.tobytes()


def test_sums_are_associated_from_the_right() -> None:
    values = [np.array([each], "f") for each in (1.0, 2.0**24, -(2.0**24))]
    first, *others = [on(place % 2, each) for place, each in enumerate(values)]
    assert reduce_add([others[0], first], 0).tolist() == [2.0**24]
    assert reduce_add([others[0], on(1, values[2]), first], 0).tolist() == [1]


def test_a_sum_waits_for_the_inputs_and_the_inputs_wait_for_the_sum() -> None:
    near, far = on(0, np.ones(100)), on(1, np.ones(100))
    reduce_add([near, far], 0)  # the first sum compiles a kernel, for longer than a stream stays busy
    here, there = tcuda.Stream(0), tcuda.Stream(1)
    for _ in each_busy(here, there):
        with tcuda.stream(there), tcuda.stream(here):
            out = reduce_add([near, far], 0)
        let_pass(tcuda.Stream(0))  # the sum would be complete by now
        assert (here.query(), there.query()) == (False, False)
        here.synchronize()
    assert out.tolist() == [2] * 100


def test_work_that_would_invalidate_a_capture_is_refused(transfers: Transfers) -> None:
    source, target = on(0, np.ones(100)), on(1, np.zeros(100))
    gc.collect()  # arrays of earlier tests must not be freed between the two figures
    before = allocated()
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        status = status_of(lambda: copy(transfers, target, source))
        source += 1
    graph.replay()
    assert status == Status.STREAM_CAPTURE_ISOLATION
    assert source.tolist() == [2] * 100
    del graph
    assert allocated() == before


def test_a_target_of_several_devices_waits_for_the_streams_of_all(transfers: Transfers) -> None:
    arrays = [on(0, np.ones(10)), on(1, np.ones(10)), on(0, np.zeros(10)), on(0, np.zeros(10))]
    here, there = tcuda.Stream(0), tcuda.Stream(1)
    for _ in each_busy(here, there):
        with tcuda.stream(here), tcuda.stream(there):
            transfers.relay(arrays, [Hop(0, 2, 0, 80, 0), Hop(1, 3, 0, 80, 0)])
        assert (here.query(), there.query()) == (False, False)
        here.synchronize()
        assert there.query()
    assert arrays[3].tolist() == [1] * 10
