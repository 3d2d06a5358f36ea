"""What a launch knows of its kernel."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

from tcuda.emulation.kernels.source_facts import SourceFacts
from tcuda.emulation.rtc.parameter_names import parameter_names

if TYPE_CHECKING:
    from tcuda import _core
    from tcuda.emulation.rtc.checks import Checks


class RecordedKernel(NamedTuple):
    """A kernel in the form whose launches note what the kernel reads and writes.

    Attributes:
        host: The kernel.
        complete: Whether every access has a check. If not, the check of a write after a read may be missing.
        variables: The name, the beginning and the end of each global variable of the module, by address.
    """

    host: _core.EmulatedFunction
    complete: bool
    variables: list[tuple[str, int, int]]


class KernelModule(SourceFacts, Protocol):
    """The module of a kernel."""

    @property
    def source(self) -> str:
        """The source."""

    @property
    def shared(self) -> list[tuple[str, int, int]]:
        """The name, the beginning and the end of each static variable in shared memory, for the check of ``init``."""

    @property
    def constants(self) -> tuple[int, int]:
        """The beginning and the end of the pages with ``__constant__`` variables; both 0 if there are none."""

    @property
    def has_padding(self) -> bool:
        """Whether the source may have structures with bytes that nobody writes."""

    def recorded(self, name: str) -> RecordedKernel | None:
        """Return the kernel ``name`` in the form that notes its accesses; None without such a form."""


class LaunchedKernel:
    """A kernel of a module, as its launches see the kernel.

    Args:
        module: The module.
        host: The kernel in the module.
        name: The name by which the program asked for the kernel.
        checks: The checks of the kernel.

    Attributes:
        parameters: The kind, the size and the offset of each parameter, as ``EmulatedFunction`` has them.
        variables: The beginning and the end of each global variable of the module.
        strict: Whether a launch fails if not all threads of a block reach a barrier.
        warns_of_barriers: Whether a launch warns if not all threads of a block reach a barrier. The first such launch
            warns, and the later launches of the kernel do not.
    """

    def __init__(self, module: KernelModule, host: _core.EmulatedFunction, name: str, checks: Checks) -> None:
        self.module = module
        self.host = host
        self.name = name
        self.parameters = host.parameters
        self.variables = [(begin, end) for _, begin, end in module.global_variables()]
        self.checks = checks
        self.strict = checks.barriers == "error"
        self.warns_of_barriers = checks.barriers == "warning"

    @cached_property
    def parameter_names(self) -> list[str]:
        """The names of the parameters in the source; empty if they are not known."""
        return parameter_names(self.module.source, self.name)

    @property
    def call(self) -> str:
        """The text of a launch, for messages."""
        return f"cuLaunchKernel({self.name})"
