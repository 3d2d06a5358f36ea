"""The error for a capture that does not wait for the work of a stream."""

from __future__ import annotations

from typing import Any

import pytest

import tcuda
from tcuda._base.errors import AcceleratorError, UnjoinedStream
from tcuda._base.user_code import Place
from tcuda.sanitizer._unjoined import with_streams

pytestmark = pytest.mark.emulated


def test_the_streams_and_the_lines_of_their_last_calls_are_named(xp: Any) -> None:
    x, graph = xp.zeros(10), tcuda.CUDAGraph()
    left, joined, pair = tcuda.Stream(), tcuda.Stream(), [tcuda.Stream()]
    with pytest.raises(tcuda.AcceleratorError) as caught, tcuda.graph(graph):  # noqa: PT012  # the end raises the error
        main = tcuda.current_stream()
        for stream in (left, joined, *pair):
            stream.wait_stream(main)
            with tcuda.stream(stream):
                x + 1
        del stream
        with tcuda.stream(left):
            x + 2
            line = test_the_streams_and_the_lines_of_their_last_calls_are_named.__code__.co_firstlineno + 11
        main.wait_stream(joined)
    assert caught.value.error_code == 904
    assert caught.value.details == (
        f"The capture does not wait for the work of `left`; its last call is in line {line} of test_unjoined.py. "
        "Call `main.wait_stream(left)` before the capture ends. "
        f"The capture does not wait for the work of `pair[0]`; its last call is in line {line - 3} of "
        "test_unjoined.py. Call `main.wait_stream(pair[0])` before the capture ends."
    )


def test_a_stream_without_a_name_and_without_a_line_has_its_handle() -> None:
    error = AcceleratorError(904, "cudaStreamEndCapture(0x10)")
    error._unjoined = (UnjoinedStream(0, 0xABCD0, None),)
    assert with_streams(error, (0, 0xABCE0)).details == (
        "The capture does not wait for the work of the stream 0xabcd0. Call "
        "`<the stream 0xabce0>.wait_stream(<the stream 0xabcd0>)` before the capture ends."
    )


def test_an_error_of_a_runtime_that_knows_no_streams_stays_as_it_is() -> None:
    error = AcceleratorError(904)
    assert with_streams(error, (0, 0)) is error


def test_a_cell_of_a_notebook_is_named() -> None:
    error = AcceleratorError(904)
    error._unjoined = (UnjoinedStream(0, 0xABCD0, Place("<ipython-input-6-0a1b2c>", 2, "<module>")),)
    assert "; its last call is in cell [6], line 2. " in with_streams(error, (0, 0)).details
