"""The warning of a feature that CuPy calls experimental."""

from __future__ import annotations

import sys
import warnings


def experimental(api_name: str, *, stacklevel: int = 2) -> None:
    """Warn that a feature may change, unless the program has set ``cupy.disable_experimental_feature_warning``.

    Args:
        api_name: The name of the feature.
        stacklevel: The distance to the frame to which the warning belongs. CuPy's function has no frame.
    """
    if not sys.modules["tcuda.emulation.xp"].disable_experimental_feature_warning:
        text = f"{api_name} is experimental. The interface can change in the future."
        warnings.warn(text, FutureWarning, stacklevel=stacklevel)
