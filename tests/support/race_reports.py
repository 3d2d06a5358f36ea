"""Handmade reports of the race detector, in the form of ``Report.as_dict()``."""

from __future__ import annotations

from typing import Any

from support.snapshots import NASTY, frame
from tcuda.sanitizer._words import words_of

BASE = 0x7F0000000000
MAIN, SIDE, OTHER = 0, 0x51, 0x62
FILE = "/absent/train.py"  # no such file, so a page has no lines of the program


def access(operation: str, kind: str, stream: int, line: int, **more: Any) -> dict[str, Any]:
    """Return one side of a race."""
    return {
        "operation": operation,
        "argument": "out" if kind == "write" else "a",
        "kind": kind,
        "device": 0,
        "stream": stream,
        "stream_name": {MAIN: "main", SIDE: "side"}.get(stream, f"the stream {stream:#x}"),
        "host": False,
        "confidence": "exact",
        "number": line,
        "shape": [256],
        "itemsize": 4,
        "element_range": [0, 63],
        "address": BASE,
        "strides": [4],
        "stack": [frame("step", FILE, line), frame("<module>", FILE, 40)],
        "launch_stack": None,
        **more,
    }


def allocation(**more: Any) -> dict[str, Any]:
    """Return the memory of a race."""
    return {
        "address": BASE,
        "size": 1024,
        "device": 0,
        "stream": MAIN,
        "stack": [frame("<module>", FILE, 3)],
        "freed_stack": None,
        **more,
    }


def step(
    number: int, kind: str, stream: int | None, name: str = "", event: int | None = None, **more: Any
) -> dict[str, Any]:
    """Return something that the program did shortly before a race."""
    return {
        "number": number,
        "device": 0,
        "stream": stream,
        "kind": kind,
        "name": name,
        "event": event,
        "file": FILE,
        "line": number,
        **more,
    }


def race(**more: Any) -> dict[str, Any]:
    """Return a race: the side stream reads what the main stream writes."""
    return {
        "kind": "read after write",
        "use_after_free": False,
        "count": 1,
        "confidence": "exact",
        "doubt": None,
        "missing": "side.wait_stream(main)",
        "advice": "The stream side does not wait for the stream main.",
        "before": {"file": FILE, "line": 14},
        "element_range": [0, 63],
        "overlap": [BASE, 256],
        "allocation": allocation(),
        "previous_allocation": None,
        "current": access("multiply", "read", SIDE, 14),
        "previous": access("add", "write", MAIN, 12),
        "processes": [],
        "neighbours": [
            step(8, "work", MAIN, "fill"),
            step(9, "record", MAIN, event=0x70),
            step(10, "wait", SIDE, event=0x70),
            step(11, "work", SIDE, "copy"),
            step(12, "work", MAIN, "add"),
            step(13, "work", OTHER, "sum"),
            step(14, "work", SIDE, "multiply"),
        ],
        **more,
    }


def race_in_kernel(**more: Any) -> dict[str, Any]:
    """Return a race inside a kernel: two threads write an element."""
    in_kernel = {
        "block": [0, 0, 0],
        "line": {"file": "kernel.cu", "line": 2},
        "source": "out[0] += x[i];",
        "excerpt": [[1, "void total() {"], [2, "    out[0] += x[i];"], [3, "}"]],
    }
    words = "thread ({}, 0, 0) of block (0, 0, 0) writes"
    return race(
        kind="race in a kernel",
        kernel="total",
        benign=False,
        memory={"space": "global", "name": "out", "index": [0], "dtype": "float32", "shape": [1], "text": "`out`"},
        missing="atomicAdd(&out[0], ...)",
        advice="An atomic function, such as `atomicAdd(&out[0], ...)`, in line 2 lets no update get lost.",
        before=None,
        current=access("total", "write", MAIN, 14, thread=[1, 0, 0], words=words.format(1)) | in_kernel,
        previous=access("total", "write", MAIN, 14, thread=[0, 0, 0], words=words.format(0)) | in_kernel,
        neighbours=[],
        **more,
    )


def unwritten_read(**more: Any) -> dict[str, Any]:
    """Return a read of unwritten memory in a kernel."""
    found = race_in_kernel()
    kept = ("kernel", "memory", "current", "allocation", "overlap", "element_range", "confidence", "processes", "count")
    return {name: found[name] for name in kept} | {
        "kind": "read of unwritten memory in a kernel",
        "advice": "Write the memory first, or let the kernel leave the memory out.",
        **more,
    }


def _worded(finding: dict[str, Any]) -> dict[str, Any]:
    return {"words": words_of(finding), **finding}


def report(*races: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a report of ``races``."""
    races = tuple(_worded(one) for one in races)
    more["unwritten_reads"] = [_worded(one) for one in more.get("unwritten_reads", ())]
    exact, possible = [[one for one in races if bool(one["doubt"]) is doubtful] for doubtful in (False, True)]
    return {
        "version": 1,
        "races": exact,
        "possible": possible,
        "operations": 20,
        "suppressed": 0,
        "syncs": [],
        "children": {"reports": 0, "unfinished": 0},
        **more,
    }


def several() -> dict[str, Any]:
    """Return a report of four races of different kinds, with synchronisations."""
    waits = [*race()["neighbours"][:4], step(11, "sync", SIDE), step(12, "work", MAIN, "add")]
    return report(
        race(count=1203),
        race(
            kind="write after read",
            current=access("fill", "write", MAIN, 21),
            previous=access("host_read", "read", 0, 20, device=-1, host=True, stream_name="the host"),
            neighbours=[],
            missing=None,
            before=None,
        ),
        race(
            use_after_free=True,
            kind="write after write",
            allocation=allocation(size=512),
            previous_allocation=allocation(freed_stack=[frame("release", FILE, 30)]),
            neighbours=[*waits, step(13, "sync", None), step(14, "work", SIDE, "multiply")],
        ),
        race(
            confidence="possible",
            doubt="`kernel` gets a pointer into this memory, and it is not known what `kernel` does there.",
            allocation=None,
            element_range=None,
            current=access(
                "kernel", "read and write", SIDE, 33, confidence="possible", launch_stack=[frame("replay", FILE, 34)]
            ),
        ),
        suppressed=2,
        syncs=[
            {"call": "cudaStreamSynchronize", "file": FILE, "line": 50, "count": 3},
            {"call": "float(x)", "file": FILE, "line": 51, "count": 700},
        ],
    )


def nasty() -> dict[str, Any]:
    """Return a report whose texts are markup, escapes and surrogates."""
    stack = [frame(NASTY, f"/home/{NASTY}.py", 1)]
    names = {"operation": NASTY, "argument": NASTY, "stream_name": NASTY, "stack": stack}
    return report(
        race(
            missing=NASTY,
            advice=NASTY,
            before={"file": NASTY, "line": 1},
            allocation=allocation(stack=stack),
            current=access("x", "read", SIDE, 14) | names,
            previous=access("x", "write", MAIN, 12) | names,
            neighbours=[step(12, "work", MAIN, NASTY, file=NASTY), step(13, "record", SIDE, NASTY, event=1)],
        ),
        syncs=[{"call": NASTY, "file": NASTY, "line": 1, "count": 1}],
        program={"arguments": [NASTY], "status": 1, "failure": NASTY},
    )
