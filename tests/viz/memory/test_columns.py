"""Columns of numbers as compressed text."""

from __future__ import annotations

import base64
import zlib

from tcuda._viz.memory.columns import column


def test_a_column_has_the_bytes_of_all_numbers_by_their_place() -> None:
    count, text = column([1, None, (1 << 64) - 2])
    planes = zlib.decompress(base64.urlsafe_b64decode(text), -zlib.MAX_WBITS)
    assert count == 3
    numbers = [int.from_bytes(planes[index::3], "little") for index in range(3)]
    assert numbers == [1, (1 << 64) - 1, (1 << 64) - 2]


def test_a_column_of_small_numbers_is_small() -> None:
    assert len(column(number % 50 for number in range(100_000))[1]) < 20_000
