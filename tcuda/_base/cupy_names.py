"""Names that a class of CuPy has, and the class of torch with the same meaning has not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import NoReturn


class CupyName:
    """An attribute that is missing, whose error says what to write. Other attributes of the class cost no more time.

    Args:
        advice: What to write in place of the name.
    """

    def __init__(self, advice: str) -> None:
        self._advice = advice
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise AttributeError(
            f"{owner.__name__!r} has no attribute {self._name!r}, which CuPy's class has. {self._advice}"
        )


__all__ = ["CupyName"]
