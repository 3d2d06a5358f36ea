"""The value of ``TCUDA_POISON_FREED``."""

from __future__ import annotations

import pytest

from tcuda._process.poison import chosen

NAME = "TCUDA_POISON_FREED"


@pytest.mark.parametrize(
    ("text", "value"),
    [("0xCB", 0xCB), ("0Xcb", 0xCB), ("203", 203), ("0", 0), ("255", 255), (" 7 ", 7), ("0xf", 15), ("", None)],
)
def test_the_variable_is_one_byte(text: str, value: int | None) -> None:
    assert chosen({NAME: text}) == value


def test_without_the_variable_there_is_no_byte() -> None:
    assert chosen({}) is None


@pytest.mark.parametrize("text", ["256", "-1", "0x100", "CB", "1.5", "on", "0x", "1_0", "٣"])
def test_another_value_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(ValueError, match=rf"^{NAME} is {text!r}; write the value of one byte, .* from 0 to 255"):
        chosen({NAME: text})
