"""The devices and the current streams of ``tcuda.accelerator``."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.devices import WITHOUT_DEVICE
from tcuda import accelerator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.fixture_types import OutputOf
    from tcuda._runtime.protocol import Runtime


@pytest.fixture
def last(runtime: Runtime) -> Iterator[int]:
    """Return the index of the last device, and make the first device current again afterwards."""
    yield tcuda.device_count() - 1
    tcuda.set_device(0)


class TestTheAccelerator:
    def test_is_cuda_without_an_index(self, runtime: Runtime) -> None:
        found = accelerator.current_accelerator()
        assert found is not None
        assert (found.type, found.index, str(found), repr(found)) == ("cuda", None, "cuda", "device(type='cuda')")
        assert found == accelerator.current_accelerator(check_available=True)

    def test_is_a_device_of_all_functions(self, last: int) -> None:
        found: Any = accelerator.current_accelerator()
        with tcuda.device(last):
            assert tcuda.current_stream(found).device_index == last
            assert tcuda.mem_get_info(found)[1] == tcuda.mem_get_info(last)[1]
        with pytest.raises(ValueError, match="Expected a torch.device with a specified index"):
            accelerator.set_device_index(found)

    @pytest.mark.parametrize("device", ["cpu", "cpu:0", SimpleNamespace(type="cpu", index=0)])
    def test_refuses_other_devices_in_the_words_of_torch(self, runtime: Runtime, device: Any) -> None:
        for refuse in (
            accelerator.set_device_index,
            accelerator.current_stream,
            accelerator.synchronize,
            accelerator.get_memory_info,
            accelerator.random.initial_seed,
        ):
            with pytest.raises(ValueError, match="cpu doesn't match the current accelerator cuda."):
                refuse(device)

    def test_names_a_device_with_the_current_index(self, runtime: Runtime) -> None:
        name = f"{accelerator.current_accelerator()}:{accelerator.current_device_index()}"
        assert tcuda.get_device_name(name) == tcuda.get_device_name(0)

    def test_without_a_device_is_cuda_unless_it_must_be_available(self, output_of: OutputOf) -> None:
        code = (
            "import json, tcuda\n"
            "from tcuda import accelerator\n"
            "print(json.dumps([\n"
            "    str(accelerator.current_accelerator()), accelerator.current_accelerator(True),\n"
            "    accelerator.is_available(), accelerator.device_count(), accelerator.memory_stats(),\n"
            "    accelerator.memory_allocated(), accelerator.max_memory_reserved('cuda:1'),\n"
            "    accelerator.synchronize(), accelerator.empty_cache(), accelerator.empty_host_cache(),\n"
            "    accelerator.reset_peak_memory_stats(),\n"
            "    accelerator.reset_accumulated_memory_stats(0), accelerator.set_device_index(-1),\n"
            "    accelerator.random.get_rng_state_all(), tcuda.is_initialized(),\n"
            "]))"
        )
        expected = ["cuda", None, False, 0, {}, 0, 0, None, None, None, None, None, None, [], False]
        assert json.loads(output_of(code, **WITHOUT_DEVICE)) == expected

    def test_without_a_device_does_no_work(self, output_of: OutputOf) -> None:
        code = (
            "from tcuda import accelerator\n"
            "for call in (accelerator.current_device_index, accelerator.current_stream, accelerator.get_memory_info,\n"
            "             accelerator.random.initial_seed, accelerator.Graph().capture_begin,\n"
            "             lambda: accelerator.device_index(0).__enter__()):\n"
            "    try:\n"
            "        call()\n"
            "    except (RuntimeError, IndexError) as error:\n"
            "        print(type(error).__name__)"
        )
        assert output_of(code, **WITHOUT_DEVICE).split() == ["RuntimeError"] * 6


class TestTheCurrentDevice:
    def test_is_set(self, last: int) -> None:
        for device in (last, f"cuda:{last}", tcuda.Stream(last).device):
            accelerator.set_device_index(device)
            assert accelerator.current_device_index() == tcuda.current_device() == last
            accelerator.set_device_index(0)
            assert accelerator.current_device_index() == 0

    @pytest.mark.parametrize("device", [-1, -5])
    def test_is_not_changed_by_a_negative_index(self, device: int, last: int) -> None:
        accelerator.set_device_index(last)
        accelerator.set_device_index(device)
        assert accelerator.current_device_index() == last

    @pytest.mark.parametrize(
        ("device", "kind"),
        [
            (None, ValueError),
            ("cuda", ValueError),
            ("cpu", ValueError),
            ("xpu:0", ValueError),
            ("gpu:0", RuntimeError),
            (99, tcuda.AcceleratorError),
            (1.5, ValueError),
        ],
    )
    def test_is_not_changed_by_a_wrong_device(self, device: Any, kind: type[Exception], runtime: Runtime) -> None:
        with pytest.raises(kind):
            accelerator.set_device_index(device)
        assert accelerator.current_device_index() == 0

    def test_is_another_one_in_a_block(self, last: int, xp: Any) -> None:
        block = accelerator.device_index(last)
        with block:
            assert accelerator.current_device_index() == last
            assert xp.zeros(3).device.id == last
        assert (block.idx, block.prev_idx) == (last, 0)
        assert accelerator.current_device_index() == 0

    @pytest.mark.parametrize("device", [None, -1])
    def test_is_the_same_in_a_block_without_a_device(self, device: int | None, last: int) -> None:
        accelerator.set_device_index(last)
        with accelerator.device_index(device):
            assert accelerator.current_device_index() == last
            accelerator.set_device_index(0)
        assert accelerator.current_device_index() == 0  # torch changes nothing at the end either

    def test_comes_back_after_an_exception(self, last: int) -> None:
        with pytest.raises(KeyError), accelerator.device_index(last):
            raise KeyError
        assert accelerator.current_device_index() == 0

    def test_that_does_not_exist_is_refused(self, runtime: Runtime) -> None:
        with pytest.raises(tcuda.AcceleratorError), accelerator.device_index(99):
            raise AssertionError("entered")
        assert accelerator.current_device_index() == 0

    @pytest.mark.parametrize(
        ("call", "name"),
        [
            (accelerator.current_device_idx, "current_device_index"),
            (lambda: accelerator.set_device_idx(0), "set_device_index"),
        ],
    )
    def test_has_deprecated_names(self, call: Callable[[], object], name: str, runtime: Runtime) -> None:
        with pytest.warns(FutureWarning, match=f"^Use `{name}` instead.$") as caught:
            assert not call()
        assert caught[0].filename == __file__


class TestTheCurrentStream:
    def test_is_that_of_tcuda(self, last: int) -> None:
        side = tcuda.Stream(last)
        with tcuda.stream(side):
            assert accelerator.current_stream() is side
            assert accelerator.current_stream(last) is side
        assert accelerator.current_stream(-1) == tcuda.default_stream()

    def test_is_set_with_its_device(self, last: int) -> None:
        before, side = accelerator.current_stream(last), tcuda.Stream(last)
        accelerator.set_stream(side)
        assert (accelerator.current_device_index(), accelerator.current_stream()) == (last, side)
        accelerator.set_stream(before)

    def test_of_a_device_that_does_not_exist_is_refused(self, runtime: Runtime) -> None:
        with pytest.raises(RuntimeError, match="out of index range"):
            accelerator.current_stream(99)
        with pytest.raises(RuntimeError, match="stream"):
            accelerator.set_stream(5)  # type: ignore[arg-type]

    def test_is_complete_after_a_wait_for_the_device(self, runtime: Runtime) -> None:
        side = tcuda.Stream()
        with tcuda.stream(side):
            tcuda._sleep(100_000_000)
        assert not side.query()
        accelerator.synchronize()
        assert side.query()

    def test_is_not_made_by_a_wait(self, output_of: OutputOf) -> None:
        code = (
            "import tcuda\n"
            "from tcuda import accelerator\n"
            "accelerator.synchronize()\n"
            "accelerator.synchronize(0)\n"
            "try:\n"
            "    accelerator.synchronize('cpu')\n"
            "except ValueError:\n"
            "    print(tcuda.is_initialized())"
        )
        assert output_of(code) == "False"


def test_a_device_has_the_dtypes_of_its_arrays(xp: Any) -> None:
    dtypes = accelerator.get_device_capability(0)["supported_dtypes"]
    assert {xp.zeros(1, dtype).dtype for dtype in dtypes} == dtypes
    assert {np.dtype(name) for name in ("bool", "int8", "uint64", "float16", "complex128")} <= dtypes
    with pytest.raises(tcuda.AcceleratorError):
        accelerator.get_device_capability(99)
