"""A page needs no other file, and forbids the browser to load one."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest

from support.snapshots import two_devices
from tcuda._viz import memory


@pytest.fixture(params=["memory", pytest.param("races", marks=pytest.mark.wings)])
def text(request: pytest.FixtureRequest) -> str:
    """A page of each kind."""
    if request.param == "memory":
        return memory.page(two_devices())
    from support.race_reports import several
    from tcuda.sanitizer import _page

    return _page.render(several())


def test_a_page_needs_no_other_file(text: str) -> None:
    text = text.replace("http://www.w3.org/2000/svg", "")  # a name, which no browser loads
    assert "//" not in re.sub(r"(?m)^\s*//.*$|;? // .*$|/\*\*.*?\*/", "", text)  # without comments of the script
    assert re.findall(r"""<[^>]*\s(?:src|href|action|data)\s*=\s*["']?([^"'\s>]+)""", text) == ["data:,"]
    assert not re.search(r"@import|url\((?!#)|fetch\(|XMLHttpRequest|\bimport\b\s*[({'\"]", text)


def test_a_page_forbids_the_browser_to_load_anything(text: str) -> None:
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]+)">', text)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert (rules.pop("default-src"), rules.pop("img-src")) == ("'none'", "data:")
    for rule, element in {"script-src": "script", "style-src": "style"}.items():
        (content,) = re.findall(rf"<{element}>(.*?)</{element}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules.pop(rule) == f"'sha256-{digest}'"
    assert not rules
