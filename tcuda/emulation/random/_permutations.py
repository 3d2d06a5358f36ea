"""The permutations of ``xp.random``: functions that draw from the generator of the current device."""

from __future__ import annotations

from tcuda.emulation.random.calls import drawing

FUNCTIONS = drawing(("permutation", "shuffle"))
permutation, shuffle = FUNCTIONS.values()
