"""Prints the newest patch of each version of a package, with the oldest version first.

    pip index versions --pre cupy-cuda12x | python .ci/newest_versions.py 13.5

The argument is the lowest version. A pre-release counts only if the version itself is not released. The exit status is
1 if there is no version.
"""

from __future__ import annotations

import re
import sys

_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:(a|b|rc)(\d+))?")


def newest(listed: str, lowest: tuple[int, int]) -> list[str]:
    """Return the newest patch of each version from ``lowest`` on, in the text that ``pip index versions`` prints."""
    found: dict[tuple[int, int], tuple[tuple[int, int, str, int], str]] = {}
    for version in listed.partition("Available versions:")[2].splitlines()[:1]:
        for name in version.replace(" ", "").split(","):
            match = _VERSION.fullmatch(name)
            if match is None:
                continue
            major, minor, patch, kind, number = match.groups()
            rank = (int(kind is None), int(patch), kind or "", int(number or 0))
            key = int(major), int(minor)
            if key >= lowest:
                found[key] = max(found.get(key, (rank, name)), (rank, name))
    return [name for _, (_, name) in sorted(found.items())]


if __name__ == "__main__":
    major, minor = map(int, sys.argv[1].split("."))
    versions = newest(sys.stdin.read(), (major, minor))
    print(*versions)
    sys.exit(not versions)
