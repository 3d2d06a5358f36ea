"""Imports that emulated devices refuse: they are told, because libraries take them for a machine without CuPy."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.emulated

START = "import tcuda.emulation\ntcuda.emulation.install_as_cupy()\n"
WITHOUT_SCIPY = f"import sys\nsys.modules['scipy'] = None\n{START}"
FALLS_BACK = """
for _ in range(3):
    try:
        {}
    except ImportError:
        import numpy
"""


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("import cupyx.cutensor", "cupyx.cutensor"),
        ("from cupyx import cutensor", "cupyx.cutensor"),
        ("from cupyx.cutensor import contraction", "cupyx.cutensor"),
        ("import cupy._core.of_a_later_version", "cupy._core.of_a_later_version"),
        ("from cupy._core.core import of_a_later_version", "cupy._core.core.of_a_later_version"),
    ],
)
def test_a_refused_import_is_told_once_with_its_line(statement, name, run_forked):
    done = run_forked(START + FALLS_BACK.format(statement), TCUDA_RUNTIME="emulated")
    (line,) = done.stderr.splitlines()
    assert done.returncode == 0
    assert line.startswith(f"tcuda: The import of {name} at <string>:6 in <module> was refused, so a library may have")
    assert "fallen back to NumPy" in line


@pytest.mark.parametrize(
    "statement", ["import cupy.of_no_version", "import cupy.__main__", "from cupy import of_no_version", "import cupy"]
)
def test_an_import_that_cupy_refuses_too_is_not_told(statement, run_forked):
    assert run_forked(START + FALLS_BACK.format(statement), TCUDA_RUNTIME="emulated").stderr == ""


def test_an_import_that_fails_inside_of_emulated_devices_is_told(run_forked):
    code = f"{START}import sys\nsys.modules['tcuda.emulation.cupyx.jit'] = None\n{FALLS_BACK.format('import cupyx')}"
    done = run_forked(code, TCUDA_RUNTIME="emulated")
    assert "tcuda: The import of cupyx at <string>:8 in <module> was refused" in done.stderr


def test_cupyx_scipy_is_imported_without_scipy_and_its_calls_say_what_to_install(run_forked):
    code = f"""{WITHOUT_SCIPY}
import cupy, warnings
from cupyx.scipy import fft, fftpack, interpolate, linalg, ndimage, signal, sparse, spatial, special, stats
from cupyx.scipy.interpolate import BSpline
from cupyx.scipy.ndimage import gaussian_filter, label
from cupyx.scipy.signal import fftconvolve, lti
from cupyx.scipy.signal.windows import hann
from cupyx.scipy.sparse import SparseEfficiencyWarning, csr_matrix
from cupyx.scipy.sparse.csgraph import connected_components
from cupyx.scipy.sparse.linalg import LinearOperator, cg
from cupyx.scipy.spatial import KDTree
from cupyx.scipy.spatial.distance import cdist
from cupyx.scipy.special import erf

class Spline(BSpline):
    pass

x = cupy.eye(3)
assert not isinstance(x, (BSpline, KDTree, csr_matrix, lti))
warnings.simplefilter("ignore", SparseEfficiencyWarning)
assert fft.fft(x).shape == (3, 3)  # needs no SciPy
calls = [
    lambda: erf(x), lambda: fftconvolve(x, x), lambda: hann(8), lambda: gaussian_filter(x, 1), lambda: KDTree(x),
    lambda: Spline(x, x, 3), lambda: csr_matrix(x), lambda: cdist(x, x), lambda: lti(1, 2), lambda: label(x),
    lambda: linalg.lu(x), lambda: linalg.solve_triangular(x, x), lambda: stats.zscore(x),
]
for call in calls:
    try:
        call()
    except ImportError as error:
        assert error.name == "scipy" and "pip install scipy, or install tcuda[emulation]" in str(error), error
    else:
        raise AssertionError
"""
    for schedule in ("eager", "late"):
        done = run_forked(code, TCUDA_RUNTIME="emulated", TCUDA_EMULATED_SCHEDULE=schedule)
        assert (done.returncode, done.stderr) == (0, "")


def test_sparse_matrices_are_no_objects_of_other_types_without_scipy(run_forked):
    code = f"""{WITHOUT_SCIPY}
import cupy
from cupyx.scipy import sparse
assert not sparse.issparse(cupy.ones(3)) and not sparse.issparse([1]) and not sparse.isspmatrix_csr(3)
"""
    assert run_forked(code, TCUDA_RUNTIME="emulated").stderr == ""
