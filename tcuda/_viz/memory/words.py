"""Sentences about a snapshot, for the page and for the terminal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcuda._viz.memory.device import Device
    from tcuda._viz.shared.stacks import Stacks

_MOST_SITES = 5
_ENOUGH = 0.9  # The part of the peak that a sentence explains, if few sites can.
_LONGEST_NAME = 60  # Characters. A name in a snapshot from a stranger could fill the screen.
_NUMBERS = ("no", "one", "two", "three", "four", "five")


def site_text(stacks: Stacks, frame: int | None) -> str:
    """Return the name of a site in one line that is safe to print."""
    if frame is None:
        return "no stack recorded"
    name, filename, line = stacks.frames[frame]
    file = re.split(r"[/\\]", filename)[-1]
    return f"{_short(name)} ({_short(file)}:{line})" if line else f"{_short(name)} ({_short(file)})"


def peak_sentence(device: Device, stacks: Stacks) -> str:
    """Return which sites hold most of the memory at the peak; an empty text if no memory was allocated."""
    peak = device.peak_bytes
    holders = [site for site in device.sites if site.usage.at_peak]
    named, held = 0, 0
    while named < min(_MOST_SITES, len(holders)) and held < _ENOUGH * peak:
        held += holders[named].usage.at_peak
        named += 1
    if not named:
        return ""
    if named == 1:
        site = site_text(stacks, holders[0].frame)
        return f"At the peak, one site holds {_percent(held, peak)} of the memory: {site}."
    parts = [f"{site_text(stacks, site.frame)} {_percent(site.usage.at_peak, peak)}" for site in holders[:named]]
    return f"At the peak, {_NUMBERS[named]} sites hold {_percent(held, peak)} of the memory: {', '.join(parts)}."


def _percent(part: int, whole: int) -> str:
    if 100 * part < whole:
        return "less than 1 %"
    return f"{min(round(100 * part / whole), 99) if part < whole else 100} %"


def _short(text: str) -> str:
    """Return a text without characters that could steer a terminal."""
    cut = text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"
    return "".join(character if character.isprintable() else "?" for character in cut)


__all__ = ["peak_sentence", "site_text"]
