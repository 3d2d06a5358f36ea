"""What the sources of CuPy's kernels tell of the memory that the kernels use."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from support.cupy_kernels import places_text
from support.folders import DATA
from tcuda.sanitizer._cuda.c_types import ArrayType, Layout, PointerType, type_of
from tcuda.sanitizer._cuda.kernel_signatures import Pointer, parameter_names, signatures

NONE, READ, WRITE, BOTH = range(4)
KERNELS: list[dict[str, Any]] = json.loads((DATA / "cupy_kernels.json").read_text())
OF_CUPY = [(kernel["operation"], kernel["source"], name) for kernel in KERNELS for name in kernel["parameters"]]


def kernel(body: str, parameters: str, *, before: str = "") -> dict[str, Pointer]:
    """Return the pointers of a kernel by name."""
    source = f'{before}\nextern "C" __global__ void work({parameters}) {{\n{body}\n}}\n'
    return {pointer.label: pointer for pointer in signatures(source)["work"].pointers}


def elementwise(body: str, parameter: str = "CArray<float, 1, 1, 1> _raw_y", *, before: str = "") -> Pointer:
    """Return the pointer of the output of an elementwise kernel."""
    inputs = "const CArray<float, 1, 1, 1> _raw_x"
    loop = "CUPY_FOR(i, _ind.size()) { _ind.set(i); const T &x = _raw_x[_ind.get()]; T &y = _raw_y[_ind.get()];\n"
    own = body if "_raw_" not in parameter else f"{loop}{body}\n}}"
    return kernel(own, f"{inputs}, {parameter}, CIndexer<1, 1> _ind", before=before)["y"]


class TestLayouts:
    @pytest.mark.parametrize("described", KERNELS, ids=[entry["operation"] for entry in KERNELS])
    def test_the_parameters_are_where_the_compiler_puts_them(self, described: dict[str, Any]) -> None:
        found = {name: places_text(own.parameters) for name, own in signatures(described["source"]).items()}
        assert found == described["parameters"]

    @pytest.mark.parametrize(("text", "known"), [
        ("CArray<float, 0, 1, 1>", ArrayType(4, 0)),
        ("const CArray<thrust::complex<double>, 3, 0, 1>", ArrayType(16, 3)),
        ("CArray<unsigned long long, 2, true, false>", ArrayType(8, 2)),
        ("CArray<cupy::UnstructuredVoid<3>, 1, 1, 1>", ArrayType(3, 1)),
        ("CArray<StructView<cupy::raw_structview_storage<16, 8>, cupy::Field<float, 0>>, 1, 0, 1>", ArrayType(16, 1)),
        ("CArray<Unknown, 2, 0, 1>", ArrayType(0, 2)),
        ("CIndexer<0, 1>", Layout(8, 8)),
        ("CIndexer<3>", Layout(56, 8)),
        ("const thrust::complex<float>", Layout(8, 8)),
        ("const float16", Layout(2, 2)),
        ("bfloat16", Layout(2, 2)),
        ("bool", Layout(1, 1)),
        ("signed char", Layout(1, 1)),
        ("unsigned", Layout(4, 4)),
        ("unsigned short", Layout(2, 2)),
        ("long int", Layout(8, 8)),
        ("std::size_t", Layout(8, 8)),
        ("IndexT", Layout(4, 4)),
        ("const void*", PointerType(True)),
        ("float *__restrict__", PointerType(False)),
        ("Unknown", None),
        ("Endless", None),
        ("long double", None),
        ("float &", None),
    ])  # fmt: skip
    def test_types(self, text: str, known: object) -> None:
        assert type_of(text, {"IndexT": "int", "Endless": "Endless"}) == known

    def test_the_size_of_an_array_is_that_of_its_members(self) -> None:
        members = 8 + 8 + 3 * 8 + 3 * 8  # the address, the size, the shape and the strides
        assert ArrayType(4, 3).layout == Layout(members, 8)


class TestKindsOfCupysKernels:
    @pytest.mark.parametrize(("operation", "name", "kinds"), [
        ("add f", "cupy_add__float32_float32_float32", {"in0": READ, "in1": READ, "out0": WRITE}),
        ("multiply by a scalar f", "cupy_multiply__float32_float32_float32", {"in0": READ, "in1": READ, "out0": WRITE}),
        ("fill f", "cupy_fill", {"y": WRITE}),
        ("sum f", "cupy_sum", {"in0": READ, "out0": WRITE}),
        ("ufunc where", "cupy_add_where__float32_float32_bool_float32",
         {"in0": READ, "in1": READ, "_where": READ, "out0": WRITE}),
        ("divmod", "cupy_divmod__float32_float32_float32_float32",
         {"in0": READ, "in1": READ, "out0": WRITE, "out1": WRITE}),
        ("take", "cupy_take", {"a": READ, "indices": READ, "out": WRITE}),
        ("put", "cupy_put_wrap", {"ind": READ, "vals": READ, "data": WRITE}),
        ("assign indices", "cupy_scatter_update", {"v": READ, "indices": READ, "a": WRITE}),
        ("scatter add", "cupy_scatter_add", {"v": READ, "indices": READ, "a": BOTH}),
        ("argmax", "cupy_cub_argmax", {"in0": READ, "out0": WRITE}),
        ("batched cumsum", "cupy_inclusive_batch_scan_kernel", {"src": READ, "dst": WRITE}),
        ("in place", "own_in_place", {"x": READ, "y": BOTH}),
        ("atomic", "own_atomic", {"x": READ, "y": BOTH}),
        ("norm", "own_norm", {"x": READ, "y": WRITE}),
        ("more", "own_more", {"x": READ, "w": READ, "y": BOTH}),
        ("new fused sum", "new_fused_sum",
         {"a0_0": READ, "a1_1": READ, "a2_2": WRITE, "a2_3": READ, "a3_4": BOTH, "a5_6": WRITE}),
        ("jit", "shifted", {"x": READ, "y": WRITE}),
    ])  # fmt: skip
    def test_the_kinds(self, operation: str, name: str, kinds: dict[str, int]) -> None:
        found = [signatures(text)[name] for known, text, own in OF_CUPY if (known, own) == (operation, name)]
        assert found
        for signature in found:
            assert {pointer.label: pointer.kind for pointer in signature.pointers} == kinds
            assert signature.is_certain

    @pytest.mark.parametrize(("operation", "name", "possible"), [
        ("take", "cupy_take", {"a"}),
        ("put", "cupy_put_wrap", {"vals", "data"}),
        ("scatter add", "cupy_scatter_add", {"a"}),
        ("jit", "shifted", {"x", "y"}),
        ("new fused sum", "new_fused_sum", set()),
        ("assign mask", "cupy_scan_naive", set()),
        ("batched cumsum", "cupy_inclusive_batch_scan_kernel", set()),
        ("add f", "cupy_add__float32_float32_float32", set()),
        ("sum f", "cupy_sum", set()),
    ])  # fmt: skip
    def test_elements_that_data_choose_are_possible(self, operation: str, name: str, possible: set[str]) -> None:
        text = next(text for known, text, own in OF_CUPY if (known, own) == (operation, name))
        assert {pointer.label for pointer in signatures(text)[name].pointers if pointer.possible} == possible

    def test_kernels_of_which_the_source_does_not_tell_the_use(self) -> None:
        found = {name for _, text, _ in OF_CUPY for name, own in signatures(text).items() if not own.is_certain}
        assert found <= {"table", "argpartition_kernel", "argpartition_merge_kernel"}
        assert "table" in found

    def test_the_ptx_tells_what_the_source_does_not(self) -> None:
        text = next(text for operation, text, _ in OF_CUPY if operation == "jit table")
        signature = signatures(text)["table"]
        x, y = signature.pointers
        refined = signature.refined({x.offset: READ, y.offset: BOTH})
        assert [(pointer.kind, pointer.possible, pointer.is_certain) for pointer in refined.pointers] == [
            (READ, True, True),
            (BOTH, True, True),
        ]
        assert refined.parameters == signature.parameters
        assert not signature.refined({x.offset: READ}).is_certain


class TestOutputs:
    @pytest.mark.parametrize(("body", "kind"), [
        ("y = x;", WRITE),
        ("if (x > 0) y = x; else y = -x;", WRITE),
        ("y += x;", BOTH),
        ("++y;", BOTH),
        ("y--;", BOTH),
        ("y <<= 1;", BOTH),
        ("y = y + x;", BOTH),
        ("T z = x; z = y = x;", BOTH),
        ("bool same = y == x;", READ),
        ("T z = y; y = z;", BOTH),
        ("T &z = y; z += x;", BOTH),
        ("T &z = y; z = x;", WRITE),
        ("const T &z = y;", READ),
        ("change(y);", BOTH),
        ("atomicAdd(&y, x);", BOTH),
        ("SET(y);", BOTH),
        ("// y += x\ny = x;", WRITE),
        ("/* y += x */ y = x;", WRITE),
        ("", NONE),
    ])  # fmt: skip
    def test_kinds(self, body: str, kind: int) -> None:
        found = elementwise(body)
        assert (found.kind, found.possible, found.is_certain) == (kind, False, True)

    def test_a_macro_that_uses_the_output(self) -> None:
        assert elementwise("STEP;", before="#define STEP y += x").kind == BOTH
        assert elementwise("STEP;", before="#define STEP y = x").kind == WRITE

    def test_an_output_without_index(self) -> None:
        assert elementwise("y[i] = x;", "CArray<float, 2, 1, 1> y").possible is False
        assert elementwise("y[x] = x;", "CArray<float, 2, 1, 1> y").possible is True
        assert elementwise("y[0] = x;", "CArray<float, 0, 1, 1> y").possible is False

    @pytest.mark.parametrize("body", ["*(T*)&_raw_x[i] = 1;", "*(float *)(&x) = 1;", "const_cast<T&>(x) = 1;"])
    def test_an_input_whose_const_is_cast_away(self, body: str) -> None:
        found = kernel(body, "const CArray<float, 1, 1, 1> _raw_x, CIndexer<1, 1> _ind")["x"]
        assert (found.kind, found.possible, found.is_certain) == (BOTH, True, False)

    @pytest.mark.parametrize("body", ["y = *(const T*)&_raw_x[i];", "y = (T)x;", "y = (float)(x * 2);"])
    def test_an_input_that_is_cast(self, body: str) -> None:
        found = kernel(body, "const CArray<float, 1, 1, 1> _raw_x, CIndexer<1, 1> _ind")["x"]
        assert (found.kind, found.is_certain) == (READ, True)


class TestOtherKernels:
    def test_an_array_that_is_copied_or_given_away_may_be_used_in_any_way(self) -> None:
        for body in ("CArray<float, 1, 1, 1> row = x;", "use(x);", "auto p = &x[0];", "x._slicing(3)[0] = 1;"):
            found = kernel(body, "CArray<float, 1, 1, 1> x")["x"]
            assert (found.kind, found.possible, found.is_certain) == (BOTH, True, False)

    def test_an_array_whose_shape_alone_is_used(self) -> None:
        found = kernel("long long n = x.size() + x.shape()[0] + sizeof(x);", "CArray<float, 1, 1, 1> x")["x"]
        assert (found.kind, found.is_certain) == (NONE, True)

    def test_pointers_are_left_to_the_machine_code(self) -> None:
        assert signatures('extern "C" __global__ void f(const float *x, float *y, int n) { y[n] = x[n]; }') == {}

    def test_an_unknown_parameter_is_left_to_the_machine_code(self) -> None:
        assert signatures('extern "C" __global__ void f(CArray<float, 1, 1, 1> x, Own own) { x[0] = 1; }') == {}

    def test_an_array_of_unknown_elements_has_no_known_extent(self) -> None:
        found = kernel("x[0] = y;", "CArray<Own, 1, 1, 1> x")["x"]
        assert (found.kind, found.dimensions, found.itemsize) == (WRITE, -1, 0)

    def test_kernels_with_mangled_names_are_left_to_the_machine_code(self) -> None:
        assert signatures("template<typename T> __global__ void f(CArray<T, 1, 1, 1> x) { x[0] = 1; }") == {}
        assert signatures("__global__ void f(CArray<float, 1, 1, 1> x) { x[0] = 1; }") == {}

    def test_several_kernels_in_one_block(self) -> None:
        text = """
            extern "C" {
            __global__ void __launch_bounds__(128) f(CArray<float, 1, 1, 1> x) { x[0] = 1; }
            __global__ void g(const CArray<float, 1, 1, 1> x) {}
            }
            __global__ void h(CArray<float, 1, 1, 1> x) { x[0] = 1; }
        """
        assert {name: own.pointers[0].kind for name, own in signatures(text).items()} == {"f": WRITE, "g": READ}

    def test_names_of_parameters(self) -> None:
        text = 'extern "C" __global__ void f(const float* __restrict__ x, float *y, int n) {}'
        assert parameter_names(text) == {"f": ("x", "y", "n")}
        assert parameter_names("int main() {}") == {}
        assert parameter_names("template<typename T> __global__ void g(T *x, int n) {}") == {"g": ("x", "n")}

    def test_a_damaged_source_is_no_error(self) -> None:
        chance = random.Random(5)
        for _, text, _ in OF_CUPY:
            begin = text.index("__global__") - 20
            for _ in range(20):
                cut = sorted(chance.choices(range(begin, len(text)), k=2))
                signatures(text[: cut[0]] + text[cut[1] :])
                signatures(text[: cut[1]])
