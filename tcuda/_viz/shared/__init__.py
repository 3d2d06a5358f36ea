"""What the pages of HTML share: one file with its data, no other resource, and the look."""

from __future__ import annotations

from tcuda._viz.shared.document import document
from tcuda._viz.shared.stacks import NO_STACK, Frame, Stacks, packed

__all__ = ["NO_STACK", "Frame", "Stacks", "document", "packed"]
