"""What notebooks show: the cells of a notebook run in a kernel of Jupyter, and the objects show themselves as HTML."""

from __future__ import annotations

import html
import os
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.folders import REPOSITORY

nbclient = pytest.importorskip("nbclient", reason="needs nbclient, which runs the cells of notebooks")
nbformat = pytest.importorskip("nbformat")

if TYPE_CHECKING:
    from pathlib import Path

PAGE = (REPOSITORY / "docs" / "editors-and-notebooks.md").read_text()
WITH_DOT = pytest.mark.skipif(shutil.which("dot") is None, reason="needs Graphviz, which is not on this machine")


def run_cells(folder: Path, *cells: str) -> list[dict[str, Any]]:
    """Run the cells of a notebook, and return the data of the last output of each cell, by MIME type."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    resources = {"metadata": {"path": str(folder)}}
    client = nbclient.NotebookClient(notebook, timeout=240, kernel_name="python3", resources=resources)
    client.execute(env={**os.environ, "TCUDA_RUNTIME": os.environ["TCUDA_RUNTIME"]})
    outputs = [[output for output in cell["outputs"] if "data" in output] for cell in notebook["cells"]]
    return [dict(found[-1]["data"]) if found else {} for found in outputs]


def page_in(shown: dict[str, Any]) -> str:
    """Return the page in the frame that a cell shows."""
    found = re.fullmatch(
        r'<iframe srcdoc="([^"]*)" title="[^"]*" sandbox="allow-scripts" style="[^"]*"></iframe>', shown["text/html"]
    )
    assert found is not None
    return html.unescape(found[1])


@pytest.mark.wings
@pytest.mark.long
def test_the_cells_of_a_notebook_show_tables_pages_and_texts(tmp_path: Path) -> None:
    cells = (
        "import tcuda\nxp = tcuda.xp\ntcuda.memory._record_memory_history()\nx = xp.ones((64, 64), dtype='float32')",
        "tcuda.memory_summary(abbreviated=True)",
        "tcuda.memory.SnapshotPage()",
        "tcuda.get_device_properties(0)",
        "with tcuda.SyncCounter() as counter:\n    x.get()\ncounter",
        "from tcuda import sanitizer\nside = tcuda.Stream()\nwith sanitizer.check('collect') as report:\n"
        "    with tcuda.stream(side):\n        x += 1\n    y = x * 2\nreport",
        "graph = tcuda.CUDAGraph()\nwith tcuda.graph(graph):\n    x += 1\ngraph",
        "tcuda.MemPool()",
        "tcuda.Stream()",
        "x.sum()",
        "with tcuda.memory.track(sites=True) as measured:\n    kept = xp.zeros(1000)\nstr(measured.alive[0])",
    )
    shown = run_cells(tmp_path, *cells)
    _, summary, snapshot, device, counter, report, graph, pool, stream, array, site = shown
    assert "Allocated memory" in summary["text/html"]
    assert summary["text/html"].startswith("<pre>|=====")
    assert "<title>Snapshot of the memory</title>" in page_in(snapshot)
    assert '"cell [1]"' in page_in(snapshot)
    assert f"<caption>{tcuda.get_device_name(0)}</caption>" in device["text/html"]
    assert '<td style="text-align: left">ndarray.get</td>' in counter["text/html"]
    assert '<td style="text-align: left">cell [5], line 2</td>' in counter["text/html"]
    assert '<th style="text-align: right">count</th><th style="text-align: left">call</th>' in counter["text/html"]
    assert "cell [11], line 2 in " in site["text/plain"]
    assert counter["text/plain"] == "<tcuda.SyncCounter: 1 wait at 1 line>"
    assert "race" in page_in(report).lower()
    assert graph["text/plain"].startswith("<tcuda.CUDAGraph: 1 node on device 0, pool (")
    assert "A picture needs CUDAGraph(keep_graph=True)." in graph["text/html"]
    assert pool["text/plain"].endswith(": 0 bytes allocated, 0 bytes reserved>")
    assert stream["text/plain"].startswith("<tcuda.Stream device=cuda:0")
    assert array["text/plain"].startswith("array(")


@pytest.mark.long
@pytest.mark.emulated
def test_the_magics_of_a_notebook_show_a_page_and_the_lines(tmp_path: Path) -> None:
    cells = (
        "%load_ext tcuda\nimport tcuda\nxp = tcuda.xp\nside = tcuda.Stream()",
        "%%tcuda_sanitize\nx = xp.ones(1000)\nwith tcuda.stream(side):\n    y = x * 2",
        "%%tcuda_memory\nkept = xp.zeros(1000)\nkept.sum()",
        "tcuda.sanitizer.enable('warn')",
        "tcuda.sanitizer.disable()",
    )
    _, page, value, report, _ = run_cells(tmp_path, *cells)
    assert "cell [2]" in page_in(page)
    assert value["text/plain"] == "array(0.)"
    assert report["text/plain"] == "<tcuda.sanitizer.Report: No operation was watched>"


@pytest.mark.wings
@pytest.mark.long
def test_the_cells_of_the_guide_run(tmp_path: Path) -> None:
    cells = re.findall(r"^```py\n(.*?)^```", PAGE.partition("## Notebooks")[2], re.DOTALL | re.MULTILINE)
    assert len(cells) >= 3
    assert len(run_cells(tmp_path, *cells)) == len(cells)


def test_the_summary_is_still_a_text() -> None:
    summary = tcuda.memory_summary()
    assert isinstance(summary, str)
    assert str(summary) == summary
    assert f"{summary}" == "".join(summary)
    assert summary._repr_html_() == f"<pre>{html.escape(summary)}</pre>"


def test_the_page_of_a_snapshot_takes_torchs_forms(xp: Any) -> None:
    x = xp.zeros(10)
    for snapshot in (tcuda.memory._snapshot(), tcuda.memory_snapshot(), None):
        shown = {"text/html": tcuda.memory.SnapshotPage(snapshot)._repr_html_()}
        assert "<title>Snapshot of the memory</title>" in page_in(shown)
    with pytest.raises(ValueError, match="snapshot"):
        tcuda.memory.SnapshotPage({"segments": 3})
    assert x.size == 10


def test_a_graph_tells_its_state(xp: Any) -> None:
    x = xp.zeros(4)
    graph = tcuda.CUDAGraph()
    assert repr(graph) == "<tcuda.CUDAGraph: nothing captured>"
    with tcuda.graph(graph):
        x += 1
        assert repr(graph) == "<tcuda.CUDAGraph: capturing on device 0>"
        x += 1
    assert re.fullmatch(r"<tcuda\.CUDAGraph: 2 nodes on device 0, pool \(\d+, \d+\)>", repr(graph))
    graph.reset()
    assert repr(graph) == "<tcuda.CUDAGraph: nothing captured>"
    assert graph._repr_html_() == f"<pre>{html.escape(repr(graph))}</pre>"


@WITH_DOT
def test_a_graph_that_keeps_its_nodes_shows_its_picture(xp: Any) -> None:
    x = xp.zeros(4)
    graph = tcuda.CUDAGraph(keep_graph=True)
    with tcuda.graph(graph):
        x += 1
        x *= 2
    picture = graph._repr_html_()
    assert picture.startswith("<svg")
    assert picture.rstrip().endswith("</svg>")
    assert picture.count('class="node"') == 2


def test_without_graphviz_the_graph_says_so(xp: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    x = xp.zeros(4)
    graph = tcuda.CUDAGraph(keep_graph=True)
    with tcuda.graph(graph):
        x += 1
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "A picture needs the program dot of Graphviz." in graph._repr_html_()


def test_a_pool_tells_its_memory(xp: Any) -> None:
    pool = tcuda.MemPool()
    with tcuda.use_mem_pool(pool):
        x = xp.zeros(1000, dtype="float32")
    assert re.fullmatch(
        rf"<tcuda\.MemPool id={re.escape(str(pool.id))}: 4096 bytes allocated, \d+ bytes reserved>", repr(pool)
    )
    assert x.nbytes == 4000


def test_text_from_the_program_is_escaped() -> None:
    from tcuda._viz.shared import notebook

    table = notebook.table("<title>", ("<name>",), [("<script>", 1234567, True)])
    assert "<script>" not in table
    assert "&lt;script&gt;" in table
    assert "1,234,567" in table
    assert notebook.preformatted("<b>") == "<pre>&lt;b&gt;</pre>"
