"""Objects of SciPy on emulated devices: splines, trees, filters, with arrays of the device."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.interpolate
import scipy.signal
import scipy.spatial

import tcuda
from tcuda.emulation import xp
from tcuda.emulation.cupyx.scipy import interpolate, signal, spatial

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("memory_comes_back")]

X = np.linspace(0.0, 3.0, 8)
Y = np.sin(X)
AT = np.array([0.3, 1.7, 2.9])


@pytest.mark.parametrize(
    "name", ["Akima1DInterpolator", "BarycentricInterpolator", "CubicSpline", "PchipInterpolator", "make_interp_spline"]
)
def test_splines_are_those_of_scipy(name):
    made = getattr(interpolate, name)(xp.asarray(X), xp.asarray(Y))
    expected = getattr(scipy.interpolate, name)(X, Y)
    result = made(xp.asarray(AT))
    assert isinstance(result, xp.ndarray)
    np.testing.assert_allclose(result.get(), expected(AT), rtol=1e-12)


def test_methods_give_objects_of_the_device_and_classes_are_related():
    spline = interpolate.CubicSpline(xp.asarray(X), xp.asarray(Y))
    slope = spline.derivative()
    assert isinstance(spline, interpolate.PPoly)
    assert isinstance(slope, interpolate.PPoly)
    assert not isinstance(slope, interpolate.BSpline)
    np.testing.assert_array_equal(slope.c.get(), scipy.interpolate.CubicSpline(X, Y).derivative().c)
    again = interpolate.PPoly.from_spline(interpolate.make_interp_spline(xp.asarray(X), xp.asarray(Y)))
    np.testing.assert_allclose(again(xp.asarray(AT)).get(), spline(xp.asarray(AT)).get(), rtol=1e-12)
    with pytest.raises(AttributeError, match="no attribute '_hidden'"):
        spline._hidden  # noqa: B018


def test_an_array_of_an_object_shares_its_memory():
    spline = interpolate.CubicSpline(xp.asarray(X), xp.asarray(Y))
    assert spline.c is spline.c
    spline.c[...] = 0
    assert spline(xp.asarray(AT)).tolist() == [0, 0, 0]
    spline.extrapolate = False
    assert np.isnan(spline(xp.array([9.0])).get()).all()


def test_an_object_is_pickled_with_its_arrays():
    spline = interpolate.CubicSpline(xp.asarray(X), xp.asarray(Y))
    again = pickle.loads(pickle.dumps(spline))
    assert type(again) is type(spline)
    assert (again(xp.asarray(AT)) == spline(xp.asarray(AT))).all()
    assert pickle.loads(pickle.dumps(interpolate.BSpline)) is interpolate.BSpline


def test_arrays_of_the_host_are_refused_by_objects():
    with pytest.raises(TypeError, match="Unsupported type"):
        interpolate.CubicSpline(X, Y)
    spline = interpolate.CubicSpline(xp.asarray(X), xp.asarray(Y))
    with pytest.raises(TypeError, match="Unsupported type"):
        spline(AT)
    with pytest.raises(TypeError, match="Unsupported type"):
        spline.c = Y


def test_a_capture_takes_the_methods_of_an_object(captured):
    spline, at = interpolate.CubicSpline(xp.asarray(X), xp.asarray(Y)), xp.asarray(AT)
    result, replay = captured(lambda: spline(at))
    at[...] = 1.0
    replay()
    tcuda.synchronize()
    np.testing.assert_array_equal(result.get(), scipy.interpolate.CubicSpline(X, Y)(np.ones(3)))


def test_a_capture_refuses_to_make_an_object_of_contents():
    x, y = xp.asarray(X), xp.asarray(Y)
    stream = tcuda.Stream()
    graph = tcuda.CUDAGraph()
    with pytest.raises(tcuda.AcceleratorError), tcuda.graph(graph, stream=stream):
        interpolate.CubicSpline(x, y)


def test_an_object_waits_for_the_work_before_it(output_of):
    code = (
        "import numpy as np; from tcuda.emulation import xp, cupyx\n"
        "from tcuda.emulation.cupyx.scipy import interpolate\n"
        "x = xp.arange(5.0); y = x * x; spline = interpolate.CubicSpline(x, y); print(spline(x * 0 + 2.5))"
    )
    printed = output_of(code, TCUDA_RUNTIME="emulated", TCUDA_EMULATED_SCHEDULE="late")
    assert printed == "[6.25 6.25 6.25 6.25 6.25]"


def test_systems_are_those_of_scipy():
    system = signal.lti(xp.array([1.0]), xp.array([1.0, 2.0, 3.0]))
    expected = scipy.signal.lti([1.0], [1.0, 2.0, 3.0])
    assert isinstance(system, signal.TransferFunction)
    assert isinstance(system.to_zpk(), signal.ZerosPolesGain)
    for result, want in zip(signal.step(system), scipy.signal.step(expected), strict=True):
        assert isinstance(result, xp.ndarray)
        np.testing.assert_array_equal(result.get(), want)
    with pytest.warns(signal.BadCoefficients):
        signal.normalize(xp.array([0.0, 1.0]), xp.array([1.0, 2.0]))


def test_a_tree_gives_arrays_of_indices():
    points = np.random.default_rng(0).random((20, 2))
    tree, expected = spatial.KDTree(xp.asarray(points)), scipy.spatial.KDTree(points)
    for result, want in zip(tree.query(xp.asarray(points[:3]), k=2), expected.query(points[:3], k=2), strict=True):
        np.testing.assert_array_equal(result.get(), want)
    near = tree.query_ball_point(xp.asarray(points[:3]), 0.3)
    assert [each.tolist() for each in near] == [sorted(each) for each in expected.query_ball_point(points[:3], 0.3)]
    assert all(isinstance(each, xp.ndarray) for each in near)
    with pytest.raises(ValueError, match="only supports 2D"):
        spatial.Delaunay(xp.ones((5, 3)))
