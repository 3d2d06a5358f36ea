"""``import tcuda``: its time, the modules that it imports, and its errors without a core."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import json
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.absent_names import ARRAY_NAMES, absent
from tcuda import _core
from tcuda._base.absent import about

if TYPE_CHECKING:
    from support.fixture_types import OutputOf, RunPython

HEAVY = (
    "cupy",
    "cupy_backends",
    "dask",
    "distributed",
    "numpy",
    "nvtx",
    "pynvml",
    "rich",
    "torch",
    "tcuda.emulation",
    "tcuda.testing",
)


def test_import_loads_no_large_library_and_initialises_nothing(fresh_output_of: OutputOf) -> None:
    code = "import json, sys, tcuda; print(json.dumps([sorted(sys.modules), tcuda.is_initialized()]))"
    modules, initialized = json.loads(fresh_output_of(code))
    assert "tcuda.streams" in modules
    assert not [name for name in HEAVY if name in modules]
    assert initialized is False


def test_import_takes_less_than_150_ms(fresh_output_of: OutputOf) -> None:
    code = "import time; start = time.process_time(); import tcuda; print(time.process_time() - start)"
    # The limit is in processor time, which depends little on the load of the machine. The finder of an editable install
    # is part of the time.
    best = min(float(fresh_output_of(code)) for _ in range(5))
    assert best < 0.15


def test_the_version_is_that_of_the_distribution() -> None:
    assert tcuda.__version__ == importlib.metadata.version("tcuda")


def test_the_package_is_typed() -> None:
    assert (Path(tcuda.__file__).parent / "py.typed").exists()


@pytest.mark.wings
def test_every_public_name_exists_once() -> None:
    assert sorted(tcuda.__all__, key=str) == sorted(set(tcuda.__all__))
    assert all(hasattr(tcuda, name) for name in tcuda.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'tcuda' has no attribute 'warp_drive'"):
        tcuda.warp_drive  # noqa: B018


ASKING = """
import importlib, json, sys
import tcuda

def said(ask, name):
    try:
        return ["nothing", repr(ask(name))]
    except (AttributeError, ImportError) as error:
        return [type(error).__name__, str(error), error.name]

def from_tcuda(name):
    exec(f"from tcuda import {name}")

def of_tcuda(name):
    exec(f"import tcuda.{name}")

def asked(names):
    asks = lambda name: getattr(tcuda, name), from_tcuda, of_tcuda
    return {name: [said(ask, name) for ask in asks] for name in names}

names = json.loads(sys.argv[1])
before = asked(names)
tcuda.init()
print(json.dumps([before, asked(names)]))
"""


def test_an_error_for_a_name_of_torch_says_what_the_name_is_and_what_to_use(run_python: RunPython) -> None:
    table = absent()
    done = run_python(f"import sys; sys.argv.append({json.dumps(json.dumps(list(table)))})\n{ASKING}")
    assert (done.returncode, done.stderr) == (0, "")
    before, after = json.loads(done.stdout)
    for name, row in table.items():
        article = "an" if row["kind"][0] in "aeiou" else "a"
        reason = f". torch.cuda.{name} is {article} {row['kind']} of torch. {row['reason']}"
        refused = ["ImportError", f"cannot import name {name!r} from 'tcuda'{reason}", f"tcuda.{name}"]
        lacking = ["AttributeError", f"module 'tcuda' has no attribute {name!r}{reason}", name]
        assert before[name] == after[name] == [lacking, refused, refused]


def test_an_error_for_a_name_of_arrays_points_to_xp(xp: Any) -> None:
    for name, in_xp in json.loads(ARRAY_NAMES.read_text()).items():
        if not hasattr(tcuda, name) and name not in absent():
            owner = f"{name} is" if in_xp.startswith("cuda.") else "Arrays are"
            assert about(name) == f". {owner} CuPy's: write tcuda.xp.{in_xp}."
    with pytest.raises(
        AttributeError, match=r"^module 'tcuda' has no attribute 'zeros'\. .* write tcuda\.xp\.zeros\.$"
    ):
        tcuda.zeros  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"Device is CuPy's: write tcuda\.xp\.cuda\.Device\.$"):
        tcuda.Device(0).use()  # type: ignore[attr-defined]
    with pytest.raises(ImportError, match=r"cannot import name 'tensor' from 'tcuda'\. .* write tcuda\.xp\.asarray\.$"):
        from tcuda import tensor  # type: ignore[attr-defined]  # noqa: F401
    assert hasattr(xp, "asarray")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("amp", ("is a module of torch.", "array.astype('float16')")),
        ("FloatTensor", ("is an array type of torch.", "tcuda.xp.zeros(10, dtype='float32')")),
        ("sparse", ("is a module of torch.", "cupyx.scipy.sparse")),
        ("tunable", ("is a module of torch.", "cuBLAS")),
    ],
)
def test_the_reason_for_an_absent_name_says_what_to_use(name: str, words: tuple[str, ...]) -> None:
    assert all(word in about(name) for word in words)


def test_an_unknown_name_cannot_be_imported() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'tcuda\.warp_drive'$"):
        importlib.import_module("tcuda.warp_drive")
    with pytest.raises(ImportError, match=r"^cannot import name 'warp_drive' from 'tcuda' \("):
        exec("from tcuda import warp_drive")
    assert about("warp_drive") == about("__wrapped__") == ""


def test_the_names_of_torch_that_are_absent_are_those_of_the_tables() -> None:
    table = absent()
    assert {"amp", "sparse", "FloatTensor"} <= table.keys()
    assert not [name for name in table if hasattr(tcuda, name)]


def test_xp_is_the_array_module_of_the_runtime() -> None:
    from tcuda._backend import array_module
    from tcuda._runtime import runtime

    assert tcuda.xp is array_module(runtime())


def test_names_that_are_looked_up_late_are_listed() -> None:
    assert {"xp", "emulation", "Stream", "memory", "__version__", "_lazy_init"} <= set(dir(tcuda))


def test_names_that_the_package_imports_for_its_own_use_are_not_listed() -> None:
    listed = {name for name in dir(tcuda) if not name.startswith("_")}
    modules = {name for name in listed if inspect.ismodule(getattr(tcuda, name))}
    assert listed - modules - {"xp"} == {*tcuda.__all__} - modules - {"__version__"}
    assert {getattr(tcuda, name).__name__ for name in modules - {"xp"}} == {
        f"tcuda.{name}" for name in modules - {"xp"}
    }


PUBLIC = [
    found.name
    for found in pkgutil.walk_packages(tcuda.__path__, "tcuda.")
    if not re.search(r"\._|^tcuda\.(cli|demo|emulation|testing)\.|^tcuda\.(dask|demo)$", found.name)
]


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_module_lists_its_public_names_only(name: str) -> None:
    module = importlib.import_module(name)
    # pytest adds names that begin with "@" to the modules of an installed plugin.
    assert {shown for shown in dir(module) if shown[0] not in "_@"} == {
        name for name in module.__all__ if not name.startswith("_")
    }
    assert "__file__" in dir(module)
    private = [getattr(module, shown) for shown in dir(module) if shown[0] == "_" and shown[1] != "_"]
    assert not [value for value in private if inspect.ismodule(value) or inspect.isclass(value)]


def test_the_functions_of_torch_that_begin_with_an_underscore_are_listed() -> None:
    assert {"_record_memory_history", "_dump_snapshot", "_snapshot"} <= {*dir(tcuda.memory)}
    assert {"_sleep", "_compile_kernel"} <= {*dir(tcuda)}


@pytest.mark.wings
def test_late_names_are_the_same_objects_before_and_after_initialisation(fresh_output_of: OutputOf) -> None:
    code = (
        "import sys, tcuda\n"
        "xp = tcuda.xp\n"
        "assert 'xp' not in vars(tcuda)\n"
        "tcuda.init()\n"
        "assert vars(tcuda)['xp'] is tcuda.xp is xp\n"
        "for name in ('accelerator', 'comm', 'emulation', 'nccl', 'sanitizer'):\n"
        "    assert getattr(tcuda, name) is vars(tcuda)[name] is sys.modules[f'tcuda.{name}']\n"
        "print('same')"
    )
    assert fresh_output_of(code) == "same"


@pytest.mark.wings
@pytest.mark.parametrize("name", ["warp_drive", "amp", "__wrapped__"])
def test_an_error_for_a_name_is_the_same_before_and_after_initialisation(name: str, fresh_output_of: OutputOf) -> None:
    modules = ("comm", "graphs", "jiterator", "memory", "nccl", "nvtx", "profiler", "random", "sanitizer", "streams")
    code = (
        "import importlib, tcuda\n"
        f"modules = [importlib.import_module(f'tcuda.{{name}}') for name in {modules}]\n"
        "def said(module):\n"
        f"    try: getattr(module, {name!r})\n"
        "    except AttributeError as error: return str(error), error.name, error.obj is module\n"
        "before = [said(module) for module in (tcuda, *modules)]\n"
        "tcuda.init()\n"
        "tcuda.xp.zeros(1)\n"
        "assert [said(module) for module in (tcuda, *modules)] == before, before\n"
        f"assert all(text.startswith('module') and {name!r} in text for text, *_ in before)\n"
        "print(*before[0], sep='\\n')"
    )
    text, *rest = fresh_output_of(code).split("\n")
    assert text == f"module 'tcuda' has no attribute {name!r}{about(name)}"
    assert rest == [name, "True"]


# A package that cannot be used


@pytest.fixture
def source_tree(tmp_path: Path) -> Path:
    """A source tree with the C++ files of the core and without a compiled core."""
    root = tmp_path / "a clone"
    package = Path(tcuda.__file__).parent
    shutil.copytree(package, root / "tcuda", ignore=shutil.ignore_patterns("*.so", "_core", "__pycache__"))
    (root / "tcuda" / "_core").mkdir()
    (root / "tcuda" / "_core" / "module.cpp").touch()
    (root / "pyproject.toml").touch()
    return root


def refusal(root: Path) -> str:
    """Import tcuda in a folder, by a Python without an installed tcuda, and return the message of the import error."""
    code = (
        "import sys\n"
        "for attempt in range(2):\n"
        "    try: import tcuda\n"
        "    except ImportError as error: message, name = str(error), error.name\n"
        "    assert name == 'tcuda'\n"
        "assert not {'numpy', 'tcuda.streams'} & set(sys.modules)\n"
        "print(message)"
    )
    command = [sys.executable, "-S", "-B", "-c", code]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def test_the_error_for_a_source_tree_without_a_core_says_what_to_do(source_tree: Path) -> None:
    assert refusal(source_tree) == (
        f"tcuda was imported from {str(source_tree / 'tcuda')!r}, and that folder has no core compiled for this Python "
        f"({sys.implementation.cache_tag}). "
        f"Install that source tree with: {sys.executable} -m pip install -e '{source_tree}'\n"
        f"Or start Python in another folder than {str(source_tree)!r}, to import an installed tcuda instead."
    )


def test_cores_for_other_pythons_are_named(source_tree: Path) -> None:
    (source_tree / "tcuda" / "_core.cpython-38-x86_64-linux-gnu.so").touch()
    for_this = f"no core compiled for this Python ({sys.implementation.cache_tag})"
    for_others = "The compiled cores there are: _core.cpython-38-x86_64-linux-gnu.so."
    assert f"{for_this}. {for_others} Install " in refusal(source_tree)


def test_a_core_that_cannot_be_loaded_is_named_with_the_reason(source_tree: Path) -> None:
    path = source_tree / "tcuda" / Path(str(_core.__file__)).name
    path.write_text("this is no library, although it has the name of one\n" * 1000)
    message = refusal(source_tree)
    assert f"its compiled core cannot be loaded by this Python ({sys.implementation.cache_tag}): {path}: " in message
    assert "pip install -e" in message


@pytest.mark.parametrize("use", ["from tcuda._core import NewName", "from tcuda import _core; _core.NewName"])
def test_a_core_that_is_older_than_the_python_files_is_named_with_what_it_lacks(source_tree: Path, use: str) -> None:
    path = source_tree / "tcuda" / Path(str(_core.__file__)).name
    path.symlink_to(str(_core.__file__))
    with (source_tree / "tcuda" / "_base" / "scope.py").open("a") as file:
        file.write(f"{use}\n")
    assert refusal(source_tree) == (
        f"tcuda was imported from {str(source_tree / 'tcuda')!r}, and its core {str(path)!r} is older than its C++ "
        f"files, and lacks 'NewName', which the Python files use. The compiled cores there are: {path.name}. "
        f"Install that source tree with: {sys.executable} -m pip install -e '{source_tree}'\n"
        f"Or start Python in another folder than {str(source_tree)!r}, to import an installed tcuda instead."
    )


def test_a_name_that_no_source_of_the_core_has_is_missing_as_in_any_module() -> None:
    assert not hasattr(_core, "NewName")
    with pytest.raises(ImportError, match="cannot import name 'NewName' from 'tcuda._core'"):
        from tcuda._core import NewName  # type: ignore[attr-defined]  # noqa: F401


def test_a_core_of_another_version_is_named_with_both_versions(source_tree: Path) -> None:
    path = source_tree / "tcuda" / Path(str(_core.__file__)).name
    path.symlink_to(str(_core.__file__))
    (source_tree / "tcuda" / "_base" / "version.py").write_text('__version__ = "99.9"\n')
    reason = f"its Python files are of version 99.9, and its core {str(path)!r} of version {tcuda.__version__}. "
    assert reason in refusal(source_tree)


def test_an_installed_package_without_a_core_asks_to_install_again(source_tree: Path) -> None:
    (source_tree / "pyproject.toml").unlink()
    message = refusal(source_tree)
    assert message.endswith(f" Install tcuda again, with the pip of {sys.executable}.")
    assert "pip install -e" not in message


# Subinterpreters

IN_A_SUBINTERPRETER = """
def import_in_a_subinterpreter(isolated):
    script = (
        "import os\\n"
        "for attempt in range(2):\\n"
        "    try: import tcuda\\n"
        "    except ImportError as error: os.write(1, (str(error).split(':')[0] + chr(10)).encode())\\n"
        "import sys\\n"
        "os.write(1, repr({'numpy', 'tcuda._core', 'ctypes'} & set(sys.modules)).encode() + bytes([10]))"
    )
    try:
        import _interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters

        made = interpreters.create(isolated=isolated)
        interpreters.run_string(made, script)
        interpreters.destroy(made)
    else:
        made = _interpreters.create("isolated" if isolated else "legacy")
        failure = _interpreters.exec(made, script)
        assert failure is None, failure
        _interpreters.destroy(made)

def use_tcuda():
    import tcuda
    import numpy

    x = tcuda.xp.asarray(numpy.arange(4.0))
    assert float((x * 2).sum()) == 12
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        y = x + 1
    graph.replay()
    assert y.get().tolist() == [1, 2, 3, 4]
    assert tcuda.memory_allocated() > 0
"""


@pytest.mark.parametrize("isolated", [False, True])
@pytest.mark.parametrize("main_first", [False, True])
def test_a_subinterpreter_is_refused_and_the_main_interpreter_works(
    main_first: bool, isolated: bool, run_python: RunPython
) -> None:
    steps = ["use_tcuda()"] * main_first + [f"import_in_a_subinterpreter({isolated})", "use_tcuda()"]
    done = run_python("import warnings; warnings.simplefilter('ignore')\n" + IN_A_SUBINTERPRETER + "\n".join(steps))
    assert (done.returncode, done.stderr) == (0, "")
    refused = "tcuda cannot be imported in a subinterpreter"
    assert done.stdout.splitlines() == [refused, refused, "set()"]
