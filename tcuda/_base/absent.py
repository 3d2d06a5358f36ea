"""The names of ``torch.cuda`` and of arrays that tcuda lacks, with their meaning and with what to use instead."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_ARRAY_NAMES = Path(__file__).with_name("array_names.json")
"""The names of CuPy that a program may look for in tcuda, with the name below ``tcuda.xp``; from the same script."""

_TABLE = Path(__file__).with_suffix(".json")
"""The names with their reasons. ``tests/support/cupy_tables.py`` writes the file from the tables of tests."""


def about(name: str) -> str:
    """Return what ``name`` is, why tcuda lacks the name, and what to use; an empty text for an unknown name.

    Args:
        name: The name below ``torch.cuda``.
    """
    if name.startswith("__"):  # Python and its tools ask for many of these names
        return ""
    import json  # here, because the import takes long

    table = json.loads(_TABLE.read_text(encoding="utf-8"))
    if name not in table:
        name_in_xp = json.loads(_ARRAY_NAMES.read_text(encoding="utf-8")).get(name)
        if not name_in_xp:
            return ""
        owner = f"{name} is" if name_in_xp.startswith("cuda.") else "Arrays are"
        return f". {owner} CuPy's: write tcuda.xp.{name_in_xp}."
    kind = table[name]["kind"]
    article = "an" if kind[0] in "aeiou" else "a"
    return f". torch.cuda.{name} is {article} {kind} of torch. {table[name]['reason']}"


class AbsentModules:
    """A finder of modules that refuses the import of a name that only torch has, and finds no module.

    ``from tcuda import amp`` asks for the module ``tcuda.amp``, because the package has no attribute ``amp``. Python
    itself would then raise an error without the reason.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return None, or raise an error.

        Raises:
            ImportError: ``name`` is ``tcuda.`` and a name of torch that tcuda lacks.
        """
        package, _, inner = name.partition(".")
        if package == "tcuda" and (reason := about(inner)):
            raise ImportError(f"cannot import name {inner!r} from 'tcuda'{reason}", name=name)
        return None


def refuse_absent_modules() -> None:
    """Let imports of names that only torch has give the reason."""
    sys.meta_path.append(AbsentModules())  # the last finder: no other finder has found the module
