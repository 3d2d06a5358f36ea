"""Ctrl-C in commands: one line or none, the status 130, and no traceback."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from support.environments import environment
from tcuda.cli import main
from tcuda.cli.interrupt import interruptible
from tcuda.demo import train

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Python installs no handler for Ctrl-C in a process that is started in the background. The test run may be such a
# process, so the programs install the handler.
WITH_CTRL_C = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from tcuda.cli import main; sys.exit(main())"
)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


def test_interrupted_training_ends_with_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = iter([train.train_step] * 3)

    def step(*arguments: Any) -> None:
        try:
            next(steps)(*arguments)
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr(train, "train_step", step)
    assert main(["demo"]) == 130
    output = capsys.readouterr()
    assert (output.out, output.err) == ("", "tcuda: interrupted\n")


def test_ctrl_c_ends_the_process_with_130(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WITH_CTRL_C, "demo", "--epochs", "1000000"],
        cwd=tmp_path,
        env=dict(os.environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert any(line.startswith("epoch ") for line in process.stdout)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert errors == "tcuda: interrupted\n"


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_in_a_destructor_is_not_lost() -> None:
    class Interrupted:
        def __del__(self) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), interruptible():  # noqa: PT012 - the first line must not raise
        Interrupted()
        assert threading.Event().wait(60), "the interrupt was lost"


def test_other_errors_in_destructors_are_reported_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)

    class Broken:
        def __del__(self) -> None:
            raise ZeroDivisionError

    with interruptible():
        Broken()
    assert [unraisable.exc_type for unraisable in reported] == [ZeroDivisionError]
    with contextlib.suppress(KeyboardInterrupt), interruptible():
        raise KeyboardInterrupt
    assert sys.unraisablehook == reported.append


# The program raises the signal at the n-th import or call, so that every run is interrupted at the same moments. The
# count starts when the command lets Ctrl-C end the process: Python itself reports an earlier interrupt.
INTERRUPTED_AT = """
import signal, sys

moment, by, *arguments = sys.argv[1:]
sys.argv[1:] = arguments
signal.signal(signal.SIGINT, signal.default_int_handler)
left, begun = int(moment), False

def count():
    global left, begun
    begun = begun or signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    if begun:
        left -= 1
        if left == 0:
            signal.raise_signal(signal.SIGINT)

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        count()

if by == "import":
    sys.meta_path.insert(0, Finder)
else:
    sys.setprofile(lambda frame, event, argument: count() if event == "call" else None)

from tcuda.cli import command

command()
"""


@pytest.mark.wings
@pytest.mark.long
@pytest.mark.parametrize(
    ("by", "moments"),
    [
        ("import", (1, 2, 30, 80, 150, 300, 450, 600)),
        ("call", (1, 10, 1000, 10_000, 40_000, 100_000, 300_000, 500_000)),
    ],
)
def test_ctrl_c_at_any_moment_prints_no_traceback(by: str, moments: tuple[int, ...], tmp_path: Path) -> None:
    ends = set()
    for moment in moments:
        done = subprocess.run(
            [sys.executable, "-c", INTERRUPTED_AT, str(moment), by, "demo", "--epochs", "1"],
            cwd=tmp_path,
            env=environment(TCUDA_RUNTIME="emulated"),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert (done.returncode, done.stderr) in [(-signal.SIGINT, ""), (130, "tcuda: interrupted\n"), (0, "")], moment
        ends.add(done.returncode)
    assert -signal.SIGINT in ends


@pytest.mark.long
def test_the_handler_of_another_program_for_ctrl_c_stays(tmp_path: Path) -> None:
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); import tcuda, tcuda.cli; "
        "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler; "
        "tcuda.cli.main(['info']); assert signal.getsignal(signal.SIGINT) is signal.default_int_handler; "
        "signal.signal(signal.SIGINT, signal.SIG_IGN); tcuda.cli.main(['info']); "
        "assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN"
    )
    script = tmp_path / "train"
    script.write_text(code)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_import_leaves_ctrl_c_alone_whatever_the_name_of_the_program(tmp_path: Path) -> None:
    script = tmp_path / "bin" / "tcuda"
    script.parent.mkdir()
    script.write_text(
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); import tcuda, tcuda.cli; "
        "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_ignored_ctrl_c_stays_ignored(tmp_path: Path) -> None:
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); sys.argv[1:] = ['info']; "
        "from tcuda.cli import main; assert main() == 0; assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_error_caused_by_an_interrupt_is_treated_as_the_interrupt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def step(*arguments: Any) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as interrupt:
            raise TypeError("Error calling __set_name__") from interrupt

    monkeypatch.setattr(train, "train_step", step)
    assert main(["demo"]) == 130
    assert capsys.readouterr().err == "tcuda: interrupted\n"
