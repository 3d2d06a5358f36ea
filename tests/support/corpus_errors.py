"""The messages of emulated devices about the kernels of the second corpus: ``python -m support.corpus_errors``.

The module prints as JSON the message of each kernel, right and wrong. A kernel without an error has an empty text.
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

from support.folders import TESTS

if TYPE_CHECKING:
    from support.kernel_corpus import Source

CHECKS = "memory,init,barriers"
_LINE = re.compile(r"\bkernel\.cu:(\d+)")


@functools.cache
def outcomes() -> dict[str, str]:
    """Return the message about each kernel of the corpus, which one process launches."""
    environment = {"TCUDA_RUNTIME": "emulated", "TCUDA_EMULATED_CHECKS": CHECKS, "PYTHONPATH": str(TESTS)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "support.corpus_errors"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


def findings(source: Source) -> dict[str, list[frozenset[int | None]]]:
    """Return the lines that the message about each kernel of a source names; no line if there is no message."""
    return {name: _lines(outcomes()[name]) for name in source.kernels}


def _lines(message: str) -> list[frozenset[int | None]]:
    lines = [frozenset[int | None]([int(line)]) for line in _LINE.findall(message)]
    return lines or ([frozenset([None])] if message else [])


def _outcomes() -> dict[str, str]:
    import tcuda
    from support import kernel_corpus

    found = {}
    for topic in kernel_corpus.topics(kernel_corpus.ERRORS):
        for source in (kernel_corpus.right_source(topic), kernel_corpus.wrong_source(topic)):
            module = kernel_corpus.compiled(tcuda.xp, source)
            for name, kernel in source.kernels.items():
                try:
                    kernel_corpus.run(tcuda.xp, module, name, kernel.launch)
                    tcuda.synchronize()
                    found[name] = ""
                except tcuda.AcceleratorError as error:
                    found[name] = str(error)
    return found


if __name__ == "__main__":
    json.dump(_outcomes(), sys.stdout)
