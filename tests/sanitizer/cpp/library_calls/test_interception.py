"""The entries of import tables lead to the core's functions for as long as calls are noted."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from support.core import for_tests
from tcuda import _core

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.stand_in_library import Client, StandIn

_OWN_SCOPE = getattr(os, "RTLD_DEEPBIND", ctypes.DEFAULT_MODE)
"""A library with this mode calls the libraries that it names, and not others that the process has loaded for all."""

GEMM = (0x10, 0, 1, 5, 6, 7, 0x20, 0x1000, 8, 0x2000, 9, 0x30, 0x3000, 10)
BATCHED = (*range(1, 7), 0x20, 0x1000, 2, 9, 2**40, 0x2000, 14, 12, -(2**41), 0x30, 0x3000, 0, 17, 2**42, 20, 21, 22)


@pytest.mark.parametrize("flags", [("-Wl,-z,now,-z,relro",), ("-Wl,-z,lazy,-z,norelro",), ("-Wl,-z,lazy,-z,relro",)])
def test_a_call_is_noted_until_the_end(
    make_client: Callable[..., Client], stand_in: StandIn, flags: tuple[str, ...]
) -> None:
    """The table of a module is replaced and restored, whether the loader has bound and sealed it or not."""
    client = make_client("client_of" + flags[0].replace(",", "").replace("-", ""), *flags)
    _core.begin_library_calls([client.path.name])
    try:
        assert dict(for_tests.intercepted_library_calls())[str(client.path)]
        client.call("cublasSgemm_v2", *GEMM)
        assert [name for name, _ in client.notes] == ["cublasSgemm_v2"]
        assert [stand_in.library.seen_argument(place) for place in range(14)] == list(GEMM)
    finally:
        _core.end_library_calls()
    before = for_tests.counted_library_calls()
    client.call("cublasSgemm_v2", *GEMM)
    assert client.notes == []
    assert for_tests.counted_library_calls() == before
    assert for_tests.intercepted_library_calls() == []
    assert [stand_in.library.seen_argument(place) for place in range(14)] == list(GEMM)


def test_many_arguments_and_the_result_pass(client: Client, stand_in: StandIn) -> None:
    """All 23 arguments reach the library, and the caller gets the library's result."""
    stand_in.library.let_calls_return(-7)
    try:
        assert client.call("cublasGemmStridedBatchedEx", *BATCHED) == -7
    finally:
        stand_in.library.let_calls_return(0)
    assert [stand_in.library.seen_argument(place) for place in range(23)] == list(BATCHED)


def test_floating_point_arguments_pass(client: Client, stand_in: StandIn) -> None:
    """Numbers of both sizes reach the library."""
    client.call("curandGenerateNormal", 1, 0x4000, 12, ctypes.c_float(0.25), ctypes.c_float(-3.5))
    assert [stand_in.library.seen_number(place) for place in range(2)] == [0.25, -3.5]
    client.call("curandGenerateLogNormalDouble", 1, 0x4000, 12, ctypes.c_double(0.1), ctypes.c_double(-1e300))
    assert [stand_in.library.seen_number(place) for place in range(2)] == [0.1, -1e300]
    assert [stand_in.library.seen_argument(place) for place in range(3)] == [1, 0x4000, 12]


def test_the_last_end_restores(client: Client) -> None:
    """Two users of the interception do not end each other's."""
    _core.begin_library_calls()
    _core.end_library_calls()
    client.call("cublasSgemm_v2", *GEMM)
    assert client.notes != []


def test_an_end_too_many_does_nothing(make_client: Callable[..., Client]) -> None:
    """An end without a begin leaves the next begin alone."""
    client = make_client("client_of_ends")
    _core.end_library_calls()
    _core.begin_library_calls([client.path.name])
    client.call("cublasSgemm_v2", *GEMM)
    _core.end_library_calls()
    assert client.notes != []


def test_a_module_that_is_loaded_later_is_found(make_client: Callable[..., Client]) -> None:
    """A look finds the module."""
    _core.begin_library_calls(["late_client"])
    try:
        client = make_client("late_client")
        client.call("cublasSgemm_v2", *GEMM)
        assert client.notes == []
        _core.look_for_library_calls()
        client.call("cublasSgemm_v2", *GEMM)
        assert client.notes != []
    finally:
        _core.end_library_calls()


def test_other_modules_are_left_alone(client: Client, make_client: Callable[..., Client]) -> None:
    """A module whose path was not named keeps its table."""
    other = make_client("unnamed")
    _core.look_for_library_calls()
    other.call("cublasSgemm_v2", *GEMM)
    assert other.notes == []


def test_no_look_without_an_interception(make_client: Callable[..., Client]) -> None:
    """A look does nothing before the first begin."""
    make_client("client_before")
    _core.look_for_library_calls()
    assert for_tests.intercepted_library_calls() == []


def test_threads_call_while_the_tables_change(shared_client: Client, stand_in: StandIn) -> None:
    """No call is lost or goes wrong while the interception begins and ends."""
    function = shared_client.module.client_cublasDscal_v2
    stop = threading.Event()

    def run() -> int:
        wrong = 0
        while not stop.is_set():
            wrong += sum(function(1, 2, 3, 4, 5) != 0 for _ in range(50))
        return wrong

    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(run) for _ in range(4)]
        try:
            for _ in range(300):
                _core.begin_library_calls([str(shared_client.path)])
                assert for_tests.intercepted_library_calls()
                _core.end_library_calls()
        finally:
            stop.set()
        assert [run.result() for run in runs] == [0] * 4


def test_notes_belong_to_the_thread_and_end_with_the_call(client: Client) -> None:
    """A call leaves no notes behind."""
    client.call("cublasSgemm_v2", *GEMM)
    assert for_tests.noted_memory() == []


def test_a_caller_without_an_import_table(stand_in: StandIn) -> None:
    """ctypes calls a function by its address: the caller asks for the function that notes the memory."""
    function = stand_in.library.cublasDscal_v2
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    noting = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int64] * 5)(_core.noting_function("cublasDscal_v2", address))
    notes: list[Any] = []
    observer = ctypes.CFUNCTYPE(None)(lambda: notes.append(for_tests.noted_memory()))
    stand_in.library.observe_calls(observer)
    try:
        assert noting(1, 2, 0, 0x1000, 1) == 0
    finally:
        stand_in.library.observe_calls(ctypes.CFUNCTYPE(None)(0))
    assert notes == [[("cublasDscal_v2", [("x", "both", 0x1000, (8, [(2, 8)]))])]]
    assert _core.noting_function("cublasUnknown", 4711) == 4711


def test_whether_calls_are_noted() -> None:
    """The answer is for callers that have a faster way without notes."""
    assert not _core.notes_library_calls()
    _core.begin_library_calls()
    assert _core.notes_library_calls()
    _core.end_library_calls()
    assert not _core.notes_library_calls()


THRUST = r"""
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>
static void (*observer)();
__attribute__((noinline)) void thrust_sort(int type, void *data, size_t *keys, const std::vector<ptrdiff_t> &shape,
                                           intptr_t stream, void *memory) {
    observer();
    throw std::runtime_error("no device");
}
extern "C" int sort_and_catch(void (*function)(), int rows, int columns) {
    observer = function;
    try {
        const std::vector<ptrdiff_t> shape{rows, columns};
        thrust_sort(9, (void *)0x1000, (size_t *)0x2000, shape, 0, nullptr);
    } catch (const std::runtime_error &) {
        return 1;
    }
    return 0;
}
"""


def test_a_module_that_calls_its_own_function(tmp_path: Path) -> None:
    """CuPy's modules have Thrust's functions and call them through their own table; exceptions pass through."""
    if shutil.which("c++") is None:
        pytest.skip("needs a C++ compiler")
    source, path = tmp_path / "sorts.cpp", tmp_path / "own_sorts.so"
    source.write_text(THRUST)
    command = ["c++", "-shared", "-fPIC", "-fno-inline", "-o", str(path), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    sort = ctypes.CDLL(str(path)).sort_and_catch
    notes: list[Any] = []
    observer = ctypes.CFUNCTYPE(None)(lambda: notes.append(for_tests.noted_memory()))
    _core.begin_library_calls(["own_sorts"])
    try:
        assert sort(observer, 3, 5) == 1
        assert for_tests.noted_memory() == []
    finally:
        _core.end_library_calls()
    assert sort(observer, 3, 5) == 1
    ((name, memory),), last = notes
    assert last == []
    assert name.startswith("_Z11thrust_sort")
    assert memory == [("data", "both", 0x1000, (4, [(15, 4)])), ("keys", "both", 0x2000, (8, [(15, 8)]))]


def test_two_versions_of_a_library(tmp_path: Path) -> None:
    """CuPy's and torch's versions of a library may be loaded together; each caller keeps its own version."""
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    calls = []
    for version in (1, 2, 3):
        library, client = tmp_path / f"libversion{version}.so", tmp_path / f"versioned_client{version}.so"
        sources = {
            library: f"int cublasDcopy_v2(void *h, int n, void *x, int i, void *y, int j) {{ return {version} * n; }}",
            client: "int cublasDcopy_v2(void *h, int n, void *x, int i, void *y, int j);"
            "int copy(int n) { return 1000 + cublasDcopy_v2(0, n, 0, 1, 0, 1); }",
        }
        for path, text in sources.items():
            source = path.with_suffix(".c")
            source.write_text(text)
            others = [str(library), f"-Wl,-rpath,{tmp_path}"] if path is client else [f"-Wl,-soname,{library.name}"]
            subprocess.run(["cc", "-shared", "-fPIC", "-o", str(path), str(source), *others], check=True)
        calls.append(ctypes.CDLL(str(client), mode=_OWN_SCOPE).copy)
    _core.begin_library_calls(["versioned_client"])
    try:
        intercepted = [names for path, names in for_tests.intercepted_library_calls() if "versioned_client" in path]
        before = for_tests.counted_library_calls().get("cublasDcopy_v2", 0)
        assert [call(10) for call in calls] == [1010, 1020, 1030]
        assert for_tests.counted_library_calls()["cublasDcopy_v2"] - before == 2
        assert sorted(intercepted) == [[], ["cublasDcopy_v2"], ["cublasDcopy_v2"]]
    finally:
        _core.end_library_calls()
    assert [call(10) for call in calls] == [1010, 1020, 1030]


LAST_CALLS = r"""
#include <pthread.h>
int cublasDscal_v2(void *handle, int n, const double *alpha, double *x, int incx);
static pthread_key_t key;
static int last;
static void end(void *value) { last = 1 + cublasDscal_v2(0, 1, 0, value, 1); }
static void *run(void *value) {
    cublasDscal_v2(0, 1, 0, value, 1);
    pthread_setspecific(key, value);
    return 0;
}
int run_thread(void) {
    pthread_t thread;
    pthread_key_create(&key, end);
    pthread_create(&thread, 0, run, &key);
    pthread_join(thread, 0);
    pthread_key_delete(key);
    return last;
}
"""


def test_a_call_at_the_end_of_a_thread(stand_in: StandIn, tmp_path: Path) -> None:
    """A library may call another one when the variables of the thread are gone: the call has no notes."""
    source, path = tmp_path / "last_calls.c", tmp_path / "last_calls.so"
    source.write_text(LAST_CALLS)
    command = ["cc", "-shared", "-fPIC", "-pthread", "-o", str(path), str(source), str(stand_in.path)]
    subprocess.run([*command, f"-Wl,-rpath,{stand_in.folder}"], check=True)
    run_thread = ctypes.CDLL(str(path)).run_thread
    notes: list[Any] = []
    observer = ctypes.CFUNCTYPE(None)(lambda: notes.append(for_tests.noted_memory()))
    stand_in.library.observe_calls(observer)
    _core.begin_library_calls(["last_calls"])
    try:
        assert run_thread() == 1
    finally:
        _core.end_library_calls()
        stand_in.library.observe_calls(ctypes.CFUNCTYPE(None)(0))
    assert [len(scopes) for scopes in notes] == [1, 0]
