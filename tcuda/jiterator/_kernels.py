"""The compiled kernels of a module, and the errors of the compiler."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tcuda._process.lazy import backend
from tcuda.jiterator import _source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from tcuda._core import ElementwiseState

_PLACE = re.compile(
    rf"^{re.escape(_source.FILE)}(?:\((\d+)\)|:(\d+)(?::\d+)?): *(?:fatal |catastrophic )?error:? *(.*)$"
)


class CompiledModule:
    """The compiled kernels of one source on one device."""

    def __init__(self, arrays: ModuleType, source: str, code: str, function: str) -> None:
        """Compile ``source`` for the current device.

        Args:
            arrays: The array library.
            source: The source of the module.
            code: The user's code, which is a part of the source.
            function: The user's function.

        Raises:
            RuntimeError: The compiler refuses the source. The message names the line of the user's code.
        """
        module = arrays.RawModule(code=source, options=_source.OPTIONS)
        try:
            # CuPy compiles when the attribute `kernel` is first read.
            self.kernels: dict[str, Any] = {name: module.get_function(name).kernel for name in _source.KERNELS}
        except Exception as error:
            if not _is_of_compiler(error):
                raise
            raise RuntimeError(compiler_message(str(error), code, function)) from error
        self._taught: set[tuple[int, ...]] = set()

    def teach(
        self, state: ElementwiseState, device: int, dtypes: tuple[Any, ...], kinds: tuple[int, ...], result: Any
    ) -> None:
        """Let the core launch the kernels in later calls whose inputs have the same ``dtypes`` objects.

        Args:
            state: The state of the function.
            device: The index of the current device.
            dtypes: The dtypes of the inputs.
            kinds: The kinds of the scalars.
            result: The dtype of the outputs.
        """
        key = tuple(map(id, dtypes))
        if key not in self._taught:
            kernels = self.kernels[_source.CONTIGUOUS], self.kernels[_source.STRIDED]
            backend.teach_elementwise(state, kernels, device, dtypes, kinds, result)
            self._taught.add(key)


def _is_of_compiler(error: Exception) -> bool:
    # CuPy's class can be imported only on CUDA, so the class is found by its name.
    return any(base.__name__ == "CompileException" for base in type(error).__mro__)


def compiler_message(log: str, code: str, function: str) -> str:
    """Return the message of the error for ``log``, the messages of the compiler."""
    lines = [f"The code of the jiterator function {function!r} does not compile:"]
    lines += _errors(log, code.splitlines())
    return "\n".join([*lines, "", "The compiler says:", log.strip()])


def _errors(log: str, code: list[str]) -> Iterator[str]:
    for said in log.splitlines():
        found = _PLACE.match(said.strip())
        if found:
            line = int(found[1] or found[2])
            yield f"  line {line}: {found[3]}"
            if line <= len(code):
                yield f"    {code[line - 1].strip()}"
