"""Kernels whose instructions the processor refuses, which end the launch and not the process."""

from __future__ import annotations

import shutil
import signal
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.fixture_types import OutputOf, RunPython

pytestmark = [
    pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler"),
    pytest.mark.emulated,
]

START = r"""
import ctypes, faulthandler, os, signal, sys, threading
import tcuda.emulation
tcuda.emulation.enable()
xp = tcuda.emulation.xp

CODE = '''
__device__ int deep(int n, const int* x) {
    int part[100];
    part[n & 63] = n;
    return n == 0 ? x[0] : deep(n - 1, x) + part[x[1] & 63];
}
extern "C" __global__ void f(int* x) { BODY }
'''

def status_of(body, x):
    try:
        xp.RawKernel(CODE.replace("BODY", body), "f")((2,), (40,), (x,))
        tcuda.synchronize()
    except tcuda.AcceleratorError as error:
        assert "in f" in error.details, error.details
        return error.error_code
    return 0

x = xp.zeros(64, dtype=xp.int32)
"""
CALL = '"((void (*)())(long)x[0])();"'

BODIES = {
    "a call of a null pointer": ("((void (*)())(long)x[0])();", 719),
    "a call of data": ("((void (*)())(x + 1))();", 719),
    "a free of an array": ("free(x);", 719),
    "a delete of a part of an array": ("delete (x + 32);", 719),
    "two frees": ("void* p = malloc(16); *(void**)(x + 2) = p; free(p); free(p);", 719),
    "a local array": ("int a[4]; int* p = a + x[1]; for (int i = 0; i < 300; ++i) p[i] = i; x[2] = a[1];", (700, 719)),
    "a far place of a local array": ("int a[4]; int* p = a - (1 << 18) - x[1]; p[0] = 1; x[2] = a[1];", (0, 700, 719)),
    "an endless recursion": ("x[2] = deep(x[1] - 1, x);", 719),
    "a trap of the compiler": ("if (x[0] == 0) __builtin_trap();", 719),
    "a text of printf": ('printf("%s", (const char*)(long)(x[0] + 8));', 700),
    "a null pointer": ("*(int*)(long)x[0] = 1;", 719),
    "a number that is no address": ("*(int*)(0x3ff0000000000000 + x[0]) = 1;", 700),
    "an address without memory": ("*(int*)(0x10000 + x[0]) = 1;", 700),
    "a constant text": ('((char*)"text")[x[0]] = 1;', (0, 700)),
}


@pytest.mark.parametrize("checks", ["1", "0"])
@pytest.mark.parametrize("what", BODIES)
def test_a_refused_instruction_ends_the_launch(what: str, checks: str, output_of: OutputOf) -> None:
    body, status = BODIES[what]
    again = "status_of('x[threadIdx.x] = 1;', x), x.tolist() == [1] * 40 + [0] * 24"
    code = f"{START}\nprint(status_of({body!r}, x), {again})"
    first, second, same = output_of(code, TCUDA_RUNTIME="emulated", TCUDA_EMULATED_CHECKS=checks).split()
    assert int(first) in (status if isinstance(status, tuple) else (status,))
    assert second == "0"
    assert same == "True" or "array" in what


def test_several_threads_survive(output_of: OutputOf) -> None:
    code = f"""{START}
arrays = [xp.zeros(64, dtype=xp.int32) for _ in range(4)]
found = []
def work(x):
    for _ in range(20):
        found.append(status_of({CALL}, x))
        found.append(status_of("x[1] = 1;", x))
threads = [threading.Thread(target=work, args=(x,)) for x in arrays]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sorted(found) == [0] * 80 + [719] * 80)
"""
    assert output_of(code, TCUDA_RUNTIME="emulated") == "True"


@pytest.mark.parametrize("when", ["never", "before", "after"])
@pytest.mark.parametrize("crash", ["ctypes.string_at(0)", "os.kill(os.getpid(), signal.SIGSEGV)"])
def test_other_crashes_end_the_process_as_before(crash: str, when: str, run_forked: RunPython) -> None:
    enable = "faulthandler.enable()"
    code = f"""{START}
{enable if when == "before" else "faulthandler.disable()"}
status_of("x[1] = 1;", x)
{enable if when == "after" else ""}
print(status_of({CALL}, x), flush=True)
{crash}
"""
    done = run_forked(code, TCUDA_RUNTIME="emulated")
    assert done.stdout.split() == ["719"]
    assert done.returncode in (-11, 139)
    if when == "before" or (when == "after" and "ctypes" in crash):
        assert "Fatal Python error: Segmentation fault" in done.stderr


@pytest.mark.parametrize("crash", ["ctypes.string_at(8)", "ctypes.memset(ctypes.pythonapi.Py_GetVersion, 1, 1)"])
def test_a_crash_after_the_end_of_a_later_faulthandler_ends_the_process(crash: str, run_python: RunPython) -> None:
    done = run_python(
        f"""{START}
signal.alarm(30)  # ends an endless loop
for _ in range(2):
    status_of("x[1] = 1;", x)
    faulthandler.enable()
    status_of("x[1] = 1;", x)
    faulthandler.disable()
{crash}
""",
        TCUDA_RUNTIME="emulated",
    )
    assert (done.returncode, done.stderr) == (-signal.SIGSEGV, "")


def test_a_crash_under_a_faulthandler_between_launches_is_reported_once(run_python: RunPython) -> None:
    launch = 'status_of("x[1] = 1;", x)'
    done = run_python(
        f"{START}\nsignal.alarm(30)\n{launch}\nfaulthandler.enable()\n{launch}\nctypes.string_at(8)",
        TCUDA_RUNTIME="emulated",
    )
    assert done.returncode == -signal.SIGSEGV
    assert done.stderr.count("Segmentation fault") == 1
    assert "string_at" in done.stderr


def test_watched_pages_and_refused_instructions_have_handlers_of_their_own(output_of: OutputOf) -> None:
    code = f"""{START}
import mmap
from tcuda._core import for_tests
if not for_tests.watches_pages():
    print("True"), sys.exit()
pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
seen, found = [], []
for order in range(3):
    if order == 1:
        found.append(status_of({CALL}, x))
    for_tests.watch_pages([(address, address + mmap.PAGESIZE, True)], lambda place, write: seen.append(place - address))
    found.append(status_of({CALL}, x))
    pages[5]
    found.append(status_of({CALL}, x))
    for_tests.end_watch_of_pages()
    found.append(status_of({CALL}, x))
print(seen == [5] * 3 and found == [719] * 10)
"""
    assert output_of(code, TCUDA_RUNTIME="emulated") == "True"
