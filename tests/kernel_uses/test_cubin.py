"""The kernels of a cubin, and the program that disassembles them."""

from __future__ import annotations

import base64
import os
import random
import struct
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tcuda import _core

if TYPE_CHECKING:
    from collections.abc import Callable

DATA = Path(__file__).parents[1] / "data" / "sass"
CUBIN = base64.decodebytes((DATA / "small_cubin.txt").read_bytes())
LISTING = r"""
.target sm_90
.section .text.fill,"ax",@progbits
.other fill,@"STO_CUDA_ENTRY STV_DEFAULT"
fill:
/*0000*/ LDC.64 R2, c[0x0][0x218] ;
/*0010*/ LDG.E R5, desc[UR4][R2.64] ;
/*0020*/ LDC.64 R2, c[0x0][0x210] ;
/*0030*/ STG.E desc[UR4][R2.64+0xc], R5 ;
/*0040*/ EXIT ;
"""
PARAMETERS = [(0, 8), (8, 8)]
POINTERS = [(0, "write", False, ""), (8, "read", False, "")]
UNKNOWN = {"fill": (PARAMETERS, [], False)}
KNOWN = {"fill": (PARAMETERS, POINTERS, True)}


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], str]:
    """Make a program that stands in for the disassembler."""

    def made(script: str) -> str:
        path = tmp_path / "nvdisasm"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return str(path)

    return made


@pytest.fixture
def lister(program: Callable[[str], str], tmp_path: Path) -> str:
    """A program that prints a listing if it is given the cubin."""
    (tmp_path / "listing").write_text(LISTING)
    (tmp_path / "cubin").write_bytes(CUBIN)
    return program(f'for file; do :; done\ncmp -s "$file" {tmp_path}/cubin && exec cat {tmp_path}/listing')


def test_parameters_without_a_disassembler() -> None:
    """The parameters stand in the cubin itself."""
    assert _core.uses_of_cubin(CUBIN, None, "/no/such/program") == UNKNOWN
    assert _core.uses_of_cubin(CUBIN, "fill", "/no/such/program") == UNKNOWN
    assert _core.uses_of_cubin(CUBIN, "other", "/no/such/program") == {}


def test_disassembler(lister: str) -> None:
    """The uses come from the listing."""
    assert _core.uses_of_cubin(CUBIN, None, lister) == KNOWN
    assert _core.uses_of_cubin(CUBIN, "fill", lister) == KNOWN


def test_arguments(program: Callable[[str], str], tmp_path: Path) -> None:
    """The disassembler is asked for the sections of one kernel, and gets a small environment."""
    path = program(f'echo "$@" > {tmp_path}/arguments; env > {tmp_path}/environment')
    _core.uses_of_cubin(CUBIN, "fill", path)
    first, *rest = (tmp_path / "arguments").read_text().split()
    assert first == "-c"
    assert rest[0] == "-fun"
    assert rest[1].isdigit()
    names = {line.split("=")[0] for line in (tmp_path / "environment").read_text().splitlines()}
    assert names <= {"PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "PWD", "OLDPWD", "SHLVL", "_"}


@pytest.mark.parametrize(
    "script", ["exit 3", "kill -9 $$", "echo nonsense", "exec cat /dev/zero", f"cat <<END{LISTING}\nEND\nexit 1"]
)
def test_disassemblers_that_fail(program: Callable[[str], str], script: str) -> None:
    """A disassembler that fails tells nothing."""
    assert _core.uses_of_cubin(CUBIN, None, program(script)) == UNKNOWN


@pytest.mark.parametrize("script", ["exec tail -f /dev/null", "exec 1>&-; exec tail -f /dev/null"])
def test_disassemblers_that_hang(program: Callable[[str], str], tmp_path: Path, script: str) -> None:
    """A disassembler that runs for too long is ended."""
    path = program(f"echo $$ > {tmp_path}/child; {script}")
    assert _core.uses_of_cubin(CUBIN, None, path, 0.3) == UNKNOWN
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "child").read_text()), 0)


def test_nothing_stays_behind(output_of: Callable[..., str], lister: str) -> None:
    """No descriptor, file or child stays, in a process that has no others."""
    code = f"""
import os
from tcuda import _core
cubin = bytes.fromhex({CUBIN.hex()!r})
before = os.listdir("/proc/self/fd")
for _ in range(3):
    assert _core.uses_of_cubin(cubin, None, {lister!r})["fill"][2]
print(os.listdir("/proc/self/fd") == before)
try:
    print(os.waitpid(-1, os.WNOHANG))
except ChildProcessError:
    print("no child")
"""
    assert output_of(code) == "True\nno child"


def test_signals_of_the_program(output_of: Callable[..., str], lister: str) -> None:
    """The disassembler runs in programs that ignore or handle SIGCHLD, and the handlers stay."""
    code = f"""
import signal
from tcuda import _core
cubin = bytes.fromhex({CUBIN.hex()!r})
def complete():
    return _core.uses_of_cubin(cubin, None, {lister!r})["fill"][2]
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print(complete(), signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN)
signal.signal(signal.SIGCHLD, lambda *_: None)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD, signal.SIGPIPE])
print(complete(), len(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
"""
    assert output_of(code) == "True True\nTrue 2"


def test_programs_without_standard_streams(lister: str, tmp_path: Path) -> None:
    """The descriptors 0 to 2 of the program may be closed."""
    code = f"""
import os, sys
from tcuda import _core
cubin = bytes.fromhex({CUBIN.hex()!r})
for number in (0, 1, 2):
    os.close(number)
complete = _core.uses_of_cubin(cubin, None, {lister!r})["fill"][2]
os._exit(7 if complete else 8)
"""
    assert _status(code, tmp_path) == 7


def test_forked_children(lister: str, tmp_path: Path) -> None:
    """A forked child can run the disassembler, also if other threads ran it at the time of the fork."""
    code = f"""
import os, threading
from tcuda import _core
cubin = bytes.fromhex({CUBIN.hex()!r})
def complete():
    return _core.uses_of_cubin(cubin, None, {lister!r})["fill"][2]
threads = [threading.Thread(target=lambda: [complete() for _ in range(5)]) for _ in range(3)]
for thread in threads:
    thread.start()
children = []
for _ in range(5):
    child = os.fork()
    if child == 0:
        os._exit(5 if complete() else 6)
    children.append(child)
codes = {{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children}}
for thread in threads:
    thread.join()
os._exit(7 if codes == {{5}} else 8)
"""
    assert _status(code, tmp_path) == 7


def test_forks_during_the_first_analysis(lister: str, tmp_path: Path) -> None:
    """A child of a fork finds all tables of the analysis, also if another thread was making its first analysis."""
    code = f"""
import os, signal, threading
from tcuda import _core
cubin = bytes.fromhex({CUBIN.hex()!r})
def complete():
    return _core.uses_of_cubin(cubin, None, {lister!r})["fill"][2]
def failures():
    first = threading.Thread(target=complete)
    first.start()
    children = []
    while first.is_alive() and len(children) < 60:
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            os._exit(5 if complete() else 6)
        children.append(child)
    first.join()
    return sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 5 for child in children)
for _ in range(20):
    fresh = os.fork()
    if fresh == 0:
        os._exit(failures())
    if os.waitpid(fresh, 0)[1]:
        os._exit(8)
os._exit(7)
"""
    assert _status(code, tmp_path) == 7


def _status(code: str, folder: Path) -> int:
    return subprocess.run([sys.executable, "-c", code], cwd=folder, timeout=120, check=False).returncode


def test_where_the_disassembler_is_found(output_of: Callable[..., str], lister: str, tmp_path: Path) -> None:
    """CUDA_PATH goes before CUDA_HOME, and both before PATH."""
    code = "from tcuda import _core; print(_core.find_disassembler())"
    for name in ("one", "two"):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin" / "nvdisasm").symlink_to(lister)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    homes = {"CUDA_PATH": str(tmp_path / "one"), "CUDA_HOME": str(tmp_path / "two")}
    assert output_of(code, PATH=path, **homes) == f"{tmp_path}/one/bin/nvdisasm"
    assert output_of(code, PATH=path, **{**homes, "CUDA_PATH": "/no"}) == f"{tmp_path}/two/bin/nvdisasm"
    assert output_of(code, PATH=path, CUDA_PATH=None, CUDA_HOME="") == lister


def test_other_bytes() -> None:
    """Bytes of another kind have no kernels."""
    library = Path(_core.__file__).read_bytes()
    for data in (
        b"",
        b"\x7fELF",
        CUBIN[:63],
        CUBIN[:64],
        CUBIN[: len(CUBIN) // 2],
        library[:100000],
        b"\x50\xed\x55\xba" + bytes(100),
    ):
        assert _core.uses_of_cubin(data, None, "/") == {}


def test_sizes_that_overflow() -> None:
    """Offsets and sizes at the end of the numbers do not wrap."""
    for place in (40, *range(len(CUBIN) // 8 * 8 - 2048, len(CUBIN) - 8, 8)):
        for value in (2**64 - 1, 2**63, 2**64 - 64, len(CUBIN)):
            data = bytearray(CUBIN)
            struct.pack_into("<Q", data, place, value)
            _core.uses_of_cubin(bytes(data), None, "/")


@pytest.mark.parametrize("seed", range(4))
def test_damaged_cubins(seed: int) -> None:
    """A damaged cubin ends in some result."""
    chance = random.Random(seed)
    for _ in range(1500):
        data = bytearray(CUBIN)
        for _ in range(chance.randrange(1, 8)):
            place = chance.randrange(len(data))
            if chance.random() < 0.3:
                data[place : place + 4] = struct.pack("<I", chance.choice([0, 1, 2**31, 2**32 - 1, len(data), 64]))
            else:
                data[place] = chance.randrange(256)
        if chance.random() < 0.2:
            data = data[: chance.randrange(len(data))]
        for parameters, pointers, complete in _core.uses_of_cubin(bytes(data), None, "/").values():
            assert all(offset < 65536 and size < 65536 for offset, size in parameters)
            assert pointers == []
            assert not complete


def test_the_preferred_disassembler(output_of: Callable[..., str], lister: str) -> None:
    """The preferred program is used in place of the one that is found, for as long as it exists."""
    code = f"""
from tcuda import _core
cubin = bytes.fromhex({CUBIN.hex()!r})
def complete():
    return _core.uses_of_cubin(cubin)["fill"][2]
before = complete()
_core.prefer_disassembler("/no/such/program")
print(complete() == before)
_core.prefer_disassembler({lister!r})
_core.prefer_disassembler({lister!r})
print(complete())
_core.prefer_disassembler("")
print(complete() == before)
"""
    assert output_of(code, PATH="/usr/bin:/bin", CUDA_PATH=None, CUDA_HOME=None).split() == ["True"] * 3


_WATCHED = """
from tcuda import _core
cubin = bytes.fromhex({cubin!r})
_core.prefer_disassembler({program!r})
def complete(kernel=None):
    return _core.uses_of_watched_cubin(cubin, kernel)["fill"][2]
"""


def test_the_time_of_all_analyses_has_a_limit(output_of: Callable[..., str], lister: str, tmp_path: Path) -> None:
    """A process has 20 seconds. Later the disassembler is not started, and the parameters are known only."""
    counting = Path(lister).read_text().replace("\n", f"\necho >> {tmp_path}/runs\n", 1)
    Path(lister).write_text(counting)
    code = f"""
{_WATCHED.format(cubin=CUBIN.hex(), program=lister)}
before = _core.watched_cubins_seconds()
print(before == 20, complete("fill"), complete(), 0 < _core.watched_cubins_seconds() < before)
_core.set_watched_cubins_seconds(0)
print(_core.uses_of_watched_cubin(cubin), _core.watched_cubins_seconds())
_core.set_watched_cubins_seconds(3)
print(complete(), 0 < _core.watched_cubins_seconds() < 3)
"""
    assert output_of(code).splitlines() == ["True True True True", f"{UNKNOWN} 0.0", "True True"]
    assert len((tmp_path / "runs").read_text()) == 3


def test_an_analysis_ends_with_the_time_of_all_analyses(
    output_of: Callable[..., str], program: Callable[[str], str]
) -> None:
    """A disassembler that hangs uses up the time that is left, in two threads no more than in one."""
    code = f"""
{_WATCHED.format(cubin=CUBIN.hex(), program=program("exec tail -f /dev/null"))}
import threading, time
_core.set_watched_cubins_seconds(0.3)
begin = time.monotonic()
threads = [threading.Thread(target=complete) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
took = time.monotonic() - begin
print(complete(), _core.watched_cubins_seconds(), 0.3 <= took < 4)
"""
    assert output_of(code) == "False 0.0 True"
