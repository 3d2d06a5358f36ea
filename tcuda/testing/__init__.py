"""Help for tests of device code: assertions for device arrays, and checks of what a test leaves behind.

The module :mod:`tcuda.testing.plugin` is the plugin for pytest, which pytest loads by itself.
"""

from tcuda._base.public_names import public_names
from tcuda.testing._arrays import (
    assert_allclose,
    assert_array_almost_equal,
    assert_array_equal,
    assert_array_less,
    assert_array_max_ulp,
)
from tcuda.testing._state import check_state

__all__ = [
    "assert_allclose",
    "assert_array_almost_equal",
    "assert_array_equal",
    "assert_array_less",
    "assert_array_max_ulp",
    "check_state",
]
__dir__ = public_names(__name__)
