"""The sources of CuPy's modules are noted when the modules are loaded, and described while a detector watches."""

from __future__ import annotations

import gc
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tcuda._cupy import loaded_kernels
from tcuda._cupy.loaded_kernels import LoadedSource
from tcuda.sanitizer._cuda.kernel_uses import KernelWatch

if TYPE_CHECKING:
    from collections.abc import Iterator

FILL = """
    extern "C" __global__ void fill(const float x, CArray<float, 1, 1, 1> _raw_y, CIndexer<1, 1> _ind) {
      CUPY_FOR(i, _ind.size()) { _ind.set(i); T &y = _raw_y[_ind.get()]; y = x; }
    }
"""
PLAIN = 'extern "C" __global__ void plain(const float *x, float *y, int n) { y[n] = x[n]; }'
JIT = 'extern "C" __global__ void jit(CArray<float, 1, 1, 1> x, CArray<float, 1, 1, 1> y) { use(x, y); }'
JIT_OPTIONS = ("-DCUPY_JIT_MODE",)


class Module:
    """Stands for CuPy's class of modules."""

    def __init__(self, ptr: int) -> None:
        self.ptr = ptr


class Table:
    """Stands for the core, and notes what it is told."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.loaded = 0

    def describe_kernel(self, module: int, name: str, parameters: Any, pointers: Any, complete: bool) -> None:
        self.calls.append(("describe", module, name, tuple(parameters), pointers, complete))

    def add_ptx(self, module: int, text: str) -> None:
        self.calls.append(("ptx", module, text))

    def forget_module(self, module: int) -> None:
        self.calls.append(("forget", module))

    def uses_of_ptx(self, text: bytes) -> dict[str, Any]:
        return {"jit": (((0, 32), (32, 32)), ((0, "read", False, "x"), (32, "write", True, "y")), True)}


class Cupy:
    """Stands for the package, with the functions that load modules."""

    def __init__(self) -> None:
        self.loaded: list[Module] = []
        compiler = SimpleNamespace(_compile_module_with_cache=self._compile)
        self.cuda = SimpleNamespace(compiler=compiler)
        self._core = SimpleNamespace(raw=SimpleNamespace(_get_raw_module=self._get_raw))

    def _compile(self, source: str, options: tuple[str, ...] = (), **kwargs: Any) -> Any:
        if kwargs.get("to_ltoir"):
            return b"an image"
        self.loaded.append(Module(0x1000 + len(self.loaded)))
        return self.loaded[-1]

    def _get_raw(self, code: str | None, path: str | None, *rest: Any) -> Module:
        if code is not None:
            module: Module = self.cuda.compiler._compile_module_with_cache(code)
            return module
        return self.loaded[0] if self.loaded else self._compile("")


@pytest.fixture
def cupy() -> Cupy:
    made = Cupy()
    loaded_kernels.follow(made)
    return made


@pytest.fixture
def table() -> Table:
    return Table()


@pytest.fixture
def watch(table: Table) -> Iterator[KernelWatch]:
    def loaded() -> None:
        table.loaded += 1

    made = KernelWatch(table, Module, lambda source: f"PTX of {source.text}", loaded)
    yield made
    made.end()


class TestNotes:
    def test_a_loaded_module_is_noted(self, cupy: Cupy) -> None:
        compile_module = cupy.cuda.compiler._compile_module_with_cache
        module = compile_module(FILL, ("-O3",), arch=None, extra_source="many headers", backend="nvcc", jitify=True)
        assert loaded_kernels.source_of(module.ptr) == LoadedSource(FILL, ("-O3",), "nvcc", None, (), True)

    def test_a_second_call_follows_once(self, cupy: Cupy) -> None:
        compile_module = cupy.cuda.compiler._compile_module_with_cache
        loaded_kernels.follow(cupy)
        assert cupy.cuda.compiler._compile_module_with_cache is compile_module

    def test_an_image_for_the_linker_is_no_module(self, cupy: Cupy) -> None:
        assert cupy.cuda.compiler._compile_module_with_cache("", to_ltoir=True) == b"an image"

    def test_a_module_of_a_file(self, cupy: Cupy) -> None:
        module = cupy._core.raw._get_raw_module(None, "kernels.ptx", ())
        assert loaded_kernels.source_of(module.ptr) == LoadedSource("", backend="nvcc", path="kernels.ptx")

    def test_a_raw_module_of_a_source(self, cupy: Cupy) -> None:
        module = cupy._core.raw._get_raw_module(PLAIN, None, ())
        assert loaded_kernels.source_of(module.ptr) == LoadedSource(PLAIN)

    def test_a_cupy_without_these_functions(self) -> None:
        loaded_kernels.follow(SimpleNamespace(cuda=SimpleNamespace()))

    def test_dead_modules_are_forgotten(self, cupy: Cupy) -> None:
        kept, gone = (cupy.cuda.compiler._compile_module_with_cache(text) for text in (FILL, PLAIN))
        address = gone.ptr
        cupy.loaded.remove(gone)
        del gone
        gc.collect()
        assert loaded_kernels.living(Module)[kept.ptr].text == FILL
        assert loaded_kernels.source_of(address) is None


class TestDescriptions:
    def test_modules_of_before_and_after_the_begin_are_described(
        self, cupy: Cupy, watch: KernelWatch, table: Table
    ) -> None:
        before = cupy.cuda.compiler._compile_module_with_cache(FILL)
        assert table.calls == []
        watch.begin()
        after = cupy.cuda.compiler._compile_module_with_cache(FILL)
        described = [call for call in table.calls if call[1] in (before.ptr, after.ptr)]
        parameters, pointers = ((0, 4), (8, 32), (40, 24)), [(8, 2, False, 1, 4, "y")]
        assert described == [
            ("describe", before.ptr, "fill", parameters, pointers, True),
            ("describe", after.ptr, "fill", parameters, pointers, True),
        ]

    def test_after_the_end_the_core_has_forgotten(self, cupy: Cupy, watch: KernelWatch, table: Table) -> None:
        watch.begin()
        module = cupy.cuda.compiler._compile_module_with_cache(FILL)
        watch.end()
        assert ("forget", module.ptr) in table.calls
        table.calls.clear()
        cupy.cuda.compiler._compile_module_with_cache(FILL)
        watch.end()
        assert table.calls == []

    def test_the_ptx_of_a_raw_kernel_is_made_before_its_first_call(
        self, cupy: Cupy, watch: KernelWatch, table: Table
    ) -> None:
        watch.begin()
        table.calls.clear()
        function = SimpleNamespace(module=cupy.cuda.compiler._compile_module_with_cache(PLAIN))
        assert table.calls == []
        assert watch.prepare(function) == ("x", "y", "n")
        assert table.calls == [("ptx", function.module.ptr, f"PTX of {PLAIN}")]
        assert watch.prepare(function) == ("x", "y", "n")
        assert len(table.calls) == 1

    def test_a_generated_kernel_needs_no_ptx(self, cupy: Cupy, watch: KernelWatch, table: Table) -> None:
        watch.begin()
        function = SimpleNamespace(module=cupy.cuda.compiler._compile_module_with_cache(FILL))
        table.calls.clear()
        watch.prepare(function)
        assert table.calls == []

    def test_the_ptx_tells_what_a_jit_kernel_does_with_its_arrays(
        self, cupy: Cupy, watch: KernelWatch, table: Table
    ) -> None:
        watch.begin()
        table.calls.clear()
        function = SimpleNamespace(module=cupy.cuda.compiler._compile_module_with_cache(JIT, JIT_OPTIONS))
        assert [call[4] for call in table.calls] == [[(0, 3, True, 1, 4, "x"), (32, 3, True, 1, 4, "y")]]
        watch.prepare(function)
        assert table.calls[-1][4] == [(0, 1, True, 1, 4, "x"), (32, 3, True, 1, 4, "y")]

    def test_cupys_own_kernels_are_refined_at_once(self, cupy: Cupy, watch: KernelWatch, table: Table) -> None:
        watch.begin()
        table.calls.clear()
        cupy.cuda.compiler._compile_module_with_cache(JIT)
        assert [call[0] for call in table.calls] == ["describe", "ptx", "describe"]

    def test_the_ptx_of_kernels_that_the_core_launches_is_made_at_once(self, watch: KernelWatch, table: Table) -> None:
        watch.begin()
        table.calls.clear()
        loaded_kernels.note(0x77, LoadedSource(PLAIN, by_core=True))
        assert table.calls == [("ptx", 0x77, f"PTX of {PLAIN}")]

    def test_a_kernel_that_the_core_takes_over(self, cupy: Cupy, watch: KernelWatch, table: Table) -> None:
        watch.begin()
        function = SimpleNamespace(module=cupy.cuda.compiler._compile_module_with_cache(PLAIN))
        table.calls.clear()
        loaded_kernels.launched_by_core(function)
        loaded_kernels.launched_by_core(function)
        assert table.calls == [("ptx", function.module.ptr, f"PTX of {PLAIN}")]
        loaded_kernels.launched_by_core(SimpleNamespace(module=Module(0x99)))
        assert len(table.calls) == 1

    def test_each_loaded_module_is_told(self, cupy: Cupy, watch: KernelWatch, table: Table) -> None:
        watch.begin()
        before = table.loaded
        cupy.cuda.compiler._compile_module_with_cache(PLAIN)
        assert table.loaded == before + 1

    def test_a_module_whose_ptx_cannot_be_had(self, cupy: Cupy, table: Table) -> None:
        watch = KernelWatch(table, Module, lambda source: None, lambda: None)
        watch.begin()
        try:
            function = SimpleNamespace(module=cupy.cuda.compiler._compile_module_with_cache(PLAIN))
            assert watch.prepare(function) == ("x", "y", "n")
            assert [call for call in table.calls if call[0] == "ptx"] == []
        finally:
            watch.end()

    def test_a_function_of_an_unknown_module(self, watch: KernelWatch, table: Table) -> None:
        watch.begin()
        table.calls.clear()
        assert watch.prepare(SimpleNamespace(module=Module(0x99))) == ()
        assert table.calls == []
