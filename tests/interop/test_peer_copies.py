"""CuPy's copies between devices on the legacy default stream wait for both devices, and both devices for the copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.busy_streams import keep_busy

if TYPE_CHECKING:
    from collections.abc import Callable

    Copy = Callable[[Any, Any, Any], Any]

SIZE = 1000


def copied(xp: Any, target: Any, source: Any) -> Any:
    return xp.copy(source)


def as_array(xp: Any, target: Any, source: Any) -> Any:
    return xp.asarray(source)


def assigned(xp: Any, target: Any, source: Any) -> Any:
    target[...] = source
    return target


def partly_assigned(xp: Any, target: Any, source: Any) -> Any:
    target[: SIZE // 2] = source[: SIZE // 2]
    target[SIZE // 2 :] = source[SIZE // 2 :]
    return target


def copied_to(xp: Any, target: Any, source: Any) -> Any:
    xp.copyto(target, source)
    return target


COPIES = pytest.mark.parametrize(
    "copy", [copied, as_array, assigned, partly_assigned, copied_to], ids=lambda copy: copy.__name__
)
pytestmark = pytest.mark.skipif(tcuda.device_count() < 2, reason="needs two devices")


@pytest.fixture
def arrays(xp: Any) -> tuple[Any, Any]:
    """Return an array of ones of device 0, and one of zeros of device 1, which can be copied without delay."""
    with tcuda.device(0):
        source = xp.ones(SIZE)
        source += 0  # compiles the kernels of the tests
        source[...] = 1
        keep_busy(tcuda.default_stream(0), 1)
    with tcuda.device(1):
        target = xp.zeros(SIZE)
        xp.copy(source)  # makes the devices peers
        keep_busy(tcuda.default_stream(1), 1)
    tcuda.synchronize(0)
    tcuda.synchronize(1)
    return target, source


@COPIES
def test_a_copy_waits_for_pending_work_of_the_source(xp: Any, arrays: tuple[Any, Any], copy: Copy) -> None:
    target, source = arrays
    keep_busy(tcuda.default_stream(0))
    source += 1
    with tcuda.device(1):
        made = copy(xp, target, source)
    assert made.device.id == 1
    assert made.tolist() == [2] * SIZE


@pytest.mark.parametrize("order", ["C", "F", "A"])  # CuPy refuses a strided array in the order K
def test_a_copy_in_another_order_waits_for_pending_work_of_the_source(
    xp: Any, arrays: tuple[Any, Any], order: str
) -> None:
    target, source = arrays
    views = [each.reshape(10, 10, 10).swapaxes(0, 1)[:, ::2] for each in (target, source)]
    with tcuda.device(0):
        xp.copy(views[1], order)  # compiles the kernel
    keep_busy(tcuda.default_stream(0))
    source += 1
    with tcuda.device(1):
        made = xp.copy(views[1], order)
        xp.copyto(views[0], views[1])
    assert (made.get() == 2).all()
    assert (target.reshape(10, 10, 10)[::2].get() == 2).all()


@COPIES
def test_later_work_of_the_source_waits_for_the_copy(xp: Any, arrays: tuple[Any, Any], copy: Copy) -> None:
    target, source = arrays
    keep_busy(tcuda.default_stream(1))
    with tcuda.device(1):
        made = copy(xp, target, source)
    source += 1
    assert made.tolist() == [1] * SIZE
    assert source.tolist() == [2] * SIZE


def test_a_copy_on_the_device_of_the_source_waits_for_pending_work_of_the_target(
    xp: Any, arrays: tuple[Any, Any]
) -> None:
    target, source = arrays
    with tcuda.device(1):
        keep_busy(tcuda.default_stream(1))
        target += 5
    xp.copyto(target, source)
    with tcuda.device(1):
        total = target + 1
    assert total.tolist() == [2] * SIZE


def test_a_copy_on_another_stream_waits_for_no_device(xp: Any, arrays: tuple[Any, Any]) -> None:
    _, source = arrays
    keep_busy(tcuda.default_stream(0))
    stream = tcuda.Stream(1)
    with tcuda.stream(stream):
        xp.copy(source)
    stream.synchronize()
    assert not tcuda.default_stream(0).query()


def test_a_copy_within_a_device_waits_for_no_other_device(xp: Any, arrays: tuple[Any, Any]) -> None:
    target, _ = arrays
    keep_busy(tcuda.default_stream(0))
    with tcuda.device(1):
        made = xp.copy(target)
        made[...] = target
        xp.copyto(made, target)
        assert made.tolist() == [0] * SIZE
    assert not tcuda.default_stream(0).query()


def test_a_failed_copy_leaves_the_device_current(xp: Any, arrays: tuple[Any, Any]) -> None:
    target, source = arrays
    with tcuda.device(1):
        with pytest.raises(ValueError, match="broadcast"):
            xp.copyto(target, source[:3])
        with pytest.raises((ValueError, IndexError)):
            target[0:5, 0:5, 0:5] = source
        assert tcuda.current_device() == 1
    assert target.tolist() == [0] * SIZE


@pytest.mark.wings
def test_the_race_detector_knows_these_waits(xp: Any, arrays: tuple[Any, Any]) -> None:
    target, source = arrays
    with tcuda.sanitizer.check():
        source += 1
        with tcuda.device(1):
            xp.copyto(target, source)
            copied = xp.copy(source)
        source += 1
        assert (target.tolist()[0], copied.tolist()[0], source.tolist()[0]) == (2, 2, 3)
