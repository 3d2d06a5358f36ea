"""The build of a source: the library, the cache and the errors."""

from __future__ import annotations

import io
import math
import pickle
import re
import shutil
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tcuda.emulation import rtc, xp
from tcuda.emulation.rtc import CompileException, build, checks, compiler, headers
from tcuda.emulation.rtc.errors import ordered

if TYPE_CHECKING:
    from pathlib import Path

    from support.fixture_types import OutputOf

pytestmark = [
    pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler"),
    pytest.mark.usefixtures("cache_of_module"),
]

KERNEL = 'extern "C" __global__ void f(int* x) { x[0] = 1; }\n'


def message_of(code: str, *options: str) -> str:
    """Return the message of the error that ``code`` gives."""
    with pytest.raises(CompileException) as caught:
        build(code, options)
    return str(caught.value)


def test_a_second_build_does_not_compile(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library, _ = build(KERNEL)
    assert [path.suffix for path in cache_folder.iterdir() if path.suffix == ".so"] == [".so"]

    def refuse(*arguments: object) -> None:
        raise AssertionError("the compiler runs")

    monkeypatch.setattr(rtc.Compiler, "run", refuse)
    assert build(KERNEL) == (library, "")
    with pytest.raises(AssertionError, match="the compiler runs"):
        build(KERNEL, ("-DN",))


@pytest.mark.long
def test_sources_options_names_checks_and_compilers_have_libraries_of_their_own(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(KERNEL)
    build(KERNEL + " ")
    build(KERNEL, ("-DN=1",))
    build(KERNEL, (), ("f",))
    monkeypatch.setenv("TCUDA_EMULATED_CHECKS", "0")
    build(KERNEL)
    monkeypatch.setenv("CXX", "c++ -DOTHER")
    build(KERNEL)
    assert len([path for path in cache_folder.iterdir() if path.suffix == ".so"]) == 6


def test_a_broken_library_is_built_again(cache_folder: Path) -> None:
    library, _ = build(KERNEL)
    (path,) = [path for path in cache_folder.iterdir() if path.suffix == ".so"]
    content = path.read_bytes()
    path.write_bytes(content[:1000])
    assert len(build(KERNEL)[0]) == len(library)
    assert len(path.read_bytes()) == len(content)


def test_a_changed_header_of_the_user_is_compiled_again(tmp_path: Path) -> None:
    (tmp_path / "n.cuh").write_text("static_assert(true);")
    code = '#include "n.cuh"\n' + KERNEL
    build(code, (f"-I{tmp_path}",))
    (tmp_path / "n.cuh").write_text('static_assert(false, "changed");')
    assert "changed" in message_of(code, f"-I{tmp_path}")


def test_errors_show_the_lines_of_the_user() -> None:
    message = message_of('\n\nextern "C" __global__ void f(int* x) {\n  x[0] = missing;\n}\n')
    assert "kernel.cu:4:10: error: " in message
    assert "missing" in message.splitlines()[1]
    assert "tcuda/" not in message


def test_the_error_has_the_attributes_of_cupy() -> None:
    with pytest.raises(CompileException) as caught:
        build("int x = y;", ("-DN",), (), "nvcc")
    error = caught.value
    assert (error.source, error.name, error.options, error.backend) == ("int x = y;", "kernel.cu", ("-DN",), "nvcc")
    assert error.get_message() == str(error) == repr(error)
    assert type(error).__name__ == "CompileException"
    restored = pickle.loads(pickle.dumps(error))
    assert (str(restored), restored.source, restored.options) == (str(error), error.source, error.options)
    file = io.StringIO()
    error.dump(file)
    assert file.getvalue().startswith("NVCC compilation error: kernel.cu:1:9: error:")
    assert "\n1 int x = y;\n" in file.getvalue()


def test_a_wrong_option_is_an_error_as_of_nvrtc() -> None:
    assert message_of(KERNEL, "--foo") == "nvrtc: error: unrecognized option --foo"


def test_a_name_expression_that_does_not_exist_is_named() -> None:
    with pytest.raises(CompileException, match=r"name_expressions:\d+:.*error.*(?s:.)*absent"):
        build(KERNEL, (), ("absent<int>",))


@pytest.mark.parametrize("name", ["absent", "absent<int>", "helper", "overloaded", "pattern"])
def test_a_wrong_name_expression_is_told_without_the_added_lines(name: str) -> None:
    code = (
        "__device__ int helper(int x) { return x; }\n"
        "__global__ void overloaded(int* x) {}\n__global__ void overloaded(float* x) {}\n"
        "template <typename T> __global__ void pattern(T* x) {}\n"
    )
    with pytest.raises(CompileException) as caught:
        build(code + KERNEL, (), (name,))
    message = str(caught.value)
    assert f"{name!r} is not the name of a kernel" in message
    assert "TCUDA_KERNEL" not in message
    assert "launch.h" not in message


def test_an_error_in_an_instance_of_a_template_is_an_error_in_the_source() -> None:
    code = "template <typename T> __global__ void f(T* x) { x->absent = 1; }"
    with pytest.raises(CompileException, match=r"kernel.cu:1:\d+: error"):
        build(code, (), ("f<int>",))


def test_a_header_of_cupy_that_is_missing_is_refused_with_the_headers_that_exist() -> None:
    message = message_of("#include <cupy/xsf/special.h>\n" + KERNEL)
    existing = {path.name for path in (headers.folder() / "cupy").iterdir()}
    assert set(re.findall(r"<cupy/([^>]+)>", message)) == existing


def test_unsupported_constructs_are_errors_unless_the_preprocessor_leaves_them_out() -> None:
    code = '#ifdef FAST\n__device__ void g() { asm("membar.gl;"); }\n#endif\n' + KERNEL
    build(code)
    assert message_of(code, "-DFAST").startswith("kernel.cu:2: error: inline PTX assembly (asm)")
    assert message_of("#include <cub/cub.cuh>\n").startswith("kernel.cu:1: error: a header of CUDA's C++ libraries")


def test_a_construct_in_a_macro_is_an_error_where_the_macro_is_used() -> None:
    code = '#define FENCE() asm("membar.gl;")\n' + KERNEL
    build(code)
    assert message_of(code + "\nvoid g() { FENCE(); }").startswith("kernel.cu:4: error: inline PTX assembly (asm)")


def test_a_missing_brace_is_an_error_in_the_source() -> None:
    message = message_of('extern "C" __global__ void f(int* x) {\n  x[0] = 1;\n')
    assert "\nkernel.cu:2:" in f"\n{message}"
    assert "name_expressions" not in message
    assert "TCUDA_KERNEL" not in message


def test_every_unsupported_construct_of_a_source_is_named() -> None:
    message = message_of('void f() { asm(""); }\n\nvoid g() { f<<<1, 1>>>(); }\n')
    assert [line.split(": error: ")[0] for line in message.splitlines()] == ["kernel.cu:1", "kernel.cu:3"]


def test_a_macro_and_a_condition_can_make_kernels() -> None:
    code = (
        '#define KERNEL(n) extern "C" __global__ void n(int* x)\nKERNEL(f) {}\n#ifdef NO\nKERNEL(g) { wrong }\n#endif\n'
    )
    library, _ = build(code)
    assert b"\0f\0" in library


def test_the_caches_of_processes_that_build_at_once_stay_whole(output_of: OutputOf, cache_folder: Path) -> None:
    code = f"""
import concurrent.futures
from tcuda.emulation.rtc import build, precompiled
precompiled.WORTH = 1
with concurrent.futures.ThreadPoolExecutor(3) as pool:
    print(len(set(pool.map(lambda _: build({KERNEL!r})[0], range(3)))))
"""
    assert output_of(code, TCUDA_CACHE_DIR=str(cache_folder.parent)) == "1"
    # The precompiled header, the object file and the empty library are for all kernels. clang uses none of them.
    shared = [] if compiler.find().is_clang else [".gch", ".o", ".o"]
    assert sorted(path.suffix for path in cache_folder.iterdir()) == [*shared, ".so"]


def test_messages_about_the_source_come_before_messages_about_headers() -> None:
    messages = (
        "In file included from <command-line>:\n"
        "/usr/tcuda/device.h:3:1: warning: old\n"
        "    3 | x\n"
        "kernel.cu: In function 'void f()':\n"
        "kernel.cu:7:3: error: wrong\n"
        "    7 | y\n"
        "/usr/tcuda/device.h:9:1: note: declared here\n"
    )
    assert ordered(messages, ["kernel.cu"]).splitlines() == [
        "kernel.cu: In function 'void f()':",
        "kernel.cu:7:3: error: wrong",
        "    7 | y",
        "/usr/tcuda/device.h:9:1: note: declared here",
        "In file included from <command-line>:",
        "/usr/tcuda/device.h:3:1: warning: old",
        "    3 | x",
    ]


@pytest.mark.parametrize(
    "value",
    [
        "yes",
        "2",
        "memory,threads",
        "memory,",
        "1,memory",
        "memory:neighbours",
        "memory,races:",
        "races:benign=no",
        "barriers:benign=on",
    ],
)
def test_a_wrong_value_of_the_variable_for_checks_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCUDA_EMULATED_CHECKS", value)
    with pytest.raises(ValueError, match=f"TCUDA_EMULATED_CHECKS is '{value}'; write 1"):
        build(KERNEL)


@pytest.mark.parametrize(
    ("value", "races", "benign"),
    [
        ("1", False, True),
        ("0", False, True),
        ("memory", False, True),
        ("races", True, True),
        ("memory, races", True, True),
        ("races:benign=on,types", True, True),
        ("memory,races:benign=off", True, False),
        ("races,races:benign=off", True, False),
    ],
)
def test_the_variable_for_checks_chooses_races(value: str, races: bool, benign: bool) -> None:
    chosen = checks.chosen({"TCUDA_EMULATED_CHECKS": value})
    assert (chosen.races, chosen.benign) == (races, benign)
    assert chosen.memory == (value in ("1", "memory") or races)
    assert chosen.types == {"1": "warning", "races:benign=on,types": "error"}.get(value, "nothing")


@pytest.mark.parametrize(
    ("value", "orders", "benign"),
    [("races", 2, True), ("races:orders=1", 1, True), ("memory,races:benign=off,races:orders=12", 12, False)],
)
def test_the_variable_for_checks_chooses_the_number_of_orders(value: str, orders: int, benign: bool) -> None:
    chosen = checks.chosen({"TCUDA_EMULATED_CHECKS": value})
    assert (chosen.races, chosen.memory, chosen.orders, chosen.benign) == (True, True, orders, benign)


@pytest.mark.parametrize("value", ["races:orders=0", "races:orders=100", "races:orders=", "races:orders=two"])
def test_a_wrong_number_of_orders_says_what_is_allowed(value: str) -> None:
    with pytest.raises(ValueError, match=f"checks is '{value}'.*races:orders=3 is races in three orders .*1 to 99"):
        checks.parsed(value, "checks")


def test_a_wrong_check_says_what_is_allowed() -> None:
    with pytest.raises(
        ValueError,
        match="memory, memory:neighbours=off, padding, barriers, types, races, init. padding leaves unused bytes",
    ):
        checks.parsed("race", "checks")


VIRTUAL = """
struct Shape {
    virtual int area() const = 0;
    virtual ~Shape() {}
};
struct Square : Shape {
    int side;
    Square(int side) : side(side) {}
    int area() const override { return side * side; }
};
extern "C" __global__ void f(double* x, int side) {
    Shape* shape = new Square(side);
    double* values = new double[side];
    values[side - 1] = sin((double)shape->area());
    x[0] = values[side - 1];
    delete[] values;
    delete shape;
}
"""


@pytest.mark.emulated
@pytest.mark.usefixtures("kernels_are_searched")
@pytest.mark.parametrize("value", ["0", "1", "memory,races"])
def test_a_kernel_finds_the_names_of_the_libraries_that_the_linker_has_not_read(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("TCUDA_EMULATED_CHECKS", value)
    x = xp.zeros(1)
    xp.RawKernel(VIRTUAL, "f")((1,), (1,), (x, np.int32(3)))
    assert x.item() == math.sin(9)
