"""The races between threads and the reads of unwritten memory that were found in a launch, as reports show them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tcuda import _core
from tcuda._base.errors import UnwrittenMemoryError
from tcuda._base.statuses import Status
from tcuda._process.ledger import ledger
from tcuda.emulation.kernels import kernel_accesses, memory_access
from tcuda.emulation.runtime.moves import Movable
from tcuda.sanitizer._checks import tell_findings_of_kernel
from tcuda.sanitizer._elements import Region, elements, indices
from tcuda.sanitizer._errors import KernelRaceError
from tcuda.sanitizer._found_in_kernel import FoundInKernel
from tcuda.sanitizer._kernel_advice import WARP_BARRIER, missing_in_kernel
from tcuda.sanitizer._kernel_race import (
    BENIGN,
    KIND,
    KernelFinding,
    KernelMemory,
    KernelRace,
    KernelRaceAccess,
    SourceLine,
)
from tcuda.sanitizer._race import RaceAllocation
from tcuda.sanitizer._stacks import Frame, frames, users
from tcuda.sanitizer._stream_names import stream_names
from tcuda.sanitizer._unwritten_read import unwritten_read

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tcuda.emulation.devices.strided import Strided
    from tcuda.emulation.kernels.launched_kernel import LaunchedKernel
    from tcuda.emulation.kernels.source_facts import SourceFacts
    from tcuda.emulation.rtc.shared_memory import SharedVariable
    from tcuda.emulation.runtime.moves import Mover
    from tcuda.emulation.runtime.unwritten import Origin
    from tcuda.sanitizer._stream_names import StreamName


_AROUND = 3
"""The lines of an excerpt before and after a line."""


_Read: TypeAlias = tuple[int, int, int, tuple[int, int, int], tuple[int, int, int], int]
"""The first of the reads of unwritten memory at a place of the code, as ``EmulatedLaunch`` has them."""


class _View(NamedTuple):
    """The memory of a race as elements.

    Attributes:
        region: The elements.
        memory: The memory without the element.
    """

    region: Region
    memory: KernelMemory

    def at(self, overlap: tuple[int, int]) -> KernelMemory:
        """Return the memory with the first element in ``overlap``."""
        found = elements(self.region, overlap)
        if found is None:
            return self.memory
        return replace(self.memory, index=indices(self.region, found.first))


class LaunchFindings(Movable):
    """The facts that reports about a launch need. The facts are noted when the program makes the launch.

    The object keeps no memory of a device alive.

    Args:
        kernel: The kernel.
        arrays: The arrays among the arguments.
        packed: The bytes of the arguments.
        device: The index of the device.
        stream: The handle of the stream.
        captured: Whether the stream captures, so that the kernel runs at the launches of a graph.
        benign: Whether writes of the same value are told.
    """

    def __init__(
        self,
        kernel: LaunchedKernel,
        arrays: Sequence[Strided],
        packed: bytes,
        device: int,
        stream: int,
        *,
        captured: bool,
        benign: bool,
    ) -> None:
        accesses = kernel_accesses.of_arrays(arrays, kernel.parameters, kernel.parameter_names, packed)
        types = [array.dtype.name for array in arrays if array.size]
        self._arrays = [_of_array(access, type) for access, type in zip(accesses, types, strict=True)]
        self._kernel = kernel.name
        self._device = device
        self._stream = stream
        blocks = [array._block for array in arrays]
        # A block may be freed before its kernel runs, as in a graph or with the late schedule.
        self._allocations = {block.ptr: _allocation(block.device, block.ptr, block.requested) for block in blocks}
        self._stack = _core.note_stack()
        self._captured = captured
        self._benign = benign

    def moved(self, mover: Mover) -> LaunchFindings:
        """Return a copy whose arrays are moved, and which looks their allocations up when it needs them."""
        made: LaunchFindings = super().moved(mover)
        made._allocations = {}
        return made

    def tell_races(
        self, races: Sequence[_core.KernelRace], left_out: int, module: SourceFacts, call: str, order: str = ""
    ) -> None:
        """Tell the races of the launch to the check of the running code.

        Args:
            races: The races.
            left_out: The number of races that the launch has not kept.
            module: The module of the kernel.
            call: The text of the launch.
            order: The order of the blocks and threads, in words; empty for the usual order.

        Raises:
            CUDASanitizerErrors: The mode of the check is ``"raise"``.
            KernelRaceError: There is no check.
            RaceWarning: The mode of the check is ``"warn"``, and the program makes errors of warnings.
        """
        kept = [race for race in races if self._benign or not race.same_value]
        if not kept:
            return
        offsets = [access.code for race in kept for access in (race.first, race.second)]
        lines = iter(module.lines(offsets))
        stream = stream_names((self._device, self._stream), None).current
        assert stream is not None
        found = [
            FoundInKernel(self._race(race, next(lines), next(lines), module, stream, order), race.count)
            for race in kept
        ]
        tell_findings_of_kernel(_merged(found), lambda told: KernelRaceError(told, call, left_out))

    def tell_unwritten(
        self,
        reads: Sequence[_Read],
        origins: Sequence[Origin | None],
        module: SourceFacts,
        call: str,
    ) -> None:
        """Tell the reads of unwritten memory to the check of the running code.

        Args:
            reads: The first read of each place of the code.
            origins: The allocation of the memory of each read; None for shared memory.
            module: The module of the kernel.
            call: The text of the launch.

        Raises:
            CUDASanitizerErrors: The mode of the check is ``"raise"``.
            RaceWarning: The mode of the check is ``"warn"``, and the program makes errors of warnings.
            UnwrittenMemoryError: There is no check.
        """
        lines = module.lines([read[5] for read in reads], recorded=True)
        stream = stream_names((self._device, self._stream), None).current
        assert stream is not None
        found = []
        for (address, size, count, thread, block, _), origin, line in zip(reads, origins, lines, strict=True):
            overlap = address, size
            shared = memory_access.block_at(address) is None
            view, allocation = self._view(address, size, module, shared=shared)
            if origin is not None and origin.line is not None and allocation is not None:
                frame = Frame(origin.line.name, origin.line.filename, origin.line.line)
                allocation = replace(allocation, stack=(frame,))
            access = self._access("read", thread, block, line, view, overlap, module, stream)
            read = unwritten_read(self._kernel, access, view.at(overlap), overlap, allocation)
            found.append(FoundInKernel(read, count))

        def error(told: Sequence[KernelFinding]) -> UnwrittenMemoryError:
            return UnwrittenMemoryError(Status.LAUNCH_FAILURE, call, "\n".join(map(str, told)), tuple(told))

        tell_findings_of_kernel(_merged(found), error)

    def _race(
        self,
        race: _core.KernelRace,
        first_line: tuple[str, int] | None,
        second_line: tuple[str, int] | None,
        module: SourceFacts,
        stream: StreamName,
        order: str,
    ) -> KernelRace:
        overlap = race.address, race.size
        view, allocation = self._view(race.address, race.size, module, shared=race.shared)
        memory = view.at(overlap)
        first, second = (
            self._access(each.kind, each.thread, each.block, line, view, overlap, module, stream)
            for each, line in ((race.first, first_line), (race.second, second_line))
        )
        return KernelRace(
            kind=BENIGN if race.same_value else KIND,
            use_after_free=False,
            current=second,
            previous=first,
            overlap=overlap,
            allocation=allocation,
            previous_allocation=None,
            missing=missing_in_kernel(
                race.missing,
                first,
                second,
                memory,
                benign=race.same_value,
                between=_texts_between(module, first, second),
                without_fence=race.without_fence,
            ),
            kernel=self._kernel,
            memory=memory,
            order=order,
        )

    def _access(
        self,
        kind: str,
        thread: tuple[int, int, int],
        block: tuple[int, int, int],
        line: tuple[str, int] | None,
        view: _View,
        overlap: tuple[int, int],
        module: SourceFacts,
        stream: StreamName,
    ) -> KernelRaceAccess:
        return KernelRaceAccess(
            operation=self._kernel,
            argument=view.memory.name,
            kind=kind,
            device=self._device,
            stream=self._stream,
            stream_name=stream.text,
            host=False,
            confidence="exact",
            number=0,
            shape=view.region.shape,
            itemsize=view.region.itemsize,
            elements=elements(view.region, overlap),
            stack=_program_frames(self._stack),
            launch_stack=_program_frames(_core.note_stack()) if self._captured else None,
            region=view.region,
            thread=thread,
            block=block,
            line=None if line is None else Frame(self._kernel, *line),
            excerpt=() if line is None else _lines_around(module, *line),
        )

    def _view(
        self, address: int, size: int, module: SourceFacts, *, shared: bool
    ) -> tuple[_View, RaceAllocation | None]:
        if shared:
            return _of_shared(module.shared_variable_at(address), address, size), None
        block = memory_access.block_at(address)
        owner, begin, end, _ = (-1, address, address + size, False) if block is None else block
        allocation = None
        if owner >= 0:
            found = self._allocations.get(begin) or _allocation(owner, begin, end - begin)
            allocation = RaceAllocation(begin, found.size, owner, found.stream, _program_frames(found.stack), None)
        return next(self._candidates(address, size, module, begin, end)), allocation

    def _candidates(self, address: int, size: int, module: SourceFacts, begin: int, end: int) -> Iterator[_View]:
        """Yield views of memory: of an argument, of a variable, and of the whole block."""
        for view in self._arrays:
            if elements(view.region, (address, size)) is not None:
                yield view
        for name, first, last in module.global_variables():
            if first <= address < last:
                yield _flat("global", name, first, last - first, size)
        # A kernel may use more of a block than the view that it gets.
        inside = (view for view in self._arrays if begin <= view.region.address < end)
        name = next((view.memory.name for view in inside), "")
        yield _flat("global", name, begin, end - begin, size)


class _Allocation(NamedTuple):
    """An allocation of memory: the bytes, the handle of the stream, and the number of the stack in the core."""

    size: int
    stream: int
    stack: int


def _allocation(device: int, address: int, size: int) -> _Allocation:
    """Return the allocation that begins at an address of a device."""
    known = ledger()
    return _Allocation(size, known.stream_of(device, address) or 0, known.stack_of(device, address))


def _program_frames(stack: int) -> tuple[Frame, ...]:
    """Return the frames of the program in a stack of the core, innermost first."""
    return users(frames(_core.frames_of(stack)))


def _merged(found: Sequence[FoundInKernel]) -> list[FoundInKernel]:
    """Return one finding for each line or pair of lines, with the number of all findings there.

    A statement such as ``x[0] += 1`` reads and writes, so the launch finds several races of its line. The race that
    needs the most stands for the others: a barrier of the block orders the threads of a warp, too.
    """
    pairs: dict[Any, FoundInKernel] = {}
    for one in found:
        known = pairs.get(one.pair)
        if known is None:
            pairs[one.pair] = one
        else:
            shown = max(known, one, key=_need)
            pairs[one.pair] = FoundInKernel(shown.finding, known.count + one.count)
    return list(pairs.values())


def _need(found: FoundInKernel) -> int:
    """Return a number that is higher if more is needed to order the accesses."""
    if found.finding.kind == BENIGN:
        return 0
    return 1 if isinstance(found.finding, KernelRace) and found.finding.missing.call == WARP_BARRIER else 2


def _lines_around(module: SourceFacts, file: str, line: int) -> tuple[SourceLine, ...]:
    return tuple(SourceLine(*found) for found in module.excerpt(file, line - _AROUND, line + _AROUND))


def _texts_between(module: SourceFacts, one: KernelRaceAccess, other: KernelRaceAccess) -> list[str]:
    """Return the texts of the lines between two lines of one file."""
    if one.line is None or other.line is None or one.line.filename != other.line.filename:
        return []
    first, last = sorted([one.line.line, other.line.line])
    return [text for _, text in module.excerpt(one.line.filename, first + 1, last - 1)]


def _of_array(access: Sequence[object], dtype: str) -> _View:
    address, itemsize, shape, strides, _, label, *_ = access
    region = Region(address, itemsize, shape, strides)  # type: ignore[arg-type]  # the parts have these types
    return _View(region, KernelMemory("global", str(label), None, dtype, region.shape))


def _of_shared(found: tuple[SharedVariable, int] | None, place: int, size: int) -> _View:
    if found is None:
        return _flat("shared", "", place, size, size)
    variable, address = found
    itemsize = variable.itemsize or size
    shape = (variable.size // itemsize,) if variable.shape is None else variable.shape
    strides = tuple(itemsize * math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
    memory = KernelMemory("shared", variable.name, None, variable.type, variable.shape)
    return _View(Region(address, itemsize, shape, strides), memory)


def _flat(space: str, name: str, address: int, size: int, itemsize: int) -> _View:
    """Return memory of unknown type as elements of the size of an access."""
    region = Region(address, itemsize, (max(size // itemsize, 1),), (itemsize,))
    return _View(region, KernelMemory(space, name, None, "", region.shape))


__all__ = ["LaunchFindings"]
