"""What PTX texts say that kernels do with the memory behind their parameters."""

from __future__ import annotations

import random
import time

import pytest

from support.ptx_kernels import COMPILED, KERNELS, WRITTEN, WRITTEN_TEXTS, Kernel, compiled
from tcuda import _core

_OPTIMIZED = [variant for variant in COMPILED if variant != "debug"]


def wrong_kernels(variant: str) -> dict[str, list[str]]:
    """Return the kernels that the analysis gets wrong."""
    text = compiled(variant)
    return {kernel.name: found for kernel in KERNELS if (found := kernel.mistakes(text[kernel.name]))}


def module(body: str, parameters: str = ".param .u64 k_param_0, .param .u64 k_param_1") -> bytes:
    """Return a module with one kernel."""
    head = ".version 8.0\n.target sm_90\n.address_size 64\n"
    return f"{head}.visible .entry k({parameters})\n{{\n.reg .b64 %rd<9>; .reg .b32 %r<9>;\n{body}\nret;\n}}".encode()


def test_there_are_enough_kernels() -> None:
    assert len(KERNELS) >= 60
    assert len(COMPILED) >= 3
    assert all(set(compiled(variant)) == {kernel.name for kernel in KERNELS} for variant in COMPILED)


@pytest.mark.parametrize("variant", _OPTIMIZED)
def test_at_least_95_of_100_kernels_are_right(variant: str, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = wrong_kernels(variant)
    with capsys.disabled():
        print(f"\n{variant}: {len(KERNELS) - len(wrong)} of {len(KERNELS)} kernels are right; wrong: {wrong}")
    assert len(wrong) <= 0.05 * len(KERNELS)


# Without optimization all variables of a function are in one block of memory, and indices may be those of any variable.
def test_most_kernels_for_debuggers_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = wrong_kernels("debug")
    with capsys.disabled():
        print(f"\ndebug: {len(KERNELS) - len(wrong)} of {len(KERNELS)} kernels are right; wrong: {sorted(wrong)}")
    assert len(wrong) <= 0.15 * len(KERNELS)


@pytest.mark.parametrize("variant", COMPILED)
def test_no_access_is_missed(variant: str) -> None:
    text = compiled(variant)
    assert {kernel.name: found for kernel in KERNELS if (found := kernel.missed(text[kernel.name]))} == {}


@pytest.mark.parametrize("kernel", WRITTEN, ids=[kernel.name for kernel in WRITTEN])
def test_a_kernel_that_was_written_by_hand(kernel: Kernel) -> None:
    assert kernel.mistakes(WRITTEN_TEXTS[kernel.name]) == []


def test_parameters_are_aligned() -> None:
    parameters = (
        ".param .u8 a, .param .u16 b, .param .align 16 .b8 c[3], .param .f64 d, .param .u32 e, .param .b8 f, "
        ".param .u64 .ptr .global .align 256 g, .param .align 4 .b8 h[12], .param .u16 i[3], .param .u64 j"
    )
    ((found, pointers, complete),) = _core.uses_of_ptx(module("", parameters)).values()
    places = [(0, 1), (2, 2), (16, 3), (24, 8), (32, 4), (36, 1), (40, 8), (48, 12), (60, 6), (72, 8)]
    assert (found, pointers, complete) == (places, [(40, "none", False, "g")], True)


def test_a_label_is_a_name_that_no_compiler_made() -> None:
    body = "ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [k_param_1+8]; ld.u32 %r1, [%rd2]; st.u32 [%rd1], %r1;"
    text = module(body, ".param .u64 out, .param .align 8 .b8 k_param_1[16]")
    assert _core.uses_of_ptx(text)["k"][1] == [(0, "write", False, "out"), (16, "read", False, "")]


def test_a_module_has_several_kernels() -> None:
    first = module("ld.param.u64 %rd1, [k_param_0]; st.global.u32 [%rd1], 1;")
    second = module("ld.param.u64 %rd1, [k_param_1]; ld.global.u32 %r1, [%rd1];").replace(b" k(", b" other(")
    uses = _core.uses_of_ptx(first + second)
    assert {name: pointers for name, (_, pointers, _) in uses.items()} == {
        "k": [(0, "write", False, "")],
        "other": [(8, "read", False, "")],
    }


def test_an_address_that_comes_from_nowhere_is_not_followed() -> None:
    read = "ld.param.u64 %rd1, [k_param_0]; ld.u32 %r1, [%rd1];"
    body = f"{read} mov.u32 %r2, %clock; cvt.u64.u32 %rd2, %r2; st.u32 [%rd2], 1;"
    assert _core.uses_of_ptx(module(body))["k"][1:] == ([(0, "both", True, ""), (8, "both", True, "")], False)


def test_a_kernel_whose_text_ends_early_is_left_out() -> None:
    whole = module("ld.param.u64 %rd1, [k_param_0]; st.u32 [%rd1], 1;")
    assert set(_core.uses_of_ptx(whole)) == {"k"}
    assert _core.uses_of_ptx(whole[:-1]) == {}


def test_text_that_is_no_ptx_has_no_kernels() -> None:
    for text in (b"", b"\0", b"\x7fELF\2\1\1", b"{" * 100_000, b'"', b"/*", b".entry", b".entry k(", b"\xff\xfe" * 99):
        assert _core.uses_of_ptx(text) == {}


def test_changed_texts_do_no_harm() -> None:
    random_numbers = random.Random(15)
    texts = [*WRITTEN_TEXTS.values(), *compiled("nvrtc").values()]
    pieces = rb"""{ } ; ( [ , : " %rd1 <99999999> [99999999999] /* .entry .param 0x""".split()
    for _ in range(2000):
        text = bytearray(random_numbers.choice(texts))
        for _ in range(random_numbers.randint(1, 5)):
            place, end = random_numbers.randrange(len(text) + 1), random_numbers.randrange(len(text) + 1)
            change = random_numbers.randrange(4)
            if change == 0:
                text[place : place + 1] = random_numbers.choice(pieces)
            elif change == 1:
                del text[place : place + 30]
            elif change == 2:
                text[place:place] = text[end : end + 300]
            else:
                text[place : place + 1] = random_numbers.randbytes(1)
        for parameters, pointers, _ in _core.uses_of_ptx(bytes(text)).values():
            assert all(offset >= 0 for offset, *_ in pointers)
            assert all(size >= 0 for _, size in parameters)


def chain(length: int) -> bytes:
    """Return a kernel with functions of which each calls the next twice."""
    functions = [f".func f{length} (.param .b64 a) {{ ret; }}"]
    begin = "{ .reg .b64 %rd<3>; .reg .b32 %r<3>; ld.param.u64 %rd1, [a]; ld.u32 %r1, [%rd1];"
    for number in range(length - 1, -1, -1):
        call = f"{{ .param .b64 p; st.param.b64 [p], %rd1; call f{number + 1}, (p); }}"
        functions.append(f".func f{number} (.param .b64 a) {begin} {call * 2} ret; }}")
    call = "ld.param.u64 %rd1, [k_param_0]; { .param .b64 p; st.param.b64 [p], %rd1; call f0, (p); }"
    return "\n".join(functions).encode() + module(call)


def mixture(length: int) -> bytes:
    """Return a kernel with registers that hold sums of many parameters."""
    parameters = ", ".join(f".param .u64 k_param_{number}" for number in range(length))
    lines = [f"ld.param.u64 %rd{number % 9}, [k_param_{number}];" for number in range(length)]
    lines += [f"add.s64 %rd{number % 9}, %rd{number * 5 % 9}, %rd{number * 7 % 9};" for number in range(9 * length)]
    return module(" ".join([*lines, "st.u32 [%rd1], 1;"]), parameters)


@pytest.mark.parametrize(
    ("text", "kind"),
    [(chain(200), "read"), (mixture(500), "write"), (mixture(20), "write")],
    ids=["calls", "many sums", "sums"],
)
def test_texts_that_ask_for_much_work_end(text: bytes, kind: str) -> None:
    begin = time.perf_counter()
    ((_, pointers, _),) = _core.uses_of_ptx(text).values()
    assert time.perf_counter() - begin < 5
    assert {found for _, found, _, _ in pointers} & {kind, "both"}
