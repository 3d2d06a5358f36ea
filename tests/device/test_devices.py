"""Devices: arguments, selection, properties."""

from __future__ import annotations

import uuid
from enum import IntEnum
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from tcuda._process.devices import Device, _get_device_index

if TYPE_CHECKING:
    from tcuda._runtime.protocol import Runtime


class CupyDevice:
    """A class with the attributes that cupy.cuda.Device has."""

    id = 0

    def __int__(self) -> int:
        return self.id


class Index(IntEnum):
    FIRST = 0


TORCH_DEVICE = SimpleNamespace(type="cuda", index=0)


@pytest.mark.parametrize(
    "argument", [0, "cuda:0", CupyDevice(), TORCH_DEVICE, tcuda.device(0), Device("cuda", 0), Index.FIRST]
)
def test_integers_texts_and_objects_name_a_device(argument: Any) -> None:
    assert _get_device_index(argument) == 0
    assert tcuda.get_device_name(argument) == tcuda.get_device_name(0)


@pytest.mark.parametrize("truth", [True, False])
@pytest.mark.parametrize(
    "function",
    [
        tcuda.set_device,
        tcuda.device,
        tcuda.synchronize,
        tcuda.get_device_name,
        tcuda.memory_allocated,
        tcuda.current_stream,
        tcuda.Stream,
        tcuda.get_rng_state,
    ],
)
def test_a_truth_value_is_no_device(function: Any, truth: bool) -> None:
    before = tcuda.current_device()
    with pytest.raises(RuntimeError, match=rf"^invalid argument: the device is {truth}; .* such as {int(truth)}\.$"):
        function(truth)
    assert tcuda.current_device() == before


@pytest.mark.parametrize("argument", [None, "cuda", SimpleNamespace(type="cuda", index=None)])
def test_a_device_without_an_index_means_the_current_device_where_allowed(argument: Any) -> None:
    last = tcuda.device_count() - 1
    with tcuda.device(last):
        assert _get_device_index(argument, optional=True) == last
        with pytest.raises(ValueError, match="Expected a torch.device with a specified index or an integer, but got:"):
            _get_device_index(argument)


@pytest.mark.parametrize(
    ("argument", "error", "text"),
    [
        ("cpu", ValueError, "Expected a cuda device, but got: cpu"),
        ("cpu:0", ValueError, "Expected a cuda device, but got: cpu:0"),
        (SimpleNamespace(type="cpu", index=None), ValueError, "Expected a cuda device"),
        ("foo", RuntimeError, "device type at start of device string: foo"),
        ("", RuntimeError, "device type at start of device string"),
        ("cuda:-1", RuntimeError, "Invalid device string: 'cuda:-1'"),
        ("cuda:x", RuntimeError, "Invalid device string: 'cuda:x'"),
        ("cuda:", RuntimeError, "Invalid device string: 'cuda:'"),
        ("cuda:01", RuntimeError, "Invalid device string: 'cuda:01'"),
        (1.5, ValueError, "Expected a torch.device with a specified index or an integer, but got:1.5"),
        (object, ValueError, "Expected a torch.device"),
        (b"cuda", ValueError, "Expected a torch.device"),
    ],
)
@pytest.mark.parametrize("function", [tcuda.set_device, tcuda.device, tcuda.get_device_properties, tcuda.synchronize])
def test_other_arguments_are_refused_with_torchs_error(function: Any, argument: Any, error: Any, text: str) -> None:
    with pytest.raises(error) as caught:
        function(argument)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("argument", "hint"),
    [("cuda1", "'cuda:1'"), ("gpu:0", "'cuda:0'"), ("0", "'cuda:0'"), ("CUDA:1", "'cuda:1'"), ("GPU", "'cuda'")],
)
@pytest.mark.parametrize("function", [tcuda.set_device, tcuda.device, tcuda.mem_get_info, tcuda.Stream])
def test_the_message_for_a_text_ends_with_the_right_form(function: Any, argument: str, hint: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        function(argument)
    assert f"device string: {argument}. Did you mean {hint}? A device is None, an int, 'cuda'" in str(caught.value)


@pytest.mark.parametrize(
    "argument",
    ["foo", "cuda:-1", "cpu", 1.5, SimpleNamespace(type="cpu", index=0)],
    ids=lambda argument: repr(argument),
)
def test_every_message_about_a_device_names_the_forms(argument: Any) -> None:
    with pytest.raises(
        (RuntimeError, ValueError), match=r"A device is None, an int, 'cuda', 'cuda:1', .* and index\.$"
    ):
        tcuda.set_device(argument)


@pytest.mark.parametrize("argument", [None, "cuda", SimpleNamespace(type="cuda", index=None)])
def test_a_call_that_needs_an_index_says_so(argument: Any) -> None:
    with pytest.raises(ValueError, match="This call needs an index: an int such as 0, 'cuda:0'"):
        tcuda.set_device(argument)


def test_the_device_of_streams_and_events_is_like_a_torch_device() -> None:
    device = Device("cuda", 1)
    assert (device.type, device.index, device.id, int(device)) == ("cuda", 1, 1, 1)
    assert str(device) == "cuda:1"
    assert repr(device) == "device(type='cuda', index=1)"
    assert device == Device("cuda", 1) != Device("cuda", 0)
    assert hash(device) == hash(Device("cuda", 1))


def test_set_device_selects_and_ignores_negative_numbers() -> None:
    last = tcuda.device_count() - 1
    tcuda.set_device(last)
    tcuda.set_device(-1)
    assert tcuda.current_device() == last
    tcuda.set_device("cuda:0")
    assert tcuda.current_device() == 0


OUT_OF_RANGE = [
    tcuda.set_device,
    tcuda.synchronize,
    tcuda.mem_get_info,
    tcuda.Stream,
    lambda index: tcuda.device(index).__enter__(),
]


@pytest.mark.parametrize("call", OUT_OF_RANGE)
def test_a_device_out_of_range_is_refused_and_nothing_changes(call: Any) -> None:
    with pytest.raises(tcuda.AcceleratorError, match="invalid device ordinal") as caught:
        call(99)
    assert caught.value.error_code == 101
    assert tcuda.current_device() == 0


def test_the_context_manager_restores_the_device_also_after_an_error() -> None:
    last = tcuda.device_count() - 1
    context = tcuda.device(last)

    def fail() -> None:
        with context:
            assert tcuda.current_device() == last
            tcuda.set_device(0)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert tcuda.current_device() == 0
    assert (context.idx, context.prev_idx) == (last, 0)


@pytest.mark.parametrize("argument", [-1, None])
def test_the_context_manager_may_change_nothing(argument: Any) -> None:
    with tcuda.device(argument) as entered:
        assert entered is None
        assert tcuda.current_device() == 0


class OnDevice:
    def __init__(self, device: Any) -> None:
        self.device = device


class LikeTensor:
    device = "unused"

    def __init__(self, index: int) -> None:
        self.is_cuda = index >= 0
        self._index = index

    def get_device(self) -> int:
        return self._index


def test_device_of_reads_the_device_of_an_object() -> None:
    last = tcuda.device_count() - 1
    with tcuda.device(last):
        array = tcuda.xp.zeros(3)
    for obj in (array, OnDevice(Device("cuda", last)), OnDevice(f"cuda:{last}"), LikeTensor(last)):
        with tcuda.device_of(obj):
            assert tcuda.current_device() == last
        assert tcuda.current_device() == 0


@pytest.mark.parametrize("obj", [np.zeros(3), LikeTensor(-1), OnDevice("cpu"), OnDevice(SimpleNamespace(type="cpu"))])
def test_device_of_does_nothing_for_objects_on_the_host(obj: Any) -> None:
    assert tcuda.device_of(obj).idx == -1


def test_device_of_finds_device_memory_by_its_address(runtime: Runtime) -> None:
    ptr = runtime.malloc(512)
    obj = SimpleNamespace(__cuda_array_interface__={"data": (ptr, False)})
    try:
        assert tcuda.device_of(obj).idx == 0
    finally:
        runtime.free(ptr)


def test_device_of_refuses_objects_without_a_device() -> None:
    with pytest.raises(TypeError, match="Cannot tell the device of a int"):
        tcuda.device_of(3)


def test_properties_have_torchs_attributes() -> None:
    properties = tcuda.get_device_properties()
    integers = [
        "L2_cache_size",
        "clock_rate",
        "is_integrated",
        "is_multi_gpu_board",
        "major",
        "max_threads_per_block",
        "max_threads_per_multi_processor",
        "memory_bus_width",
        "memory_clock_rate",
        "minor",
        "multi_processor_count",
        "pci_bus_id",
        "pci_device_id",
        "pci_domain_id",
        "regs_per_multiprocessor",
        "shared_memory_per_block",
        "shared_memory_per_block_optin",
        "shared_memory_per_multiprocessor",
        "total_memory",
        "warp_size",
    ]
    assert all(type(getattr(properties, name)) is int for name in integers)
    assert len(integers) + 3 == len(vars(properties)) == 23
    assert isinstance(properties.name, str)
    assert properties.gcnArchName == properties.name
    assert isinstance(properties.uuid, uuid.UUID)
    assert properties.warp_size == 32
    assert f"uuid={properties.uuid}, pci_bus_id=" in repr(properties)
    with pytest.raises(AttributeError):
        properties.name = "another"  # type: ignore[misc]


def test_properties_belong_to_the_given_device() -> None:
    uuids = {tcuda.get_device_properties(index).uuid for index in range(tcuda.device_count())}
    assert len(uuids) == tcuda.device_count()
    with tcuda.device(tcuda.device_count() - 1):
        assert tcuda.get_device_properties() is tcuda.get_device_properties(tcuda.device_count() - 1)


def test_name_and_capability_equal_the_properties() -> None:
    properties = tcuda.get_device_properties(0)
    assert tcuda.get_device_name(0) == properties.name
    assert tcuda.get_device_capability(0) == (properties.major, properties.minor)


@pytest.mark.parametrize("index", [-1, 99])
@pytest.mark.parametrize("function", [tcuda.get_device_properties, tcuda.get_device_name, tcuda.get_device_capability])
def test_properties_of_an_invalid_device_are_an_assertion_error(function: Any, index: int) -> None:
    with pytest.raises(AssertionError, match=f"Invalid device id: {index}"):
        function(index)


def test_peer_access_is_reported_for_existing_devices() -> None:
    assert tcuda.can_device_access_peer(0, 0) is False
    with pytest.raises(AssertionError, match="Invalid device id"):
        tcuda.can_device_access_peer(-1, 0)
    with pytest.raises(AssertionError, match="Invalid peer device id"):
        tcuda.can_device_access_peer(0, 99)
    with pytest.raises(ValueError, match="specified index"):
        tcuda.can_device_access_peer(0, None)


def test_synchronize_waits_for_every_stream() -> None:
    for device in range(tcuda.device_count()):
        with tcuda.device(device):
            stream = tcuda.Stream()
            with tcuda.stream(stream):
                tcuda._sleep(100_000_000)
        assert not stream.query()
        tcuda.synchronize(device)
        assert stream.query()
    assert tcuda.current_device() == 0


@pytest.mark.parametrize("argument", [None, -1, "cuda"])
def test_synchronize_uses_the_current_device_by_default(argument: Any) -> None:
    stream = tcuda.Stream()
    with tcuda.stream(stream):
        tcuda._sleep(100_000_000)
    tcuda.synchronize(argument)
    assert stream.query()


@pytest.mark.alone
def test_memory_info_belongs_to_the_given_device(runtime: Runtime) -> None:
    last = tcuda.device_count() - 1
    free, total = tcuda.mem_get_info(last)
    with tcuda.device(last):
        ptr = runtime.malloc(32 << 20)
        assert tcuda.mem_get_info() == tcuda.mem_get_info(last) == (free - (32 << 20), total)
        runtime.free(ptr)
    assert total == tcuda.get_device_properties(last).total_memory


def test_architectures_include_one_for_the_device() -> None:
    archs = tcuda.get_arch_list()
    major, minor = tcuda.get_device_capability()
    assert f"sm_{major}{minor}" in archs
    assert tcuda.get_gencode_flags().count("-gencode compute=compute_") == len(archs)
    assert f"-gencode compute=compute_{major}{minor},code=sm_{major}{minor}" in tcuda.get_gencode_flags()


def test_library_handles_are_kept_for_each_device() -> None:
    for handle in (tcuda.current_blas_handle, tcuda.current_solver_handle):
        assert isinstance(handle(), int)
        assert handle() == handle() != 0
    assert tcuda.current_blas_handle() != tcuda.current_solver_handle()


def test_number_formats_follow_the_capability() -> None:
    ampere = tcuda.get_device_capability()[0] >= 8
    assert tcuda.is_bf16_supported() is True
    assert tcuda.is_bf16_supported("x") is True  # type: ignore[arg-type]
    assert tcuda.is_bf16_supported([]) is ampere  # type: ignore[arg-type]
    assert tcuda.is_bf16_supported(including_emulation=False) == tcuda.is_tf32_supported() == ampere
    assert tcuda.has_half is True
    assert tcuda.has_magma is False


def test_available_devices_are_counted() -> None:
    assert tcuda.is_available()
    assert tcuda.device_count() >= 1
    assert 0 <= tcuda.current_device() < tcuda.device_count()


def test_a_scope_shows_its_device() -> None:
    assert repr(tcuda.device(0)) == "<tcuda.device 0>"
    assert repr(tcuda.device("cuda")) == f"<tcuda.device {tcuda.current_device()}>"
    assert repr(tcuda.device_of(tcuda.xp.ones(3))) == "<tcuda.device 0>"
    assert repr(tcuda.accelerator.device_index(0)) == "<tcuda.device 0>"
