"""The search of the site finds the public names."""

from __future__ import annotations

import re

import pytest

import tcuda
from support.folders import REPOSITORY

SEPARATOR = re.compile(re.findall(r"^ *separator: '(.*)'", (REPOSITORY / "mkdocs.yml").read_text(), re.MULTILINE)[0])


def words(text: str) -> list[str]:
    """Return the words of a text as the search of the site splits the text."""
    return [word for word in SEPARATOR.split(text) if word]


@pytest.mark.parametrize("name", [*tcuda.__all__, "pin_memory"])
def test_a_public_name_is_one_word_wherever_a_page_has_it(name: str) -> None:
    word = name.strip("_") if name.startswith("__") else name
    for text in (name, f"`{name}`", f"tcuda.{name}", f"`x.{name}()`", f"{name}(device=0)", f"[{name}]", f"a {name}, b"):
        assert word in {found.strip("_") for found in words(text)}, text


def test_a_private_name_is_found_with_and_without_its_underscore() -> None:
    assert words("tcuda._compile_kernel(source)") == ["tcuda", "compile_kernel", "source"]
    assert words("_compile_kernel") == words("compile_kernel")
