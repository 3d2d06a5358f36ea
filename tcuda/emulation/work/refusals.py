"""Refusals of calls that cannot be captured: calls that need the contents of arrays now, and calls of cuSOLVER.

CuPy's functions refuse these calls while the current stream captures, in the same words, so that the calls do not
invalidate the capture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tcuda._process.lazy import backend, cuda
from tcuda.emulation.devices.strided import Strided
from tcuda.emulation.names import catalogue
from tcuda.emulation.work import numpy_work

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Guard = Callable[[Sequence[Any], Mapping[str, Any]], bool]
    Condition = Callable[[Sequence[Any], Mapping[str, Any]], bool]


def require_download(stream: int | None = None) -> None:
    """Refuse to copy from the device to the host on a stream that captures.

    Args:
        stream: The handle of the stream; the current stream if None.

    Raises:
        RuntimeError: The stream captures.
    """
    if _captures(stream):
        _refuse("D2H transfers", "An array has contents when the graph has been launched: get them then.")


def require_upload(stream: int | None = None) -> None:
    """Refuse to copy from the host to the device on a stream that captures.

    Args:
        stream: The handle of the stream; the current stream if None.

    Raises:
        RuntimeError: The stream captures.
    """
    if _captures(stream):
        _refuse("H2D transfers", "Make the array before the capture.")


def require_contents(name: str) -> None:
    """Refuse the call ``name``, which needs the contents of an array, on a stream that captures.

    Args:
        name: The name of the call.

    Raises:
        RuntimeError: The current stream captures.
    """
    if _captures(None):
        _refuse("D2H transfers", f"{name} needs the contents of an array, which there are when the graph is launched.")


def require_synchronization() -> None:
    """Refuse to wait for the current stream if it captures.

    Raises:
        RuntimeError: The current stream captures.
    """
    if _captures(None):
        _refuse("synchronous API calls", "Wait for the stream on which the graph is launched.")


def guard_of(name: str) -> Guard | None:
    """Return a guard that refuses the calls of the function ``name`` that cannot be captured.

    Returns:
        The guard, which is called with the positional arguments and the keyword arguments of a call whose work is
        deferred. The guard returns whether the call needs what arrays contain now. None if all calls can be captured.
    """
    reads = condition_to_read(name)
    solves = name in catalogue.SOLVING
    copies_if, solves_if = (conditions.get(name) for conditions in (_COPYING_IF, _SOLVING_IF))
    if not (solves or reads or copies_if or solves_if):
        return None

    def guard(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        solving = solves or bool(solves_if and solves_if(args, kwargs))
        reading = bool(reads and reads(args, kwargs))
        if solving:
            _require_solver(name)
        if reading:
            require_contents(name)
        if copies_if and copies_if(args, kwargs):
            require_upload()
        return solving or reading

    return guard


def condition_to_read(name: str) -> Condition | None:
    """Return the condition under which CuPy's function ``name`` waits for the contents of an array.

    Returns:
        The condition, which is called with the positional arguments and the keyword arguments of a call; None if no
        call waits.
    """
    return _always if name in catalogue.READING else _READING_IF.get(name)


def require_indices(items: Sequence[Any]) -> None:
    """Refuse masks among the indices of an array: only the contents of a mask tell the shape of the result.

    Raises:
        RuntimeError: An item is a mask, and the current stream captures.
    """
    if numpy_work.capturing() and any(_is_mask(item) for item in items):
        require_contents("indexing with a mask")


def needs_contents(items: Sequence[Any]) -> bool:
    """Return whether work with the indices ``items`` is deferred and needs what a mask contains."""
    return numpy_work.defers() and any(_is_mask(item) for item in items)


def _captures(stream: int | None) -> bool:
    """Return whether ``stream`` captures; an invalidated capture is an error of its own."""
    return cuda.streamIsCapturing(backend.current_stream().ptr if stream is None else stream)


def _refuse(what: str, advice: str) -> NoReturn:
    raise RuntimeError(f"the current stream is capturing, so {what} are disallowed. {advice}")


def _require_solver(name: str) -> None:
    if _captures(None):
        raise NotImplementedError(f"calling cuSOLVER API during stream capture is currently unsupported; {name} does.")


def _always(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    return True


def _is_mask(item: Any) -> bool:
    return isinstance(item, (bool, np.bool_)) or (isinstance(item, Strided) and item.dtype == bool)


def _given(place: int, name: str, default: Any = None) -> Callable[[Sequence[Any], Mapping[str, Any]], Any]:
    """Return a function that finds the argument ``name``, at ``place`` or by name, among the arguments of a call."""
    return lambda args, kwargs: args[place] if len(args) > place else kwargs.get(name, default)


def _is_array(place: int, name: str) -> Condition:
    argument = _given(place, name)
    return lambda args, kwargs: isinstance(argument(args, kwargs), Strided)


def _is_sequence(place: int, name: str) -> Condition:
    argument = _given(place, name)
    return lambda args, kwargs: isinstance(argument(args, kwargs), (list, tuple))


def _has_weights(*weights: Callable[[Sequence[Any], Mapping[str, Any]], Any]) -> Condition:
    return lambda args, kwargs: any(given(args, kwargs) is not None for given in weights)


def _raises(place: int, default: str) -> Condition:
    """Return the condition that the mode is ``"raise"``: CuPy then reads the contents to find indices out of range."""
    mode = _given(place, "mode", default)
    return lambda args, kwargs: mode(args, kwargs) == "raise"


def _puts_selected(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    target, values = _given(0, "a")(args, kwargs), _given(2, "values")(args, kwargs)
    return not isinstance(values, Strided) or values.shape == target.shape


def _is_spectral(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Return whether a norm is computed from singular values."""
    axis = _given(2, "axis")(args, kwargs)
    axes = np.ndim(_given(0, "x")(args, kwargs)) if axis is None else len(axis) if isinstance(axis, tuple) else 1
    return axes == 2 and _given(1, "ord")(args, kwargs) in (2, -2, "nuc")


_READING_IF: dict[str, Condition] = {
    "array_equal": lambda args, kwargs: bool(_given(2, "equal_nan")(args, kwargs)),
    "array_split": _is_array(1, "indices_or_sections"),
    "average": _has_weights(_given(2, "weights")),
    "choose": _raises(3, "raise"),
    "cov": _has_weights(_given(5, "fweights"), _given(6, "aweights")),
    "dsplit": _is_array(1, "indices_or_sections"),
    "gradient": lambda args, kwargs: any(isinstance(given, Strided) and given.ndim for given in args[1:]),
    "hsplit": _is_array(1, "indices_or_sections"),
    "ix_": lambda args, kwargs: any(map(_is_mask, args)),
    "percentile": _is_array(1, "q"),
    "poly": lambda args, kwargs: np.ndim(_given(0, "seq_of_zeros")(args, kwargs)) == 2,
    "put": _raises(3, "wrap"),
    "putmask": _puts_selected,
    "quantile": _is_array(1, "q"),
    "ravel_multi_index": _raises(2, "wrap"),
    "real_if_close": lambda args, kwargs: np.iscomplexobj(_given(0, "a")(args, kwargs)),
    "repeat": _is_array(1, "repeats"),
    "split": _is_array(1, "indices_or_sections"),
    "vsplit": _is_array(1, "indices_or_sections"),
    "where": lambda args, kwargs: _given(1, "x")(args, kwargs) is None,
}
"""Conditions under which CuPy reads the contents of an array, for functions that do not always do so."""

_COPYING_IF: dict[str, Condition] = {
    "percentile": _is_sequence(1, "q"),
    "quantile": _is_sequence(1, "q"),
    "repeat": _is_sequence(1, "repeats"),
}
"""Conditions under which CuPy copies a sequence of numbers to the device."""

_SOLVING_IF: dict[str, Condition] = {
    "matrix_power": lambda args, kwargs: bool(_given(1, "n", 0)(args, kwargs) < 0),
    "norm": _is_spectral,
}
"""Conditions under which CuPy calls cuSOLVER, for functions that do not always do so."""
