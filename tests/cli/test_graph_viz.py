"""``tcuda graph-viz``: the calls of Graphviz, the messages, and the picture."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tcuda.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable

# The format of cudaGraphDebugDotPrint. A label may have lines that look like another node.
GRAPH = """\
digraph dot {
subgraph cluster_1 {
label="graph_1" graph[style="dashed"];
"graph_1_node_0"[style="solid" shape="rectangle" label="0
MEMCPY
node handle (DtoD,1024)
"];
"graph_1_node_1"[style="bold" shape="octagon" label="1
node \\"square\\"
"];
"graph_1_node_0" -> "graph_1_node_1";
}
}
"""
PLAIN = """\
graph 1 2.6389 2.8079
node graph_1_node_0 1.3194 1.8982 1.625 0.73611 "0
MEMCPY
node handle (DtoD,1024)
" solid rectangle black lightgrey
node graph_1_node_1 1.3194 0.62617 2.1898 0.80789 "1
node \\"square\\"
" bold octagon black lightgrey
edge graph_1_node_0 graph_1_node_1 4 1.3194 1.5244 1.3194 1.4152 1.3194 1.2928 1.3194 1.1747 solid black
stop
"""
# This dot writes its arguments and its input into the picture.
DRAWS = """
if sys.argv[1:] == ["-Tcanon"]:
    sys.exit(sys.stdout.write(sys.stdin.read()) < 0)
(output,) = (argument[2:] for argument in sys.argv if argument.startswith("-o"))
with open(output, "w") as picture:
    picture.write(" ".join(sys.argv[1:]) + "\\n" + sys.stdin.read())
sys.stdout.write({printed!r})
"""
FAILS = """
sys.stderr.write({said!r})
sys.exit(3)
"""


@pytest.fixture
def fake_dot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that makes a ``dot`` of the given code and sets ``PATH`` to the folder of that ``dot``."""

    def make(code: str) -> None:
        folder = tmp_path / "bin"
        folder.mkdir()
        command = folder / "dot"
        command.write_text(f"#!{sys.executable} -S\nimport sys\n{code}")
        command.chmod(0o755)
        monkeypatch.setenv("PATH", str(folder))

    return make


@pytest.fixture
def dumped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of a graph in the current directory."""
    monkeypatch.chdir(tmp_path)
    path = Path("graph.dot")
    path.write_text(GRAPH)
    return path


def test_the_picture_is_written_next_to_the_file(
    dumped: Path, fake_dot: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    fake_dot(DRAWS.format(printed=PLAIN))
    assert main(["graph-viz", str(dumped)]) == 0
    assert capsys.readouterr().out == "graph.svg: 2 nodes\n"
    said, rest = Path("graph.svg").read_text().split("\n", 1)
    assert re.fullmatch(r"-Tsvg -o\S+/graph\.svg -Tplain", said)
    assert rest.startswith(GRAPH)


@pytest.mark.parametrize(
    ("output", "format"), [("other.svg", "svg"), ("other.PNG", "png"), ("-other.pdf", "pdf"), ("./a b.svg", "svg")]
)
def test_the_suffix_names_the_format(
    output: str, format: str, dumped: Path, fake_dot: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    fake_dot(DRAWS.format(printed="graph 1 1 1\nnode a 1 1 1 1 a solid ellipse black lightgrey\nstop\n"))
    assert main(["graph-viz", str(dumped), f"--output={output}"]) == 0
    written = Path(output)
    assert capsys.readouterr().out == f"{written}: 1 node\n"
    assert written.read_text(errors="replace").startswith(f"-T{format} ")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            FAILS.format(said="Error: <stdin>: syntax error in line 1 near 'x'\nand more\n"),
            "dot cannot draw 'graph.dot': Error: <stdin>: syntax error in line 1 near 'x'",
        ),
        (FAILS.format(said=""), "dot cannot draw 'graph.dot': it ended with 3"),
        ("", "'graph.dot' holds no graph. Write one with CUDAGraph.debug_dump()."),
    ],
)
def test_a_failure_of_dot_is_one_line_on_stderr(
    code: str, message: str, dumped: Path, fake_dot: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    fake_dot(code)
    assert main(["graph-viz", str(dumped)]) == 1
    output = capsys.readouterr()
    assert (output.out, output.err) == ("", f"tcuda graph-viz: {message}\n")


def test_without_graphviz_the_command_says_what_to_install(
    dumped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert main(["graph-viz", str(dumped)]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    (line,) = output.err.splitlines()
    assert line.startswith("tcuda graph-viz: The program dot, which draws graphs, is not installed.")
    assert [path.name for path in tmp_path.iterdir()] == ["graph.dot"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent.dot"], "No such file or directory: 'absent.dot'"),
        (["."], "Is a directory: '.'"),
        (["graph.dot", "-o", "graph.gif"], "The suffix of 'graph.gif' names no format; use .svg, .png or .pdf."),
        (["graph.dot", "-o", "graph.dot"], "The suffix of 'graph.dot' names no format; use .svg, .png or .pdf."),
        (["graph.dot", "-o", "absent/graph.svg"], "No such file or directory: 'absent/graph.svg'"),
    ],
)
def test_dot_is_not_run_for_impossible_arguments(
    arguments: list[str],
    message: str,
    dumped: Path,
    fake_dot: Callable[[str], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    fake_dot(FAILS.format(said="dot was asked"))
    assert main(["graph-viz", *arguments]) == 1
    output = capsys.readouterr()
    assert (output.out, output.err) == ("", f"tcuda graph-viz: {message}\n")
    assert dumped.read_text() == GRAPH


def test_the_command_needs_no_cupy_and_no_runtime(dumped: Path, fake_dot: Callable[[str], None]) -> None:
    fake_dot(DRAWS.format(printed=PLAIN))
    code = (
        "import sys; sys.modules['cupy'] = None; from tcuda.cli import main; status = main(); "
        "import tcuda; sys.exit(status or tcuda.is_initialized())"
    )
    command = [sys.executable, "-W", "error", "-c", code, "graph-viz", str(dumped)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert Path("graph.svg").exists()


needs_graphviz = pytest.mark.skipif(shutil.which("dot") is None, reason="needs Graphviz, which is not on this machine")


@needs_graphviz
@pytest.mark.parametrize(("format", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_graphviz_draws_the_graph(format: str, start: bytes, dumped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph-viz", str(dumped), "-o", f"graph.{format}"]) == 0
    assert capsys.readouterr().out == f"graph.{format}: 2 nodes\n"
    assert Path(f"graph.{format}").read_bytes().startswith(start)


@needs_graphviz
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no graph", "dot cannot draw 'graph.dot': Error: <stdin>: syntax error in line 1"),
        ("", "'graph.dot' holds no graph."),
    ],
)
def test_an_error_of_graphviz_is_shown(
    text: str, message: str, dumped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dumped.write_text(text)
    assert main(["graph-viz", str(dumped)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"tcuda graph-viz: {message}")


@needs_graphviz
def test_the_picture_has_no_links(dumped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GV_FILE_PATH", str(tmp_path))
    (tmp_path / "secret.gif").write_bytes(b"GIF89a" + bytes([9, 0, 9, 0]) + bytes(20))
    dumped.write_text(
        """
digraph { stylesheet="http://evil/a.css" URL="javascript:0" label="URL=kept, a \\"b\\" \\\\"
subgraph cluster_0 { href="javascript:1" label="c" x }
x ["U" + "RL" = "javascript" + ":2" image="secret.gif" label="d"]
y [label=<<TABLE HREF="javascript:3"><TR><TD>e</TD></TR></TABLE>>]
x -> y [edgeURL="javascript:4" headURL="javascript:5" tailhref="javascript:6" labelURL="javascript:7" headlabel="f"
        taillabel="g" label="h"]
}"""
    )
    assert main(["graph-viz", str(dumped)]) == 0
    picture = Path("graph.svg").read_text()
    for tag in ("<a ", "<image", "xml-stylesheet"):
        assert tag not in picture
    texts = re.findall("<text[^>]*>([^<]*)</text>", picture)
    assert {"URL=kept, a &quot;b&quot; \\", "c", "d", "f", "g", "h"} <= set(texts)
    # A label with markup, in which there may be links, is shown as text.
    assert any("&lt;TABLE HREF=&quot;javascript:3" in text for text in texts)
