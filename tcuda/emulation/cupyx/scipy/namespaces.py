"""The modules of ``cupyx.scipy``, made from the table: SciPy's functions and classes for arrays of emulated devices."""

from __future__ import annotations

import functools
import importlib
import inspect
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.arrays.functions import IMPLEMENTATIONS, named
from tcuda.emulation.arrays.ufunc import ufunc
from tcuda.emulation.cupyx.scipy import catalogue, held
from tcuda.emulation.cupyx.scipy.host_modules import scipy_module, stands_in
from tcuda.emulation.devices.strided import Strided
from tcuda.emulation.names import absent
from tcuda.emulation.numbers import casts
from tcuda.emulation.work import numpy_work

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence, Set

_HERE = "tcuda.emulation.cupyx.scipy"


class Namespace(ModuleType):
    """A module of ``cupyx.scipy``, which gets its names when a program first asks for one.

    Args:
        module: The name of the module in the table, such as ``"signal.windows"``.
    """

    def __init__(self, module: str) -> None:
        super().__init__(f"{_HERE}.{module}", f"``cupyx.scipy.{module}`` on arrays of emulated devices.")
        vars(self).update(_module=module, _filled=False, __path__=[])
        self.__spec__ = ModuleSpec(self.__name__, None, origin=__file__, is_package=True)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") or name in catalogue.NAMES[vars(self)["_module"]]:
            self._fill()
            if name in vars(self):
                return vars(self)[name]
        reason = absent.about(f"cupyx.scipy.{vars(self)['_module']}.{name}")
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}{reason}")

    def __dir__(self) -> list[str]:
        self._fill()
        return sorted(name for name in vars(self) if not name.startswith("_"))

    def _fill(self) -> None:
        table = vars(self)
        if not table["_filled"]:
            table.update(functions_of(table["_module"]), _filled=True)


def functions_of(module: str) -> dict[str, Any]:
    """Return, by name, what ``cupyx.scipy.<module>`` has for arrays of emulated devices."""
    source = scipy_module(module)
    own = _definitions(module)
    made: dict[str, Any] = {}
    universal: dict[np.ufunc, ufunc] = {}  # a function with two names is made once
    for name in catalogue.NAMES[module]:
        original = getattr(own, name, getattr(source, name, None))
        if original is None:
            continue
        if stands_in(getattr(source, name, None)) and name not in getattr(own, "OF_ARRAYS", ()):
            made[name] = getattr(source, name)
        elif name in getattr(own, "OF_ARRAYS", ()) or not callable(original):
            made[name] = original
        elif isinstance(original, np.ufunc):
            made[name] = universal.get(original) or universal.setdefault(original, _universal(original, module, name))
        elif isinstance(original, type):
            made[name] = held.class_of(original) if held.is_of_scipy(original) else original
        else:
            check, taken = (getattr(own, rule, None) for rule in ("check", "taken"))
            computed = of_scipy(
                original,
                check and functools.partial(check, name),
                taken and functools.partial(taken, name),
                catalogue.SETTINGS.get(module, frozenset()) | catalogue.SETTINGS_OF.get(name, frozenset()),
            )
            made[name] = named(computed, f"{_HERE}.{module}", name, original.__doc__)
    for name, item in made.items():
        if isinstance(item, type) and issubclass(item, held.Held):
            item.__module__, item.__name__, item.__qualname__ = f"{_HERE}.{module}", name, name
    return made


def _definitions(module: str) -> ModuleType | None:
    """Return the module with the functions that SciPy does not have, or has with another meaning than CuPy."""
    home = catalogue.DEFINITIONS.get(module)
    return None if home is None else importlib.import_module(home)


def _universal(original: np.ufunc, module: str, name: str) -> ufunc:
    made = ufunc(original)
    made.__module__ = f"{_HERE}.{module}"
    made.__name__ = made.name = name
    IMPLEMENTATIONS.setdefault(original, made)  # SciPy's function on an array of the device calls this one
    return made


def of_scipy(
    function: Callable[..., Any],
    check: Callable[[Mapping[str, Any]], None] | None = None,
    taken: Callable[[str, Any], Any] | None = None,
    settings: Set[str] = frozenset(),
) -> Callable[..., Any]:
    """Return ``function`` of SciPy, or of the same kind, for arrays of the device.

    Args:
        function: The function.
        check: Called with the arguments of a call by their names, to refuse what CuPy refuses.
        taken: Called with the name and the value of an argument. It returns the value as SciPy takes it.
        settings: The names of the parameters that may be NumPy arrays, because CuPy uses them on the host.
    """
    parameters = _parameters(function)

    def setting(name: str, value: Any) -> Any:
        return value.tolist() if name in settings and isinstance(value, np.ndarray) else value

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if settings:
            args = (*map(setting, parameters, args), *args[len(parameters) :])
            kwargs = {name: setting(name, value) for name, value in kwargs.items()}
        if taken is not None:
            args = (*map(taken, parameters, args), *args[len(parameters) :])
            kwargs = {name: taken(name, value) for name, value in kwargs.items()}
        named_arguments = {**dict(zip(parameters, args, strict=False)), **kwargs}
        if check is not None:
            check(named_arguments)
        output = named_arguments.get("output")
        if isinstance(output, Strided):
            return _into(output, function, args[: parameters.index("output")], named_arguments)
        return held.computed(function, args, kwargs)

    del call.__wrapped__  # the signature of SciPy's function has types of the host
    if function.__module__.startswith("tcuda."):
        call.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return call


def _parameters(function: Callable[..., Any]) -> list[str]:
    """Return the names of the parameters that ``function`` takes by position."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [each.name for each in found if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]


def _into(output: Strided, function: Callable[..., Any], args: Sequence[Any], arguments: Mapping[str, Any]) -> Any:
    """Let ``function`` write to the array ``output``, and return what ``function`` returns."""
    names = _parameters(function)[: len(args)]
    others = {name: value for name, value in arguments.items() if name != "output" and name not in names}

    @functools.wraps(function)
    def write(*args: Any, **kwargs: Any) -> Any:
        target = np.zeros(output.shape, output.dtype)
        result = function(*args, **kwargs, output=target)
        return target, None if result is None or isinstance(result, np.ndarray) else result

    made, result = held.computed(write, args, others)
    numpy_work.modify(casts.copyto, (output, made), {"casting": "unsafe"})
    return output if result is None else result
