"""Signatures: the parameters of CuPy's functions and methods, and the arguments that each parameter takes.

The table ``cupy_signatures.json`` has the signatures, and says how CuPy was examined for them. A call that CuPy refuses
is refused here with an error of the same type.
"""

from __future__ import annotations

import ast
import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tcuda._base.messages import similar
from tcuda.emulation.devices.strided import Strided, shortened
from tcuda.emulation.names import tensor_names
from tcuda.emulation.work import creation, refusals

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_ERRORS: dict[str, type[Exception]] = {
    "A": AttributeError,
    "L": np.linalg.LinAlgError,
    "N": NotImplementedError,
    "T": TypeError,
    "V": ValueError,
    "s": ValueError,
}
_NAMES = {"float": float, "int": int}
_SIMPLE = frozenset([bool, float, str, type(None), type, slice])
_NUMBERS = frozenset([bool, float])
_LEAST, _MOST = -(2**63), 2**63 - 1
_SHORT = 2**31
_SCALARS = (bool, int, float, complex, np.generic, np.ndarray)
_ANYTHING = frozenset(["out", "dtype"])
"""Parameters whose arguments the functions check where they use them."""


class _OfNumpy(Exception):  # Not an error: the exception ends the handling of a call that CuPy leaves to NumPy.
    """An operand is of the host, and CuPy calls the method of the operand that has the name of the function."""


class OfOtherLibrary(Exception):  # Not an error, either.
    """An operand is of another library, and CuPy calls the methods of the operand.

    Attributes:
        operand: The operand.
        refusal: The error for an operand that lacks the methods.
    """

    def __init__(self, operand: Any, refusal: AttributeError) -> None:
        super().__init__(operand)
        self.operand = operand
        self.refusal = refusal


class Operand:
    """A parameter that takes arrays.

    Args:
        function: The name of the function.
        name: The name of the parameter.
        codes: The codes for other types of arguments, which the entry ``operands`` of the table explains.
        each: Whether the parameter takes a sequence, to whose elements the codes apply.
        optional: Whether the default of the parameter is None.
    """

    simple: frozenset[type] = frozenset()
    whole = False

    def __init__(self, function: str, name: str, codes: str, each: bool, optional: bool) -> None:
        self._function = function
        self._name = name
        self._list, self._array, self._number, self._scalar, self._other = tuple(codes[:5])
        self._none = codes[5] if len(codes) > 5 else "." if optional else self._other
        self._each = each
        self._setting = Setting(function, name)

    def admit(self, value: Any) -> Any:
        """Return ``value``, which is not an array of the device, in a form with which the function can work."""
        if not self._each:
            return self.admit_element(value)
        if isinstance(value, (list, tuple)):
            elements = [
                item if isinstance(item, Strided) else self.admit_element(item, place)
                for place, item in enumerate(value)
            ]
            return tuple(elements) if isinstance(value, tuple) else elements
        if isinstance(value, np.ndarray) and value.ndim:
            return [self.admit_element(item, place) for place, item in enumerate(value)]
        return self.admit_element(value)

    def admit_element(self, value: Any, place: int | None = None) -> Any:
        """Return the element ``place`` of the argument, or the argument itself, in a form for the function."""
        code = self._code(value)
        if code == "+":
            return value if isinstance(value, (bool, int, float, complex, np.generic)) else creation.asarray(value)
        if code == ".":
            return self._setting.admit(value) if isinstance(value, (list, tuple)) else value
        if code == "l":
            return value.tolist()
        if code == "h":
            raise _OfNumpy
        if code == "s" and value.size == 1:
            return value.reshape(())[()]
        if self._number == "+" and hasattr(value, "__cupy_get_ndarray__"):  # A poly1d, for instance, offers an array.
            return value.__cupy_get_ndarray__()
        parameter = repr(self._name) if place is None else f"element {place} of {self._name!r}"
        refusal = (
            f"{self._function}() takes an array of the device as {parameter}, not {_kind(value)}: make an array of it "
            "with asarray() first."
        )
        if code == "m":
            raise OfOtherLibrary(value, AttributeError(refusal))
        raise _ERRORS[code](refusal)

    def _code(self, value: Any) -> str:
        if isinstance(value, np.ndarray):
            return self._array
        if isinstance(value, np.generic):
            return self._scalar
        if isinstance(value, (bool, int, float, complex)):
            return self._number
        if isinstance(value, (list, tuple, range)):
            return self._list
        return self._none if value is None else self._other


class Setting:
    """A parameter that takes no array of the device: a shape, an axis, a count, a name.

    Args:
        function: The name of the function.
        name: The name of the parameter.
        reads: Whether CuPy takes an array without axes and waits for the number in it.
        waits: Whether CuPy waits for the contents of an array before it refuses the array.
        number: Whether the parameter takes numbers only.
        unbounded: Whether the parameter takes integers that need more than 64 bits.
    """

    whole = True

    def __init__(
        self,
        function: str,
        name: str,
        *,
        reads: bool = False,
        waits: bool = False,
        number: bool = False,
        unbounded: bool = False,
    ) -> None:
        self._function = function
        self._name = name
        self._reads = reads
        self._waits = waits
        self._number = number
        self._unbounded = unbounded
        self.simple = _NUMBERS if number else _SIMPLE

    def admit(self, value: Any) -> Any:
        """Return ``value`` without arrays in it.

        Raises:
            OverflowError: ``value`` is an integer that needs more than 64 bits.
            TypeError: ``value`` holds an array of the device that CuPy does not read, or is not a number although the
                parameter takes only numbers.
            RuntimeError: ``value`` holds an array that CuPy reads, and the current stream captures.
        """
        if self._name == "axis":
            self._require_axes(value)
        return self._admit(value)

    def _admit(self, value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            if not _LEAST <= value <= _MOST and not self._unbounded:
                raise OverflowError(
                    f"{self._function}() takes integers of 64 bits as {self._name!r}; got {shortened(value)}."
                )
            return value
        if isinstance(value, Strided):
            return self._read(value)
        if self._number and not isinstance(value, _SCALARS):
            raise TypeError(f"{self._function}() takes a number as {self._name!r}, not {_kind(value)}.")
        if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            value = value.tolist()
        if isinstance(value, (list, tuple)):
            parts = [item if type(item) is int and -_SHORT < item < _SHORT else self._admit(item) for item in value]
            # CuPy takes a list of axes as it takes a tuple. NumPy does not.
            return tuple(parts) if isinstance(value, tuple) or self._name == "axis" else parts
        return value

    def _require_axes(self, value: Any) -> None:
        """Refuse an array of the host with a wrong number of axes, and a list that CuPy does not take.

        Raises:
            TypeError: CuPy's function iterates over an array without axes, or takes a single number from an array.
        """
        name = self._function.removeprefix("ndarray.")
        if name in _ITERATING and isinstance(value, np.ndarray) and not value.ndim:
            raise TypeError(f"iteration over a 0-d array: {name}() takes an integer or several as 'axis'; call item().")
        if name in _INDEXING and (isinstance(value, list) or (isinstance(value, np.ndarray) and value.ndim)):
            raise TypeError(
                f"{name}() takes an integer or a tuple of integers as 'axis', not {_kind(value)}: only integer scalar "
                "arrays can be converted to a scalar index."
            )

    def _read(self, value: Strided) -> Any:
        if self._reads or self._waits:
            refusals.require_download()
        if not self._reads:
            raise TypeError(
                f"{self._function}() takes no array of the device as {self._name!r}: 'ndarray' object cannot be "
                "interpreted as an integer. Get the number first, with item(), and outside of a capture."
            )
        if value.ndim:
            raise TypeError(
                f"only 0-dimensional arrays can be converted to Python scalars: {self._function}() got an array of "
                f"{value.ndim} axes as {self._name!r}."
            )
        return creation.item(value)


_ITERATING = frozenset(
    [
        "all",
        "amax",
        "amin",
        "any",
        "argmax",
        "argmin",
        "average",
        "count_nonzero",
        "max",
        "mean",
        "median",
        "min",
        "nanargmax",
        "nanargmin",
        "nanmax",
        "nanmean",
        "nanmin",
        "nanprod",
        "nansum",
        "percentile",
        "prod",
        "ptp",
        "quantile",
        "roll",
        "sum",
    ]
)
"""The functions of CuPy that take one axis or several, and iterate over everything that is no integer."""
_INDEXING = frozenset(["expand_dims", "flip", "squeeze", "std", "var"])
"""The functions of CuPy that take an axis or a tuple of axes, and nothing else."""

_UNKNOWN = Setting("", "")
"""The rule for the name of an argument that a function does not have."""


class Signature:
    """The parameters of a function.

    Args:
        name: The name of the function, such as ``linalg.norm``.
        text: The parameters, in the notation of Python.
        operands: For each parameter that takes arrays, the codes of the table.
        reads: The parameters whose arrays CuPy reads.
        waits: The parameters whose arrays CuPy refuses, but only after a wait for their contents.
        numbers: The parameters that take numbers only.
        unbounded: The parameters that take integers of any size.
        keywords: The names that ``**kwargs`` takes; ``"..."`` stands for any name.
        alone: The signature of a call without the second argument, if that has a signature of its own.

    Attributes:
        takes_array_alone: Whether :meth:`admit` returns an array of a device as it is, if that is the only argument.
    """

    def __init__(
        self,
        name: str,
        text: str,
        operands: Mapping[str, str],
        reads: Iterable[str] = (),
        waits: Iterable[str] = (),
        numbers: Iterable[str] = (),
        unbounded: Iterable[str] = (),
        keywords: Iterable[str] = (),
        alone: Signature | None = None,
    ) -> None:
        self.name = name
        self._alone = alone
        self.described = _described(text)
        kinds = inspect.Parameter
        by_place = (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
        parameters = self.described.parameters.values()
        self.places = tuple(parameter.name for parameter in parameters if parameter.kind in by_place)
        self.defaults = {parameter.name: parameter.default for parameter in parameters}
        self._required = sum(self.defaults[place] is kinds.empty for place in self.places)
        self._rest: Operand | Setting | None = None
        self._rules: list[Operand | Setting | None] = []
        self._named: dict[str, Operand | Setting | None] = {}
        self._unnamed: Operand | Setting | None = _UNKNOWN
        for parameter in parameters:
            if parameter.kind == kinds.VAR_KEYWORD:
                self._named.update({keyword: Setting(self.name, keyword) for keyword in keywords})
                self._unnamed = self._named.pop("...", _UNKNOWN)
                continue
            variadic = parameter.kind == kinds.VAR_POSITIONAL
            name = parameter.name
            rule: Operand | Setting | None = self._rule_of_operand(name, operands, variadic)
            if rule is None and (variadic or (name not in _ANYTHING and name != "self")):
                rule = Setting(
                    self.name,
                    name,
                    reads=name in reads,
                    waits=name in waits,
                    number=name in numbers,
                    unbounded=name in unbounded,
                )
            if parameter.kind == kinds.VAR_POSITIONAL:
                self._rest = rule
                continue
            if parameter.kind in by_place:
                self._rules.append(rule)
            if parameter.kind != kinds.POSITIONAL_ONLY:
                self._named[parameter.name] = rule
        self._variadic = any(parameter.kind == kinds.VAR_POSITIONAL for parameter in parameters)
        first = self._rules[0] if self._rules else self._rest
        is_taken = bool(self._rules) or self._variadic
        self.takes_array_alone = (
            alone is None and is_taken and self._required <= 1 and (first is None or type(first) is Operand)
        )

    def _rule_of_operand(self, name: str, operands: Mapping[str, str], variadic: bool) -> Operand | None:
        key = f"*{name}" if variadic else name
        optional = self.defaults[name] is None
        if key in operands:
            return Operand(self.name, name, operands[key], False, optional)
        if f"{key}[]" in operands:
            return Operand(self.name, name, operands[f"{key}[]"], True, optional)
        return None

    def admit(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]] | None:
        """Return the arguments of a call in a form with which the function can work.

        Returns:
            The positional arguments and the keyword arguments; None if CuPy leaves the call to NumPy, because an array
            is of the host.

        Raises:
            OfOtherLibrary: CuPy calls the methods of an argument.
            TypeError: There are too many arguments or too few, CuPy does not know the name of an argument, or CuPy does
                not take an argument of this type.
            AttributeError, LinAlgError, NotImplementedError, ValueError: CuPy raises this error for an argument of this
                type.
        """
        if self._alone is not None and len(args) < 2 and kwargs.get(self.places[1]) is None:
            return self._alone.admit(args, kwargs)
        try:
            if kwargs:
                kwargs = self._admit_named(kwargs, len(args))
            count = len(args)
            if count < self._required:
                self._require(count, kwargs)
            admitted: Sequence[Any] = args
            for place, value in enumerate(args):
                if isinstance(value, Strided):
                    rule = self._rule_at(place, count)
                    if rule is None or type(rule) is Operand:
                        continue
                else:
                    rule = self._rule_at(place, count)
                    kind = type(value)
                    if rule is None or kind in rule.simple or (kind is int and rule.whole and -_SHORT < value < _SHORT):
                        continue
                rest = place - len(self._rules)
                is_element = rest >= 0 and isinstance(rule, Operand)
                new = rule.admit_element(value, rest) if is_element else rule.admit(value)  # type: ignore[union-attr]
                if new is not value:
                    if admitted is args:
                        admitted = list(args)
                    admitted[place] = new  # type: ignore[index]
        except _OfNumpy:
            self._require_host(args, kwargs)
            return None
        return admitted, kwargs

    def _rule_at(self, place: int, count: int) -> Operand | Setting | None:
        if place < len(self._rules):
            return self._rules[place]
        if self._variadic:
            return self._rest
        raise TypeError(f"{self.name}() takes at most {len(self._rules)} positional arguments, but {count} were given.")

    def _admit_named(self, kwargs: dict[str, Any], count: int) -> dict[str, Any]:
        given = kwargs
        for name, value in kwargs.items():
            rule = self._named.get(name, self._unnamed)
            if rule is _UNKNOWN:
                self._refuse_name(name)
            if name in self.places[:count]:
                raise TypeError(f"{self.name}() got two values for {name!r}: one by position and one by name.")
            if rule is None or (isinstance(value, Strided) and type(rule) is Operand):
                continue
            kind = type(value)
            if kind in rule.simple or (kind is int and rule.whole and -_SHORT < value < _SHORT):
                continue
            new = rule.admit(value)
            if new is not value:
                if given is kwargs:
                    given = dict(kwargs)
                given[name] = new
        return given

    def _refuse_name(self, name: str) -> NoReturn:
        known = ", ".join(repr(known) for known in self._named)
        raise TypeError(
            f"{self.name}() got an unexpected keyword argument {name!r}; CuPy's has {known or 'none'}."
            f"{'' if name in self._named else tensor_names.about_keyword(name) or similar(name, self._named)}"
        )

    def _require(self, count: int, kwargs: Mapping[str, Any]) -> None:
        missing = [name for name in self.places[count : self._required] if name not in kwargs]
        if missing:
            raise TypeError(f"{self.name}() is missing the arguments {', '.join(map(repr, missing))}.")

    def _require_host(self, args: Iterable[Any], kwargs: Mapping[str, Any]) -> None:
        for value in (*args, *kwargs.values()):
            if isinstance(value, Strided):
                raise TypeError(
                    f"{self.name}() takes arrays of the device or NumPy arrays, not both: copy the NumPy "
                    "arrays with asarray() first."
                )


def _described(text: str) -> inspect.Signature:
    """Return the parameters in ``text``, whose defaults are constants and names of types."""
    arguments = ast.parse(f"def _{text}: 0").body[0].args  # type: ignore[attr-defined]
    kinds = inspect.Parameter
    places: list[tuple[ast.arg, Any]] = [(argument, kinds.POSITIONAL_ONLY) for argument in arguments.posonlyargs]
    places += [(argument, kinds.POSITIONAL_OR_KEYWORD) for argument in arguments.args]
    defaults = [kinds.empty] * (len(places) - len(arguments.defaults)) + list(map(_default, arguments.defaults))
    parameters = [
        kinds(argument.arg, kind, default=default) for (argument, kind), default in zip(places, defaults, strict=True)
    ]
    if arguments.vararg:
        parameters.append(kinds(arguments.vararg.arg, kinds.VAR_POSITIONAL))
    for argument, node in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        default = kinds.empty if node is None else _default(node)
        parameters.append(kinds(argument.arg, kinds.KEYWORD_ONLY, default=default))
    if arguments.kwarg:
        parameters.append(kinds(arguments.kwarg.arg, kinds.VAR_KEYWORD))
    return inspect.Signature(parameters)


def _default(node: ast.expr) -> Any:
    return _NAMES[node.id] if isinstance(node, ast.Name) else ast.literal_eval(node)


def _kind(value: Any) -> str:
    """Return the type of ``value`` as a text for a message."""
    return "None" if value is None else f"an object of {type(value)}"


def _read_table() -> dict[str, dict[str, Any]]:
    table: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "cupy_signatures.json").read_text("utf-8"))
    return table["functions"]


_ROWS = _read_table()


def signature_of(name: str) -> Signature:
    """Return the parameters of the function ``name``, such as ``linalg.norm`` or ``ndarray.take``."""
    row = _ROWS[name]
    operands = row.get("operands")
    if operands is None and name.startswith("ndarray."):
        operands = _operands_of_method(name, row["signature"])

    def made(entries: Mapping[str, Any], alone: Signature | None = None) -> Signature:
        others = {entry: entries.get(entry, ()) for entry in ("reads", "waits", "numbers", "unbounded", "keywords")}
        return Signature(name, row["signature"], operands or {}, **others, alone=alone)

    return made(row, made(row["alone"]) if "alone" in row else None)


def _operands_of_method(name: str, text: str) -> dict[str, str]:
    """Return the codes of the operands of a method: those of the function of that name, parameter by parameter."""
    function = _ROWS.get(name.removeprefix("ndarray."))
    if function is None or "operands" not in function:
        return {}
    places = zip(_described(function["signature"]).parameters, _described(text).parameters, strict=False)
    own = {theirs: ours for theirs, ours in places if ours != "self"}
    return {own[theirs]: codes for theirs, codes in function["operands"].items() if theirs in own}
