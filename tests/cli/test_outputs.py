"""The files that commands write: which files a command replaces, and what is written if a reader is gone."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.environments import environment
from tcuda._base.outputs import PAGE, Kind, require_free
from tcuda.cli import graph_viz, main
from tcuda.demo import train

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = "import sys; print(sys.argv[1:])\n"
DOT = """\
#!{python} -S
import sys
if sys.argv[1:] == ["-Tcanon"]:
    sys.exit(sys.stdout.write(sys.stdin.read()) < 0)
(output,) = (argument[2:] for argument in sys.argv if argument.startswith("-o"))
with open(output, "wb") as picture:
    picture.write({{"svg": b"<?xml ?><svg/>", "png": b"\\x89PNG with a last chunk", "pdf": b"%PDF"}}[output[-3:]])
sys.stdout.write("graph 1 1 1\\nnode a 1 1 1 1 a solid ellipse black lightgrey\\nstop\\n")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a program, a snapshot, a graph, and a ``dot`` that draws graphs."""
    monkeypatch.chdir(tmp_path)
    Path("program.py").write_text(PROGRAM)
    Path("precious.txt").write_text("precious")
    Path("known").write_text("file=program.py")
    Path("snapshot").write_bytes(pickle.dumps([]))
    Path("graph.dot").write_text("digraph { a }")
    os.link("program.py", "hard")
    Path("soft").symlink_to("program.py")
    Path("bin").mkdir()
    Path("bin/dot").write_text(DOT.format(python=sys.executable))
    Path("bin/dot").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize(
    "arguments",
    [
        ["sanitize", "--html", "program.py", "program.py"],
        ["sanitize", "--json=program.py", "program.py"],
        ["sanitize", "--html", "hard", "program.py"],
        ["sanitize", "--html", "soft", "program.py"],
        ["sanitize", "--json=program.py", "soft"],
        ["sanitize", "--html", "new.html", "program.py", "new.html"],
        ["sanitize", "--html", "new.html", "program.py", "--output=./new.html"],
        ["sanitize", "--html", "new", "--json=new", "program.py"],
        ["sanitize", "--html", "precious.txt", "program.py"],
        ["sanitize", "--json=precious.txt", "program.py"],
        ["sanitize", "--json=precious.txt", "-m", "program"],
        ["sanitize", "--suppress", "known", "--html", "known", "program.py"],
        ["memory-viz", "snapshot", "-o", "snapshot"],
        ["memory-viz", "snapshot", "-o", "program.py"],
        ["memory-viz", "program.py", "--compare", "snapshot", "-o", "snapshot"],
        ["graph-viz", "graph.dot", "-o", "taken.svg"],
        ["graph-viz", "graph.dot", "-o", "taken.png"],
        ["graph-viz", "graph.dot", "-o", "taken.pdf"],
        ["graph-viz", "same.svg"],
        ["demo", "--memory-viz", "program.py"],
        ["demo", "--save-at", "1", "--checkpoint", "program.py"],
        ["demo", "--save-at", "1", "--checkpoint", "new", "--memory-viz", "new"],
        ["demo", "--save-at", "1", "--checkpoint", "new", "--memory-viz", "./bin/../new"],
    ],
    ids=" ".join,
)
def test_a_command_takes_the_place_of_no_other_file(
    arguments: Sequence[str], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(train, "train", lambda *_, **__: pytest.fail("it trained"))
    for suffix in ("svg", "png", "pdf"):  # pictures of another program
        Path(f"taken.{suffix}").write_bytes(graph_viz._FORMATS[suffix][0] + b" of somebody else")
    Path("same.svg").write_text("digraph { a }")
    before = contents(folder)
    with pytest.raises(SystemExit) as exit:
        main(arguments)
    assert exit.value.code == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert "would take its place; give another name" in output.err
    assert contents(folder) == before


@pytest.mark.wings
@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        (["sanitize", "--html", "p.html", "--json=p.json", "program.py"], ["p.html", "p.json"]),
        (["memory-viz", "snapshot"], ["snapshot.html"]),
        (["graph-viz", "graph.dot"], ["graph.svg"]),
        (["graph-viz", "graph.dot", "-o", "graph.png"], ["graph.png"]),
        (["graph-viz", "graph.dot", "-o", "graph.pdf"], ["graph.pdf"]),
        (["demo", "--epochs=1", "--save-at=1", "--memory-viz", "p.html"], ["tcuda-demo.npz", "p.html"]),
    ],
    ids=str,
)
def test_an_output_of_the_same_command_is_replaced(arguments: list[str], written: list[str], folder: Path) -> None:
    command = [sys.executable, "-m", "tcuda", *arguments]
    variables = environment(TCUDA_RUNTIME="emulated", PATH=os.environ["PATH"])
    for _ in range(2):
        done = subprocess.run(command, env=variables, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 3), done.stderr
        inodes = [Path(name).stat().st_ino for name in written]
        for name in written:
            shutil.copy(name, f"copy of {name}")  # a file of a new inode, which has the old content
            Path(f"copy of {name}").replace(name)
    assert [Path(name).stat().st_ino for name in written] != inodes


def test_an_empty_file_and_a_device_are_written(folder: Path) -> None:
    Path("empty").touch()
    for name in ("empty", "/dev/null"):
        require_free(Path(name), PAGE)


def test_a_mark_counts_only_in_a_file_that_begins_as_such_files_do(folder: Path) -> None:
    kind = Kind("page", b"<html>", b"made by tcuda")
    quoted = Path("about.py")
    quoted.write_bytes(b"text = '<html>made by tcuda'")
    with pytest.raises(ValueError, match="'about.py' is no page of tcuda"):
        require_free(quoted, kind)
    quoted.write_bytes(b"<html>" + bytes(10_000) + b"made by tcuda</html>")
    require_free(quoted, kind)


def test_the_mark_of_a_png_is_a_chunk_of_text() -> None:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    begin, end = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", bytes(13)), chunk(b"IEND", b"")
    _, mark = graph_viz._FORMATS["png"]
    assert mark(begin + end) == begin + chunk(b"tEXt", b"Software\0tcuda graph-viz") + end


RACY = """\
import tcuda
from tcuda import xp

main, side = tcuda.default_stream(), tcuda.Stream()
x = xp.zeros(1000)
x.fill(1)
with tcuda.stream(side):
    y = x + 1
print("done")
{}
"""


@pytest.mark.emulated
@pytest.mark.parametrize("end", ["", "import os; os._exit(0)"], ids=["return", "os._exit"])
@pytest.mark.parametrize("options", [["--json=report.json"], ["--json"]], ids=str)
def test_a_reader_that_is_gone_loses_no_report(options: list[str], end: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(RACY.format(end))
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "tcuda", "sanitize", "--html=page.html", *options, "program.py"]
    variables = environment(TCUDA_RUNTIME="emulated")
    done = subprocess.run(command, cwd=tmp_path, env=variables, stdout=writer, stderr=writer, check=False)
    os.close(writer)
    assert done.returncode == 1  # because of the race
    assert (tmp_path / "page.html").read_bytes().startswith(PAGE.begin)
    if options != ["--json"]:
        assert len(json.loads((tmp_path / "report.json").read_text())["races"]) == 1


@pytest.mark.emulated
def test_a_reader_that_is_gone_is_no_race(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("from tcuda import xp\nxp.zeros(1)\nprint('done')")
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "tcuda", "sanitize", "program.py"]
    variables = environment(TCUDA_RUNTIME="emulated", PYTHONUNBUFFERED="")  # so that print() does not fail
    done = subprocess.run(command, cwd=tmp_path, env=variables, stdout=writer, stderr=writer, check=False)
    os.close(writer)
    assert done.returncode == 0


@pytest.mark.emulated
def test_the_report_of_an_earlier_run_is_gone_while_the_program_runs(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import os; print(sorted(os.listdir())); os.kill(os.getpid(), 9)")
    (tmp_path / "page.html").write_bytes(PAGE.begin + PAGE.mark)
    (tmp_path / "target").write_bytes(PAGE.begin + PAGE.mark)
    (tmp_path / "link").symlink_to("target")
    for page in ("page.html", "link"):
        command = [sys.executable, "-um", "tcuda", "sanitize", "--html", page, "program.py"]
        variables = environment(TCUDA_RUNTIME="emulated")
        done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == -9
    assert done.stdout == "['link', 'program.py']\n"


@pytest.mark.emulated
def test_a_file_that_the_program_makes_stays(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("from tcuda import xp\nxp.zeros(1)\nopen('own', 'w').write('precious')")
    command = [sys.executable, "-m", "tcuda", "sanitize", "--json=own", "--html=page", "program.py"]
    variables = environment(TCUDA_RUNTIME="emulated")
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "No race in 1 operation." in done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"tcuda sanitize: {str(tmp_path / 'own')!r} is no report")
    assert "wrote page" in done.stderr
    assert (tmp_path / "own").read_text() == "precious"
