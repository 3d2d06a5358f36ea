"""The array namespace of emulated devices: its functions do as NumPy's, and none is there that CuPy does not have."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle

import numpy as np
import pytest

import tcuda
import tcuda.emulation
from support.devices import allocated
from tcuda._runtime.emulated import costs
from tcuda.emulation import catalogue, functions, ndarray, xp

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("memory_comes_back")]


RANDOM = np.random.default_rng(0)
OPERANDS = {
    "x": RANDOM.standard_normal((3, 4)),
    "y": RANDOM.standard_normal((3, 4)),
    "square": RANDOM.standard_normal((4, 4)) + 4 * np.eye(4),
    "positive": np.eye(3) * 4 + 1,
    "vector": np.array([3.0, 1.0, 2.0, 1.0]),
    "complex": np.array([1 + 2j, 3 - 1j, 2 + 0j]),
    "gaps": np.array([[1.0, np.nan, 3.0], [4.0, 5.0, np.nan]]),
    "counts": np.array([2, 0, 1, 2, 2]),
    "mask": np.array([[True, False, True, False]] * 3),
    "bits": np.array([1, 0, 255, 16], dtype=np.uint8),
    "places": np.array([[2, 0, 1, 1]]),
    "zeros": np.array([0, 0, 1, 2, 0]),
}


def operands(module):
    return {name: module.asarray(value) for name, value in OPERANDS.items()}


def evaluate(expression, module, names=None):
    """Return the value of ``expression``, in which functions are those of ``module`` and arrays are its arrays."""

    class Names(dict):
        def __missing__(self, name):
            return getattr(module, name)

    names = operands(module) if names is None else names
    with np.errstate(all="ignore"):
        # The names are in the first of the two so that they come before Python's own, such as sum.
        return eval(expression, {"__builtins__": Names(names)})


def assert_same(actual, expected):
    """Check that both are alike: arrays on the device where NumPy has arrays or scalars, in the same containers."""
    if isinstance(expected, (tuple, list)):
        assert len(actual) == len(expected)
        assert isinstance(actual, (tuple, list))
        assert getattr(actual, "_fields", None) == getattr(expected, "_fields", None)
        for part, wanted in zip(actual, expected, strict=True):
            assert_same(part, wanted)
        return
    assert isinstance(actual, ndarray), type(actual)
    assert actual.dtype == np.asarray(expected).dtype
    assert actual.shape == np.shape(expected)
    np.testing.assert_array_equal(actual.get(), expected)


CASES = """
all(x > 0, axis=1)
allclose(x, x + 1e-9)
amax(x, axis=0)
amin(x)
angle(complex)
any(x > 0)
append(x, y, axis=0)
arange(2, 10, 3)
arange(4.0)
argmax(x, axis=1)
argmin(x)
argpartition(vector, 1)
argsort(zeros)
argsort(x, axis=None)
argwhere(x > 0)
around(x, 2)
array_equal(x, x)
array_equiv(x, x)
array_split(vector, 3)
atleast_1d(vector[0])
atleast_2d(vector)
atleast_3d(x)
average(x, axis=0, weights=y)
bartlett(5)
bincount(counts, minlength=5)
blackman(5)
broadcast_arrays(x, vector)
broadcast_to(vector, (2, 4))
choose(counts[:4], x)
clip(x, -1, 1)
clip(x, None, y)
column_stack([vector, vector])
compress([True, False, True], x, axis=0)
concatenate([x, y], axis=1)
concatenate((x, y), axis=None)
convolve(vector, counts, mode="same")
corrcoef(x)
correlate(vector, vector[:2])
count_nonzero(mask, axis=0)
count_nonzero(mask)
cov(x)
cross(x[:, :3], y[:, :3])
cumprod(x, axis=1)
cumsum(x)
cumulative_prod(vector)
cumulative_sum(vector, include_initial=True)
delete(x, [0, 2], axis=1)
delete(x, 1, axis=0)
delete(vector, s_[1:3])
diag(vector)
diag(x, k=1)
diag_indices(3)
diag_indices_from(square)
diagflat(vector)
diagonal(x, offset=1)
diff(vector, n=2)
digitize(x, vector.cumsum())
dot(x, square)
dot(vector, vector)
dsplit(x[..., None].repeat(2, axis=2), 2)
dstack([x, y])
ediff1d(vector)
einsum("ij,kj->ik", x, y)
einsum("...i,...i", x, y)
einsum("ii", square)
expand_dims(x, (0, 2))
extract(x > 0, x)
eye(3, 4, k=1)
flatnonzero(counts)
flip(x, axis=1)
fliplr(x)
flipud(x)
gradient(x)
hamming(5)
hanning(5)
histogram(x, bins=4)
histogram2d(vector, vector)
histogramdd(x, bins=2)
hsplit(x, [1, 3])
hstack([x, y])
i0(vector)
identity(3)
imag(complex)
indices((2, 3))
inner(x, y)
interp(vector, vector.copy().cumsum(), vector)
intersect1d(counts, zeros)
iscomplex(complex)
isclose(x, y)
isin(counts, zeros[2:])
isneginf(gaps)
isposinf(gaps)
isreal(complex)
ix_(counts, zeros)
kaiser(5, 3.0)
kron(x, vector)
lexsort(stack([zeros, counts]))
linspace(0, 1, 5)
linspace(0, 1, 5, endpoint=False, retstep=True)
logspace(0, 2, 3)
matrix_transpose(x)
max(x, axis=1, keepdims=True)
mean(x, axis=(0, 1))
mean(counts)
median(x, axis=0)
meshgrid(vector, counts)
min(x, axis=0)
moveaxis(x[None], 0, -1)
nan_to_num(gaps)
nanargmax(gaps, axis=1)
nanargmin(gaps)
nancumprod(gaps)
nancumsum(gaps, axis=0)
nanmax(gaps)
nanmean(gaps, axis=1)
nanmedian(gaps)
nanmin(gaps, axis=0)
nanprod(gaps)
nanstd(gaps)
nansum(gaps)
nanvar(gaps)
nonzero(counts)
outer(vector, counts)
packbits(bits > 0)
pad(x, ((1, 1), (0, 2)), mode="constant")
pad(x, 1, mode="edge")
partition(vector, 2)
percentile(x, [25, 75], axis=0)
poly(vector)
polyadd(vector, counts)
polyfit(vector, vector * 2, 1)
polymul(vector, counts)
polysub(vector, counts)
polyval(vector, x)
prod(x, axis=0)
ptp(x, axis=0)
quantile(x, 0.3)
ravel(x, order="F")
ravel_multi_index((counts, zeros), (3, 3))
real(complex)
real_if_close(complex)
repeat(x, [1, 2, 0], axis=0)
reshape(x, (2, 6))
resize(x, (2, 3))
roll(x, (1, 2), axis=(0, 1))
rollaxis(x[None], 2)
roots(vector[:2])
rot90(x)
round(x, 1)
searchsorted(vector.cumsum(), vector)
select([x > 1, x > 0], [x, y], default=7.0)
setdiff1d(counts, zeros)
setxor1d(counts, zeros)
sinc(x)
sort(x, axis=0)
sort(x, axis=None)
sort_complex(complex)
split(x, 2, axis=1)
squeeze(x[None], axis=0)
stack([x, y], axis=-1)
std(x, axis=0, ddof=1)
sum(x, axis=1, dtype=float32)
sum(counts)
swapaxes(x, 0, 1)
take(x, [2, 0], axis=1)
take(x, places)
take_along_axis(x, places, axis=1)
tensordot(x, y, axes=([0], [0]))
tile(x, (2, 1))
trace(square)
transpose(x, (1, 0))
trapezoid(x, axis=0)
tri(3, 4)
tril(x, 1)
tril_indices(3)
tril_indices_from(square)
trim_zeros(zeros)
triu(x, -1)
triu_indices(3, 1)
triu_indices_from(square)
union1d(counts, zeros)
unique(counts, return_counts=True, return_inverse=True)
unique(counts)
unique_all(counts)
unique_counts(counts)
unique_inverse(counts)
unique_values(counts)
unpackbits(bits)
unravel_index(counts, (3, 4))
unwrap(vector * 4)
vander(vector)
var(x, axis=1)
vdot(vector, vector)
vsplit(x, 3)
vstack([x, vector])
where(x > 0, x, 0)
where(mask, x, y)
where(counts)
zeros_like(x)
r_[vector, 3.0, counts]
c_[vector, vector]
mgrid[0:3, 0:2]
ogrid[0:3, 0:2]
mgrid[0:1:5j]
linalg.cholesky(positive)
linalg.cond(square)
linalg.cross(x[:, :3], y[:, :3])
linalg.det(square)
linalg.eig(positive)
linalg.eigh(positive)
linalg.eigvals(positive)
linalg.eigvalsh(positive)
linalg.inv(square)
linalg.lstsq(square, vector, rcond=None)
linalg.matmul(x, square)
linalg.matrix_power(square, 3)
linalg.matrix_rank(square)
linalg.matrix_transpose(x)
linalg.norm(x, axis=0)
linalg.pinv(x)
linalg.qr(x)
linalg.slogdet(square)
linalg.solve(square, vector)
linalg.svd(x)
linalg.tensorinv(square, ind=1)
linalg.tensorsolve(square, vector)
fft.fft(x)
fft.fft2(x)
fft.fftfreq(5)
fft.fftn(x)
fft.fftshift(x)
fft.hfft(complex)
fft.ifft(x)
fft.ifft2(x)
fft.ifftn(x)
fft.ifftshift(x)
fft.ihfft(vector)
fft.irfft(complex)
fft.irfft2(x)
fft.irfftn(x)
fft.rfft(x, n=6)
fft.rfft2(x)
fft.rfftfreq(5)
fft.rfftn(x)
""".strip().splitlines()

WRITING_CASES = """
copyto(target, y)
copyto(target, 3, where=mask)
fill_diagonal(target, 7)
place(target, mask, vector)
put(target, [0, 5], vector[:2])
put_along_axis(target, places, 9.0, axis=1)
putmask(target, mask, y)
""".strip().splitlines()


def called(case):
    return case.partition("(")[0].partition("[")[0]


@pytest.mark.parametrize("case", CASES)
def test_functions_do_as_those_of_numpy(case):
    assert_same(evaluate(case, xp), evaluate(case, np))


@pytest.mark.parametrize("case", WRITING_CASES)
def test_functions_that_write_do_as_those_of_numpy(case):
    targets = [module.zeros((3, 4)) for module in (xp, np)]
    for module, target in zip((xp, np), targets, strict=True):
        assert evaluate(case, module, {"target": target, **operands(module)}) is None
    assert targets[1].any()
    assert_same(*targets)


def test_every_function_has_a_case():
    cases = {called(case) for case in (*CASES, *WRITING_CASES)}
    ufuncs_and_questions = {*catalogue.UFUNCS, *catalogue.ASKING, *catalogue.ALIASES, *catalogue.OF_ARRAYS}
    assert not functions.FUNCTIONS.keys() - ufuncs_and_questions - cases
    assert not {f"linalg.{name}" for name in functions.LINALG} - cases
    assert not {f"fft.{name}" for name in functions.FFT} - cases


# Capture

D2H = RuntimeError, r"^the current stream is capturing, so D2H transfers are disallowed\. "
H2D = RuntimeError, r"^the current stream is capturing, so H2D transfers are disallowed\. "
SOLVER = NotImplementedError, r"^calling cuSOLVER API during stream capture is currently unsupported; "

# What CuPy 14 refuses to capture, by the names of functions.
REFUSED = {
    """
argwhere average bincount choose compress delete extract flatnonzero histogram histogram2d histogramdd intersect1d
nanmax nanmin nonzero place polymul putmask real_if_close roots setdiff1d setxor1d tril_indices tril_indices_from
trim_zeros triu_indices triu_indices_from union1d unique unique_all unique_counts unique_inverse unique_values
unravel_index
""": D2H,
    "percentile repeat": H2D,
    """
polyfit linalg.cholesky linalg.cond linalg.det linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh linalg.inv
linalg.lstsq linalg.matrix_rank linalg.pinv linalg.qr linalg.slogdet linalg.solve linalg.svd linalg.tensorinv
linalg.tensorsolve
""": SOLVER,
}

# What it refuses of functions that it does capture otherwise.
REFUSED_CASES = {
    "array_equal(x, y, equal_nan=True)": D2H,
    "array_split(vector, counts)": D2H,
    "cov(vector, aweights=vector)": D2H,
    "gradient(vector, vector)": D2H,
    "ix_(mask[0])": D2H,
    "linalg.matrix_power(square, -1)": SOLVER,
    "linalg.norm(x, 2)": SOLVER,
    "linalg.norm(x, ord='nuc')": SOLVER,
    "percentile(x, vector)": D2H,
    "poly(square)": D2H,
    "put(target, [0, 5], vector[:2])": H2D,
    "put(target, counts, vector[:1], mode='raise')": D2H,
    "quantile(x, (0.2, 0.4))": H2D,
    "ravel_multi_index((counts, zeros), (3, 3), mode='raise')": D2H,
    "repeat(vector, counts[:4])": D2H,
    "take(x, [2, 0], axis=1)": H2D,
    "where(counts)": D2H,
    "where(x > 0, None)": D2H,
    "x[mask]": D2H,
    "x[True]": D2H,
    "x[0, mask[0]]": D2H,
    "x[[0, 1]]": H2D,
    "add.at(vector, mask[0], 1)": D2H,
}
# And what it captures of those that it refuses otherwise, among others.
CAPTURED_CASES = """
average(x, axis=0)
choose(counts[:4], x, mode="wrap")
linalg.matrix_power(square, 0)
linalg.norm(vector, 2)
linalg.norm(x)
nan_to_num(gaps, copy=False)
percentile(x, 25, axis=0)
ravel_multi_index((counts, zeros), (3, 3), mode="wrap")
put(target, counts, vector[:1])
putmask(target, mask, vector[:3])
real_if_close(x)
repeat(x, 2, axis=0)
take(x, counts, axis=1)
x[counts]
x[counts[:3], places[0, :3]]
x[:, 1]
x[..., places]
add.reduce(x, axis=1)
add.accumulate(x)
add.outer(vector, vector)
add.reduceat(vector, counts[:1])
divmod(vector, vector[:1])
power(counts, counts)
x @ square
-x
x.astype(float32)
x.T.copy()
x.T.reshape(-1)
asarray(5.0) + x
array(x, order="F")
array([vector, vector])
full((2, 3), x[0, 0])
zeros_like(x)
""".strip().splitlines()


def refusal(case):
    """Return the error with which ``case`` is refused in a capture, None if it is not."""
    by_name = {name: error for names, error in REFUSED.items() for name in names.split()}
    return None if case in CAPTURED_CASES else REFUSED_CASES.get(case) or by_name.get(called(case))


def contents(value):
    """Return type, shape and bytes of each array in ``value``."""
    if isinstance(value, (tuple, list)):
        return [content for part in value for content in contents(part)]
    return [(value.dtype, value.shape, value.get().tobytes())]


def all_cases():
    return [*CASES, *WRITING_CASES, *CAPTURED_CASES, *REFUSED_CASES]


@pytest.mark.parametrize("case", [case for case in all_cases() if refusal(case) is None])
def test_a_graph_does_what_its_functions_do(captured, case):
    names = {"target": xp.zeros((3, 4)), **operands(xp)}
    result, launch = captured(lambda: evaluate(case, xp, names))
    for change in (lambda host: host, lambda host: host[::-1], lambda host: host):
        for name, value in {"target": np.zeros((3, 4)), **OPERANDS}.items():
            names[name].set(np.ascontiguousarray(change(value)))
        eager = {name: array.copy() for name, array in names.items()}
        expected = evaluate(case, xp, eager)
        expected = contents(eager["target"] if expected is None else expected)
        launch()
        assert contents(names["target"] if result is None else result) == expected


@pytest.mark.parametrize("case", [case for case in all_cases() if refusal(case) is not None])
def test_what_cupy_does_not_capture_is_refused_and_spoils_nothing(captured, case):
    kind, words = refusal(case)
    names = {"target": xp.zeros((3, 4)), **operands(xp)}
    x = names["x"]

    def work():
        with pytest.raises(kind, match=words) as raised:
            evaluate(case, xp, names)
        assert raised.type is kind
        x[...] = x * 2

    _, launch = captured(work)
    launch()
    np.testing.assert_array_equal(x.get(), OPERANDS["x"] * 2)


# What takes a number from the host, by a name that stands for an array of the device with a number in it.
NUMBERS_FROM_THE_DEVICE = """
empty(n)
empty((2, n))
ones(n)
full(n, 1.0)
eye(n)
identity(n)
tri(n)
hanning(n)
indices((2, n))
x.reshape(n)
x.reshape((n, 6))
x.reshape(n, 6)
reshape(x, (6, n))
x.transpose(n, 0)
transpose(x, (n, 0))
x.sum(n)
sum(x, axis=n)
sum(x, (0, n))
mean(x, axis=n)
max(x, n)
argmax(x, axis=n)
cumsum(x, axis=n)
sort(x, axis=n)
x.sort(n)
x.partition(n)
concatenate([x, x], axis=n)
stack([x, x], axis=n)
expand_dims(x, n)
squeeze(x[None], n)
moveaxis(x, n, 0)
swapaxes(x, n, 0)
flip(x, n)
roll(x, 1, axis=n)
tile(x, n)
tile(x, (n, 1))
pad(x, n)
pad(x, ((n, 1), (1, 1)))
pad(x, 1, constant_values=n)
repeat(x, 2, axis=n)
take(x, 0, axis=n)
trace(x, n)
diagonal(x, n)
diag(vector, n)
triu(x, n)
rot90(x, n)
split(vector, n)
array_split(vector, n)
broadcast_to(vector, (n, 4))
resize(x, (n, 2))
linspace(0, 1, n)
logspace(0, 1, n)
vander(vector, n)
bincount(counts, minlength=n)
arange(n, 4)
arange(0, 4, n)
diff(vector, n)
tensordot(x, y, n)
linalg.matrix_power(square, n)
linalg.norm(x, axis=n)
fft.fft(x, n)
fft.fft(x, axis=n)
fft.fftfreq(n)
add.reduce(x, n)
add.accumulate(x, n)
random.rand(n)
random.rand(2, n)
random.normal(0.0, 1.0, n)
random.randint(0, 3, (n, 2))
random.permutation(vector)[:n]
ndarray(n)
x[:n]
x[n:]
""".strip().splitlines()


@pytest.mark.parametrize("case", NUMBERS_FROM_THE_DEVICE)
def test_a_number_on_the_device_is_no_number_of_the_host(captured, case):
    names = {"n": xp.asarray(1), **operands(xp)}
    with pytest.raises(TypeError, match="integer|takes no array|index"):
        evaluate(case, xp, names)

    def work():
        with pytest.raises((TypeError, RuntimeError)):
            evaluate(case, xp, names)
        names["vector"][...] = names["vector"] * 2

    _, launch = captured(work)
    launch()
    np.testing.assert_array_equal(names["vector"].get(), OPERANDS["vector"] * 2)


@pytest.mark.parametrize(
    "case",
    [*("arange(n)", "arange(0, n)", "diag_indices(n)", "mgrid[0:n]", "ones(int(n))"),
     *("ones(n.item())", "repeat(vector, n)", "ones(n.tolist())", "range(int(n))")],
)  # fmt: skip
def test_a_number_that_is_read_from_the_device_is_right_and_is_refused_in_a_capture(captured, case):
    names = {"n": xp.asarray(2), "int": int, "range": range, **operands(xp)}
    host = {"n": np.asarray(2), "int": int, "range": range, **OPERANDS}
    expected = evaluate(case, np, host)
    actual = evaluate(case, xp, names)
    assert actual == expected if isinstance(expected, range) else assert_same(actual, expected) is None

    def work():
        with pytest.raises(RuntimeError, match="the current stream is capturing, so D2H transfers are disallowed"):
            evaluate(case, xp, names)
        names["vector"][...] = names["vector"] * 2

    _, launch = captured(work)
    launch()
    np.testing.assert_array_equal(names["vector"].get(), OPERANDS["vector"] * 2)


SAMPLES = {
    dtype: np.array([1, 2, 3, 1], dtype=dtype) if dtype != "?" else np.array([True, False, True, True])
    for dtype in ["?", "b", "H", "i", "q", "e", "f", "d", "F", "D"]
}


@pytest.mark.parametrize("name", [name for name in catalogue.UFUNCS if hasattr(np, name)])
def test_ufuncs_do_as_those_of_numpy(name):
    emulated, host = getattr(xp, name), getattr(np, name)
    assert (emulated.nin, emulated.nout, emulated.nargs) == (host.nin, host.nout, host.nargs)
    ran = False
    for sample in SAMPLES.values():
        arguments = [sample, sample[::-1].copy()][: host.nin]
        with np.errstate(all="ignore"):
            try:
                expected = host(*arguments)
            except TypeError:
                with pytest.raises(TypeError):
                    emulated(*map(xp.asarray, arguments))
                continue
            ran = True
        assert_same(emulated(*map(xp.asarray, arguments)), expected)
    assert ran


@pytest.mark.parametrize("name", [name for name in catalogue.UFUNCS if hasattr(np, name)])
def test_ufuncs_are_captured(captured, name):
    function = getattr(xp, name)
    arrays = [xp.asarray(SAMPLES["q"]), xp.asarray(SAMPLES["q"][::-1].copy())][: function.nin]
    result, launch = captured(lambda: function(*arrays))
    arrays[0] += 1
    launch()
    assert contents(result) == contents(function(*arrays))


def test_ufuncs_take_scalars_and_give_arrays():
    assert_same(xp.sqrt(4.0), 2.0)
    assert_same(xp.add(1, np.float32(2)), np.add(1, np.float32(2)))
    assert xp.add.__name__ == "add"
    assert "add" in repr(xp.add)


def test_second_names_are_the_same_functions():
    for alias, name in catalogue.ALIASES.items():
        if hasattr(np, name):
            assert getattr(xp, alias) is getattr(xp, name)


def test_questions_run_no_kernel_and_give_no_array(runtime):
    x = xp.asarray(OPERANDS["x"])
    time = runtime.clock.now()
    assert xp.shape(x) == (3, 4)
    assert xp.ndim(x) == 2
    assert xp.size(x) == 12
    assert xp.result_type(x, np.float32) == xp.min_scalar_type(x) == xp.common_type(x) == np.float64
    assert xp.iscomplexobj(x) is False
    assert xp.isrealobj(x) is True
    assert xp.isfortran(x.T)
    assert xp.may_share_memory(x, x[1:])
    assert xp.shares_memory(x, x[1:])
    assert not xp.shares_memory(x[:1], x[1:])
    assert runtime.clock.now() == time


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: xp.dot(xp.ones(2), [1.0, 2.0]), TypeError),
        (lambda: xp.sum(a=[1.0, 2.0]), AttributeError),
        (lambda: xp.linalg.inv([[1.0]]), np.linalg.LinAlgError),
        (lambda: xp.searchsorted(xp.ones(2), v=[1.0]), NotImplementedError),
        (lambda: xp.concatenate([xp.ones(2), [1.0]]), TypeError),
        (lambda: xp.ones(2).dot([1.0, 2.0]), TypeError),
    ],
)
def test_a_refusal_says_what_an_argument_must_be(call, error):
    with pytest.raises(error, match=r"takes an array of the device as '\w+', not an object of <class 'list'>: make an"):
        call()


def test_functions_of_the_host_alone_are_left_to_numpy():
    total = xp.sum(np.ones(3))
    assert type(total) is np.float64
    assert total == 3
    with pytest.raises(TypeError, match="arrays of the device or arrays of NumPy's, not both"):
        xp.take(np.ones(3), xp.zeros(1, int))


def test_sorting_is_stable_and_nothing_else():
    keys = np.tile([1, 0], 50)
    assert_same(xp.argsort(xp.asarray(keys)), np.argsort(keys, kind="stable"))
    assert_same(xp.asarray(keys).argsort(kind="stable"), np.argsort(keys, kind="stable"))
    with pytest.raises(ValueError, match="kind can only be None or 'stable'"):
        xp.sort(xp.asarray(keys), kind="quicksort")
    with pytest.raises(ValueError, match="kind can only be None or 'stable'"):
        xp.asarray(keys).sort(kind="heapsort")


# Creation


@pytest.mark.parametrize("dtype", [None, "?", "i", np.float32, "complex64"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_made_of_nothing(dtype, order):
    options = {} if dtype is None else {"dtype": dtype}
    for name, args in (("zeros", ((2, 3),)), ("ones", (4,)), ("full", ((2, 3), 2))):
        made, expected = getattr(xp, name)(*args, **options, order=order), getattr(np, name)(*args, **options)
        assert_same(made, expected)
        assert made.flags[order]
    made = xp.empty((2, 3), order=order, **options)
    assert (made.shape, made.dtype, made.flags[order]) == ((2, 3), np.dtype(dtype), True)


def test_full_takes_the_type_of_its_value():
    assert_same(xp.full(2, 3), np.full(2, 3))
    assert_same(xp.full(2, np.float32(3)), np.full(2, np.float32(3)))
    assert_same(xp.full(2, xp.asarray(1.5, dtype="e")), np.full(2, 1.5, "e"))
    with pytest.raises(ValueError, match="cannot be used for fill"):
        xp.full(2, xp.ones(2))


@pytest.mark.parametrize("name", ["empty_like", "zeros_like", "ones_like", "full_like"])
@pytest.mark.parametrize(
    "options", [{}, {"dtype": "i"}, {"order": "C"}, {"order": "F"}, {"order": "A"}, {"shape": (2, 5)}], ids=str
)
def test_arrays_are_made_like_others(name, options):
    host = np.arange(24.0).reshape(2, 3, 4).transpose(1, 0, 2)
    array = xp.asarray(np.arange(24.0).reshape(2, 3, 4)).transpose(1, 0, 2)
    args = (3,) if name == "full_like" else ()
    made, expected = getattr(xp, name)(array, *args, **options), getattr(np, name)(host, *args, **options)
    assert (made.shape, made.dtype, made.strides) == (expected.shape, expected.dtype, expected.strides)
    if name != "empty_like":
        np.testing.assert_array_equal(made.get(), expected)
    with pytest.raises(TypeError, match="subok"):
        getattr(xp, name)(array, *args, subok=True)


@pytest.mark.parametrize(
    "value",
    [5, 2.5, True, 1j, [1, 2], [[1.5], [2.5]], (), np.arange(6).reshape(2, 3).T, np.array(3, "e"), range(3), []],
    ids=repr,
)
def test_arrays_are_made_of_what_the_host_has(value):
    for function in (xp.array, xp.asarray, xp.asanyarray):
        assert_same(function(value), np.array(value))
        assert_same(function(value, dtype="f") if np.asarray(value).dtype != complex else function(value),
                    np.array(value, dtype="f") if np.asarray(value).dtype != complex else np.array(value))  # fmt: skip


def test_arrays_are_made_of_sequences_of_arrays():
    a, b = xp.arange(3), xp.ones(3)
    assert_same(xp.array([a, b]), np.array([np.arange(3), np.ones(3)]))
    assert_same(xp.array([[a[0], a[1]], [b[1], b[2]]]), np.array([[0, 1.0], [1, 1]]))
    for mixed in ([[a[0], 5], [b[1], 6.5]], [a, [1, 2, 3]], [a, np.ones(3)]):
        with pytest.raises(TypeError, match="Implicit conversion to a NumPy array is not allowed"):
            xp.array(mixed)
    assert_same(xp.array([a, a], dtype="f", order="F"), np.array([[0, 1, 2]] * 2, "f"))


def test_array_copies_unless_told_otherwise():
    array = xp.arange(6).reshape(2, 3)
    assert not xp.shares_memory(xp.array(array), array)
    assert not xp.shares_memory(xp.copy(array), array)
    assert xp.asarray(array) is array
    assert xp.array(array, copy=False) is array
    assert xp.asarray(array, order="F") is not array
    assert xp.ascontiguousarray(array) is array
    assert xp.asfortranarray(array).flags.fnc
    assert xp.ascontiguousarray(xp.asarray(3)).shape == (1,)
    assert xp.array(array, ndmin=3).shape == (1, 2, 3)
    assert xp.array(array.T).flags.fnc
    assert xp.array(array.T, order="C").flags.c_contiguous
    assert xp.astype(array, "f").dtype == np.float32
    assert xp.astype(array, array.dtype, copy=False) is array
    with pytest.raises(ValueError, match="Unable to avoid copy"):
        xp.array(array, dtype="f", copy=False)
    with pytest.raises(NotImplementedError):
        xp.array(array, subok=True)


@pytest.mark.parametrize("value", [["a", "b"], [None], np.zeros(2, "g"), np.array(["2020"], "M8[Y]")], ids=repr)
def test_dtypes_that_no_kernel_knows_are_refused(value):
    before = allocated()
    with pytest.raises(ValueError, match="Unsupported dtype"):
        xp.array(value)
    assert allocated() == before


def test_big_endian_arrays_are_converted():
    assert_same(xp.asarray(np.arange(3, dtype=">i4")), np.arange(3, dtype="i4"))


def test_making_an_array_takes_the_time_of_its_copy(runtime):
    host = np.zeros(1 << 20, np.uint8)
    runtime.deviceSynchronize()
    runtime.sleep(1_000_000, 0)
    ready = runtime.devices[0].default.ready
    array = xp.asarray(host)
    assert runtime.devices[0].default.ready - ready == costs.copy_to_or_from_host(1 << 20, pinned=False)
    assert runtime.clock.now() < ready
    xp.asarray(host, blocking=True)
    assert runtime.clock.now() > ready
    del array


# The host


def test_asnumpy_takes_anything():
    array = xp.arange(6).reshape(2, 3)
    assert isinstance(xp.asnumpy(array), np.ndarray)
    assert xp.asnumpy(array.T, order="A").flags.fnc
    out = np.zeros((2, 3), int)
    assert xp.asnumpy(array, out=out) is out
    assert out.tolist() == array.tolist()
    assert xp.asnumpy([1, 2]).tolist() == [1, 2]
    assert xp.asnumpy([[1, 1, 1]] * 2, out=out) is out
    assert out.tolist() == [[1, 1, 1]] * 2


def test_get_array_module_tells_whose_an_array_is():
    assert xp.get_array_module(np.ones(2), xp.ones(2)) is importlib.import_module("tcuda.emulation.xp")
    assert xp.get_array_module(np.ones(2), 3) is np


def test_arrays_go_to_files_and_come_back(tmp_path):
    array = xp.asarray(OPERANDS["x"])
    xp.save(tmp_path / "one.npy", array)
    assert_same(xp.load(tmp_path / "one.npy"), array.get())
    for save in (xp.savez, xp.savez_compressed):
        save(tmp_path / "two.npz", first=array, second=array[0])
        loaded = xp.load(tmp_path / "two.npz")
        assert sorted(loaded) == ["first", "second"]
        assert_same(loaded["second"], array[0].get())
    xp.savetxt(tmp_path / "text", array)
    assert_same(xp.loadtxt(tmp_path / "text"), array.get())
    assert_same(xp.genfromtxt(tmp_path / "text"), array.get())
    array.tofile(tmp_path / "bytes")
    assert_same(xp.fromfile(tmp_path / "bytes"), array.ravel().get())


def test_arrays_come_from_buffers_iterators_and_functions():
    assert_same(xp.frombuffer(b"\1\2", dtype="B"), np.array([1, 2], "B"))
    assert_same(xp.fromiter(iter([1, 2]), dtype="i"), np.array([1, 2], "i"))
    assert_same(xp.fromfunction(lambda i, j: i + j, (2, 2)), np.fromfunction(lambda i, j: i + j, (2, 2)))
    assert_same(xp.fromstring("1 2", sep=" "), np.array([1.0, 2.0]))


def test_arrays_are_written_as_text():
    array = xp.arange(3)
    assert xp.array_repr(array) == repr(array) == "array([0, 1, 2])"
    assert xp.array_str(array) == str(array) == xp.array2string(array) == "[0 1 2]"
    assert xp.format_float_positional(xp.asarray(1.5)) == "1.5"
    assert xp.format_float_scientific(xp.asarray(1.5)) == "1.5e+00"


# What there is


def test_every_name_that_is_listed_is_there():
    for module in (xp, xp.linalg, xp.fft):
        names = dir(module)
        assert names == sorted(names)
        for name in names:
            getattr(module, name)
    assert xp.ndarray is tcuda.emulation.ndarray is ndarray
    assert xp.float32 is np.float32
    assert xp.newaxis is None
    assert xp.linalg.LinAlgError is np.linalg.LinAlgError


@pytest.mark.parametrize(
    "name",
    # what needs a compiler, what belongs elsewhere, and what NumPy has and CuPy has not
    ["ElementwiseKernel", "RawKernel", "RawModule", "ReductionKernel", "cuda", "block", "geomspace", "insert",
     "longdouble", "matvec", "nanpercentile", "nditer", "object_", "spacing", "unstack", "vecdot"],
)  # fmt: skip
def test_what_cupy_or_a_compiler_lacks_is_absent(name):
    with pytest.raises(AttributeError, match=rf"module 'tcuda.emulation.xp' has no attribute '{name}'"):
        getattr(xp, name)
    for module in (xp.linalg, xp.fft):
        with pytest.raises(AttributeError, match=name):
            getattr(module, name)


def public():
    """Return what the namespace has, by dotted names."""
    modules = {"": xp, "linalg.": xp.linalg, "fft.": xp.fft, "random.": xp.random}
    found = {prefix + name: getattr(module, name) for prefix, module in modules.items() for name in dir(module)}
    return {name: value for name, value in found.items() if not inspect.ismodule(value)}


@pytest.mark.parametrize("name", sorted(public()))
def test_what_the_namespace_has_is_pickled_and_copied(name):
    value = public()[name]
    for other in (pickle.loads(pickle.dumps(value)), copy.copy(value), copy.deepcopy(value)):
        # Numbers and NumPy's s_ are the only ones of which there may be another.
        assert other is value or (type(other) is type(value) and not callable(value))


def test_methods_of_arrays_are_pickled():
    array = xp.arange(3.0)
    assert pickle.loads(pickle.dumps(ndarray.sum)) is ndarray.sum
    assert pickle.loads(pickle.dumps(array.sum))() == 3


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda state: pickle.loads(pickle.dumps(state))])
def test_a_copy_of_a_random_state_goes_on_where_it_was(copied):
    for state in (xp.random.RandomState(3), tcuda.Generator()):
        state.random_sample(2)
        other = copied(state)
        assert type(other) is type(state)
        assert other.random_sample(3).tolist() == state.random_sample(3).tolist()
        state.random_sample(1)  # the other does not follow
        assert other.random_sample(3).tolist() != state.random_sample(3).tolist()


def test_functions_carry_the_signatures_of_cupy():
    assert xp.sum.__name__ == "sum"
    assert str(inspect.signature(xp.sum)) == "(a, axis=None, dtype=None, out=None, keepdims=False)"


def test_a_small_network_learns(runtime):
    """The program that the namespace is for, with an array module as its only parameter."""

    def train(module):
        random = np.random.default_rng(1)
        data = module.asarray(random.standard_normal((64, 2)).astype(np.float32))
        labels = (data[:, 0] * data[:, 1] > 0).astype(module.int64)
        one_hot = module.eye(2, dtype=module.float32)[labels]
        weights = [
            module.asarray(random.standard_normal(shape).astype(np.float32))
            for shape in ((2, 16), (16,), (16, 2), (2,))
        ]
        for _ in range(200):
            hidden = module.maximum(data @ weights[0] + weights[1], 0)
            scores = hidden @ weights[2] + weights[3]
            scores -= scores.max(axis=1, keepdims=True)
            odds = module.exp(scores)
            odds /= odds.sum(axis=1, keepdims=True)
            wrong = (odds - one_hot) / len(data)
            back = (wrong @ weights[2].T) * (hidden > 0)
            for weight, gradient in zip(
                weights, (data.T @ back, back.sum(axis=0), hidden.T @ wrong, wrong.sum(axis=0)), strict=True
            ):
                weight -= 0.5 * gradient
        loss = -module.log(odds[module.arange(len(data)), labels]).mean()
        return float(loss), float((odds.argmax(axis=1) == labels).mean())

    loss, accuracy = train(xp)
    assert loss == pytest.approx(train(np)[0], rel=1e-3)
    assert accuracy > 0.9
