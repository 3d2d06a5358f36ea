"""``tcuda memory-viz``: the files that the command writes, and the messages about bad arguments and files."""

from __future__ import annotations

import subprocess
import sys
import webbrowser
from pathlib import Path

import pytest

from support.snapshots import (
    LOAD,
    alloc,
    frame,
    free,
    nasty,
    snapshot,
    two_devices,
    write,
)
from tcuda._viz.memory import page
from tcuda.cli import main
from tcuda.cli.snapshot_server import SnapshotServer


def test_the_command_writes_a_page_next_to_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "snapshot.pickle", two_devices())
    assert main(["memory-viz", str(path)]) == 0
    output = tmp_path / "snapshot.html"
    assert capsys.readouterr().out == (
        f"{output}: 13 events, 3 segments, 18.0 MiB allocated at the peak on device 0\n"
        "At the peak, two sites hold 100 % of the memory: step (train.py:5) 56 %, load (train.py:3) 44 %.\n"
    )
    assert output.read_text(encoding="utf-8") == page(two_devices(), "snapshot.pickle")


def test_the_command_writes_to_the_given_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "snapshot.pickle", nasty())
    assert main(["memory-viz", str(path), "-o", str(tmp_path / "page")]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"{tmp_path / 'page'}: 2 events, 1 segment, 512 B allocated at the peak"
    assert second.startswith("At the peak, one site holds 100 % of the memory: </script>")
    assert second.isprintable()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["page", "snapshot.pickle"]


def test_the_command_prints_the_difference_of_two_snapshots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = [alloc(1, 3 << 20), alloc(2, 5 << 20, LOAD), *free(2, 5 << 20), alloc(3, 1024, [frame("new")])]
    first = write(tmp_path / "first.pickle", snapshot(traces=[[alloc(1, 2 << 20), alloc(2, 5 << 20, LOAD)]]))
    second = write(tmp_path / "second.pickle", snapshot(traces=[more, [alloc(1, 7)]]))
    assert main(["memory-viz", str(first), "--compare", str(second)]) == 0
    lines = capsys.readouterr().out.splitlines()
    start = lines.index("Device 0, from first.pickle to second.pickle:")
    assert [line.rstrip() for line in lines[start + 1 :]] == [
        "+1.0 MiB at the peak, from 7.0 MiB to 8.0 MiB",
        "-4.0 MiB at the end, from 7.0 MiB to 3.0 MiB",
        "    peak   before    after       end  site",
        "+1.0 MiB  2.0 MiB  3.0 MiB  +1.0 MiB  step (train.py:5)",
        "     0 B  5.0 MiB  5.0 MiB  -5.0 MiB  load (train.py:3)",
        "     0 B      0 B      0 B  +1.0 KiB  new (train.py:1)",
        "",
        "Device 1, from first.pickle to second.pickle:",
        "+7 B at the peak, from 0 B to 7 B",
        "+7 B at the end, from 0 B to 7 B",
        "peak  before  after   end  site",
        "+7 B     0 B    7 B  +7 B  step (train.py:5)",
    ]
    assert (tmp_path / "first.html").exists()


def test_a_snapshot_does_not_differ_from_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "snapshot.pickle", snapshot(traces=[[alloc(1, 100)]]))
    assert main(["memory-viz", str(path), "--compare", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "0 B at the peak, from 100 B to 100 B",
        "0 B at the end, from 100 B to 100 B",
        "No site has another number of bytes at the peak or at the end.",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["good.html", "-o", "x.html", "--compare", "absent"], "No such file or directory: 'absent'"),
        (
            ["good.html", "-o", "x.html", "--compare", "bad"],
            "'bad' holds no allocator snapshot: it is a int, not a dict.",
        ),
        (["absent"], "No such file or directory: 'absent'"),
        (["."], "Is a directory: '.'"),
        (["good.html", "-o", "no/such/folder"], "No such file or directory: 'no/such/folder'"),
        (["bad"], "'bad' holds no allocator snapshot: it is a int, not a dict. Write one with"),
    ],
)
def test_a_failed_command_is_one_line_on_stderr(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    before = write(Path("good.html"), two_devices()).read_bytes()
    write(Path("bad"), 5)
    assert main(["memory-viz", *arguments]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    (line,) = output.err.splitlines()
    assert line.startswith(f"tcuda memory-viz: {message}")
    assert Path("good.html").read_bytes() == before


def test_the_command_needs_no_cupy_and_no_runtime(tmp_path: Path) -> None:
    path = write(tmp_path / "snapshot.pickle", two_devices())
    code = (
        "import sys; sys.modules['cupy'] = None; from tcuda.cli import main; status = main(); "
        "import tcuda; sys.exit(status or tcuda.is_initialized())"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, "memory-viz", str(path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "snapshot.html").exists()


def test_the_page_is_opened_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    path = write(tmp_path / "snapshot.pickle", two_devices())
    assert main(["memory-viz", str(path), "--open"]) == 0
    assert opened == [(tmp_path / "snapshot.html").as_uri()]


def test_the_address_is_printed_if_no_browser_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    path = write(tmp_path / "snapshot.pickle", two_devices())
    assert main(["memory-viz", str(path), "--open"]) == 0
    address = (tmp_path / "snapshot.html").as_uri()
    assert capsys.readouterr().out.endswith(f"There is no browser to open; the page is at {address}\n")


def test_without_a_file_the_command_serves_until_an_interrupt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(_: SnapshotServer) -> None:
        raise KeyboardInterrupt

    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: [opened.append(address)])
    monkeypatch.setattr(SnapshotServer, "serve_forever", interrupt)
    assert main(["memory-viz", "--open"]) == 0
    assert capsys.readouterr().out.startswith(f"Drop a snapshot on {opened[0]} (Ctrl-C ends the command)\n")


def test_without_a_file_and_without_a_person_the_command_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(SnapshotServer, "serve_forever", lambda _: pytest.fail("the command would wait for ever"))
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    with pytest.raises(SystemExit) as stopped:
        main(["memory-viz"])
    assert stopped.value.code == 2
    assert (
        "FILE is missing. To serve a page for dropped files without a terminal, add --open" in capsys.readouterr().err
    )
    assert main(["memory-viz", "--open"]) == 1
    assert "there is no browser and no terminal. Name the file." in capsys.readouterr().err
