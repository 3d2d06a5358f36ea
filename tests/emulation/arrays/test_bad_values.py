"""Functions of the array namespace with bad values: each call returns a result or raises a clear error."""

from __future__ import annotations

import gc
import inspect

import numpy as np
import pytest

import tcuda
from tcuda.emulation import ndarray, xp

pytestmark = [
    pytest.mark.emulated,
    # NumPy warns about the results for bad values. Those warnings do not matter here.
    pytest.mark.filterwarnings("ignore"),
]

MODULES = {"": xp, "linalg.": xp.linalg, "fft.": xp.fft, "random.": xp.random}
LEFT_OUT = {
    *("load", "loadtxt", "genfromtxt", "fromfile", "save", "savetxt", "savez", "savez_compressed"),  # open files
    *("set_printoptions", "printoptions"),  # change NumPy's own state
    *("random.set_random_state", "random.reset_states", "random.seed"),  # change the state of random numbers
    *("ufunc", "linalg.LinAlgError"),  # classes for isinstance() and for except clauses
    *("ndarray.tofile", "ndarray.dump"),
}
INTERNAL = ("incompatible function arguments", "nanobind", "internal", "assert", "systemerror", "referenced before")
NOT_PUBLIC = (AssertionError, SystemError, RecursionError, UnboundLocalError)


class Nothing:
    """An object that is no argument for any function."""


class Hostile:
    """An object whose attributes and index raise."""

    def __getattr__(self, name):
        raise ValueError(f"no {name} here")

    def __index__(self):
        raise ValueError("no index here")


def bad_values():
    return [
        *(2**64, 2**70, -(2**70), -1, 0, True, 1.5, 1e300, float("nan"), float("inf"), 1j),
        *("abc", "", b"abc", None, Nothing(), Hostile(), object, {}, {1: 2}),
        *([], [1, 2], [2**70], [None], [[1], [2, 3]], (-1,), (2**70, 2), ("a",), [float("nan")]),
        *(np.ones(3), np.float64(2.5), np.int8(-1), np.array(["a"]), np.array([Nothing()]), np.datetime64("2020")),
        *(xp.ones(3), xp.asarray(2), xp.zeros((0, 2)), xp.asarray([True, False]), slice(None), Ellipsis),
    ]


def functions():
    """Return the functions and methods under test, by name."""
    found = {f"{prefix}{name}": getattr(module, name) for prefix, module in MODULES.items() for name in dir(module)}
    found |= {f"ndarray.{name}": getattr(ndarray, name) for name in dir(ndarray) if not name.startswith("_")}
    special = (
        "__getitem__ __setitem__ __add__ __radd__ __matmul__ __pow__ __divmod__ __eq__ __lt__ __iadd__ __imatmul__"
    )
    found |= {f"ndarray.{name}": getattr(ndarray, name) for name in special.split()}
    found |= {f"add.{name}": getattr(xp.add, name) for name in ("reduce", "accumulate", "reduceat", "outer", "at")}
    emulated = {name: function for name, function in found.items() if not is_of_numpy(function)}
    return {name: function for name, function in emulated.items() if callable(function) and name not in LEFT_OUT}


def is_of_numpy(value):
    return getattr(value, "__module__", "").startswith("numpy") or isinstance(value, np.dtype)


def calls(function, name):
    """Yield the arguments of calls with one bad value each, and of a call with bad values alone."""
    array = xp.arange(12.0).reshape(3, 4)
    whole = xp.asarray([2, 0, 1])
    for value in bad_values():
        yield (value,), {}
        yield (array, value), {}
        yield (array, whole, value), {}
        yield (whole, array, array, value), {}
        yield (value, value, value), {}
        for keyword in keywords_of(function):
            yield (array,), {keyword: value}
    yield (), {}
    yield (array,), {"no_such_keyword": 1}
    yield (array,) * 12, {}


def keywords_of(function):
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:
        return []
    return [parameter.name for parameter in parameters[1:] if parameter.kind in (1, 3)]


def state():
    runtime = tcuda._process.lazy.cuda
    return (
        runtime.getDevice(),
        tcuda._process.lazy.backend.current_stream().ptr,
        [tcuda.memory_allocated(device) for device in range(tcuda.device_count())],
    )


def complaint(error):
    """Return the fault of an error, or None for an error that fits a caller."""
    if isinstance(error, NOT_PUBLIC):
        return f"is a {type(error).__name__}: {error}"
    if not str(error):
        return f"is a {type(error).__name__} without a message"
    if any(word in str(error).lower() for word in INTERNAL):
        return f"shows internals: {type(error).__name__}: {error}"
    return None


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(functions()))
def test_calls_with_bad_values_return_a_result_or_raise_a_clear_error(name):
    function = functions()[name]
    collecting = gc.isenabled()
    gc.disable()  # the collector might free arrays of earlier tests
    wrong = []
    try:
        before = state()
        for args, kwargs in calls(function, name):
            try:
                function(*args, **kwargs)
            except Exception as error:
                found = complaint(error)
                if found:
                    wrong.append(f"{args!r:.80} {kwargs!r:.60}: the error {found:.160}")
                del error
        args = kwargs = None
    finally:
        if collecting:
            gc.enable()
    assert not wrong, "\n".join(wrong[:5])
    if state() != before:
        gc.collect()
    device, stream, allocated = state()
    assert (device, stream) == before[:2]
    # Less memory may be allocated than before: the garbage of earlier tests may have been collected.
    assert all(now <= then for now, then in zip(allocated, before[2], strict=True))


def test_sizes_below_64_bits_that_exceed_the_device_are_out_of_memory():
    makers = [
        lambda: xp.empty(2**62),
        lambda: xp.ones((2**40, 2**40)),
        lambda: xp.zeros(2**40, "b"),
        lambda: xp.full((2**31, 2**31), 1.0),
        lambda: xp.arange(2**45),
        lambda: xp.linspace(0, 1, 2**45),
        lambda: xp.eye(2**30),
        lambda: xp.identity(2**30),
        lambda: xp.tri(2**30),
        lambda: xp.hanning(2**45),
        lambda: xp.indices((2**30, 2**30)),
        lambda: xp.tile(xp.ones(3), 2**45),
        lambda: xp.repeat(xp.ones(3), 2**45),
        lambda: xp.pad(xp.ones(3), 2**45),
        lambda: xp.random.rand(2**45),
        lambda: xp.random.poisson(1.0, 2**45),
        lambda: xp.random.permutation(2**45),
        lambda: xp.fft.fft(xp.ones(3), 2**45),
        lambda: xp.mgrid[0 : 2**45],
    ]
    before = state()
    for make in makers:
        with pytest.raises(tcuda.OutOfMemoryError, match="CUDA out of memory. Tried to allocate"):
            make()
    with pytest.raises(tcuda.OutOfMemoryError, match="Tried to allocate more than 1EB memory, an array of shape"):
        xp.empty((2**40, 2**40))
    assert state() == before


@pytest.mark.parametrize(
    "make",
    [
        lambda size: xp.empty(size),
        lambda size: xp.ones(size),
        lambda size: xp.zeros((2, size)),
        lambda size: xp.arange(size),
        lambda size: xp.linspace(0, 1, size),
        lambda size: xp.eye(size),
        lambda size: xp.ones(3).reshape(size),
        lambda size: xp.ones(3)[size],
        lambda size: xp.ones(3)[:size],
        lambda size: xp.ones(3).sum(axis=size),
        lambda size: xp.tile(xp.ones(3), size),
        lambda size: xp.random.rand(size),
        lambda size: xp.random.normal(0.0, 1.0, size),
        lambda size: xp.broadcast_to(xp.ones(3), (size, 3)),
        lambda size: xp.ones(3) + size,
    ],
)
def test_integers_beyond_64_bits_are_an_overflow(make):
    for size in (2**64, 2**70, 10**400):
        with pytest.raises(OverflowError, match=r"^.{20,200}$"):
            make(size)
    for size in (1e300, float("inf")):
        with pytest.raises(OverflowError, match=r"^.{20,200}$"):
            xp.arange(size)


def test_negative_lengths_are_refused():
    for make in (xp.empty, xp.zeros, lambda size: xp.ones((2, size)), xp.random.rand, xp.random.permutation):
        with pytest.raises(ValueError, match="Negative dimensions are not allowed"):
            make(-1)


def test_get_does_not_write_to_read_only_memory():
    array = xp.ones(3)
    text = np.frombuffer(bytes(24))
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    for out in (text, frozen, np.broadcast_to(np.zeros(1), 3)):
        for get in (lambda out=out: array.get(out=out), lambda out=out: xp.asnumpy(array, out=out)):
            with pytest.raises(ValueError, match="read-only"):
                get()
        assert not out.any()
    array.set(text)  # reading is allowed
    assert array.tolist() == [0, 0, 0]
