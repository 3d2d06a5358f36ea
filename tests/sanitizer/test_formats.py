"""Findings in the formats of CI systems."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as Xml
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.environments import environment
from support.race_reports import FILE, SIDE, access, nasty, race, race_in_kernel, report, several, unwritten_read
from tcuda.sanitizer._formats import github_lines, junit, sarif

if TYPE_CHECKING:
    from support.fixture_types import RunPython

FOLDER = Path("/absent")

TEXT = {"type": str, "required": True}
LOCATION: dict[str, Any] = {
    "id": {"type": int},
    "message": {"fields": {"text": TEXT}},
    "physicalLocation": {
        "fields": {
            "artifactLocation": {"required": True, "fields": {"uri": TEXT}},
            "region": {"fields": {"startLine": {"type": int, "least": 1}}},
        }
    },
}
SCHEMA: dict[str, Any] = {
    "version": {"required": True, "one_of": ["2.1.0"]},
    "$schema": {"type": str},
    "runs": {
        "required": True,
        "items": {
            "tool": {
                "required": True,
                "fields": {
                    "driver": {
                        "required": True,
                        "fields": {
                            "name": TEXT,
                            "version": {"type": str},
                            "rules": {
                                "unique": True,
                                "items": {"id": TEXT, "shortDescription": {"fields": {"text": TEXT}}},
                            },
                        },
                    }
                },
            },
            "invocations": {
                "items": {
                    "executionSuccessful": {"type": bool, "required": True},
                    "toolExecutionNotifications": {
                        "items": {
                            "level": {"one_of": ["none", "note", "warning", "error"]},
                            "message": {"required": True, "fields": {"text": TEXT}},
                            "locations": {"items": LOCATION},
                        }
                    },
                }
            },
            "results": {
                "items": {
                    "ruleId": {"type": str},
                    "level": {"one_of": ["none", "note", "warning", "error"]},
                    "message": {"required": True, "fields": {"text": TEXT}},
                    "locations": {"items": LOCATION},
                    "relatedLocations": {"unique": True, "items": LOCATION},
                    "occurrenceCount": {"type": int, "least": 1},
                }
            },
        },
    },
}
"""The part of the schema of SARIF 2.1.0 that has the fields of these files. The schema allows no other fields."""


def wrong(value: Any, fields: dict[str, Any], place: str = "") -> list[str]:
    """Return the places at which a value breaks the schema."""
    found = [f"{place}.{name} is unknown" for name in value.keys() - fields.keys()]
    for name, rule in fields.items():
        here = f"{place}.{name}"
        if name not in value:
            found += [f"{here} is missing"] * rule.get("required", False)
            continue
        one = value[name]
        if "type" in rule and (not isinstance(one, rule["type"]) or one < rule.get("least", one)):
            found.append(here)
        if "one_of" in rule and one not in rule["one_of"]:
            found.append(here)
        if "fields" in rule:
            found += wrong(one, rule["fields"], here)
        if "items" in rule:
            if rule.get("unique") and len({json.dumps(item) for item in one}) < len(one):
                found.append(f"{here} has an item twice")
            found += [error for item in one for error in wrong(item, rule["items"], f"{here}[]")]
    return found


def three_of_one_cause() -> dict[str, Any]:
    places = [(line, {"file": FILE, "line": line}) for line in (14, 15, 16)]
    return report(*(race(current=access("add", "read", SIDE, line), before=before) for line, before in places))


REPORTS = {
    "several": several(),
    "nasty": nasty(),
    "kernels": report(race_in_kernel(), unwritten_reads=[unwritten_read()]),
    "one cause": three_of_one_cause(),
    "nothing": report(),
}


@pytest.mark.parametrize("name", REPORTS)
def test_sarif_keeps_to_its_schema(name: str) -> None:
    log = json.loads(json.dumps(sarif(REPORTS[name], FOLDER)))
    assert wrong(log, SCHEMA) == []
    rules = {rule["id"] for rule in log["runs"][0]["tool"]["driver"]["rules"]}
    assert {result["ruleId"] for result in log["runs"][0]["results"]} == rules


def test_the_test_of_the_schema_finds_what_is_wrong() -> None:
    log = sarif(several(), FOLDER)
    del log["runs"][0]["results"][0]["message"]["text"]
    log["runs"][0]["results"][1]["level"] = "bad"
    log["runs"][0]["more"] = 1
    assert len(wrong(log, SCHEMA)) == 3


def test_sarif_has_a_result_for_each_cause_with_all_lines() -> None:
    (result,) = sarif(three_of_one_cause(), FOLDER)["runs"][0]["results"]
    assert (result["ruleId"], result["level"], result["occurrenceCount"]) == ("read-after-write", "error", 3)
    assert result["message"]["text"].endswith("one call mends these 3: also train.py:15, train.py:16")
    (location,) = result["locations"]
    assert location["physicalLocation"] == {"artifactLocation": {"uri": "train.py"}, "region": {"startLine": 14}}
    lines = [one["physicalLocation"]["region"]["startLine"] for one in result["relatedLocations"]]
    assert lines == [12, 14, 12, 15, 12, 16]


def test_files_outside_of_the_folder_have_whole_addresses() -> None:
    (result,) = sarif(report(race()), Path("/elsewhere"))["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": f"file://{FILE}"}


def test_possible_races_are_warnings() -> None:
    levels = [result["level"] for result in sarif(several(), FOLDER)["runs"][0]["results"]]
    assert levels == ["error", "error", "warning"]
    assert [line.split()[0] for line in github_lines(several(), FOLDER)] == [f"::{level}" for level in levels]


def test_an_annotation_has_the_line_of_the_mend_and_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    (line,) = github_lines(three_of_one_cause(), FOLDER)
    assert line.startswith("::error file=train.py,line=14,title=read after write::read after write%0Atrain.py:12  add ")
    assert line.endswith("%0Aone call mends these 3: also train.py:15, train.py:16")
    of_race, of_failure = github_lines(nasty(), FOLDER)
    assert not {"\n", "\r"} & {*of_race, *of_failure}


def test_an_annotation_names_files_from_the_clone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", "/")
    (line,) = github_lines(report(race()), FOLDER)
    assert line.startswith(f"::error file={FILE[1:]},line=14,")


def test_signs_with_a_meaning_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    (line,) = github_lines(report(race(before={"file": "/a,b:100%.py", "line": 1})), FOLDER)
    assert line.startswith("::error file=/a%2Cb%3A100%25.py,line=1,")


def test_a_race_in_a_kernel_is_at_its_launch() -> None:
    (line,) = github_lines(report(race_in_kernel()), FOLDER)
    assert line.startswith("::error file=train.py,line=14,title=race in the kernel `total`::")


@pytest.mark.parametrize("name", REPORTS)
def test_junit_is_xml_with_a_failure_for_each_cause(name: str) -> None:
    suites = Xml.fromstring(junit(REPORTS[name], FOLDER, "train.py"))
    exact = len(sarif({**REPORTS[name], "possible": []}, FOLDER)["runs"][0]["results"])
    errors = int(REPORTS[name].get("program", {"status": 0})["status"] != 0)
    counts = {"tests": str(exact + errors or 1), "failures": str(exact), "errors": str(errors)}
    assert {key: suites.get(key) for key in counts} == counts
    assert len(suites.findall("./testsuite/testcase")) == (exact + errors or 1)
    assert len(suites.findall("./testsuite/testcase/failure")) == exact
    assert len(suites.findall("./testsuite/testcase/error")) == errors


def test_junit_has_the_line_and_the_text() -> None:
    suites = Xml.fromstring(junit(several(), FOLDER, "train.py", possible=True))
    first, *_, last = suites.findall("./testsuite/testcase")
    assert (first.get("name"), first.get("file"), first.get("line")) == ("1. read after write", "train.py", "14")
    assert "missing: side.wait_stream(main) before train.py:14" in (first.findtext("failure") or "")
    assert last.get("name") == "3. possible read after write"


FAILURES = {
    "exception": (
        {"status": 1, "failure": "Error: no\nluck", "place": {"file": FILE, "line": 9}},
        1,
        "Error: no\nluck",
    ),
    "status": ({"status": 4, "failure": None, "place": None}, 1, "The program ended with the exit status 4."),
    "nothing": ({"status": 0, "failure": None, "place": None}, 0, "No operation on a device was watched, "),
    "finding": (
        {"status": 1, "failure": "tcuda.sanitizer.CUDASanitizerErrors: x", "place": None},
        1,
        "tcuda.sanitizer.",
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_run_that_failed_is_no_clean_run(name: str) -> None:
    program, operations, text = FAILURES[name]
    failed = report(operations=operations, program={"arguments": ["train.py"], **program})
    log = sarif(failed, FOLDER)
    assert wrong(log, SCHEMA) == []
    (invocation,) = log["runs"][0]["invocations"]
    (told,) = invocation["toolExecutionNotifications"]
    assert (invocation["executionSuccessful"], told["message"]["text"][: len(text)]) == (False, text)
    suites = Xml.fromstring(junit(failed, FOLDER, "train.py"))
    assert (suites.get("tests"), suites.get("failures"), suites.get("errors")) == ("1", "0", "1")
    case = suites.find("./testsuite/testcase")
    assert case is not None
    assert (case.findtext("error") or "").startswith(text)
    assert (case.get("file"), case.get("line")) == (("train.py", "9") if name == "exception" else (None, None))
    lines = list(github_lines(failed, FOLDER))
    assert len(lines) == (name == "exception")


def test_a_right_run_is_a_clean_run() -> None:
    right = report(program={"arguments": ["train.py"], "status": 0, "failure": None, "place": None})
    assert sarif(right, FOLDER)["runs"][0]["invocations"] == [
        {"executionSuccessful": True, "toolExecutionNotifications": []}
    ]


def test_a_use_after_free_has_a_rule_of_its_own() -> None:
    (run,) = sarif(report(race(use_after_free=True)), FOLDER)["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["use-after-free"]
    assert [result["ruleId"] for result in run["results"]] == ["use-after-free"]


RACY = """
import tcuda
main, side = tcuda.default_stream(), tcuda.Stream()
x = tcuda.xp.zeros(1000)
with tcuda.stream(side):
    x += 1
"""


@pytest.mark.emulated
def test_the_command_writes_the_files_and_the_annotations(tmp_path: Path, run_python: RunPython) -> None:
    (tmp_path / "racy.py").write_text(RACY)
    code = "import runpy, sys\nsys.argv[1:] = {}\nrunpy.run_module('tcuda', run_name='__main__', alter_sys=True)"
    arguments = ["sanitize", "--sarif", "races.sarif", "--junit", "races.xml", "racy.py"]
    for _ in range(2):  # a second run may replace the files
        done = run_python(code.format(arguments), GITHUB_ACTIONS="true", GITHUB_WORKSPACE=str(tmp_path))
        assert done.returncode == 1, done.stderr
        (line,) = [line for line in done.stderr.splitlines() if line.startswith("::")]
        assert re.match(r"::error file=racy\.py,line=6,title=write after write::write after write%0A", line)
    assert wrong(json.loads((tmp_path / "races.sarif").read_text()), SCHEMA) == []
    assert Xml.parse(tmp_path / "races.xml").getroot().get("failures") == "1"
    done = run_python(code.format(["sanitize", "racy.py"]))
    assert "::error" not in done.stderr
    refused = run_python(code.format(["sanitize", "--sarif", "racy.py", "racy.py"]))
    assert (refused.returncode, (tmp_path / "racy.py").read_text()) == (2, RACY)


FAULTY = """
import tcuda
kernel = tcuda.xp.RawKernel('extern "C" __global__ void f(int* x) { x[7] = 1; }', "f")
kernel((1,), (1,), (tcuda.xp.zeros(1, "i"),))
tcuda.synchronize()
"""


@pytest.mark.emulated
def test_an_error_of_a_kernel_is_in_all_files(tmp_path: Path, run_python: RunPython) -> None:
    (tmp_path / "faulty.py").write_text(FAULTY)
    code = "import runpy, sys\nsys.argv[1:] = {}\nrunpy.run_module('tcuda', run_name='__main__', alter_sys=True)"
    arguments = ["sanitize", "--sarif", "races.sarif", "--junit", "races.xml", "faulty.py"]
    done = run_python(code.format(arguments), GITHUB_ACTIONS="true", GITHUB_WORKSPACE=str(tmp_path))
    assert done.returncode == 1, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("::")]
    assert line.startswith("::error file=faulty.py,line=4,title=the program failed::")
    log = json.loads((tmp_path / "races.sarif").read_text())
    assert log["runs"][0]["invocations"][0]["executionSuccessful"] is False
    assert Xml.parse(tmp_path / "races.xml").getroot().get("errors") == "1"


def test_tests_of_commands_do_not_know_of_github(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert "GITHUB_ACTIONS" not in environment()
