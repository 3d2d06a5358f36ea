"""All reports print the words of ``as_dict()``, and have no words of their own."""

from __future__ import annotations

import html
import json
import re
import xml.etree.ElementTree as Xml
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.browser import embedded
from support.made_races import race as made_race
from support.race_reports import race, race_in_kernel, report, unwritten_read
from tcuda._base.console import console
from tcuda.sanitizer import _words
from tcuda.sanitizer._command.race_summary import Summary
from tcuda.sanitizer._formats import github_lines, junit, sarif
from tcuda.sanitizer._page import render

if TYPE_CHECKING:
    from collections.abc import Iterator

FINDINGS = {"race": race, "race in a kernel": race_in_kernel, "unwritten read": unwritten_read}


def marked(words: Any) -> Any:
    """Return words with a mark in each text, which no report can make itself."""
    if isinstance(words, dict):
        return {name: text if name in ("file", "what") else marked(text) for name, text in words.items()}
    if isinstance(words, list):
        return [marked(one) for one in words]
    return f"~{words}" if isinstance(words, str) and words else words


def texts(words: Any) -> Iterator[str]:
    """Yield the texts of words."""
    for one in words.values() if isinstance(words, dict) else words if isinstance(words, list) else ():
        yield from texts(one)
    if isinstance(words, str):
        yield words


def content_of(kind: str) -> dict[str, Any]:
    finding = FINDINGS[kind]()
    finding["words"] = marked(_words.words_of(finding))
    program = {"arguments": ["a.py"], "status": 0, "failure": None}
    if kind == "unwritten read":
        return report(unwritten_reads=[finding], program=program)
    return report(finding, program=program)


@pytest.mark.parametrize("kind", FINDINGS)
def test_the_page_has_exactly_the_words(kind: str) -> None:
    content = content_of(kind)
    (finding,) = [*content["races"], *content["unwritten_reads"]]
    (drawn,) = embedded(render(content))["races"]
    assert drawn["words"] == json.loads(json.dumps(finding["words"]))
    assert not {"doubt", "missing", "advice", "before", "memory"} & drawn.keys()


@pytest.mark.parametrize("kind", FINDINGS)
def test_the_summary_prints_the_words(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    content = content_of(kind)
    (finding,) = [*content["races"], *content["unwritten_reads"]]
    Summary(console(stderr=True), Path.cwd()).show(content, syncs=False)
    shown, words = capsys.readouterr().err, finding["words"]
    missing = words["missing"]
    printed = [words["title"], words["shared"], *(side["text"] for side in words["sides"])]
    printed.append(missing["call"] if missing["call"] and missing["place"] else missing["sentence"])
    assert [text for text in printed if text not in shown] == []


def test_text_and_data_change_with_the_words(runtime: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    words_of = _words.words_of
    monkeypatch.setattr(_words, "words_of", lambda *values, **more: marked(words_of(*values, **more)))
    xp = tcuda.xp
    side = tcuda.Stream()
    with tcuda.sanitizer.check(mode="collect") as found:
        x = xp.ones(1000)
        with tcuda.stream(side):
            x * 2  # side does not wait for the default stream
    side.synchronize()
    [race, *_] = [*found.races, *found.possible]  # on a GPU, not all may be known of the kernel
    words = race.as_dict()["words"]
    sides, missing = words["sides"], words["missing"]
    for text in (words["title"], words["shared"], missing["call"], *(side["text"] for side in sides)):
        assert text.startswith("~")
        assert text in str(race)
    for text in (words["title"], missing["sentence"], *(side["memory"] for side in sides)):
        assert text.startswith("~")
        assert text in race.details


@pytest.mark.emulated
def test_the_log_the_error_and_the_notebook_change_with_the_words(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    words_of = _words.words_of
    monkeypatch.setattr(_words, "words_of", lambda *values, **more: marked(words_of(*values, **more)))
    with tcuda.sanitizer.check("collect") as found:
        made_race()
    (one,) = found
    words = one.as_dict()["words"]
    printed = [words["title"], words["shared"], words["missing"]["call"], *(side["text"] for side in words["sides"])]
    (record,) = caplog.records
    assert [text for text in printed if text not in record.getMessage()] == []
    with tcuda.sanitizer.check(), pytest.raises(tcuda.sanitizer.CUDASanitizerErrors) as caught:
        made_race()
    assert [text for text in printed if text.partition("test_words")[0] not in str(caught.value)] == []
    for shown in (found, one):
        ((_, cell),) = re.findall(r'srcdoc=(["\'])(.*?)\1', shown._repr_html_(), re.DOTALL)
        (drawn,) = embedded(html.unescape(cell))["races"]
        assert drawn["words"] == json.loads(json.dumps(words))


@pytest.mark.parametrize("kind", FINDINGS)
def test_the_formats_of_ci_have_the_words(kind: str) -> None:
    content = content_of(kind)
    (finding,) = [*content["races"], *content["unwritten_reads"]]
    words, folder = finding["words"], Path("/absent")
    (result,) = sarif(content, folder)["runs"][0]["results"]
    for text in (words["title"], words["shared"], *(side["text"] for side in words["sides"])):
        assert text in result["message"]["text"]
        assert text in (Xml.fromstring(junit(content, folder, "a.py")).findtext("./testsuite/testcase/failure") or "")
        assert any(text in line for line in github_lines(content, folder))


@pytest.mark.emulated
def test_what_an_access_says_of_itself_is_in_the_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_words, "memory_of", lambda access: f"~{access['operation']}")
    with tcuda.sanitizer.check("collect") as found:
        made_race()
    current = found.races[0].current
    assert current.where == _words.side_of(current.as_dict())["memory"] == f"~{current.operation}"


@pytest.mark.emulated
def test_the_summary_of_a_report_is_the_last_line_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with tcuda.sanitizer.check("collect") as found:
        made_race()
    program = {"arguments": ["a.py"], "status": 0, "failure": None}
    children = {"reports": 0, "unfinished": 0}
    Summary(console(stderr=True), Path.cwd()).show(
        {**found.as_dict(), "program": program, "children": children}, syncs=False
    )
    assert capsys.readouterr().err.splitlines()[-1] == f"{found.summary}."


def test_the_scripts_of_the_page_have_no_words_of_a_race_and_parse_none() -> None:
    assets = files("tcuda.sanitizer._page") / "assets"
    scripts = {asset.name: asset.read_text() for asset in assets.iterdir() if asset.name.endswith(".js")}
    words = re.compile(
        r"orders? them|No order leads|writes|both touch (?:element|byte)|use after free|possible \$|\.test\(",
        re.IGNORECASE,
    )
    assert {name: words.findall(text) for name, text in scripts.items() if words.search(text)} == {}
