"""Programs: the recorded operations of a fused function, which one kernel runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy.typing as npt

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Place:
    """The place of a value among the values of a program.

    Attributes:
        index: The index of the value.
    """

    index: int


@dataclass(frozen=True)
class Step:
    """An operation of a program.

    Attributes:
        function: The NumPy function.
        args: The arguments, with places in the places of values.
        kwargs: The keyword arguments, likewise.
        results: The index of each new value; empty if the function only writes to its arguments.
        shape_of: Returns the shape of the results for the shapes of the arguments that are arrays.
        widened: Whether the first argument is broadcast to the common shape of the arrays first.
        is_array: Whether the results are arrays, and not scalars.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    results: tuple[int, ...]
    shape_of: Callable[[Sequence[Shape]], Shape]
    widened: bool = False
    is_array: bool = True


@dataclass
class Program:
    """The operations of a function for arguments of some types.

    Attributes:
        steps: The operations.
        count: The number of values. The first values are the arguments of the function.
        results: The place of each value that the function returns.
        dtypes: The type of each value that the function returns.
        returns: ``"none"``, ``"single"`` or ``"tuple"``.
        one_shape: Whether all arrays have the common shape of the arguments, as in an elementwise kernel.
        reduces: Whether a step is a reduction.
        read: The values that a step reads, or that the function returns.
        written: The values to which a step writes.
        views: The values that are views, each with the value whose memory the view shares.
    """

    steps: list[Step] = field(default_factory=list)
    count: int = 0
    results: list[int] = field(default_factory=list)
    dtypes: list[np.dtype[Any]] = field(default_factory=list)
    returns: str = "none"
    one_shape: bool = True
    reduces: bool = False
    read: set[int] = field(default_factory=set)
    written: set[int] = field(default_factory=set)
    views: dict[int, int] = field(default_factory=dict)

    def among(self, values: Iterable[int], arguments: Sequence[Any]) -> list[Any]:
        """Return the items of ``arguments`` whose memory ``values`` have, in the order of the arguments."""
        owners = {self.views.get(index, index) for index in values}
        return [argument for index, argument in enumerate(arguments) if index in owners]

    def shapes(self, arguments: Sequence[Any], common: Shape) -> list[Shape]:
        """Return the shapes of the results.

        Args:
            arguments: The arguments of the function, with NumPy arrays or arrays of the device.
            common: The shape to which all arrays among the arguments broadcast.

        Raises:
            ValueError: The shapes of arrays do not fit together.
        """
        shapes: list[Shape] = [()] * self.count
        for index, argument in enumerate(arguments):
            shapes[index] = getattr(argument, "shape", ())
        for step in self.steps:
            if step.results:
                given = [shapes[value.index] for value in (*step.args, *step.kwargs.values()) if type(value) is Place]
                if step.widened:
                    given[0] = common
                shape = step.shape_of(given or [()])
                for result in step.results:
                    shapes[result] = shape
        if self.one_shape and not self.reduces:
            return [common] * len(self.results)
        return [shapes[result] for result in self.results]

    def run(self, common: Shape, arguments: Sequence[Any], targets: Sequence[npt.NDArray[Any]]) -> None:
        """Run the operations on memory, and store the results in ``targets``."""
        values: list[Any] = [None] * self.count
        values[: len(arguments)] = arguments
        for step in self.steps:
            args = [values[value.index] if type(value) is Place else value for value in step.args]
            if step.widened:
                args[0] = np.broadcast_to(args[0], common)
            kwargs = {
                name: values[value.index] if type(value) is Place else value for name, value in step.kwargs.items()
            }
            made = step.function(*args, **kwargs)
            for result, value in zip(step.results, made if isinstance(made, tuple) else (made,), strict=False):
                values[result] = np.asarray(value) if step.is_array else value
        for target, result in zip(targets, self.results, strict=True):
            target[...] = values[result]
