"""Kernels of other people's suites, and the verdicts of the suites about them.

A suite is a folder of ``.cu`` files in one of two conventions, or in both:

* the convention of GPUVerify: the first line of a file is ``//pass`` or ``//xfail:REASON``, and the second line has the
  options ``--blockDim=`` and ``--gridDim=``;
* plain files, with a list of verdicts.

A line of a list has a pattern of paths, a verdict of :data:`VERDICTS`, and optional settings: ``blockDim=``,
``gridDim=``, ``kernel=``, ``warp-sync``, and ``-D`` options. ``warp-sync`` says that the verdict holds for warps whose
threads run in step. The first line that matches a path counts, also before the head of a file::

    racy/*.cu      race  blockDim=[32,2] gridDim=2
    free/scan.cu   free  kernel=scan -DN=64

A plain file may have code of the host. If the list gives no numbers, the numbers come from the first launch
``kernel<<<grid, block>>>`` in the file.
"""

from __future__ import annotations

import re
import shlex
from fnmatch import fnmatch
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RACE, FREE, WRONG, OTHER, NONE = "race", "free", "wrong", "other", "none"
VERDICTS = (RACE, FREE, WRONG, OTHER, NONE)
"""What a suite says of a kernel: there is a race; there is none; the kernel fails, and the suite does not say by what;
the kernel has a mistake that is no race; nothing about races, such as that a tool does not know a construct."""

_HEAD = re.compile(r"//\s*(pass|xfail:\w+)\s*$", re.IGNORECASE)
_DIMENSION = re.compile(r"--?(blockDim|gridDim|local_size|num_groups)[ =]\[?([\d, ]+\d|\d+)\]?")
_DEFINED = re.compile(r"(?:^|\s)(-D\s*\S+)")
_RACE = re.compile(r"\brace\b|\bracy\b|\bWrite by thread\b", re.IGNORECASE)
_NO_RACE = re.compile(r"null.pointer|\bassert\b|invariant|constant memory|0-sized|precondition|\w+ = \d", re.IGNORECASE)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
_MOST_DEEP = 8
_NOISE = re.compile(r"__launch_bounds__\s*\([^()]*\)|__attribute__\s*\(\(.*?\)\)", re.DOTALL)
_KERNEL = re.compile(r"__global__([^;{}()]*?)\b(\w+)\s*\(([^{};]*?)\)\s*\{", re.DOTALL)
_TEMPLATE = re.compile(r"template\s*<[^;{}]*>\s*(?:static\s+|inline\s+|extern\s+)*$", re.DOTALL)
_LAUNCH = re.compile(r"(\w+)\s*(<[^<>;]*>)?\s*<<<(.*?)>>>", re.DOTALL)
_INSTANCE = r"template\s+__global__[^;{{}}]*?\b({name}\s*<[^;]*?>)\s*\("
_DEVICE_WORDS = re.compile(r"__global__|__device__|__constant__|__shared__|__managed__")
_DEFINITION = re.compile(r"^\s*(?:typedef|struct|class|union|enum|namespace|extern)\b")
_FUNCTION = re.compile(r"[\w>&*\]]\s*\([^;{}]*\)\s*(?:const\s*)?$", re.DOTALL)


class Case(NamedTuple):
    """A kernel of a suite.

    Attributes:
        name: The path in the suite.
        path: The file.
        verdict: One of :data:`VERDICTS`.
        block: The threads of a block; None if only a launch in the file tells them.
        grid: The blocks; None if only a launch in the file tells them.
        kernel: The name of the kernel; None for the only one of the file.
        defined: The ``-D`` options.
        steps: Whether the verdict holds for warps whose threads run in step, as they did before Volta.
    """

    name: str
    path: Path
    verdict: str
    block: tuple[int, ...] | None = None
    grid: tuple[int, ...] | None = None
    kernel: str | None = None
    defined: tuple[str, ...] = ()
    steps: bool = False


class Signature(NamedTuple):
    """A kernel in a source.

    Attributes:
        name: The name, with the arguments of a template.
        parameters: The type and the name of each parameter.
    """

    name: str
    parameters: tuple[tuple[str, str], ...]


class Suites(NamedTuple):
    """The kernels of a folder, and the files without a verdict.

    Attributes:
        cases: The kernels.
        without: The paths of the files without a verdict.
    """

    cases: list[Case]
    without: list[str]


def read_suite(folder: Path, verdicts: Path | None = None) -> Suites:
    """Return the kernels of a folder.

    Args:
        folder: The folder.
        verdicts: The list of verdicts.

    Raises:
        ValueError: A line of the list is not understood.
    """
    listed = [] if verdicts is None else list(_lines(verdicts))
    suite = Suites([], [])
    for path in sorted(folder.rglob("*.cu")):
        name = path.relative_to(folder).as_posix()
        name = name.removesuffix("/kernel.cu")
        case = _of_head(Case(name, path, NONE), path.read_text(errors="replace"))
        line = next((line for line in listed if fnmatch(path.relative_to(folder).as_posix(), line[0])), None)
        if line is not None:
            case = (case or Case(name, path, NONE))._replace(**line[1])
        if case is None:
            suite.without.append(name)
        else:
            suite.cases.append(case)
    return suite


def _lines(verdicts: Path) -> Iterator[tuple[str, dict[str, object]]]:
    for number, text in enumerate(verdicts.read_text().splitlines(), 1):
        words = shlex.split(text, comments=True)
        if not words:
            continue
        if len(words) < 2 or words[1] not in VERDICTS:
            raise ValueError(
                f"line {number} of {verdicts.name} must be a pattern and one of {', '.join(VERDICTS)}; got {text!r}."
            )
        settings: dict[str, object] = {"verdict": words[1]}
        defined = []
        for word in words[2:]:
            key, _, value = word.partition("=")
            if word.startswith("-D"):
                defined.append(word)
            elif key in ("blockDim", "gridDim"):
                settings[key.removesuffix("Dim")] = _numbers(value.strip("[]"))
            elif key == "kernel":
                settings["kernel"] = value
            elif word == "warp-sync":
                settings["steps"] = True
            else:
                known = "blockDim=, gridDim=, kernel=, warp-sync and -D"
                raise ValueError(
                    f"the settings of a line are {known}; got {word!r} in line {number} of {verdicts.name}."
                )
        if defined:
            settings["defined"] = tuple(defined)
        yield words[0], settings


def _of_head(case: Case, text: str) -> Case | None:
    """Return the kernel as the head of its file describes the kernel; None without a head."""
    lines = text.splitlines()
    head = next((place for place, line in enumerate(lines[:3]) if _HEAD.match(line.strip())), None)
    if head is None:
        return None
    word = _HEAD.match(lines[head].strip())[1].lower()  # type: ignore[index]  # has matched
    comments: list[str] = []
    for line in lines[head + 1 :]:
        if line.strip() and not line.strip().startswith("//"):
            break
        comments.append(line.strip().removeprefix("//"))
    options = next((line for line in comments if "--" in line), "")
    sizes = {key: _numbers(value) for key, value in _DIMENSION.findall(options)}
    return case._replace(
        verdict=_verdict(word, "\n".join(line for line in comments if line is not options)),
        block=sizes.get("blockDim") or sizes.get("local_size"),
        grid=sizes.get("gridDim") or sizes.get("num_groups"),
        defined=tuple(define.replace("-D ", "-D") for define in _DEFINED.findall(options)),
        steps="--warp-sync" in options,
    )


def _verdict(word: str, comments: str) -> str:
    if word == "pass":
        return FREE
    if word != "xfail:not_all_verified":
        return NONE
    if _RACE.search(comments):
        return RACE
    return OTHER if _NO_RACE.search(comments) else WRONG


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


def without_comments(text: str) -> str:
    """Return a source without comments, with the same lines."""
    return _COMMENT.sub(lambda found: "\n" * found[0].count("\n") or " ", text)


def with_headers(text: str, folder: Path, deep: int = 0) -> str:
    """Return a source with the suite's own headers in place of the directives that include them.

    Args:
        text: The source without comments.
        folder: The folder of the source.
        deep: How many headers include the source.
    """

    def content(directive: re.Match[str]) -> str:
        header = folder / directive[1]
        if deep > _MOST_DEEP or not header.is_file():
            return directive[0]
        return with_headers(without_comments(header.read_text(errors="replace")), header.parent, deep + 1)

    return _INCLUDE.sub(content, text)


def signatures(text: str) -> list[Signature]:
    """Return the kernels of a source without comments. A template counts once for each known instance."""
    text = _NOISE.sub(" ", text)
    found = []
    for match in _KERNEL.finditer(text):
        parameters = tuple(_parameter(part) for part in _split(match[3]) if part.strip() not in ("", "void"))
        names = [match[2]]
        if _TEMPLATE.search(text[: match.start()]):
            instances = re.findall(_INSTANCE.format(name=match[2]), text)
            launches = [one[0] + one[1] for one in _LAUNCH.findall(text) if one[0] == match[2] and one[1]]
            names = list(dict.fromkeys([*instances, *launches])) or [f"{match[2]}<>"]
        found += [Signature(name, parameters) for name in names]
    return found


def launch_text(text: str, kernel: str) -> tuple[str, str] | None:
    """Return the texts of the grid and of the block in the first launch of a kernel; None without a launch."""
    for match in _LAUNCH.finditer(text):
        parts = _split(match[3])
        if match[1] == kernel.partition("<")[0] and len(parts) >= 2:
            return parts[0].strip(), parts[1].strip()
    return None


def device_code(text: str) -> str:
    """Return a source without the functions of the host, with the same lines.

    Args:
        text: The source without comments.
    """
    kept, depth, begin, body = [], 0, 0, 0
    for place, letter in enumerate(text):
        if letter == "{":
            if depth == 0:
                body = place
            depth += 1
        elif letter == "}":
            depth -= 1
        if depth or letter not in "};":
            continue
        part, head = text[begin : place + 1], text[begin : body or place]
        code = re.sub(r"^\s*#.*(?:\\\n.*)*", "", head, flags=re.MULTILINE)
        is_device = _DEVICE_WORDS.search(code) or _DEFINITION.search(code)
        is_host = bool(body) and bool(_FUNCTION.search(code.rstrip())) and not is_device
        kept.append(_directives(head) + "\n" * text[body:place].count("\n") if is_host else part)
        begin, body = place + 1, 0
    return "".join([*kept, text[begin:]])


def _directives(head: str) -> str:
    return "\n".join(line if line.lstrip().startswith("#") else "" for line in head.split("\n"))


def _split(text: str) -> list[str]:
    """Return the parts between the commas that are in no brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{<") - (letter in ")]}>")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _parameter(text: str) -> tuple[str, str]:
    match = re.fullmatch(r"(.*?[\s*&])(\w+)\s*((?:\[[^\]]*\])*)\s*", text.strip(), re.DOTALL)
    if match is None:
        return text.strip(), ""
    return match[1].strip() + ("*" if match[3] else ""), match[2]


__all__ = [
    "FREE",
    "NONE",
    "OTHER",
    "RACE",
    "VERDICTS",
    "WRONG",
    "Case",
    "Signature",
    "Suites",
    "device_code",
    "launch_text",
    "read_suite",
    "signatures",
    "with_headers",
    "without_comments",
]
