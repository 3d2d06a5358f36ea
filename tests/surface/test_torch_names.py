"""The tables of torch's names are read off the sources in a wheel, without torch."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from support.torch_names import Sources, Table, text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FILES = {
    "torch/version.py": "__version__ = '9.8.7'\n",
    "torch/_C/__init__.pyi": "class _Base:\n    handle: _int\n    def query(self) -> _bool: ...\n",
    "torch/cuda/__init__.py": """
from typing import overload
from .streams import Stream
from .memory import *
def busy(cycles, *, factor: int = 2): ...
__all__ = ["Stream", "busy", "empty_cache", "has_half", "FloatTensor", "streams"]
""",
    "torch/cuda/streams.py": """
class Stream(torch._C._Base):
    note: str
    def __new__(cls, device=None, priority=0, **kwargs): ...
    @property
    def device(self): ...
    @staticmethod
    def newest(limit=sys.maxsize): ...
    def _hidden(self): ...
""",
    "torch/cuda/memory.py": """
__all__ = ["empty_cache", "largest"]
SIZE = 16
def empty_cache() -> None: ...
def largest(size=SIZE, /): ...
def _set_memory_metadata(metadata, *args, **kwargs): ...
def _real(metadata, strict=False): ...
_set_memory_metadata.__signature__ = signature(_real)
""",
}

ERROR = {"kind": "exception", "bases": ["RuntimeError", "Exception", "BaseException"]}

EXPECTED: dict[str, Any] = {
    "AcceleratorError": ERROR,
    "OutOfMemoryError": ERROR,
    "_HAS_PYNVML": {"kind": "bool"},
    "FloatTensor": {"kind": "array type"},
    "Stream": {"kind": "class", "signature": "(device=None, priority=0, **kwargs)", "bases": ["_Base"]},
    "Stream.device": {"kind": "attribute"},
    "Stream.handle": {"kind": "attribute", "from": "stub"},
    "Stream.newest": {"kind": "staticmethod", "signature": "(limit=9223372036854775807)"},
    "Stream.query": {"kind": "method", "signature": "(self)", "from": "stub"},
    "busy": {"kind": "function", "signature": "(cycles, *, factor=2)"},
    "empty_cache": {"kind": "function", "signature": "()"},
    "has_half": {"kind": "bool"},
    "memory": {"kind": "module"},
    "memory._set_memory_metadata": {"kind": "function", "signature": "(metadata, strict=False)"},
    "memory.empty_cache": {"kind": "function", "signature": "()"},
    "memory.largest": {"kind": "function", "signature": "(size=16, /)"},
    "streams": {"kind": "module"},
}


def wheel(folder: Path, files: Mapping[str, str]) -> Path:
    """Write a wheel with files."""
    path = folder / "torch.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def test_names_signatures_and_members_are_read_off_the_sources(tmp_path: Path) -> None:
    sources = Sources(wheel(tmp_path, FILES))
    rows = Table(sources, "torch.cuda").rows
    shown = {name: row for name, row in rows.items() if not name.startswith("streams.Stream")}
    assert shown == EXPECTED
    assert {name.removeprefix("streams."): row for name, row in rows.items() if name.startswith("streams.Stream")} == {
        name: row for name, row in EXPECTED.items() if name.startswith("Stream")
    }
    assert sources.version == "9.8.7"


def test_a_name_without_a_definition_is_an_error(tmp_path: Path) -> None:
    changed = FILES | {"torch/cuda/memory.py": "__all__ = ['empty_cache']\n"}
    with pytest.raises(LookupError, match=r"torch\.cuda says nothing of empty_cache: add a row to _BY_HAND"):
        Table(Sources(wheel(tmp_path, changed)), "torch.cuda")


def test_a_table_has_a_line_for_each_name() -> None:
    table = {"package": "torch.cuda", "names": {"a": {"kind": "function"}, "b": {"kind": "module"}}}
    assert text(table).splitlines()[2:5] == [
        '  "names": {',
        '    "a": {"kind": "function"},',
        '    "b": {"kind": "module"}',
    ]
