"""Where ``import cupy`` gives emulated devices, modules, classes and functions call themselves what CuPy calls them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tcuda
from support import cupy_names
from support.cupy_tables import IDENTITY
from support.environments import environment
from support.folders import TESTS

pytestmark = pytest.mark.emulated

NAMES = cupy_names.read()["names"]
FACTS: dict[str, Any] = json.loads(IDENTITY.read_text(encoding="utf-8"))
PROGRAM = TESTS / "support" / "identity_of_cupy.py"

_OF_OTHERS = ("numpy", "scipy", "tcuda")
"""The packages of objects that emulated devices take as they are: NumPy's own, and errors of tcuda."""


def run(program: str, *, stdin: str = "", path: str = "") -> str:
    """Return what a program prints on emulated devices, with CuPy's names."""
    done = subprocess.run(
        [sys.executable, "-m", "tcuda.emulation", *([path] if path else ["program.py"])],
        env=environment(),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=None if path else program,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def printed(tmp_path: Path) -> Any:
    """Return a function that runs a program on emulated devices, with CuPy's names, and returns its lines."""

    def run_program(text: str) -> list[str]:
        (tmp_path / "program.py").write_text(text)
        return run(str(tmp_path)).splitlines()

    return run_program


def expected() -> dict[str, tuple[str | None, str]]:
    """Return, by name, the module and the name of each object, as the table of CuPy's identities says."""
    found: dict[str, tuple[str | None, str]] = {}
    for owner, homes in FACTS["homes"].items():
        for home, members in homes.items():
            for word in members.split():
                name, _, own = word.partition("=")
                if NAMES[f"{owner}.{name}"]["state"] != cupy_names.ABSENT:
                    found[f"{owner}.{name}"] = (home or owner, own or name)
    return found


def test_every_object_calls_itself_what_cupy_calls_it() -> None:
    wanted = expected()
    told = json.loads(run("", stdin="\n".join(wanted), path=str(PROGRAM)))
    others = {name: told[name] for name, identity in wanted.items() if tuple(told[name]) != identity}
    # One object of emulated devices may have several names, of which the object can tell only one.
    aliases = {name for name, (home, own) in others.items() if (home, own) in wanted.values()}
    taken = {name for name, (home, _) in others.items() if home.split(".")[0] in _OF_OTHERS and "emulation" not in home}
    assert sorted(others.keys() - aliases - taken) == []
    assert len(aliases) < 40


def test_every_module_calls_itself_what_cupy_calls_it() -> None:
    names = [name for name, row in NAMES.items() if row["kind"] == "module" and row["state"] != cupy_names.ABSENT]
    told = json.loads(run("", stdin="\n".join(names), path=str(PROGRAM)))
    wanted = {name: FACTS["modules"].get(name, name) for name in names}
    assert {name: found for name, (_, found) in told.items()} == {**wanted, "cupy.exceptions": "numpy.exceptions"}


def test_modules_are_written_with_the_names_of_cupy(printed: Any) -> None:
    found = [
        "cupy",
        "cupy.testing",
        "cupy.linalg",
        "cupy.cuda.stream",
        "cupyx",
        "cupyx.scipy.signal",
        "cupyx.scipy.signal.windows",
    ]
    lines = printed(f"import cupy, cupyx.scipy\nprint({', '.join(found)}, sep='\\n')")
    starts = [line.partition("from ")[0] for line in lines]
    assert starts == [f"<module '{name}' " for name in found]
    assert all(Path(line.split("'")[3]).is_file() for line in lines)
    program = "import cupy, importlib\nassert importlib.reload(cupy.linalg) is cupy.linalg\n"
    assert printed(f"{program}print(cupy.testing.assert_array_equal.__module__)") == ["cupy.testing._array"]


def test_a_program_without_the_names_of_cupy_has_those_of_tcuda(xp: Any) -> None:
    assert xp.__name__ == "tcuda.emulation.xp"
    assert tcuda.emulation.ndarray.__module__ == "tcuda.emulation"


def test_pickles_are_loaded_by_the_names_of_cupy(printed: Any) -> None:
    objects = (
        "cupy.ndarray cupy.sum cupy.add cupy.abs cupy.mgrid cupy.linalg.norm cupy.fft.fft cupy.random.rand "
        "cupy.cuda.Stream cupy.cuda.runtime.malloc cupy.random.RandomState cupyx.scatter_add"
    )
    assert printed(
        f"import cupy, cupyx, pickle\n"
        f"for found in ({', '.join(objects.split())}):\n"
        "    data = pickle.dumps(found)\n"
        "    assert pickle.loads(data) is found and b'tcuda' not in data, data\n"
        "array = pickle.dumps(cupy.arange(3))\n"
        "assert b'tcuda' not in array\n"
        "print(pickle.loads(array).sum(), repr(cupy.add))"
    ) == ["3 <ufunc 'cupy_add'>"]


def test_libraries_find_the_functions_of_numpy_by_their_names(printed: Any) -> None:
    assert printed("""
import cupy, numpy as np
x = cupy.arange(4.0)
for made in (np.asarray([1], like=x), np.zeros(2, like=x), np.linalg.norm(x), np.fft.fft(x), np.diff(x)):
    assert type(made) is cupy.ndarray
try:
    np.geomspace(x, 2)
except TypeError as error:
    print("no implementation" in str(error))
""") == ["True"]


def test_star_imports_bind_the_names_of_the_module(printed: Any) -> None:
    for module in ("cupy", "cupy.linalg", "cupy.fft"):
        lines = printed(f"from {module} import *\nprint(*[name for name in dir() if not name.startswith('__')])")
        bound = set(lines[0].split())
        names = {
            name.rpartition(".")[2]
            for name, row in NAMES.items()
            if name.rpartition(".")[0] == module and row["state"] != cupy_names.ABSENT
        }
        assert bound - {"annotations"} == names | (bound & {"annotations", "cublas"}) - {"annotations"}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("cupyx.cutensor", "Calls of NVIDIA's libraries, which emulated devices do not have."),
        ("cupy.cuda.texture", "Emulated devices have no textures, no surfaces and no CUDA arrays."),
    ],
)
def test_a_missing_module_tells_the_reason(name: str, reason: str, printed: Any) -> None:
    package, _, last = name.rpartition(".")
    for statement in (f"import {name}", f"from {package} import {last}"):
        (told,) = printed(f"try:\n    {statement}\nexcept ModuleNotFoundError as error:\n    print(error)")
        assert told.startswith(f"No module named '{name}'. {name} is a module of CuPy that emulated devices lack. ")
        assert told.endswith(reason)


def test_a_missing_name_tells_the_reason(printed: Any, xp: Any) -> None:
    code = "import cupy\ntry:\n    cupy.cuda.MemoryAsyncPool\nexcept AttributeError as error:\n    print(error)"
    (told,) = printed(code)
    reason = "Emulated devices have no pools of CUDA's own, from which streams allocate."
    sentence = f"cupy.cuda.MemoryAsyncPool is a class of CuPy that emulated devices lack. {reason}"
    assert told == f"module 'cupy.cuda' has no attribute 'MemoryAsyncPool'. {sentence}"
    with pytest.raises(AttributeError, match="Emulated devices have no pools of CUDA's own"):
        _ = xp.cuda.MemoryAsyncPool
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'$"):
        _ = xp.no_such_name


@pytest.mark.parametrize("package", ["cupy", "cupyx"])
def test_every_missing_name_of_a_module_tells_the_reason_also_without_the_name_of_cupy(package: str) -> None:
    asked = 0
    for name, row in NAMES.items():
        owner, _, last = name.rpartition(".")
        module = cupy_names.ours(owner) if owner.partition(".")[0] == package else None
        if row["state"] == cupy_names.ABSENT and isinstance(module, ModuleType):
            with pytest.raises(AttributeError, match=f"{name} is an? .* of CuPy that emulated devices lack. ."):
                getattr(module, last)
            asked += 1
    assert asked > 30


def test_private_modules_have_what_libraries_ask_first(printed: Any) -> None:
    assert printed("""
import cupy
import cupy._version
from cupy._core import _accelerator, get_routine_accelerators, set_routine_accelerators
from cupy._core.flags import Flags
from cupy.linalg import _util
assert cupy._version.__version__ == cupy.__version__ and type(cupy.ones(1).flags) is Flags
assert get_routine_accelerators() == [_accelerator.ACCELERATOR_CUB]
set_routine_accelerators(["cutensor", _accelerator.ACCELERATOR_CUTENSORNET])
assert _accelerator.get_routine_accelerators() == [2, 3] and _accelerator.get_reduction_accelerators() == [1]
_util._assert_2d(cupy.eye(2))
_util._assert_stacked_square(cupy.ones((2, 3, 3)))
for check, array in (
    (_util._assert_2d, cupy.ones(3)),
    (_util._assert_stacked_2d, cupy.ones(3)),
    (_util._assert_stacked_square, cupy.ones((2, 3))),
    (_util._assert_cupy_array, 1),
):
    try:
        check(array)
    except cupy.linalg.LinAlgError:
        print("refused")
try:
    set_routine_accelerators(["gpu"])
except ValueError as error:
    print(error)
""") == [*["refused"] * 4, "Unknown accelerator: gpu; the accelerators are cub, cutensor, cutensornet."]


def test_private_modules_have_what_libraries_use(printed: Any) -> None:
    assert printed("""
import cupy, warnings
from cupy import _core
from cupy._core import internal
from cupy._core._scalar import get_typename
import cupy._core._routines_indexing as indexing
assert cupy._core.core.ndarray is cupy.ndarray and _core.ElementwiseKernel is cupy.ElementwiseKernel
assert cupy._util.memoize is cupy.memoize
assert internal.prod([2, 3]) == 6 and internal.clp2(5) == 8 and internal.get_size(3) == (3,)
assert internal._normalize_axis_index(-1, 3) == 2 and internal._normalize_axis_indices(None, 2) == (0, 1)
assert internal.complete_slice(slice(None, None, -1), 3) == slice(2, -1, -1)
assert internal.infer_unknown_dimension((2, -1), 6) == [2, 3]
assert get_typename("float32") == "float"
assert cupy._core._dtype.get_dtype("f") == "float32" and not cupy._util.is_shutting_down()
cupy._util.check_array(cupy.ones(1), arg_name="x")
for set_by_the_program in (False, True):
    cupy.disable_experimental_feature_warning = set_by_the_program
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cupy._util.experimental("f")
    texts = [(str(warning.message), warning.filename == __file__) for warning in caught]
    assert texts == [("f is experimental. The interface can change in the future.", True)][set_by_the_program:]
try:
    cupy._util.check_array([1], arg_name="x")
except TypeError as error:
    assert "'x' must be a cupy.ndarray object" in str(error)
x, y = cupy.arange(3.0), cupy.zeros(3, "i")
_core.elementwise_copy(x, y)
print(y, indexing._ndarray_argwhere(y).ravel())
""") == ["[0 1 2] [1 2]"]


def test_the_settings_of_filters_are_checked_as_in_cupy(printed: Any) -> None:
    assert printed("""
import cupy
from cupyx.scipy.ndimage import _util
x = cupy.ones((2, 3), "f4")
assert _util._fix_sequence_arg(2, 2, "size", float) == [2.0, 2.0] and _util._fix_sequence_arg("ab", 1, "mode") == ["ab"]
assert _util._check_axes((-1, 0), 2) == (1, 0) and _util._check_axes(None, 2) == (0, 1)
assert _util._check_axes(1, 2) == (1,)
assert _util._check_mode("wrap") == "wrap" and _util._check_origin(-1, 3) == -1 and _util._get_inttype(x) == "int"
assert _util._get_output(None, x).dtype == "f4" and _util._get_output("i4", x, (5,)).shape == (5,)
assert _util._get_output(None, x, complex_output=True).dtype == "c8" and _util._get_output(x, x) is x
for call in (
    lambda: _util._fix_sequence_arg([1, 2, 3], 2, "size"),
    lambda: _util._check_axes((0, 0), 2),
    lambda: _util._check_axes(2, 2),
    lambda: _util._check_axes(object(), 2),
    lambda: _util._check_origin(2, 3),
    lambda: _util._check_mode("around"),
    lambda: _util._get_output(x, x, (5,)),
    lambda: _util._get_output("f4", x, complex_output=True),
):
    try:
        call()
    except (RuntimeError, ValueError) as error:
        print(type(error).__name__)
""") == ["RuntimeError", "ValueError", "AxisError", *["ValueError"] * 2, *["RuntimeError"] * 3]


def test_private_filters_use_past_outputs(printed: Any) -> None:
    pytest.importorskip("scipy")
    program = """
import cupy
from cupyx.scipy.signal._iir_utils import apply_iir, apply_iir_sos
x = cupy.array([[1.0, 0, 0], [2.0, 0, 0]], "f")
print(apply_iir(x, cupy.array([0.5]), dtype="f").tolist())
print(apply_iir(x.T, cupy.array([0.5]), 0, cupy.array([8.0])).T.tolist(), apply_iir(x, cupy.array([1])).dtype)
section = cupy.array([[1.0, 1, 0, 1, -0.5, 0]])
out, past = apply_iir_sos(x[0], section, zi=cupy.array([[0.0, 1, 0, 0]]))
print(out.tolist(), past.tolist(), apply_iir_sos(x[0], section, apply_fir=False).tolist())
"""
    assert printed(program) == [
        "[[1.0, 0.5, 0.25], [2.0, 1.0, 0.5]]",
        "[[5.0, 2.5, 1.25], [6.0, 3.0, 1.5]] float64",
        "[2.0, 2.0, 1.0] [[0.0, 0.0, 2.0, 1.0]] [1.0, 0.5, 0.25]",
    ]


def test_pytest_does_not_warn_of_tcuda(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("def test_sum():\n    import cupy\n    assert cupy.ones(3).sum() == 3\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    done = subprocess.run(
        [sys.executable, "-m", "tcuda.emulation", "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_a_report_of_races_writes_the_calls_of_cupy(printed: Any) -> None:
    lines = printed("""
import cupy, tcuda
a, b = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
with tcuda.sanitizer.check(mode="collect") as report:
    with a:
        x = cupy.ones(1000)
    with b:
        y = x * 2
    z = x * 3
    cupy.cuda.Device().synchronize()
for race in report:
    print(race.missing.call)
""")
    assert lines == ["b.wait_event(a.record())", "cupy.cuda.Stream.null.wait_event(a.record())"]
