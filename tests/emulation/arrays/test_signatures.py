"""The functions of the array namespace take and refuse the same arguments as CuPy's functions."""

from __future__ import annotations

import ast
import importlib
import json
import operator
from typing import Any

import numpy as np
import pytest

import tcuda
from support.cupy_names import parameters
from support.cupy_tables import SIGNATURES
from support.folders import DATA
from support.operands import OPERANDS

FACTS: dict[str, dict[str, str]] = json.loads((DATA / "cupy_operands.json").read_text())["cases"]
TABLE: dict[str, dict[str, Any]] = json.loads(SIGNATURES.read_text())["functions"]

KINDS = ["list", "array of NumPy's", "number", "scalar of NumPy's", "text", "object", "array"]
REFUSALS = {"A": AttributeError, "L": np.linalg.LinAlgError, "N": NotImplementedError, "T": TypeError}

ARRAYS = {
    **OPERANDS,
    "vector5": np.arange(5.0),
    "vector8": np.arange(8.0),
    "target": np.zeros((3, 4)),
    "out2": np.zeros((2, 3, 4)),
    "out3": np.zeros((3, 3)),
}


class Names(dict):
    """The names in an expression: the arrays, and the functions of the namespace."""

    def __missing__(self, name):
        try:
            return getattr(tcuda.xp, name)
        except AttributeError:
            raise KeyError(name) from None


def value_of(node: ast.expr, arrays: dict[str, Any]) -> Any:
    code = compile(ast.fix_missing_locations(ast.Expression(node)), "case", "eval")
    with np.errstate(all="ignore"):
        return eval(code, {}, Names(arrays))


def arrays_of_the_device() -> dict[str, Any]:
    return {name: tcuda.xp.asarray(value) for name, value in ARRAYS.items()}


class Other:
    """An object that is no argument for any function."""


def instead_of(host: np.ndarray, kind: str) -> Any:
    first = host.reshape(-1)[0]
    return {
        "list": host.tolist() if host.ndim else [host.tolist()],
        "array of NumPy's": host,
        "number": first.item(),
        "scalar of NumPy's": first,
        "text": "abc",
        "object": Other(),
        "array": tcuda.xp.asarray(host),
    }[kind]


def places_of(call: ast.Call, path: str) -> list[tuple[Any, Any]]:
    """Return the places in the expression of the arguments that ``path`` names, as containers and keys."""
    name = path.removesuffix("[]")
    if name.isdigit():
        container, key = call.args, int(name)
    else:
        container, key = next(keyword for keyword in call.keywords if keyword.arg == name), "value"
    if not path.endswith("[]"):
        return [(container, key)]
    elements = (container[key] if isinstance(container, list) else container.value).elts
    return [(elements, place) for place in range(len(elements))]


def outcome(case: str, path: str, place: int, kind: str) -> str:
    """Call the function of ``case`` with a value of ``kind`` for an argument, and return the code of the outcome."""
    call = ast.parse(case, mode="eval").body
    assert isinstance(call, ast.Call)
    container, key = places_of(call, path)[place]
    node = container[key] if isinstance(container, list) else container.value
    given = value_of(node, arrays_of_the_device())
    host = np.asarray(tcuda.xp.asnumpy(given))
    names = {**arrays_of_the_device(), "instead": instead_of(host, kind)}
    other = ast.Name("instead", ast.Load())
    if isinstance(container, list):
        container[key] = other
    else:
        container.value = other
    try:
        value_of(call, names)
    except Exception as error:
        return next((code for code, kind_of in REFUSALS.items() if isinstance(error, kind_of)), "?")
    return "+"


@pytest.mark.parametrize("case", FACTS)
@pytest.mark.usefixtures("runtime")
def test_arguments_are_taken_or_refused_as_by_cupy(case):
    wrong = []
    for path, codes in FACTS[case].items():
        call = ast.parse(case, mode="eval").body
        for kind, code in zip(KINDS, codes, strict=True):
            if code == "?":
                continue
            expected = "+" if code == "h" else code
            # The last of several elements is replaced, so that the elements before it are arrays.
            actual = outcome(case, path, len(places_of(call, path)) - 1, kind)
            # A function may take an argument and fail later, with an error that is no refusal.
            if actual != expected and not (expected == "+" and actual == "?"):
                wrong.append(f"{path} as {kind}: {actual}, and {expected} in CuPy")
    assert not wrong


def test_the_table_has_the_signatures_of_the_installed_cupy():
    cupy = pytest.importorskip("cupy")
    made_from = json.loads(SIGNATURES.read_text())["version"]
    if cupy.__version__.split(".")[0] != made_from.split(".")[0]:
        pytest.skip(f"the table is of CuPy {made_from}, and {cupy.__version__} is installed")
    from support.installed_cupy import signature

    actual = {name: signature(name) for name in TABLE}
    assert {name: text for name, text in actual.items() if text not in (None, TABLE[name]["signature"])} == {}


OTHERWISE = {
    "array2string": "its parameters are NumPy's, which CuPy hands on",
    "format_float_positional": "likewise",
    "format_float_scientific": "likewise",
    "array_str": "likewise",
    "save": "likewise",
    "savetxt": "likewise",
    "savez": "likewise",
    "savez_compressed": "likewise",
    "frombuffer": "likewise",
    "fromfile": "likewise",
    "fromfunction": "likewise",
    "fromiter": "likewise",
    "fromstring": "likewise",
    "genfromtxt": "likewise",
    "loadtxt": "likewise",
    "i0": "NumPy's is no ufunc",
    "sinc": "likewise",
}


def member(name: str) -> Any:
    """Return the function or method of the emulated namespace for a row of the table."""
    home, _, last = name.rpartition(".")
    owner = importlib.import_module("tcuda.emulation.xp")
    return getattr(operator.attrgetter(home)(owner) if home else owner, last)


@pytest.mark.parametrize("name", sorted(TABLE.keys() - OTHERWISE.keys()))
def test_functions_and_methods_have_the_parameters_of_the_table(name):
    assert parameters(member(name)) == TABLE[name]["signature"]


@pytest.mark.parametrize(
    "call",
    [
        lambda xp, x: xp.sum(x, where=x > 0),
        lambda xp, x: xp.std(x, mean=0.0),
        lambda xp, x: x.max(initial=0),
        lambda xp, x: xp.take(x, 0, mode="wrap"),
        lambda xp, x: xp.broadcast_to(x, (4, 3), subok=True),
        lambda xp, x: xp.count_nonzero(x, keepdims=True),
        lambda xp, x: xp.einsum("i->", x, out=x),
        lambda xp, x: xp.add.reduce(x, initial=0),
        lambda xp, x: xp.random.normal(0.0, 1.0, 3, out=x),
        lambda xp, x: xp.fft.fft(x, out=x),
    ],
)
@pytest.mark.usefixtures("runtime")
def test_keywords_that_cupy_lacks_are_refused(call):
    with pytest.raises(TypeError, match="keyword|kwargs"):
        call(tcuda.xp, tcuda.xp.ones(3))


@pytest.mark.parametrize(
    "call",
    [
        lambda xp, x: xp.sum(x, 0, None, None, False, 0),
        lambda xp, x: xp.sum(),
        lambda xp, x: xp.sum(x, a=x),
        lambda xp, x: x.sum(0, None, None, False, 0),
        lambda xp, x: xp.concatenate(),
        lambda xp, x: xp.linalg.solve(x),
    ],
)
@pytest.mark.usefixtures("runtime")
def test_too_many_arguments_and_too_few_are_refused(call):
    with pytest.raises(TypeError, match="argument|values"):
        call(tcuda.xp, tcuda.xp.ones(3))


@pytest.mark.usefixtures("runtime")
def test_values_of_the_host_that_cupy_takes_are_taken():
    xp = tcuda.xp
    target = xp.zeros(3)
    xp.copyto(target, np.array([2.0]))  # CuPy takes an array of one element as a scalar
    assert target.tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match="numpy"):
        xp.copyto(target, np.ones(3))
    assert xp.eye(2, k=2**70).tolist() == [[0, 0], [0, 0]]
    assert xp.mgrid[0:1:3j].tolist() == [0, 0.5, 1]
    assert xp.mgrid[[slice(0, 2), slice(0, 1)]].tolist() == [[[0], [1]], [[0], [0]]]
    assert [axis.tolist() for axis in xp.ogrid[[slice(0, 2), slice(0, 1)]]] == [[[0], [1]], [[0]]]
    assert xp.r_[[1, 2]].tolist() == [1, 2]
    with pytest.raises(ValueError, match="nothing_of_the_kind"):
        xp.pad(target, 1, nothing_of_the_kind=1)


@pytest.mark.usefixtures("runtime")
def test_arguments_have_the_names_and_positions_of_cupy():
    xp = tcuda.xp
    x = xp.asarray(ARRAYS["x"])
    assert xp.concatenate(tup=[x, x], axis=1).shape == (3, 8)
    assert xp.flip(a=x, axis=0)[0, 0] == x[2, 0]
    assert xp.delete(arr=x, indices=[0], axis=0).shape == (2, 4)
    assert xp.sum(x, (0, 1), "f").dtype == np.float32
    assert xp.argmax(x, 1, np.int32).dtype == np.int32
    assert x.argmax(axis=1, dtype=np.int32, keepdims=True).shape == (3, 1)
    assert xp.sum(x, axis=[0, 1]).shape == ()
    assert xp.diff(x, prepend=None).shape == (3, 3)
    assert xp.bincount(xp.asarray([0, 1]), None, None).shape == (2,)
    assert xp.histogram2d(x[0], x[1], 2, None, x[2])[0].shape == (2, 2)
    assert xp.corrcoef(a=x).shape == (3, 3)
    target = xp.zeros(3)
    target.put(indices=[4], values=7.0)  # the default of CuPy wraps indices around
    assert target.tolist() == [0, 7, 0]
    assert xp.linalg.matrix_power(M=xp.eye(2), n=2).shape == (2, 2)
