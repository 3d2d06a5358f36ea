"""Random kernels in PTX, and an interpreter that sees which memory they use."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import random

_POINTERS, _SCALARS, _REGISTERS, _SLOTS = 4, 2, 6, 4
_MASK = (1 << 64) - 1
# No sum, difference or multiple of two of these addresses is near another.
_BASES = [0x1357 << 32, 0x2F9B << 32, 0x7C41 << 32, 0x5AD3 << 32]
_BUFFER = 1 << 30

BUFFERS = [(base, _BUFFER) for base in _BASES]
"""The addresses and the sizes of the memory behind the pointers of a program."""
ARGUMENTS = [base + _BUFFER // 2 for base in _BASES] + [16] * _SCALARS
"""The parameters of a program: the pointers, and numbers."""


class Step(NamedTuple):
    """An instruction: what it does, and numbers of registers, offsets or functions."""

    name: str
    to: int = 0
    first: int = 0
    second: int = 0


_TEXTS = {
    "parameter": "ld.param.u64 %r{to}, [k_param_{first}];",
    "move": "mov.u64 %r{to}, %r{first};",
    "move_by": "add.s64 %r{to}, %r{first}, {second};",
    "add": "add.s64 %r{to}, %r{first}, %r{second};",
    "subtract": "sub.s64 %r{to}, %r{first}, %r{second};",
    "select": "selp.b64 %r{to}, %r{first}, %r{second}, %p{second};",
    "align": "and.b64 %r{to}, %r{first}, -8;",
    "double": "shl.b64 %r{to}, %r{first}, 1;",
    "halves": "mov.b64 {{%h0, %h1}}, %r{first}; mov.b64 %r{to}, {{%h0, %h1}};",
    "parts": "shr.u64 %t0, %r{first}, 32; shl.b64 %t0, %t0, 32; and.b64 %t1, %r{first}, 0xFFFFFFFF; "
    "or.b64 %r{to}, %t0, %t1;",
    "xor_twice": "xor.b64 %t0, %r{first}, %r{second}; xor.b64 %r{to}, %t0, %r{second};",
    "put": "st.local.u64 [stack+{to}], %r{first};",
    "get": "ld.local.u64 %r{to}, [stack+{first}];",
    "place": "mov.u64 %t0, stack; cvta.local.u64 %t0, %t0; add.s64 %r{to}, %t0, {first};",
    "share": "st.shared.u64 [tile+{to}], %r{first};",
    "take": "ld.shared.u64 %r{to}, [tile+{first}];",
    "read": "ld.u32 %h2, [%r{first}];",
    "write": "st.u32 [%r{first}], 1;",
    "update": "atom.add.u32 %h2, [%r{first}], 1;",
    "store": "st.u64 [%r{to}], %r{first};",
    "load": "ld.u64 %r{to}, [%r{first}];",
    "call": "{{ .param .b64 a; .param .b64 b; .param .b64 c; st.param.b64 [a], %r{first}; "
    "st.param.b64 [b], %r{second}; call (c), f{depth}, (a, b); ld.param.b64 %r{to}, [c]; }}",
}
_OFFSETS = {"put": ("to",), "get": ("first",), "place": ("first",), "share": ("to",), "take": ("first",)}


class Program(NamedTuple):
    """A kernel with functions of which each calls the next."""

    bodies: list[list[Step]]  # of the kernel and of each function

    def text(self) -> bytes:
        """Return the kernel as PTX."""
        registers = ".reg .b64 %r<9>, %t<3>; .reg .b32 %h<4>; .reg .pred %p<9>; .local .align 8 .b8 stack[64];"
        functions = [
            f".func (.param .b64 c) f{depth} (.param .b64 a, .param .b64 b) {{ {registers} ld.param.u64 %r0, [a]; "
            f"ld.param.u64 %r1, [b]; {self._lines(depth)} st.param.b64 [c], %r0; ret; }}"
            for depth in range(len(self.bodies) - 1, 0, -1)
        ]
        parameters = ", ".join(f".param .u64 k_param_{number}" for number in range(_POINTERS + _SCALARS))
        entry = f".visible .entry k({parameters}) {{ {registers} {self._lines(0)} ret; }}"
        head = ".version 8.0\n.target sm_90\n.address_size 64\n.shared .align 8 .b8 tile[64];\n"
        return (head + "\n".join([*functions, entry])).encode()

    def _lines(self, depth: int) -> str:
        lines = []
        for number, step in enumerate(self.bodies[depth]):
            if step.name in ("skip", "repeat"):
                lines.append(f"@%p{step.to} bra L{step.first};")
            else:
                lines.append(_TEXTS[step.name].format(**step._asdict(), depth=depth + 1))
            lines.append(f"L{number + 1}:")
        return "L0:\n" + "\n".join(lines)


def random_program(numbers: random.Random) -> Program:
    """Return some program."""

    def step(depth: int, depths: int, length: int, place: int) -> Step:
        name = numbers.choice([*_TEXTS, "parameter", "skip", "repeat", "write", "read"])
        if (name == "parameter" and depth > 0) or (name == "call" and depth + 1 == depths):
            name = "move"
        if name == "skip":
            return Step(name, numbers.randrange(_REGISTERS), numbers.randint(place + 1, length))
        if name == "repeat":
            return Step(name, numbers.randrange(_REGISTERS), numbers.randint(0, place))
        to, first, second = (numbers.randrange(_REGISTERS) for _ in range(3))
        if name == "parameter":
            first = numbers.randrange(_POINTERS + _SCALARS)
        if name == "move_by":
            second = numbers.choice([-16, -8, 4, 8, 16])
        offsets = {field: 8 * numbers.randrange(_SLOTS) for field in _OFFSETS.get(name, ())}
        return Step(name, to, first, second)._replace(**offsets)

    depths = numbers.randint(1, 3)
    bodies = []
    for depth in range(depths):
        length = numbers.randint(5, 25)
        begin = [Step("parameter", number, number % 5) for number in range(_REGISTERS)] if depth == 0 else []
        bodies.append(begin + [step(depth, depths, length + len(begin), len(begin) + place) for place in range(length)])
    return Program(bodies)


class Run:
    """One run of a program, with random conditions.

    Attributes:
        uses: For each pointer 1 if the memory was read, 2 if the memory was written, 3 for both.
        is_valid: Whether all addresses were those of memory.
        is_finished: Whether the run has come to its end.
    """

    def __init__(self, program: Program, numbers: random.Random) -> None:
        self._program, self._numbers = program, numbers
        self._memory: dict[int, int] = {}
        self._steps = 200
        self.uses = [0] * _POINTERS
        self.is_valid = True
        self._frame(0, [0] * _REGISTERS)
        self.is_finished = self.is_valid and self._steps > 0

    def _use(self, address: int, kind: int) -> bool:
        """Note a use. Returns whether there is memory at the address."""
        for number, base in enumerate(_BASES):
            if base <= address < base + _BUFFER:
                self.uses[number] |= kind
                return True
        return address >> 50 == 1 and address & 0xFFF < 64

    def _frame(self, depth: int, registers: list[int]) -> int:
        stack, tile = (1 << 50) + 4096 * depth, 1 << 51
        body, at = self._program.bodies[depth], 0
        memory = self._memory
        while at < len(body) and self._steps > 0:
            self._steps -= 1
            name, to, first, second = body[at]
            at += 1
            of = registers[first] if first < _REGISTERS else 0
            if name in ("skip", "repeat"):
                at = first if self._numbers.random() < 0.5 else at
            elif name == "parameter":
                registers[to] = _BASES[first] + _BUFFER // 2 if first < _POINTERS else 8 * self._numbers.randrange(9)
            elif name in ("move", "halves", "parts", "xor_twice"):
                registers[to] = of
            elif name == "align":
                registers[to] = of & -8
            elif name == "move_by":
                registers[to] = of + second & _MASK
            elif name == "double":
                registers[to] = of * 2 & _MASK
            elif name in ("add", "subtract"):
                registers[to] = of + registers[second] * (1 if name == "add" else -1) & _MASK
            elif name == "select":
                registers[to] = self._numbers.choice([of, registers[second]])
            elif name in ("put", "share"):
                memory[(stack if name == "put" else tile) + to] = of
            elif name in ("get", "take"):
                registers[to] = memory.get((stack if name == "get" else tile) + first, 0)
            elif name == "place":
                registers[to] = stack + first
            elif name == "call":
                registers[to] = self._frame(depth + 1, [of, registers[second], 0, 0, 0, 0])
            elif name in ("read", "write", "update"):
                self._stop_unless(self._use(of, {"read": 1, "write": 2, "update": 3}[name]))
                if name != "read":
                    memory.pop(of & -8, None)
            elif name == "store":
                self._stop_unless(self._use(registers[to], 2))
                memory[registers[to]] = of
            elif name == "load":
                self._stop_unless(self._use(of, 1))
                registers[to] = memory.get(of, 0)
        return registers[0]

    def _stop_unless(self, is_valid: bool) -> None:
        if not is_valid:
            self.is_valid, self._steps = False, 0
