"""What the kernels in ``tests/data/sass/kernels.cu`` do with memory.

A truth names the parameters (by their position) and what the kernel does with the memory: ``r`` reads, ``w`` writes,
``b`` does both, ``-`` does nothing, ``.`` is no pointer. A pointer inside a structure is named by its offset.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

TRUTHS: dict[str, str] = {
    "copy": "w r .",
    "axpy": "b r . .",
    "histogram": "r b .",
    "exchanges": "w b b b",
    "pick": "w w r . .",
    "members": "0:w 16:r",
    "pointer_array": "r . incomplete",
    "called": "w r",
    "called_often": "w r w r",
    "local_array": "w w .",
    "pointer_table": "0:w 8:w 16:w 24:w 32:w 40:w 48:w 56:w 64:r",
    "walk": "w r .",
    "cases": "w r w r . .",
    "prints": "r",
    "asserts": "w r .",
    "variable": "w",
    "pointer_variable": "r incomplete",
    "long_division": "w r .",
    "shared_pointers": "w w",
    "byte_lookup": "r r w",
    "long_byte_lookup": "r r w",
    "byte_offset": "w r .",
    "function_pointer": "b b . incomplete",
    "recursion": "w . incomplete",
    "grid_constant": "8:r 80:w",
    "changed_local": "w w .",
    "reduce": "r b .",
    "transpose": "w r . .",
    "matrix_product": "r r w .",
    "spin_lock": "b b",
    "vectors": "w r",
    "unused": "w r -",
    "on_flag": "w r",
    "long_strides": "w r . .",
    "powers": "w r",
    "halves": "b r",
    "c_arrays": "0:r 48:w",
    "c_array_indices": "0:r 48:w",
    "list": "r b incomplete",
    "swapped": "b b .",
    "search": "r r w .",
    "integers": "w r",
    "aligned": "w r",
    "distance": "r - w",
    "nested": "w r w",
    "allocates": "w",
    "large": "w r",
    "cached": "w r",
    "texture": ". w incomplete",
    "functor": "b b .",
    "either": "b b r .",
    "early": "w r .",
    "byte_copy": "w r .",
    "double_atomics": "b r",
    "compact": "r w b .",
    "async_copy": "r w",
    "tensor_cores": "r r w",
    "map_load": "r w",
    "map_store": "w r",
    "bulk": "r w b",
}

_LETTERS = {"none": "-", "read": "r", "write": "w", "both": "b"}

Use: TypeAlias = tuple[
    list[tuple[int, int]], list[tuple[int, Literal["none", "read", "write", "both"], bool, str]], bool
]


class Score(NamedTuple):
    """How uses that were found compare with the truth."""

    right: list[str]
    """The kernels whose uses are right."""
    unsure: list[str]
    """The kernels that may use more memory, as far as the reader of the code can tell, than they do."""
    wrong: list[str]
    """The kernels that use memory in another way than the reader of the code says."""


def score(uses: dict[str, Use]) -> Score:
    """Compare the uses of the kernels with their truths."""
    found = Score([], [], [])
    for name, (parameters, pointers, complete) in uses.items():
        kinds, foreign = _kinds(TRUTHS[name], parameters)
        said = {offset: _LETTERS[kind] for offset, kind, _, _ in pointers}
        sure = {offset: _LETTERS[kind] for offset, kind, possible, _ in pointers if not possible}
        missed = [offset for offset, kind in kinds.items() if not _covers(said.get(offset, "-"), kind)]
        invented = [offset for offset, kind in sure.items() if not _covers(kinds.get(offset, "-"), kind)]
        if (complete and (foreign or missed)) or invented:
            found.wrong.append(name)
        elif complete != (not foreign) or any(said.get(offset, "-") != kind for offset, kind in kinds.items()):
            (found.right if foreign and not complete else found.unsure).append(name)
        else:
            found.right.append(name)
    return found


def _covers(more: str, less: str) -> bool:
    return less in ("-", more) or more == "b"


def _kinds(truth: str, parameters: list[tuple[int, int]]) -> tuple[dict[int, str], bool]:
    """Return the kinds of use by offset, and whether the kernel uses memory that no parameter points to."""
    kinds = {}
    for position, word in enumerate(truth.split()):
        offset, _, kind = word.rpartition(":")
        if word not in (".", "incomplete"):
            kinds[int(offset) if offset else parameters[position][0]] = kind
    return kinds, truth.endswith("incomplete")
