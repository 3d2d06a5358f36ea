"""Which lines of a source may poll memory."""

from __future__ import annotations

import pytest

from tcuda.emulation.rtc.polling import polling_lines


def polls(source: str) -> list[str]:
    """Return the marks ``P1``, ``P2`` and so on in the lines that may poll."""
    lines = source.splitlines()
    return [mark for number in sorted(polling_lines(source)) for mark in lines[number - 1].split() if mark[:1] == "P"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("while (*flag == 0) {} // P1\n*data; // P2", ["P1"]),
        ("do {\n v = *flag; // P1\n} while (v == 0); // P2\n*data; // P3", ["P1", "P2"]),
        ("do v = *flag; // P1\nwhile (v == 0); // P2\n*data; // P3", ["P1", "P2"]),
        ("for (;;) {\n if (*flag) break; // P1\n}\n*data; // P2", ["P1"]),
        ("for (; *flag == 0;) {} // P1\n*data; // P2", ["P1"]),
        ("for (int i = 0; i < n; i++) {\n sum += v[i]; // P1\n}", []),
        ("for (int i = 0; *flag == 0; i++); // P1", ["P1"]),
        ("for (int i = 0; i < n; i++)\n while (v[i] == 0) {} // P1\n// P2", ["P1"]),
        ("while (*flag == 0) // P1\n for (int i = 0; i < n; i++)\n  sum += v[i]; // P2", ["P1"]),
        ("while (*flag == 0) // P1\n if (x) {\n a(); // P2\n } else\n b(); // P3\n*data; // P4", ["P1", "P2", "P3"]),
        ("int load(int* p) {\n return *p; // P1\n}\nwhile (load(flag) == 0) {} // P2\n*data; // P3", ["P1", "P2"]),
        ("int load(int* p) {\n return *p; // P1\n}\nload(data); // P2", []),
        (
            "int raw(int* p) { return *p; } // P1\nstruct A { int get() const {\n return raw(p); // P2\n} };\n"
            "while (a.get() == 0) {} // P3",
            ["P1", "P2", "P3"],
        ),
        ("// while (x) P1\n*data; // P2", []),
        ("while (x", []),
        ("do {", []),
        ("", []),
    ],
)
def test_a_loop_without_a_counter_may_poll(source: str, expected: list[str]) -> None:
    assert polls(source) == expected
