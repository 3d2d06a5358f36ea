"""Trees and triangulations with the results of CuPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from tcuda.emulation.cupyx.scipy.definitions.distance import distance_matrix as distance_matrix
from tcuda.emulation.cupyx.scipy.host_modules import scipy_module

spatial = scipy_module("spatial")


class KDTree(spatial.KDTree):  # type: ignore[misc, name-defined]
    """A tree of points, which gives the points near to another point as arrays of indices."""

    def query_ball_point(
        self,
        x: Any,
        r: Any,
        p: float = 2.0,
        eps: float = 0,
        return_sorted: bool | None = None,
        return_length: bool = False,
    ) -> Any:
        """Return the indices of the points within ``r`` of each point of ``x``, one array for each point."""
        points = x if x.ndim > 1 else x[None]
        in_order = return_sorted is None or return_sorted
        made = super().query_ball_point(points, r, p, eps, return_sorted=in_order, return_length=return_length)
        return made if return_length else _as_arrays(made)

    def query_ball_tree(self, other: Any, r: float, p: float = 2.0, eps: float = 0.0) -> Any:
        """Return the indices of the points of ``other`` within ``r`` of each point of this tree."""
        return _as_arrays(map(sorted, super().query_ball_tree(other, r, p, eps)))

    def query_pairs(self, r: float, p: float = 2.0, eps: float = 0, output_type: str = "ndarray") -> Any:
        """Return the pairs of points that are not farther than ``r`` from each other."""
        return super().query_pairs(r, p, eps, output_type=output_type)


def _as_arrays(lists: Any) -> list[Any]:
    return [np.array(each, np.int64) for each in lists]


class Delaunay(spatial.Delaunay):  # type: ignore[misc, name-defined]
    """A triangulation of points of the plane."""

    def __init__(self, points: Any, furthest_site: bool = False, incremental: bool = False) -> None:
        if points.shape[-1] != 2:
            raise ValueError("Delaunay only supports 2D inputs at the moment.")
        for name, asked in (("furthest_site", furthest_site), ("incremental", incremental)):
            if asked:
                raise ValueError(f"{name} argument is not supported by CuPy.")
        super().__init__(points)
