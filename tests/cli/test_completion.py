"""``tcuda completion``: the scripts for shells."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tcuda.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def completed(capsys: pytest.CaptureFixture[str]) -> Callable[..., list[str]]:
    """Return the words with which bash completes a command line."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("needs bash")

    def completed(*words: str) -> list[str]:
        assert main(["completion", "bash"]) == 0
        script = capsys.readouterr().out
        line = f'{script}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tcuda; printf "%s\\n" "${{COMPREPLY[@]}}"'
        done = subprocess.run([bash, "-c", line, "bash", *words], capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return done.stdout.split()

    return completed


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["tcuda", "d"], ["doctor", "demo"]),
        (["tcuda", "info", "--"], ["--help", "--json"]),
        (["tcuda", "memory-viz", "--c"], ["--compare"]),
        (["tcuda", "completion", "z"], ["zsh"]),
        (["tcuda", "sanitize", "prog"], []),
    ],
)
def test_bash_completes_commands_and_options(
    words: list[str], found: list[str], completed: Callable[..., list[str]]
) -> None:
    assert completed(*words) == found


def test_zsh_gets_the_script_of_bash(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == main(["completion", "zsh"]) == 0
    bash, start, zsh = capsys.readouterr().out.partition("autoload -Uz bashcompinit && bashcompinit\n")
    assert start
    assert zsh == bash


def test_fish_gets_the_options_of_each_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "fish"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("complete -c tcuda -n __fish_use_subcommand -a 'info doctor demo ")
    assert "complete -c tcuda -n '__fish_seen_subcommand_from demo' -l epochs" in lines
    assert "complete -c tcuda -n '__fish_seen_subcommand_from demo' -s h" in lines
    assert "complete -c tcuda -n '__fish_seen_subcommand_from completion' -a fish" in lines


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("tcuda d", ["demo", "doctor"]),
        ("tcuda --v", ["--version"]),
        ("tcuda memory-viz --c", ["--compare"]),
        ("tcuda completion z", ["zsh"]),
    ],
)
def test_fish_completes_commands_and_options(
    line: str, found: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    fish = shutil.which("fish")
    if fish is None:
        pytest.skip("needs fish")
    assert main(["completion", "fish"]) == 0
    command = [fish, "--no-config", "-c", f"{capsys.readouterr().out}complete -C {line!r}"]
    home = {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=home, capture_output=True, text=True, check=True)
    assert sorted(done.stdout.split()) == found


def test_an_unknown_shell_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(["completion", "tcsh"])
    assert exit.value.code == 2
    assert "invalid choice: 'tcsh'" in capsys.readouterr().err
