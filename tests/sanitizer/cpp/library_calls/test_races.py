"""Races between calls of libraries, with stand-ins for CUPTI and for the libraries."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import pytest

from support.cupti import MAIN, MEMORY, MORE_MEMORY, SIDE

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.cupti import Cupti, Watched
    from support.stand_in_library import Client

HOST = 0x600000000000
"""Memory of the host that the detector does not know."""


@pytest.fixture
def multiply(client: Client, cupti: Cupti, watched: Watched) -> Callable[[int, int, int, int], None]:
    """Multiply two 8 x 8 matrices on a stream: ``multiply(stream, a, b, c)``; the matrices are blocks of 64 rows."""

    def call(stream: int, a: int, b: int, c: int) -> None:
        client.during = lambda: cupti.launch(stream)
        try:
            client.call("cublasSgemm_v2", 1, 0, 0, 8, 8, 8, HOST, a, 64, b, 64, HOST + 8, c, 64)
        finally:
            client.during = lambda: None

    return call


def found(watched: Watched) -> list[tuple[str, str, str]]:
    """Return the labels and the confidence of the races."""
    races = watched.found()
    assert all(race.current.operation == race.previous.operation == "cublasSgemm_v2" for race in races)
    return [(race.previous.label, race.current.label, race.current.confidence) for race in races]


def test_two_products_into_one_matrix(multiply: Callable[[int, int, int, int], None], watched: Watched) -> None:
    """The result of one call is the result of another one, on another stream."""
    multiply(MAIN, MORE_MEMORY, MORE_MEMORY + 8192, MEMORY)
    multiply(SIDE, MORE_MEMORY, MORE_MEMORY + 8192, MEMORY)
    assert found(watched) == [("C", "C", "exact")]


def test_a_product_of_a_result_that_is_not_ready(
    multiply: Callable[[int, int, int, int], None], watched: Watched
) -> None:
    """A call reads what another one writes."""
    multiply(MAIN, MORE_MEMORY, MORE_MEMORY + 8192, MEMORY)
    multiply(SIDE, MEMORY, MORE_MEMORY, MORE_MEMORY + 65536)
    assert found(watched) == [("C", "A", "exact")]


def test_products_that_read_the_same_matrices(multiply: Callable[[int, int, int, int], None], watched: Watched) -> None:
    """Reads do not conflict."""
    multiply(MAIN, MORE_MEMORY, MORE_MEMORY + 8192, MEMORY)
    multiply(SIDE, MORE_MEMORY, MORE_MEMORY + 8192, MEMORY + 8192)
    assert found(watched) == []


def test_products_of_disjoint_blocks_of_one_matrix(
    multiply: Callable[[int, int, int, int], None], watched: Watched
) -> None:
    """The rows of the blocks are different, and their columns are interleaved in memory."""
    block = 8 * 4
    for index, stream in enumerate((MAIN, SIDE)):
        multiply(stream, MORE_MEMORY, MORE_MEMORY + 8192, MEMORY + index * block)
    assert found(watched) == []
    multiply(SIDE, MORE_MEMORY, MORE_MEMORY + 8192, MEMORY + block - 4)
    # No parameter of the stand-in's kernel points to this block.
    assert found(watched) == [("C", "C", "possible")]


def test_a_product_after_a_wait(multiply: Callable[[int, int, int, int], None], cupti: Cupti, watched: Watched) -> None:
    """An event orders the two calls."""
    multiply(MAIN, MORE_MEMORY, MORE_MEMORY + 8192, MEMORY)
    cupti.record(MAIN)
    cupti.wait(SIDE)
    multiply(SIDE, MEMORY, MORE_MEMORY, MORE_MEMORY + 65536)
    assert found(watched) == []


def test_a_sparse_product_is_noted_by_its_descriptors(client: Client, cupti: Cupti, watched: Watched) -> None:
    """The arrays of the descriptors are used; the matrix is read only."""
    new = ctypes.c_int64()
    arguments = (8, 8, 16, MORE_MEMORY, MORE_MEMORY + 1024, MORE_MEMORY + 2048, 2, 2, 0, 0)
    client.call("cusparseCreateCsr", ctypes.byref(new), *arguments)
    matrix = new.value
    vectors = []
    for size, address in ((8, MEMORY), (9, MEMORY + 1024), (10, MEMORY + 2048)):
        client.call("cusparseCreateDnVec", ctypes.byref(new), size, address, 0)
        vectors.append(new.value)
    for stream, y in ((MAIN, vectors[1]), (SIDE, vectors[2])):
        client.during = lambda stream=stream: cupti.launch(stream)
        client.call("cusparseSpMV", 1, 0, HOST, matrix, vectors[0], HOST, y, 0, 0, 0)
    assert watched.found() == []
    client.during = lambda: cupti.launch(MAIN)
    client.call("cusparseSpMV", 1, 0, HOST, matrix, vectors[2], HOST, vectors[1], 0, 0, 0)
    client.during = lambda: None
    assert [(race.previous.label, race.current.label) for race in watched.found()] == [("y.values", "x.values")]


def test_without_the_notes_the_words_of_the_kernel_are_possible_uses(cupti: Cupti, watched: Watched) -> None:
    """What the same launch means outside of a library's call."""
    cupti.launch(MAIN)
    cupti.launch(SIDE)
    assert {race.current.confidence for race in watched.found()} == {"possible"}
