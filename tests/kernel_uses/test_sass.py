"""What kernels do with memory, by the listings of NVIDIA's disassembler."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from support.sass_truths import TRUTHS, score
from tcuda import _core

DATA = Path(__file__).parents[1] / "data" / "sass"
ARCHITECTURES = (80, 90, 100)
Use = tuple[list[tuple[int, int]], list[tuple[int, str, bool, str]], bool]


def blocks_of(architecture: int) -> dict[str, tuple[list[tuple[int, int]], list[int]]]:
    """Return the parameters of the kernels of a listing."""
    parameters = json.loads((DATA / "parameters.json").read_text())[str(architecture)]
    return {name: ([(offset, size) for offset, size in places], []) for name, places in parameters.items()}


def kernel(*lines: str, architecture: int = 90, parameters: tuple[int, ...] = (8, 8, 8, 8)) -> Use:
    """Return what a kernel with these instructions does; the parameters have these sizes."""
    named = [line if line.endswith(":") else f"/*{16 * at:04x}*/ {line} ;" for at, line in _places(lines)]
    head = [
        f".target sm_{architecture}",
        '.section .text.k,"ax",@progbits',
        '.other k,@"STO_CUDA_ENTRY STV_DEFAULT"',
        "k:",
    ]
    text = "\n".join([*head, *named])
    offsets = [sum(parameters[:i]) for i in range(len(parameters))]
    block = (list(zip(offsets, parameters, strict=True)), [])
    return _core.uses_of_sass(text.encode(), {"k": block})["k"]


def _places(lines: tuple[str, ...]) -> list[tuple[int, str]]:
    places, at = [], 0
    for line in lines:
        places.append((at, line))
        at += not line.endswith(":")
    return places


def uses(*lines: str, architecture: int = 90) -> dict[int, str]:
    """Return what a kernel does with the memory of its parameters; it uses no other memory."""
    _, pointers, complete = kernel(*lines, architecture=architecture)
    assert complete
    return {offset: kind + "?" * possible for offset, kind, possible, _ in pointers}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_listings_of_known_kernels(architecture: int) -> None:
    """At least 95 % of the kernels are right, and none writes memory that it is said not to write."""
    listing = (DATA / f"sm_{architecture}.txt").read_bytes()
    found = score(_core.uses_of_sass(listing, blocks_of(architecture)))
    assert found.wrong == []
    assert len(found.right) >= 50
    assert len(found.right) >= 0.95 * (len(found.right) + len(found.unsure)), found.unsure


@pytest.mark.parametrize("architecture", [75, 80, 86, 89, 90, 100, 120])
def test_compiled_kernels(tmp_path: Path, architecture: int) -> None:
    """The same kernels, compiled here."""
    nvcc, disassembler = shutil.which("nvcc"), _core.find_disassembler()
    if nvcc is None or not disassembler:
        pytest.skip("needs nvcc and nvdisasm")
    cubin = tmp_path / "kernels.cubin"
    command = [nvcc, "-std=c++17", "-cubin", f"-arch=sm_{architecture}", "-o", cubin, DATA / "kernels.cu"]
    if architecture >= 90:
        command.append("-DNEW")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"nvcc compiles nothing for sm_{architecture}: {done.stderr[-300:]}")
    found = score(_core.uses_of_cubin(cubin.read_bytes(), seconds=60))
    assert found.wrong == []
    assert len(found.right) >= 0.95 * len(TRUTHS.keys() & {*found.right, *found.unsure}), found.unsure


def test_registers_that_are_used_again() -> None:
    """A register is what the last write on the way has made of it."""
    assert uses(
        "LDC.64 R2, c[0x0][0x210]",
        "LDG.E R0, desc[UR4][R2.64]",
        "LDC.64 R2, c[0x0][0x218]",
        "STG.E desc[UR4][R2.64], R0",
        "EXIT",
    ) == {0: "read", 8: "write"}


def test_paths_join() -> None:
    """Behind a branch a register may hold the pointer of either path."""
    assert uses(
        "LDC.64 R2, c[0x0][0x210]",
        "@P0 BRA `(.L_1)",
        "LDC.64 R2, c[0x0][0x218]",
        ".L_1:",
        "STG.E desc[UR4][R2.64], R0",
        "EXIT",
    ) == {0: "write?", 8: "write?"}


def test_predicated_instructions() -> None:
    """Instructions under opposite predicates do not mix their registers."""
    lines = (
        "LDC.64 R2, c[0x0][0x210]",
        "LDG.E R0, desc[UR4][R2.64]",
        "@P0 LDC.64 R2, c[0x0][0x218]",
        "@!P0 LDC.64 R2, c[0x0][0x220]",
        "@P0 LDG.E R0, desc[UR4][R2.64]",
        "@!P0 STG.E desc[UR4][R2.64], R0",
        "EXIT",
    )
    assert uses(*lines) == {0: "read", 8: "read", 16: "write"}
    # Between them the predicate gets a new value.
    changed = [*lines[:4], "ISETP.NE.AND P0, PT, R9, RZ, PT", *lines[4:]]
    assert uses(*changed) == {0: "read", 8: "both?", 16: "both?"}


def test_spilled_pointers() -> None:
    """A pointer comes back from the stack."""
    assert uses(
        "LDC R1, c[0x0][0x28]",
        "IADD3 R1, R1, -0x10, RZ",
        "LDC.64 R2, c[0x0][0x210]",
        "LDC.64 R4, c[0x0][0x218]",
        "STL.64 [R1+0x8], R2",
        "STL.64 [R1], R4",
        "LDL.64 R6, [R1+0x8]",
        "STG.E desc[UR4][R6.64], R0",
        "LDL.64 R6, [R1]",
        "LDG.E R0, desc[UR4][R6.64]",
        "EXIT",
    ) == {0: "write", 8: "read"}


def test_calls_do_not_mix() -> None:
    """Two calls of a function give it two pointers."""
    assert uses(
        "LDC.64 R2, c[0x0][0x210]",
        "MOV R8, 0x30",
        "CALL.REL.NOINC `($k$get)",
        "LDC.64 R4, c[0x0][0x218]",
        "STG.E desc[UR4][R4.64], R0",
        "LDC.64 R2, c[0x0][0x220]",
        "MOV R8, 0x80",
        "CALL.REL.NOINC `($k$get)",
        "EXIT",
        "$k$get:",
        "LDG.E R0, desc[UR4][R2.64]",
        "RET.REL.NODEC R8 `(k)",
    ) == {0: "read", 8: "write", 16: "read"}


def test_variables_of_the_module() -> None:
    """The memory of a module belongs to no parameter."""
    store = ("STG.E desc[UR4][R2.64], R0", "EXIT")
    assert uses("LDC.64 R2, c[0x4][0x8]", *store) == {}
    assert uses("MOV R2, 32@lo(counter)", "MOV R3, 32@hi(counter)", *store) == {}
    assert not kernel("MOV R2, 32@lo(k)", "MOV R3, 32@hi(k)", *store)[2]


def test_pointers_to_the_stack() -> None:
    """A function that gets the address of a variable changes the variable."""
    assert uses(
        "LDC R1, c[0x0][0x28]",
        "IADD3 R1, R1, -0x10, RZ",
        "LDC.64 R2, c[0x0][0x210]",
        "STL.64 [R1], R2",
        "STL.64 [R1+0x8], R2",
        "LDC R6, c[0x0][0x20]",
        "LDC R7, c[0x0][0x24]",
        "IADD3 R6, P0, R1, R6, RZ",
        "IADD3.X R7, RZ, R7, RZ, P0, !PT",
        "LDC.64 R4, c[0x0][0x218]",
        "ST.E.64 desc[UR4][R6.64+0x8], R4",
        "LDL.64 R8, [R1]",
        "STG.E desc[UR4][R8.64], R0",
        "LDL.64 R8, [R1+0x8]",
        "LDG.E R0, desc[UR4][R8.64]",
        "EXIT",
    ) == {0: "write", 8: "read"}


def test_jumps_that_are_written_as_calls() -> None:
    """A call of a place inside the function does not come back."""
    assert uses(
        "LDC.64 R2, c[0x0][0x210]",
        ".L_0:",
        "@P0 CALL.REL.NOINC `(.L_1)",
        "BRA `(.L_0)",
        ".L_1:",
        "@P1 CALL.REL.NOINC `(.L_0)",
        "STG.E desc[UR4][R2.64], R0",
        "EXIT",
    ) == {0: "write"}


def test_barriers() -> None:
    """Threads go on behind the barrier that they have waited for, and at no other."""
    assert uses(
        "LDC.64 R2, c[0x0][0x210]",
        "BSSY B0, `(.L_1)",
        "LDG.E R0, desc[UR4][R2.64]",
        "BSYNC B0",
        ".L_1:",
        "LDC.64 R2, c[0x0][0x218]",
        "BSSY B0, `(.L_2)",
        "STG.E desc[UR4][R2.64], R0",
        "BSYNC B0",
        ".L_2:",
        "EXIT",
    ) == {0: "read", 8: "write"}


def test_indices_of_parameters() -> None:
    """An index leads to any place of a structure, and a known one to its place."""
    lines = ("LDC.64 R2, c[0x0][R0+0x218]", "STG.E desc[UR4][R2.64], R0", "EXIT")
    both = [(8, "write", True, ""), (16, "write", True, "")]
    assert kernel(*lines, parameters=(8, 16, 8))[1:] == (both, True)
    all_words = [(offset, "write", True, "") for offset in (0, 8, 16)]
    assert kernel(*lines, parameters=(8, 8, 8))[1:] == (all_words, True)
    assert kernel("MOV R0, 0x8", *lines, parameters=(8, 16, 8))[1:] == ([(16, "write", False, "")], True)


def test_marked_pointers() -> None:
    """Where the compiler marks pointers, the other parameters are offsets."""
    code = ("IADD3 R4, P0, R2, R8, RZ", "STG.E desc[UR4][R4.64], R0", "EXIT")
    lines = ("LDC.64 R2, c[0x0][0x380]", "LDC.64 R8, c[0x0][0x388]", *code)
    text = "\n".join(f"/*{16 * i:04x}*/ {line} ;" for i, line in enumerate(lines))
    head = '.target sm_100\n.section .text.k\n.other k,@"STO_CUDA_ENTRY STV_DEFAULT"\nk:\n'
    for pointers, expected in (
        ([], [(0, "write", True, ""), (8, "write", True, "")]),
        ([0], [(0, "write", False, "")]),
        ([8], [(8, "write", False, "")]),
        ([0, 8], [(0, "write", True, ""), (8, "write", True, "")]),
    ):
        found = _core.uses_of_sass((head + text).encode(), {"k": ([(0, 8), (8, 8)], pointers)})
        assert found["k"][1:] == (expected, True)


@pytest.mark.parametrize(
    ("instruction", "kind"),
    [
        ("LDG.E.128.CONSTANT R8, [R2.64+0x10]", "read"),
        ("LD.E R8, desc[UR4][R2.64]", "read"),
        ("LDGSTS.E.BYPASS.128 [R9], desc[UR6][R2.64]", "read"),
        ("LDG.E.ENL2.256 R8, R12, desc[UR4][R2.64]", "read"),
        ("STG.E.U8 [R2.64], R8", "write"),
        ("ST.E.64 desc[UR4][R2.64+-0x8], R8", "write"),
        ("ATOMG.E.CAS.STRONG.GPU PT, R8, desc[UR4][R2.64], R4, R5", "both"),
        ("ATOM.E.ADD R8, [R2.64], R5", "both"),
        ("RED.E.ADD.F32.FTZ.RN.STRONG.GPU desc[UR4][R2.64], R8", "both"),
        ("REDG.E.ADD.STRONG.GPU desc[UR4][R2.64], R8", "both"),
        ("STG.E [R8.U32+UR8], R9", "write"),
    ],
)
def test_kinds_of_instructions(instruction: str, kind: str) -> None:
    """Loads read, stores write, and atomic operations do both."""
    first = ("LDC.64 R2, c[0x0][0x210]", "ULDC.64 UR8, c[0x0][0x210]")
    assert uses(*first, instruction, "EXIT") == {0: kind}


@pytest.mark.parametrize(
    ("architecture", "base"),
    [(70, 0x160), (75, 0x160), (80, 0x160), (89, 0x160), (90, 0x210), (100, 0x380), (120, 0x380)],
)
def test_where_parameters_begin(architecture: int, base: int) -> None:
    """The place of the parameters depends on the architecture."""
    lines = (f"MOV R2, c[0x0][{base + 8:#x}]", f"MOV R3, c[0x0][{base + 12:#x}]", "STG.E [R2.64], R0", "EXIT")
    assert uses(*lines, architecture=architecture) == {8: "write"}


@pytest.mark.parametrize(
    "lines",
    [
        ("LDC.64 R4, c[0x0][0x210]", "LDG.E.64 R2, desc[UR4][R4.64]", "STG.E desc[UR4][R2.64], R0", "EXIT"),
        ("LDC.64 R2, c[0x3][0x0]", "STG.E desc[UR4][R2.64], R0", "EXIT"),
        ("STG.E desc[UR4][R2.64], R0", "EXIT"),
        ("LDC.64 R2, c[0x0][0x210]", "BRX R4 -0x150"),
        ("LDC.64 R2, c[0x0][0x210]", "CALL.REL.NOINC R8 `(k)", "EXIT"),
        ("CALL.ABS.NOINC R8", "EXIT"),
        ("BRA `(.L_nowhere)",),
        ("LDC.64 R2, c[0x0][0x210]",),
        ("NEWLD.E R4, desc[UR4][R2.64]", "EXIT"),
        ("SUST.D.BA.1D.STRONG.SM.TRAP [R4], R5, UR4", "EXIT"),
        ("TLD.LZ RZ, R5, R7, UR4, 0x0, 1D, 0x1", "EXIT"),
        ("@@ STG", "EXIT"),
        ("$again:", "CALL.REL.NOINC `($again)", "EXIT"),
    ],
)
def test_kernels_that_may_use_any_memory(lines: tuple[str, ...]) -> None:
    """A kernel is not complete where an address, a branch or an instruction is unknown."""
    assert not kernel(*lines)[2]


def test_unknown_addresses_void_the_pointers() -> None:
    """An address without an origin may be that of a parameter that the kernel is seen to read only."""
    first = ("LDC.64 R2, c[0x0][0x210]", "LDG.E R0, desc[UR4][R2.64]")
    assert kernel(*first, "EXIT")[1:] == ([(0, "read", False, "")], True)
    assert kernel(*first, "POPC R6, R2", "STG.E desc[UR4][R6.64], R0", "EXIT")[1:] == ([], False)


def test_old_architectures() -> None:
    """The code of architectures before sm_70 is not read."""
    assert kernel("EXIT", architecture=60)[1:] == ([], False)


def test_other_text() -> None:
    """Text of another kind has no kernels."""
    for text in (b"", b"\n", b"hello", b"\xff\x00" * 100, b".section .text.k\n" * 3, b"/*0000*/ EXIT ;"):
        assert _core.uses_of_sass(text) == {}


@pytest.mark.parametrize("seed", range(8))
def test_damaged_listings(seed: int) -> None:
    """A damaged listing ends in some result, in bounded time."""
    chance = random.Random(seed)
    text = (DATA / f"sm_{chance.choice(ARCHITECTURES)}.txt").read_text()
    sections = text.split("//-")
    for _ in range(40):
        lines = [line for part in (sections[0], *chance.sample(sections[1:], 2)) for line in part.splitlines()]
        for _ in range(chance.randrange(1, 12)):
            at = chance.randrange(len(lines))
            line = lines[at]
            place = chance.randrange(len(line) + 1)
            lines[at] = chance.choice(
                [
                    line[:place],
                    line[:place] + chance.choice("RU[]c.,;@!`(){}:0x9fP-+\x00") + line[place + 1 :],
                    chance.choice(lines),
                    "",
                    line.replace("R2", "R254").replace("[R", "[UR"),
                    line + line,
                ]
            )
        for _, pointers, _ in _core.uses_of_sass("\n".join(lines).encode(), blocks_of(90)).values():
            assert all(offset % 8 == 0 and kind != "none" for offset, kind, _, _ in pointers)


def test_large_kernels_end() -> None:
    """A kernel with a great many branches does not take long."""
    lines = []
    for i in range(4000):
        lines += [f".L_{i}:", f"@P{i % 6} BRA `(.L_{i * 7919 % 4000})", f"IADD3 R{i % 200}, R{i * 31 % 200}, R2, RZ"]
    kernel(*lines, "EXIT")
