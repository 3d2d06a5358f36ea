"""The lines of the program that have allocated memory, for reports about kernels. Nothing is noted unless asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcuda._sanitizer._race import RaceAllocation
    from tcuda._sanitizer._stacks import Frame

noted: dict[int, RaceAllocation] = {}
"""The last allocation at each address."""

wanted: list[bool] = []
"""A list that is empty while nobody wants the lines, for a test that costs nothing."""


def begin() -> None:
    """Note the line of each allocation from now on."""
    if not wanted:
        wanted.append(True)


def note(address: int, size: int, device: int, stream: int) -> None:
    """Note an allocation, and the frames of the program that make it."""
    from tcuda._sanitizer._race import RaceAllocation  # here, because few programs need the module

    noted[address] = RaceAllocation(address, size, device, stream, program_frames(), None)


def program_frames() -> tuple[Frame, ...]:
    """Return the frames of the program that run in this thread, innermost first."""
    from tcuda._sanitizer._stacks import Frame, living_frames, users

    return users([Frame(frame.f_code.co_name, frame.f_code.co_filename, frame.f_lineno) for frame in living_frames()])
