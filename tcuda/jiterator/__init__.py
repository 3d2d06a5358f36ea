"""Functions for every element of arrays, written in CUDA C++ (``torch.cuda.jiterator``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda._base.public_names import public_names
from tcuda.jiterator._jitted import JittedFunction

if TYPE_CHECKING:
    from collections.abc import Callable

__all__: list[str] = []  # as in torch: the names of the functions begin with an underscore
__dir__ = public_names(__name__)


def _create_jit_fn(code_string: str, **kwargs: Any) -> Callable[..., Any]:
    """Return a function that computes one array from up to 8 arrays, element by element.

    The code is compiled at the first call with inputs of new dtypes, and the compiled code is kept on disk. A call
    computes on the device of the inputs and on the current stream of that device. The inputs are broadcast to one shape
    and converted to the dtype that they have in common. This dtype is the dtype of the result, and is ``T`` in the
    code. For ``float16`` and ``bfloat16``, ``T`` is ``float``.

    Args:
        code_string: CUDA C++ code. The last function of the code is the kernel, a template whose first parameter is
            ``T``. The kernel takes an element of every input and then the keyword arguments in the order of ``kwargs``,
            and returns an element of the result.
        **kwargs: The keyword arguments of the function, with their defaults. An ``int`` becomes a ``long long`` in the
            code, a ``float`` a ``double``, a ``bool`` a ``bool``, and a ``complex`` a ``complex<double>``.

    Returns:
        The function. Its calls raise ``AssertionError`` for more than 8 inputs, ``KeyError`` for a keyword that
        ``kwargs`` lacks, ``TypeError`` for a keyword argument that is no number and for a dtype that CUDA C++ lacks,
        and ``RuntimeError`` for other wrong inputs and for code that does not compile.

    Raises:
        TypeError: ``code_string`` is not a string, or a default is no number.
        ValueError: The code has unbalanced brackets or no function, or its last function is not a template.

    Examples:
        >>> code = "template <typename T> T blend(T x, T y, T weight) { return x + weight * (y - x); }"
        >>> blend = tcuda.jiterator._create_jit_fn(code, weight=0.5)
        >>> blend(xp.array([1.0, 2.0]), xp.array([3.0, 4.0]), weight=0.25)
        array([1.5, 2.5])
    """
    return JittedFunction(code_string, False, 1, kwargs).call


def _create_multi_output_jit_fn(code_string: str, num_outputs: int, **kwargs: Any) -> Callable[..., Any]:
    """Return a function that computes up to 8 arrays from up to 8 arrays, element by element.

    See :func:`tcuda.jiterator._create_jit_fn`. The kernel returns nothing, and writes an element of each output to the
    references that are its last parameters.

    Args:
        code_string: CUDA C++ code.
        num_outputs: The number of outputs, 1 to 8.
        **kwargs: The keyword arguments of the function, with their defaults.

    Returns:
        The function, which returns a tuple of arrays, or an array if there is one output.

    Raises:
        TypeError: ``code_string`` is not a string, ``num_outputs`` is not an integer, or a default is no number.
        ValueError: The code has unbalanced brackets or no function, or its last function is not a template.
        RuntimeError: ``num_outputs`` is below 1 or above 8.

    Examples:
        >>> code = "template <typename T> void split(T x, T& whole, T& rest) { whole = floor(x); rest = x - whole; }"
        >>> split = tcuda.jiterator._create_multi_output_jit_fn(code, num_outputs=2)
        >>> split(xp.array([1.25, 2.5]))
        (array([1., 2.]), array([0.25, 0.5 ]))
    """
    return JittedFunction(code_string, True, num_outputs, kwargs).call
