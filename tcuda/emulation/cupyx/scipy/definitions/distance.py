"""Distances between the rows of arrays, in the types of CuPy, with two metrics that SciPy does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.cupyx.scipy.host_modules import scipy_module

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

special = scipy_module("special")
distance = scipy_module("spatial.distance")

_OTHER_NAMES = {
    "chebyshev": "chebychev cheby cheb ch",
    "cityblock": "cblock cb c",
    "correlation": "co",
    "cosine": "cos",
    "euclidean": "euclid eu e",
    "hamming": "matching hamm ha h",
    "jensenshannon": "js",
    "kl_divergence": "kl_div kld",
    "minkowski": "mi m pnorm",
    "sqeuclidean": "sqe sqeuclid",
}
_METRICS = ("canberra", "hellinger", "russellrao", *_OTHER_NAMES)
_METRIC_OF = {name: name for name in _METRICS}
_METRIC_OF |= {other: name for name, others in _OTHER_NAMES.items() for other in others.split()}

cuvs_available = True
"""Whether distances can be computed. CuPy needs a library of NVIDIA's for them."""
pylibraft_available = False


def check_soft_dependencies() -> None:
    """Do nothing: SciPy is here."""


def _hellinger(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[Any]:
    made: npt.NDArray[Any] = distance.cdist(np.sqrt(a), np.sqrt(b)) / np.sqrt(2)
    return made


def _kl_divergence(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[Any]:
    each: npt.NDArray[Any] = special.rel_entr(a[:, None], b[None])
    return each.sum(axis=-1)  # type: ignore[no-any-return]


_OWN = {"hellinger": _hellinger, "kl_divergence": _kl_divergence}


def cdist(
    XA: Any,  # noqa: N803  # SciPy's name
    XB: Any,  # noqa: N803  # SciPy's name
    metric: str = "euclidean",
    out: Any = None,
    **kwargs: Any,
) -> npt.NDArray[Any]:
    """Return the distance of each row of ``XA`` from each row of ``XB``, in the type of ``XA``.

    Args:
        XA: The rows. Numbers that are not ``float32`` or ``float64`` are converted to ``float32``.
        XB: The other rows, in the order of memory of ``XA``.
        metric: The name of the metric.
        out: The array to write to.
        kwargs: ``p`` is the order of ``"minkowski"``, 2 by default.

    Raises:
        TypeError: ``metric`` is no name.
        ValueError: The arrays have not two axes and rows of one length, their orders differ, or the metric is unknown.
    """
    a, b = (given if given.dtype.char in "fd" else given.astype(np.float32) for given in (XA, XB))
    if np.isfortran(a) != np.isfortran(b):
        raise ValueError("XA and XB must have the same layout: one is in the order of Fortran, and one is not")
    for name, given in (("XA", a), ("XB", b)):
        if given.ndim != 2:
            raise ValueError(f"{name} must be a 2-dimensional array.")
    if a.shape[1] != b.shape[1]:
        raise ValueError("XA and XB must have the same number of columns (i.e. feature dimension.)")
    if not isinstance(metric, str):
        raise TypeError("2nd argument metric must be a string identifier")
    known = _METRIC_OF.get(metric.lower())
    if known is None:
        raise ValueError(f"Unknown Distance Metric: {metric.lower()}")
    if known in _OWN:
        made = _OWN[known](a, b)
    elif known == "russellrao":
        made = distance.cdist(a != 0, b != 0, known)
    else:
        options = {"p": kwargs.get("p", 2.0)} if known == "minkowski" else {}
        made = distance.cdist(a, b, known, **options)
    if out is None:
        return made.astype(a.dtype, order="F" if np.isfortran(a) else "C")
    out[...] = made
    return out  # type: ignore[no-any-return]


def pdist(
    X: Any,  # noqa: N803  # SciPy's name
    metric: str = "euclidean",
    *,
    out: Any = None,
    **kwargs: Any,
) -> npt.NDArray[Any]:
    """Return the distances of each row of ``X`` from the rows after it; see :func:`cdist`."""
    made = cdist(X, X, metric, out, **kwargs)
    return made[np.triu_indices_from(made, 1)]


def distance_matrix(x: Any, y: Any, p: float = 2.0) -> npt.NDArray[Any]:
    """Return the Minkowski distance of order ``p`` of each row of ``x`` from each row of ``y``.

    Raises:
        ValueError: The rows have different lengths.
    """
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"x contains {x.shape[1]}-dimensional vectors but y contains {y.shape[1]}-dimensional vectors")
    return cdist(x, y, "minkowski", p=p)


def minkowski(u: Any, v: Any, p: float) -> Any:
    """Return the Minkowski distance of order ``p`` between two vectors."""
    return cdist(np.atleast_2d(u), np.atleast_2d(v), "minkowski", p=p)[0, 0]


def _between(metric: str) -> Callable[[Any, Any], Any]:
    def between(u: Any, v: Any) -> Any:
        return cdist(np.atleast_2d(u), np.atleast_2d(v), metric)[0, 0]

    between.__doc__ = f"Return the distance between two vectors by the metric ``{metric!r}``."
    return between


canberra = _between("canberra")
chebyshev = _between("chebyshev")
cityblock = _between("cityblock")
correlation = _between("correlation")
cosine = _between("cosine")
euclidean = _between("euclidean")
hamming = _between("hamming")
hellinger = _between("hellinger")
jensenshannon = _between("jensenshannon")
kl_divergence = _between("kl_divergence")
russellrao = _between("russellrao")
sqeuclidean = _between("sqeuclidean")


class MetricInfo:
    """The names of a metric.

    Args:
        canonical_name: The name.
        aka: All names.
        validator: Kept, and not used.
        types: The types of numbers that the metric takes.
    """

    def __init__(self, canonical_name: Any = None, aka: Any = None, validator: Any = None, types: Any = None) -> None:
        self.canonical_name_ = canonical_name
        self.aka_ = aka
        self.validator_ = validator
        self.types_ = types
