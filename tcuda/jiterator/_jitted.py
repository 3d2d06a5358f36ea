"""The jiterator function that a program makes of its code."""

from __future__ import annotations

import importlib
import operator
from typing import TYPE_CHECKING, Any

from tcuda import _core
from tcuda.jiterator import _scalars
from tcuda.jiterator._parser import kernel_of
from tcuda.jiterator._signature import Signature

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tcuda.jiterator._function import PythonFunction

MOST_INPUTS = MOST_OUTPUTS = 8
"""The most inputs and outputs of a function, as in torch."""


class JittedFunction:
    """A function of arrays whose code is compiled at the first call.

    Attributes:
        code_string: The code.
        kernel_name: The name of the function that computes one element.
        return_by_ref: Whether the function ``kernel_name`` writes to references, and returns nothing.
        num_outputs: The number of outputs.
        kwargs_dict: The keyword arguments with their defaults.
        call: The callable for a program. The core computes calls that are like an earlier call, without Python.
    """

    def __init__(self, code_string: str, return_by_ref: bool, num_outputs: int, kwargs: Mapping[str, Any]) -> None:
        """Parse the code; nothing is compiled, and no device is used.

        Raises:
            TypeError: The code is not a string, ``num_outputs`` is not an integer, or a default is no number.
            ValueError: The code cannot be parsed.
            RuntimeError: ``num_outputs`` is out of range.
        """
        self.code_string = code_string
        self.kernel_name = kernel_of(code_string).name
        self.return_by_ref = return_by_ref
        self.num_outputs = _checked_outputs(num_outputs)
        self.kwargs_dict = dict(kwargs)
        self._defaults = {name: _scalars.kind_and_value(name, value) for name, value in kwargs.items()}
        values = tuple(value for _, value in self._defaults.values())
        self._state = _core.ElementwiseState(tuple(self._defaults), values, self.num_outputs)
        self.call = _core.elementwise_call(self, self._state)
        self._python: PythonFunction | None = None

    def __call__(self, *tensors: Any, **kwargs: Any) -> Any:
        """Compute the outputs for ``tensors``, with ``kwargs`` instead of the defaults."""
        if len(tensors) > MOST_INPUTS:
            raise AssertionError(
                f"jiterator only supports up to {MOST_INPUTS} tensor inputs, and {len(tensors)} were given."
            )
        if not tensors:
            raise RuntimeError(f"{self.kernel_name}() needs at least one input, which has the shape of the result.")
        scalars = self._defaults
        if kwargs:
            scalars = dict(scalars)
            for name, value in kwargs.items():
                if name not in scalars:
                    raise KeyError(f"{name} is not declared in function definition; {self._declared()}")
                scalars[name] = _scalars.kind_and_value(name, value)
        python = self._python or self._prepared()
        outputs = python(tensors, tuple(scalars.values()))
        return outputs[0] if self.num_outputs == 1 else tuple(outputs)

    def __repr__(self) -> str:
        return f"<jiterator function {self.kernel_name} with {self.num_outputs} output(s)>"

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (self.code_string, self.return_by_ref, self.num_outputs, self.kwargs_dict)

    def _declared(self) -> str:
        names = ", ".join(self._defaults)
        return f"declared are {names}" if names else "no keyword arguments are declared"

    def _prepared(self) -> PythonFunction:
        # The module imports NumPy, so the first call imports the module.
        module = importlib.import_module("tcuda.jiterator._function")
        signature = Signature(self.code_string, self.kernel_name, self.return_by_ref, self.num_outputs, self._state)
        self._python = module.PythonFunction(signature)
        return self._python


def restored(code_string: str, return_by_ref: bool, num_outputs: int, kwargs: Mapping[str, Any]) -> Callable[..., Any]:
    """Return the function that was pickled or copied; the code is compiled again at the first call."""
    return JittedFunction(code_string, return_by_ref, num_outputs, kwargs).call


def _checked_outputs(num_outputs: Any) -> int:
    if isinstance(num_outputs, bool):
        raise TypeError("num_outputs must be an integer from 1 to 8, not a bool")
    try:
        number = operator.index(num_outputs)
    except TypeError:
        raise TypeError(
            f"num_outputs must be an integer from 1 to {MOST_OUTPUTS}, not {type(num_outputs).__name__}"
        ) from None
    if not 1 <= number <= MOST_OUTPUTS:
        raise RuntimeError(f"num_outputs must be from 1 to {MOST_OUTPUTS}, not {number}")
    return number
