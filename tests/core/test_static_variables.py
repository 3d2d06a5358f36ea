"""Static variables of functions in the core: a fork while a thread initializes one must not leave the child waiting."""

from __future__ import annotations

import re

import pytest

from support.folders import REPOSITORY

CORE = REPOSITORY / "tcuda" / "_core"
SOURCES = sorted(path for path in CORE.rglob("*") if path.suffix in (".hpp", ".cpp"))

_VARIABLE = re.compile(
    r"^[ \t]+(?:\[\[maybe_unused\]\] )?(?:inline )?static (?!inline |thread_local |constexpr |const thread_local )"
    r"([^(\n]*?[ *&>])(\w+)(?:\[\])?( = .*|\{.*|;.*)$",
    re.MULTILINE,
)
_WITHOUT_GUARD = re.compile(r"(const )?(std::atomic<.*>|Published<.*>|Py\w+|ScopeMethods) $")
"""Types whose variables have constant initial values: see ``threads/published.hpp``."""
_CONSTANT = re.compile(r" = (false|true|nullptr|\d+);")


def guarded(text: str) -> list[str]:
    """Return the names of the static variables of functions that the compiler may guard with a lock."""
    return [
        name
        for kind, name, value in _VARIABLE.findall(text)
        if not _WITHOUT_GUARD.match(kind) and not _CONSTANT.match(value)
    ]


def test_no_static_variable_of_a_function_has_a_guard() -> None:
    found = {path.relative_to(CORE).as_posix(): names for path in SOURCES if (names := guarded(path.read_text()))}
    assert not found, "make these with Published of threads/published.hpp, or when the library is loaded"


@pytest.mark.parametrize(
    "line",
    [
        "static const auto *const made = [] {",
        "static const Calls found;",
        "static auto *table = new Table;",
        "static const Reading reading{walk(), comparison()};",
        "[[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, nullptr);",
        "static const std::vector<races::Dimension> one{{1, 1}};",
    ],
)
def test_a_guarded_variable_is_found(line: str) -> None:
    assert len(guarded(f"    {line}\n")) == 1


@pytest.mark.parametrize(
    "line",
    [
        "static Published<const Calls> found;",
        "static std::atomic<std::uint64_t> last{0};",
        "static thread_local Notes notes;",
        "static constexpr int rest = 50;",
        "static bool tried = false; // guarded by Python's lock",
        "static PyMethodDef methods[] = {",
        "static std::string_view name_of(const Function &function, int number = 0);",
        "static const Disassembler &usual();",
        "static_assert(std::is_trivially_copyable_v<Statistics>);",
    ],
)
def test_other_lines_are_not_found(line: str) -> None:
    assert guarded(f"    {line}\n") == []
