"""The functions of the array namespace have NumPy's results, and a capture takes the functions that CuPy captures."""

from __future__ import annotations

import numpy as np
import pytest

from support.emulated_arrays import assert_same, assert_same_array
from support.operands import OPERANDS
from support.race_recorder import READ, WRITE, recorded, whole
from tcuda._process.lazy import cuda
from tcuda.emulation import xp
from tcuda.emulation.arrays import fft, functions
from tcuda.emulation.names import catalogue

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("memory_comes_back")]


def operands(module):
    return {name: module.asarray(value) for name, value in OPERANDS.items()}


def evaluate(expression, module, names=None):
    """Return the value of ``expression`` with the functions and the arrays of ``module``."""

    class Names(dict):
        def __missing__(self, name):
            return getattr(module, name)

    names = operands(module) if names is None else names
    with np.errstate(all="ignore"):
        # The names replace Python's builtins, so that names such as sum are the functions of the module.
        return eval(expression, {"__builtins__": Names(names)})


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
linalg.eig(positive)[0].real
linalg.eigh(positive)
linalg.eigvals(positive).real
linalg.eigvalsh(positive)
linalg.inv(square).round(9)
linalg.lstsq(square, vector, rcond=None)[2]
linalg.matmul(x, square)
linalg.matrix_power(square, 3)
linalg.matrix_rank(square)
linalg.matrix_transpose(x)
linalg.norm(x, axis=0)
linalg.pinv(x)
linalg.qr(x)
linalg.slogdet(square)
linalg.solve(square, vector).round(9)
linalg.svd(x)
linalg.tensorinv(square, ind=1).round(9)
linalg.tensorsolve(square, vector).round(9)
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
def test_functions_give_the_results_of_numpy(case):
    expected = evaluate(case, np)
    if case.startswith("linalg.") and isinstance(expected, tuple):
        expected = tuple(expected)  # CuPy's tuples have no names for their parts
    assert_same(evaluate(case, xp), expected)


@pytest.mark.parametrize("case", WRITING_CASES)
def test_functions_that_write_give_the_results_of_numpy(case):
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
    assert not {f"fft.{name}" for name in fft.FFT} - cases


# Capture

D2H = RuntimeError, r"^the current stream is capturing, so D2H transfers are disallowed\. "
H2D = RuntimeError, r"^the current stream is capturing, so H2D transfers are disallowed\. "
SOLVER = NotImplementedError, r"^calling cuSOLVER API during stream capture is currently unsupported; "

# The functions that CuPy 14 refuses to capture, with the error.
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

# Calls that CuPy 14 refuses to capture, of functions that it captures with other arguments.
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
# Calls that CuPy 14 captures, of functions that it refuses with other arguments, and some more.
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
    """Return the type and the message of the error for ``case`` in a capture; None if a capture takes ``case``."""
    by_name = {name: error for names, error in REFUSED.items() for name in names.split()}
    return None if case in CAPTURED_CASES else REFUSED_CASES.get(case) or by_name.get(called(case))


def contents(value):
    """Return the type, the shape and the bytes of each array in ``value``."""
    if isinstance(value, (tuple, list)):
        return [content for part in value for content in contents(part)]
    return [(value.dtype, value.shape, value.get().tobytes())]


def all_cases():
    return [*CASES, *WRITING_CASES, *CAPTURED_CASES, *REFUSED_CASES]


@pytest.mark.parametrize("case", [case for case in all_cases() if refusal(case) is None])
def test_a_graph_gives_the_results_of_its_functions(captured, case):
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
def test_calls_that_cupy_does_not_capture_are_refused_and_do_not_invalidate_the_capture(captured, case):
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


# Calls that need a number of the host. Here n is an array of the device with one number.
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
ndarray(n)
""".strip().splitlines()


@pytest.mark.parametrize("case", NUMBERS_FROM_THE_DEVICE)
def test_an_array_of_the_device_is_refused_as_a_number_of_the_host(captured, case):
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
def test_a_number_can_be_read_from_the_device_except_in_a_capture(captured, case):
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


TYPES_OF_CUPY = {("sign", "?")}
"""The functions and the types that CuPy takes, and NumPy does not."""


@pytest.mark.parametrize("name", [name for name in catalogue.UFUNCS if hasattr(np, name)])
def test_ufuncs_give_the_results_of_numpy(name):
    emulated, host = getattr(xp, name), getattr(np, name)
    assert (emulated.nin, emulated.nout, emulated.nargs) == (host.nin, host.nout, host.nargs)
    ran = False
    for sample in SAMPLES.values():
        arguments = [sample, sample[::-1].copy()][: host.nin]
        with np.errstate(all="ignore"):
            try:
                expected = host(*arguments)
            except TypeError:
                if (name, sample.dtype.char) not in TYPES_OF_CUPY:
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


def test_ufuncs_take_scalars_and_return_arrays():
    assert_same(xp.sqrt(4.0), 2.0)
    assert_same(xp.add(1, np.float32(2)), np.add(1, np.float32(2)))
    assert xp.add.__name__ == "add"
    assert "add" in repr(xp.add)


def test_aliases_are_the_same_functions():
    for alias, name in catalogue.ALIASES.items():
        if hasattr(np, name):
            assert getattr(xp, alias) is getattr(xp, name)


def test_functions_about_attributes_run_no_kernel_and_return_no_array(runtime):
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
    assert xp.shares_memory(x[::2], x[1:-1:2], "MAY_SHARE_BOUNDS")
    assert not xp.shares_memory(x[::2], x[1:-1:2], "MAY_SHARE_EXACT")
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
def test_a_refusal_says_that_an_argument_must_be_an_array(call, error):
    with pytest.raises(
        error, match=r"takes an array of the device as .*'\w+', not an object of <class 'list'>: make an"
    ):
        call()


@pytest.mark.parametrize(
    ("call", "element"),
    [
        (lambda a, b: xp.concatenate([a, b]), "element 1 of 'tup'"),
        (lambda a, b: np.concatenate([b, a]), "element 0 of 'tup'"),
        (lambda a, b: xp.stack((a, a, b)), "element 2 of 'tup'"),
        (lambda a, b: xp.select([a > 0], [b]), "element 0 of 'choicelist'"),
        (lambda a, b: xp.meshgrid(a, b), "element 1 of 'xi'"),
    ],
)
def test_a_refusal_names_the_element_of_a_sequence(call, element):
    with pytest.raises((TypeError, ValueError), match=f"takes an array of the device as {element}, not an object of"):
        call(xp.ones(3), np.ones(3))


def test_calls_with_arrays_of_the_host_alone_go_to_numpy():
    total = xp.sum(np.ones(3))
    assert type(total) is np.float64
    assert total == 3
    with pytest.raises(TypeError, match="arrays of the device or NumPy arrays, not both"):
        xp.take(np.ones(3), xp.zeros(1, int))


def test_sorting_is_stable_and_other_kinds_are_refused():
    keys = np.tile([1, 0], 50)
    assert_same(xp.argsort(xp.asarray(keys)), np.argsort(keys, kind="stable"))
    assert_same(xp.asarray(keys).argsort(kind="stable"), np.argsort(keys, kind="stable"))
    with pytest.raises(ValueError, match="kind can only be None or 'stable'"):
        xp.sort(xp.asarray(keys), kind="quicksort")
    with pytest.raises(ValueError, match="kind can only be None or 'stable'"):
        xp.asarray(keys).sort(kind="heapsort")


# The race detector


def bytes_of(access):
    """Return the addresses of the bytes of an access."""
    address, itemsize, shape, strides, *_ = access
    places = np.zeros(shape, np.int64) + address
    for axis, stride in enumerate(strides):
        steps = np.arange(shape[axis], dtype=np.int64) * stride
        places += steps.reshape((-1,) + (1,) * (len(shape) - axis - 1))
    return (places[..., None] + np.arange(itemsize)).ravel()


def used(accesses, kind):
    """Return the addresses of all bytes that ``accesses`` read (1) or write (2)."""
    found = [bytes_of(access) for access in accesses if access[4] & kind]
    return np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)


def elements(array):
    return np.unique(bytes_of((array.data.ptr, array.itemsize, array.shape, array.strides)))


def arrays_in(value):
    if isinstance(value, (tuple, list)):
        return [array for part in value for array in arrays_in(part)]
    return [value] if isinstance(value, xp.ndarray) and value.size else []


def run_watched(case, names):
    """Return the result of ``case`` with ``names``, and the accesses of all operations."""
    with recorded(cuda) as recorder:
        result = evaluate(case, xp, names)
    return result, [access for _, accesses in recorder.operations() for access in accesses]


def new_arrays(result, names):
    """Return the arrays in ``result`` that are no views of the arrays in ``names``."""
    known = np.concatenate([elements(array) for array in names.values()])
    return [array for array in arrays_in(result) if not np.isin(elements(array), known).any()]


WATCHED_CASES = [*CASES, *WRITING_CASES, *CAPTURED_CASES]


@pytest.mark.parametrize("case", WATCHED_CASES)
def test_a_detector_is_told_of_every_byte_that_a_function_writes(case):
    names = {"target": xp.zeros((3, 4)), **operands(xp)}
    before = {name: array.get() for name, array in names.items()}
    result, accesses = run_watched(case, names)
    written = used(accesses, WRITE)
    for name, array in names.items():
        changed = (array.get().view(np.uint8) != before[name].view(np.uint8)).ravel()
        assert np.isin(elements(array)[changed], written).all(), f"{name} is changed"
    for array in new_arrays(result, names):
        assert np.isin(elements(array), written).all(), "the result is new memory"


@pytest.mark.parametrize("case", WATCHED_CASES)
def test_a_function_does_not_depend_on_bytes_of_which_a_detector_is_not_told(case):
    names = {"target": xp.zeros((3, 4)), **operands(xp)}
    copies = {name: array.copy() for name, array in names.items()}
    result, accesses = run_watched(case, copies)
    read = used(accesses, READ)
    for name, array in copies.items():
        host = names[name].get()
        host.view(np.uint8).reshape(-1)[~np.isin(elements(array), read)] = 1
        names[name].set(host)
    again = evaluate(case, xp, names)
    assert contents(new_arrays(again, names)) == contents(new_arrays(result, copies))


@pytest.mark.parametrize("name", [name for name in catalogue.UFUNCS if hasattr(np, name)])
def test_a_detector_is_told_of_the_operands_of_a_ufunc(name):
    function = getattr(xp, name)
    arrays = [xp.asarray(SAMPLES["q"]), xp.asarray(SAMPLES["q"][::-1].copy())][: function.nin]
    labels = ["x"] if function.nin == 1 else ["x1", "x2"]
    with recorded(cuda) as recorder:
        results = function(*arrays)
    results = results if isinstance(results, tuple) else (results,)
    [(told, accesses)] = recorder.operations()
    assert told == getattr(np, name).__name__
    assert accesses == [
        *(whole(array, READ, label) for array, label in zip(arrays, labels, strict=True)),
        *(whole(array, WRITE, "out") for array in results),
    ]


def test_a_view_by_einsum_of_an_array_without_elements_has_its_base():
    array = xp.zeros((0, 2))
    assert xp.einsum("ij->ji", array).base is array
    assert xp.einsum("ij->i", array).base is None


def test_booleans_are_compared_with_all_integers_of_64_bits():
    array = xp.asarray([True, False])
    for number in (2**63, 2**64 - 1):
        assert_same_array(array < number, [True, True])
        assert_same_array(number == array, [False, False])
    assert_same_array(array > -(2**63), [True, True])
    assert_same_array(array == 1, [True, False])


def test_comparisons_with_objects_that_equal_nothing():
    array = xp.ones((2, 2))
    for value in (None, ..., object()):
        assert_same_array(array == value, np.zeros((2, 2), bool))
        assert_same_array(value != array, np.ones((2, 2), bool))


def test_questions_about_types_take_arrays_and_sequences_of_arrays():
    array = xp.asarray([[-1, 1]], "int8")
    for value in (array, [array, array], np.asarray([1], "int8")):
        assert xp.min_scalar_type(value) == np.int8
    assert xp.min_scalar_type(xp.asarray(3.0)) == np.float64
    assert xp.min_scalar_type(300) == np.uint16
    assert np.can_cast(array, "f4")
    assert not xp.can_cast(array, "u1")
    assert "dd->d" in xp.add.types
    assert not any(set("GgMmO") & set(loop) for loop in xp.add.types)


def test_what_cupy_does_not_sort_is_refused():
    array = xp.arange(10)
    for sort in (lambda: array[::2].sort(), lambda: array[::-1].partition(2), lambda: xp.lexsort(xp.zeros((2, 2, 2)))):
        with pytest.raises(NotImplementedError):
            sort()
    with pytest.raises(TypeError, match="dtype mismatch"):
        array.take([1], out=xp.zeros(1))
    assert_same_array(xp.compress(xp.asarray([0.0, 2.0]), xp.arange(2)), [1])


def test_strides_of_a_new_array_stay_within_its_memory():
    assert xp.ndarray((2, 3), "f4", strides=(4, 8)).strides == (4, 8)
    for strides in ((20, 4), (-12, 4), (4,)):
        with pytest.raises(ValueError, match="strides"):
            xp.ndarray((2, 3), "f4", strides=strides)


def test_a_mistyped_name_of_a_parameter_is_told_with_the_name_that_was_meant():
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'axes'.* Did you mean axis\?"):
        xp.sum(xp.ones(3), axes=0)
