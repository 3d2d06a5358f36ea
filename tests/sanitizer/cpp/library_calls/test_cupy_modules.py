"""The modules of the installed CuPy, with libraries that stand in for NVIDIA's: no device is needed."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.core import for_tests

MODULES = {
    "cublas": "cupy_backends.cuda.libs.cublas",
    "curand": "cupy_backends.cuda.libs.curand",
    "cusolver": "cupy_backends.cuda.libs.cusolver",
    "cusparse": "cupy_backends.cuda.libs.cusparse",
    "cutensor": "cupy_backends.cuda.libs.cutensor",
    "nccl": "cupy_backends.cuda.libs.nccl",
    "cufft": "cupy.cuda.cufft",
    "thrust": "cupy.cuda.thrust",
    "cub": "cupy.cuda.cub",
    "_cusolver": "cupyx._cusolver",
}
# Functions that use no memory of the device, or whose arguments tell too little: those of cuTENSOR and cuFFT for
# several devices, and the functions that take a complex number by value.
QUIET = re.compile(
    r"Create(?!IdentityPermutation|(?:Csr|Coo|DnMat|DnVec|SpVec)$)|Destroy(?!DnMat|DnVec|SpMat|SpVec)|[a-z_]Get|"
    r"Set(?!Values|Pointers|StridedBatch|WorkArea)|buffer[Ss]ize|createDescr|zeroPivot|numericBoost|"
    r"WorkspaceSize|workspace_size|cutensorMg|cufftXt(?!MakePlanMany|Exec$)|ncclComm|"
    r"(Sp|cusparse)[CZ](csreigvsi|csr2csr_compress|nnz_compress)$|"
    r"cufftDestroy|cufftXtSetWorkArea"
)

pytestmark = [
    pytest.mark.skipif(shutil.which("cc") is None or shutil.which("nm") is None, reason="needs a C compiler and nm"),
    pytest.mark.skipif(sys.platform != "linux", reason="reads ELF modules"),
]


def module_paths() -> dict[str, Path]:
    """Return the files of CuPy's modules that call NVIDIA's libraries."""
    if importlib.util.find_spec("cupy") is None:
        pytest.skip("CuPy is not installed")
    found = {}
    for short, name in MODULES.items():
        package, _, last = name.rpartition(".")
        top = importlib.util.find_spec(package.partition(".")[0])
        assert top is not None
        assert top.origin is not None
        folder = Path(top.origin).parent.joinpath(*package.split(".")[1:])
        files = list(folder.glob(f"{last}.*.so"))
        if files:
            found[short] = files[0]
    if not found:
        pytest.skip("this CuPy has no modules that call NVIDIA's libraries")
    return found


def imports(path: Path) -> dict[str, str]:
    """Return the functions of NVIDIA's libraries that a module imports, with the versions of their libraries."""
    printed = subprocess.run(["nm", "-D", str(path)], check=True, capture_output=True, text=True).stdout
    found = re.findall(r" U ((?:cu[a-z]+|nccl)[A-Z]\w*|CUTENSOR\w*)(?:@+(\S+))?$", printed, re.MULTILINE)
    return dict(found)


def exports(path: Path) -> list[str]:
    """Return the C++ functions of CUB and Thrust that a module has."""
    printed = subprocess.run(["nm", "-D", str(path)], check=True, capture_output=True, text=True).stdout
    return re.findall(r" T (_Z\d+(?:thrust|cub_device)_\w+)$", printed, re.MULTILINE)


def build_libraries(folder: Path) -> None:
    """Make libraries whose functions do nothing but show the notes."""
    # CuPy loads these libraries before the others.
    libraries: dict[str, dict[str, str]] = {
        f"lib{name}.so.{major}": {} for name in ("nvJitLink", "cublasLt") for major in (12, 13)
    }
    for path in module_paths().values():
        dynamic = subprocess.run(["readelf", "-d", str(path)], check=True, capture_output=True, text=True).stdout
        for library in re.findall(r"\[(lib(?:cu|nccl)\w*\.so[.\d]*)\]", dynamic):
            libraries.setdefault(library, {}).update(imports(path))
    for library, names in libraries.items():
        prefix = re.sub(r"lib|\.so.*", "", library).lower()
        mine = {name: version for name, version in names.items() if name.lower().startswith(prefix)}
        source = folder / f"{library}.c"
        source.write_text(
            "void (*observer)(void);\nvoid observe(void (*function)(void)) { observer = function; }\n"
            + "".join(f"int {name}(void) {{ if (observer) observer(); return 0; }}\n" for name in mine)
        )
        script = folder / f"{library}.map"
        script.write_text(
            "".join(
                f"{version} {{ global: {'; '.join(name for name in mine if mine[name] == version)}; }};\n"
                for version in sorted({*mine.values()} - {""})
            )
        )
        versions = [f"-Wl,--version-script={script}"] if script.read_text() else []
        target = folder / library
        command = ["cc", "-shared", "-fPIC", "-w", f"-Wl,-soname,{library}", *versions, "-o", str(target), str(source)]
        subprocess.run(command, check=True, capture_output=True, text=True)


PROGRAM = r"""
import ctypes, glob, importlib, json, sys
from tcuda import _core
from tcuda._core import for_tests
import cupy
_core.begin_library_calls()
result = {"errors": {}, "notes": []}
modules = {}
for short, name in json.loads(sys.argv[1]).items():
    try:
        modules[short] = importlib.import_module(name)
    except Exception as error:
        result["errors"][short] = repr(error)
_core.look_for_library_calls()
result["intercepted"] = for_tests.intercepted_library_calls()
def observe():
    result["notes"].extend(for_tests.noted_memory())
if "cusparse" in modules:
    observer = ctypes.CFUNCTYPE(None)(observe)
    function = ctypes.CDLL(glob.glob(sys.argv[2] + "/libcusparse.so*")[0]).observe
    function(observer)
    modules["cusparse"].gather(1, 0x1000, 0x2000)
    function(None)
result["after"] = for_tests.noted_memory()
result["counts"] = for_tests.counted_library_calls()
_core.end_library_calls()
result["left"] = for_tests.intercepted_library_calls()
print(json.dumps(result))
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What a process sees that notes the calls of CuPy's modules."""
    folder = tmp_path_factory.mktemp("libraries")
    build_libraries(folder)
    for source in (*folder.glob("*.c"), *folder.glob("*.map")):
        source.unlink()
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("LD_LIBRARY_PATH")]))
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps({name: MODULES[name] for name in module_paths()}), str(folder)],
        env={**os.environ, "LD_LIBRARY_PATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_every_function_that_uses_memory_is_in_the_table() -> None:
    """No import of CuPy's modules is forgotten."""

    known = {name for name, _ in for_tests.library_call_table()}
    missing = set()
    for short, path in module_paths().items():
        functions = [*imports(path), *(exports(path) if short in ("cub", "thrust") else [])]
        missing |= {name for name in functions if name not in known and not QUIET.search(name)}
    assert missing <= {name for name in missing if name.startswith(("CUTENSOR", "cusolverGetProperty"))}


@pytest.mark.emulated  # where NVIDIA's libraries are installed, CuPy loads them in place of the stand-ins
def test_the_functions_of_each_module_are_intercepted(result: Any) -> None:
    """Each import that the table knows is replaced."""

    known = {name for name, _ in for_tests.library_call_table()}
    intercepted = {Path(path).name: set(names) for path, names in result["intercepted"]}
    for short, path in module_paths().items():
        if short in result["errors"]:
            continue
        expected = {name for name in imports(path) if name in known}
        if short in ("cub", "thrust"):
            expected |= {name for name in exports(path) if name in known}
        assert intercepted.get(path.name, set()) == expected, short
        assert expected, short


@pytest.mark.emulated
def test_calls_from_python_are_noted(result: Any) -> None:
    """CuPy's functions call the core's; no notes are left behind, and no module stays intercepted."""
    if "cusparse" not in result["errors"]:
        assert result["notes"] == [["cusparseGather", []]]
        assert result["counts"] == {"cusparseGather": 1}
    assert result["after"] == []
    assert result["left"] == []
