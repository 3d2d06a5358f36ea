"""The types of the parameters of a kernel, from the types of the arrays that a call passes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from tcuda.emulation.kernels.parts.parameters import Parameter

    DType = np.dtype[Any]


@dataclass(frozen=True)
class ParameterTypes:
    """The types of the parameters in a call.

    Attributes:
        inputs: The type of each input.
        outputs: The type of each output.
        placeholders: The placeholders with their types, sorted by name.
    """

    inputs: tuple[DType, ...]
    outputs: tuple[DType, ...]
    placeholders: tuple[tuple[str, DType], ...]


def types_of(
    in_params: Sequence[Parameter],
    out_params: Sequence[Parameter],
    inputs: Sequence[DType | None],
    outputs: Sequence[DType],
) -> ParameterTypes:
    """Return the types of the parameters in a call.

    The outputs decide on the type of a placeholder first, then the inputs do, in their order. Scalars do not decide.

    Args:
        in_params: The parameters of the inputs.
        out_params: The parameters of the outputs.
        inputs: The type of each input; None for a scalar.
        outputs: The type of each given output; empty if the call gives no outputs.

    Raises:
        TypeError: An array has another type than its parameter.
        KeyError: No array tells the type of a placeholder.
    """
    known: dict[str, DType] = {}
    if outputs:
        for parameter, dtype in zip(out_params, outputs, strict=True):
            _decide(known, parameter, dtype)
    for parameter, given in zip(in_params, inputs, strict=True):
        if given is not None:
            _decide(known, parameter, given)
    return ParameterTypes(
        tuple(_known(known, parameter) for parameter in in_params),
        tuple(_known(known, parameter) for parameter in out_params),
        tuple(sorted(known.items())),
    )


def _decide(known: dict[str, DType], parameter: Parameter, dtype: DType) -> None:
    if parameter.dtype is not None:
        if dtype != parameter.dtype:
            raise TypeError(
                f"Type is mismatched. The parameter {parameter.name} is declared as {parameter.dtype}, and the array "
                f"has dtype {dtype}. Convert the array by astype({str(parameter.dtype)!r})."
            )
        return
    decided = known.setdefault(parameter.ctype, dtype)
    if decided != dtype:
        raise TypeError(
            f"Type is mismatched. The array for the parameter {parameter.name} has dtype {dtype}, but another array "
            f"has made {parameter.ctype} the type {decided}. Convert one array, or declare two placeholders."
        )


def _known(known: dict[str, DType], parameter: Parameter) -> DType:
    if parameter.dtype is not None:
        return parameter.dtype
    if parameter.ctype not in known:
        raise KeyError(
            f"No array of the call tells the type {parameter.ctype} of the parameter {parameter.name}. Pass the "
            "outputs too, or declare the parameter with a type of NumPy."
        )
    return known[parameter.ctype]
