"""Arrays that JAX and tcuda exchange by DLPack, on a real GPU. The numbers show that each library waits."""

from __future__ import annotations

import importlib.util
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from support.folders import REPOSITORY

if TYPE_CHECKING:
    from support.fixture_types import OutputOf

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not any(importlib.util.find_spec(f"jax_cuda{major}_plugin") for major in (12, 13)),
        reason="needs JAX for CUDA, which tcuda does not need",
    ),
]

# JAX takes most of the memory of the device when JAX begins, so JAX runs in processes of its own.
SETUP = """
import warnings
warnings.simplefilter("default")
import jax
import jax.numpy as jnp
import tcuda
from support.exchanges import arrays, write_late
from tcuda import xp

source, target = arrays()
stream = tcuda.Stream()
jax.block_until_ready(jnp.from_dlpack(source) * 2)  # JAX loads its kernels
"""


@pytest.fixture
def output(output_of: OutputOf) -> OutputOf:
    """Run code after the set-up, in a process whose JAX takes memory when JAX needs memory."""
    tests = str(REPOSITORY / "tests")
    return lambda code, **others: output_of(
        SETUP + dedent(code), PYTHONPATH=tests, XLA_PYTHON_CLIENT_PREALLOCATE="false", **others
    )


def test_jax_waits_for_the_current_stream(output: OutputOf) -> None:
    code = """
        write_late(stream, source)
        with tcuda.stream(stream):
            theirs = jnp.from_dlpack(source)
        doubled = theirs * 2
        print(float(doubled.min()), float(doubled.max()), theirs.unsafe_buffer_pointer() == source.data.ptr)
    """
    assert output(code) == "2.0 2.0 True"


def test_the_current_stream_waits_for_jax(output: OutputOf) -> None:
    code = """
        @jax.jit
        def long_work(x):
            # Each round multiplies by the matrix of ones and by 1 / 4096, which changes no number.
            return jax.lax.fori_loop(0, 60, lambda _, y: (y @ jnp.ones((4096, 4096))) / 4096, x)

        jax.block_until_ready(long_work(jnp.zeros((4096, 4096))))
        with tcuda.stream(stream):
            xp.add(xp.zeros((4096, 4096), "float32"), 1)  # CuPy compiles the kernel
            stream.synchronize()
            result = long_work(jnp.ones((4096, 4096)))
            y = xp.from_dlpack(result) + 1
            print(float(y.min()), float(y.max()))
            print(y.dtype, xp.from_dlpack(result).data.ptr == result.unsafe_buffer_pointer())
    """
    assert output(code).splitlines() == ["2.0 2.0", "float32 True"]


def test_an_array_stays_alive_while_jax_holds_it(output: OutputOf) -> None:
    code = """
        import gc
        before = tcuda.memory_allocated()
        source.fill(5)
        theirs = jnp.from_dlpack(source)
        del source
        gc.collect()
        print(tcuda.memory_allocated() - before, float(theirs.min()))
    """
    assert output(code) == "0 5.0"
