"""Lines of the program."""

from __future__ import annotations

import inspect

from tcuda._base.program_lines import line_of_program


def called_by_the_package() -> object:
    """Call the function from a function whose module says that it is of the package."""
    names = {"__name__": "tcuda.inner", "line_of_program": line_of_program}
    exec("def inner():\n    return line_of_program()", names)
    inner = names["inner"]
    assert callable(inner)
    return inner()


def test_the_line_is_the_first_outside_of_the_package() -> None:
    line = called_by_the_package()
    source, first = inspect.getsourcelines(called_by_the_package)
    assert str(line) == f"{__file__}:{first + len(source) - 1} in called_by_the_package"
