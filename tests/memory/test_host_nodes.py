"""New page-locked memory is on the NUMA node that is closest to the device."""

from __future__ import annotations

import ctypes
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.core import for_tests
from support.sizes import MIB
from support.threads import in_thread
from tcuda import _core
from tcuda.memory import _set_allocator_settings

if TYPE_CHECKING:
    from tcuda._runtime.protocol import Runtime

CALLS = {"x86_64": (239, 238), "aarch64": (236, 237)}
"""The numbers of the system's calls ``get_mempolicy`` and ``set_mempolicy``."""
DEFAULT, PREFERRED, BIND = 0, 1, 2
NODE_OF_ADDRESS = 1 | 2  # MPOL_F_NODE | MPOL_F_ADDR
MOST_NODES = 1024
Policy = tuple[int, int]


def call(number: int, *arguments: Any) -> int:
    return ctypes.CDLL(None).syscall(number, *arguments)  # type: ignore[no-any-return]


def policy() -> Policy:
    """Return the policy of this thread and the mask of its nodes."""
    mode, nodes = ctypes.c_int(-1), (ctypes.c_ulong * (MOST_NODES // 64))()
    get, _ = CALLS[platform.machine()]
    assert call(get, ctypes.byref(mode), nodes, ctypes.c_ulong(MOST_NODES), None, ctypes.c_ulong(0)) == 0
    return mode.value, nodes[0]


def choose(mode: int, mask: int) -> bool:
    """Set the policy of this thread; return whether the system allows that."""
    nodes = (ctypes.c_ulong * (MOST_NODES // 64))(mask)
    _, change = CALLS[platform.machine()]
    return call(change, mode, nodes if mask else None, ctypes.c_ulong(MOST_NODES + 1 if mask else 0)) == 0


@pytest.fixture(autouse=True)
def _system_allows_policies() -> None:
    if platform.machine() not in CALLS:
        pytest.skip("the numbers of the system's calls are not known")
    if in_thread(lambda: choose(PREFERRED, 1) and policy()) != (PREFERRED, 1):
        pytest.skip("the system forbids a policy for memory")


class Host:
    """An allocator of page-locked memory of its own, which notes the policy during the calls of the driver."""

    def __init__(self, runtime: Runtime, node: int | None, *, registers_pages: bool) -> None:
        def fail(*arguments: Any, **facts: Any) -> None:
            raise MemoryError(arguments)

        driver = for_tests.FaultyDriver(runtime.memoryDriver())
        if node is not None:
            driver.use_host_node(node)
        self.seen: list[Policy] = []
        # The function runs in a thread that the allocating thread has started, and which has the same policy.
        driver.meanwhile(lambda: self.seen.append(policy()))
        self.ledger = _core.Ledger(driver, runtime.getDeviceCount(), _core.Settings(), fail, fail)
        self.ledger.change_host_settings(registers_pages, 2, 0, False)

    def allocate(self) -> list[Policy]:
        """Allocate a block; return the policies during the calls of the driver, and the policy after the calls."""
        self.seen.clear()
        block = _core.allocate_page_locked(self.ledger, 3 * MIB)
        found = [*self.seen, policy()]
        del block
        self.ledger.empty_host_cache()
        return found


@pytest.mark.parametrize("registers_pages", [False, True], ids=["allocated", "registered"])
class TestPolicies:
    def test_new_memory_is_taken_on_the_node_of_the_device(self, runtime: Runtime, registers_pages: bool) -> None:
        host = Host(runtime, 0, registers_pages=registers_pages)
        assert host.allocate() == [(PREFERRED, 1), (DEFAULT, 0)]

    def test_a_policy_of_the_program_stays(self, runtime: Runtime, registers_pages: bool) -> None:
        host = Host(runtime, 0, registers_pages=registers_pages)
        found = in_thread(lambda: choose(BIND, 1) and host.allocate())
        assert found == [(BIND, 1), (BIND, 1)]

    def test_a_node_that_does_not_exist_changes_nothing(self, runtime: Runtime, registers_pages: bool) -> None:
        for node in (MOST_NODES - 1, MOST_NODES, 1 << 30):
            host = Host(runtime, node, registers_pages=registers_pages)
            assert host.allocate() == [(DEFAULT, 0), (DEFAULT, 0)]

    @pytest.mark.emulated
    def test_emulated_devices_are_close_to_no_node(self, runtime: Runtime, registers_pages: bool) -> None:
        host = Host(runtime, None, registers_pages=registers_pages)
        assert host.allocate() == [(DEFAULT, 0), (DEFAULT, 0)]


@pytest.mark.gpu
def test_pages_are_on_the_node_of_the_device(runtime: Runtime) -> None:
    found = tcuda.get_device_properties(0)
    name = f"{found.pci_domain_id:04x}:{found.pci_bus_id:02x}:{found.pci_device_id:02x}.0"
    file = Path("/sys/bus/pci/devices", name, "numa_node")
    node = int(file.read_text()) if file.exists() else -1
    nodes = Path("/sys/devices/system/node/online").read_text()
    if node < 0 or not set(nodes) & {",", "-"}:
        pytest.skip("the machine has one node, or does not tell the node of the device")
    tcuda.memory.empty_host_cache()
    _set_allocator_settings("pinned_use_cuda_host_register:True")
    try:
        array = tcuda.memory.empty_pinned(64 * MIB, "uint8")
    finally:
        _set_allocator_settings("")
    get, _ = CALLS[platform.machine()]
    at = ctypes.c_int(-1)
    begin = array.ctypes.data
    places = set()
    for address in range(begin, begin + array.nbytes, MIB):
        assert call(get, ctypes.byref(at), None, ctypes.c_ulong(0), ctypes.c_void_p(address), NODE_OF_ADDRESS) == 0
        places.add(at.value)
    assert places == {node}
