"""Each entry of the reference has an example, and the example prints what the page says."""

from __future__ import annotations

import doctest
import gc
import re
import subprocess
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy
import pytest

import tcuda
from support.folders import REPOSITORY
from support.timelines import needs_timelines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.fixture_types import OutputOf

_ENTRY = re.compile(r"^<!-- reference: (\S+) -->\n(.*?)(?=^<!-- reference: |^## (?!`)|\Z)", re.DOTALL | re.MULTILINE)
_END = "<!-- end -->"
_EXAMPLE = re.compile(r"^```pycon\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_OPTIONS = doctest.ELLIPSIS

OWN_PROCESS = {
    "tcuda._sanitizer.enable_cuda_sanitizer",
    "tcuda.DeferredCudaCallError",
    "tcuda.is_initialized",
    "tcuda.multiprocessing.unreceived",
    "tcuda.multiprocessing.withdraw",
    "tcuda.CUDAPluggableAllocator",
    "tcuda.change_current_allocator",
    "tcuda.dask.Devices",
    "tcuda.dask.local_cluster",
    "tcuda.emulation.enable",
    "tcuda.emulation.enable_without_gpu",
    "tcuda.emulation.install_as_cupy",
    "tcuda.memory._set_allocator_settings",
    "tcuda.memory.attach_out_of_memory_observer",
    "tcuda.memory.torch_allocator",
    "tcuda.sanitizer.KernelMemory",
    "tcuda.sanitizer.KernelRace",
    "tcuda.sanitizer.KernelRaceAccess",
    "tcuda.sanitizer.KernelRaceError",
    "tcuda.sanitizer.UnwrittenRead",
    "tcuda.sanitizer.UnwrittenReadError",
}
"""The entries whose examples need a new process, because they change the process for good."""

TWO_DEVICES = {
    "tcuda.accelerator.device_index",
    "tcuda.accelerator.random.initial_seed",
    "tcuda.accelerator.set_device_index",
    "tcuda.can_device_access_peer",
    "tcuda.comm.broadcast",
    "tcuda.comm.broadcast_coalesced",
    "tcuda.comm.gather",
    "tcuda.comm.reduce_add",
    "tcuda.comm.reduce_add_coalesced",
    "tcuda.comm.scatter",
    "tcuda.device",
    "tcuda.device_of",
    "tcuda.nccl.all_gather",
    "tcuda.nccl.all_reduce",
    "tcuda.nccl.broadcast",
    "tcuda.nccl.is_available",
    "tcuda.nccl.reduce",
    "tcuda.nccl.reduce_scatter",
}
"""The entries whose examples need a second device."""

EMULATED = {
    "tcuda.emulation.Clock",
    "tcuda.emulation.clock",
    "tcuda.emulation.enable",
    "tcuda.emulation.enable_without_gpu",
    "tcuda.emulation.install_as_cupy",
    "tcuda.emulation.ndarray",
}
"""The entries whose examples need emulated devices."""

NEEDS_TIMELINES = {"tcuda.profiler.trace"}
"""The entries whose examples need another package on a GPU."""

NEEDS_TORCH = {"tcuda.memory.torch_allocator"}
"""The entries whose examples need PyTorch and a GPU."""

LONG = {"tcuda.dask.Devices", "tcuda.dask.group", "tcuda.dask.local_cluster"}
"""The entries whose examples take seconds."""


_METHOD = re.compile(r'<a id="(\S+)"></a>\n\n##+ `\S+\.(\w+)`\n\n```py\n\2\(')

WITHOUT_EXAMPLE = {
    "tcuda.dask.Devices.setup": "Dask calls the method; the example of the class runs the method",
    "tcuda.dask.Devices.teardown": "Dask calls the method; the example of the class runs the method",
}
"""The methods without an example of their own, with the reason."""


class Entry(NamedTuple):
    """An entry of the reference, with the code of its examples."""

    name: str
    code: str


def entries() -> list[Entry]:
    """Return the entries of all pages. The example of an entry may also follow the entry, up to the next heading."""
    found = []
    for page in sorted((REPOSITORY / "docs" / "api").glob("*.md")):
        for name, text in _ENTRY.findall(page.read_text()):
            described, _, after = text.partition(f"{_END}\n")
            found.append(Entry(name, "\n".join(_EXAMPLE.findall(described) + _EXAMPLE.findall(after))))
    return found


def _marked(entry: Entry) -> Any:
    marks = []
    if entry.name in TWO_DEVICES:
        marks.append(pytest.mark.tcuda_devices(2))
    if entry.name in EMULATED or "sanitizer" in entry.name:
        marks.append(pytest.mark.emulated)
    if entry.name in NEEDS_TIMELINES:
        marks.append(needs_timelines)
    if entry.name in NEEDS_TORCH:
        marks.append(pytest.mark.gpu)
    if entry.name in LONG:
        marks.append(pytest.mark.long)
    return pytest.param(entry, marks=marks, id=entry.name)


NEEDS_CLIENT = {
    "tcuda.dask.Communicator",
    "tcuda.dask.Group",
    "tcuda.dask.GroupError",
    "tcuda.dask.group",
}
"""The entries whose examples use ``client``, a client of a cluster with two workers."""

ENTRIES = entries()
WITH_EXAMPLE = [entry for entry in ENTRIES if entry.code]
IN_THIS_PROCESS = [_marked(entry) for entry in WITH_EXAMPLE if entry.name not in OWN_PROCESS]
ALONE = [_marked(entry) for entry in WITH_EXAMPLE if entry.name in OWN_PROCESS]


def run(name: str, code: str, names: dict[str, Any]) -> str:
    """Run the lines of an example, and return what differs from the page."""
    said: list[str] = []
    example = doctest.DocTestParser().get_doctest(code, names, name, None, None)
    doctest.DocTestRunner(verbose=False, optionflags=_OPTIONS).run(example, out=said.append)
    return "".join(said)


@pytest.fixture
def restored() -> Iterator[None]:
    """Restore the state that an example may change."""
    fraction = tcuda.get_per_process_memory_fraction()
    with (
        warnings.catch_warnings(),
        tcuda.random.fork_rng(),
        tcuda.device(tcuda.current_device()),
        tcuda.stream(tcuda.current_stream()),
        tcuda.sync_debug_mode("default"),
    ):
        gc.disable()  # arrays of earlier tests may die, which changes the figures of memory
        for category in (FutureWarning, DeprecationWarning, numpy.exceptions.VisibleDeprecationWarning):
            warnings.filterwarnings("ignore", category=category)  # of old names
        warnings.filterwarnings("ignore", "Synchronization debug mode is a prototype")
        yield
    gc.enable()
    tcuda.set_per_process_memory_fraction(fraction)
    tcuda.caching_allocator_enable()


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A client of a cluster with two workers, which share a device if there is one device only."""
    distributed = pytest.importorskip("distributed")
    import tcuda.dask

    sharing = 2 if tcuda.device_count() < 2 else 1
    with (
        tcuda.dask.local_cluster(
            2, workers_per_device=sharing, threads_per_worker=1, memory_fraction=0.25, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_the_pages_have_entries_and_the_lists_of_this_file_name_them() -> None:
    names = {entry.name for entry in ENTRIES}
    assert len(names) > 150
    assert {*OWN_PROCESS, *TWO_DEVICES, *EMULATED, *NEEDS_TIMELINES, *NEEDS_TORCH, *NEEDS_CLIENT} <= names


def test_each_entry_has_an_example() -> None:
    without = [entry.name for entry in ENTRIES if not entry.code]
    assert not without


def methods_without_example() -> list[str]:
    """Return the functions and the methods of all pages that have no example of their own."""
    without = []
    for page in sorted((REPOSITORY / "docs" / "api").glob("*.md")):
        for _, text in _ENTRY.findall(page.read_text()):
            described, _, _ = text.partition(f"{_END}\n")
            _, *members = re.split(r'^(?=<a id=")', described, flags=re.MULTILINE)
            for member in members[1:]:  # the first one is the entry itself
                found = _METHOD.match(member)
                if found is not None and not _EXAMPLE.search(member):
                    without.append(found[1])
    return without


def test_each_method_has_an_example_of_its_own() -> None:
    assert methods_without_example() == sorted(WITHOUT_EXAMPLE)


@pytest.mark.usefixtures("runtime", "restored")
@pytest.mark.parametrize("entry", IN_THIS_PROCESS)
def test_an_example_prints_what_the_page_says(entry: Entry, xp: Any, request: pytest.FixtureRequest) -> None:
    if entry.name.startswith("tcuda.dask."):
        pytest.importorskip("distributed")
    if "sanitizer" in entry.name:
        with tcuda.sanitizer.check(mode="collect"):
            tcuda.synchronize()  # so that no race has an access of another test
    if entry.name.startswith("tcuda.nccl."):
        try:
            tcuda.nccl.version()
        except RuntimeError as error:
            pytest.skip(str(error))
    names = {"__name__": "__main__", "tcuda": tcuda, "xp": xp}
    if entry.name in NEEDS_CLIENT:
        names["client"] = request.getfixturevalue("client")
    differs = run(entry.name, entry.code, names)
    assert not differs, differs


@pytest.mark.parametrize("entry", ALONE)
def test_an_example_that_changes_the_process_prints_what_the_page_says(
    entry: Entry, output_of: OutputOf, tmp_path: Path
) -> None:
    if entry.name in NEEDS_TORCH:
        pytest.importorskip("torch")
    if entry.name.startswith("tcuda.dask."):
        pytest.importorskip("distributed")
    if "cc -shared" in entry.code:
        source = REPOSITORY / "docs" / "examples" / "pluggable_allocator.c"
        library = tmp_path / "pluggable_allocator.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    program = f"""
import doctest

import tcuda

names = {{"__name__": "__main__", "tcuda": tcuda}}
example = doctest.DocTestParser().get_doctest({entry.code!r}, names, {entry.name!r}, None, None)
doctest.DocTestRunner(verbose=False, optionflags={_OPTIONS!r}).run(example)
"""
    assert output_of(program) == ""
