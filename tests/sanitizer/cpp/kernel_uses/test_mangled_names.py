"""What the mangled name of a kernel says of its parameters."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from support.core import for_tests

if TYPE_CHECKING:
    from pathlib import Path

SIGNATURES = {
    "const float *x, float *y, int n": ["read", "both", None],
    "const float *__restrict__ x, volatile float *y": ["read", "both"],
    "const volatile double *const x": ["read"],
    "float *const *tables, const int *const *others": [None, None],
    "void *x, const void *y, unsigned long long z": ["both", "read", None],
    "Pair<const float *, float *> pair, const Pair<float *, int> *pairs": [None, "read"],
    "int (*function)(const float *, float *), float *y": [None, "both"],
    "float (&array)[4], const float *x": [None, "read"],
    "const long *(*function)(const long *), const long *x": [None, "read"],
    "Wrapped<int (*)(const int *)> wrapped, int *y": [None, "both"],
}
"""The parameters of a function, and what its name says of each; None if nothing is said."""


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the mangled names of functions with the signatures, plain ones and then templates."""
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    lines = ["template <class A, class B> struct Pair { A a; B b; };", "template <class A> struct Wrapped { A a; };"]
    for number, parameters in enumerate(SIGNATURES):
        lines.append(f"namespace one {{ void plain{number}({parameters}) {{}} }}")
    for number, parameters in enumerate(SIGNATURES):
        lines.append(f"template <class Policy, int N> void of_template{number}({parameters}) {{}}")
        lines.append(f"template void of_template{number}<Pair<int, Wrapped<const int *>>, 3>({parameters});")
    folder: Path = tmp_path_factory.mktemp("names")
    source, made = folder / "names.cpp", folder / "names.o"
    source.write_text("\n".join(lines))
    subprocess.run([compiler, "-std=c++17", "-w", "-c", source, "-o", made], check=True, timeout=60)
    listed = subprocess.run(["nm", made], check=True, timeout=60, capture_output=True, text=True).stdout.splitlines()
    found = [line.split()[-1] for line in listed]

    def number_of(word: str) -> list[str]:
        return [next(name for name in found if f"{word}{number}" in name) for number in range(len(SIGNATURES))]

    return [*number_of("plain"), *number_of("of_template")]


def test_a_pointer_to_const_is_read_only(names: list[str]) -> None:
    for name, expected in zip(names, [*SIGNATURES.values()] * 2, strict=True):
        parameters = [(8 * place, 8) for place in range(len(expected))]
        known, pointers, complete = for_tests.uses_of_mangled_name(name, parameters)
        assert known == parameters
        assert not complete
        said = {offset: kind for offset, kind, possible, _ in pointers if not possible}
        assert [said.get(8 * place) for place in range(len(expected))] == expected, name


@pytest.mark.parametrize("name", ["kernel", "_Z", "_Z6kernelPKfPf junk", "_Z6kernelPK", "", "_ZN3cub"])
def test_another_name_says_nothing(name: str) -> None:
    assert for_tests.uses_of_mangled_name(name, [(0, 8), (8, 8)])[1] == []


def test_other_parameters_than_those_of_the_name_say_nothing() -> None:
    assert len(for_tests.uses_of_mangled_name("_Z6kernelPKfPf", [(0, 8), (8, 8)])[1]) == 2
    assert for_tests.uses_of_mangled_name("_Z6kernelPKfPf", [(0, 8), (8, 8), (16, 4)])[1] == []
    assert [offset for offset, *_ in for_tests.uses_of_mangled_name("_Z6kernelPKfPf", [(0, 16), (16, 8)])[1]] == [16]
