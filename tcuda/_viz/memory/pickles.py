"""A reader for pickles of plain data, which is safe for files from any source.

Python's own ``pickle`` calls the functions that a pickle names, allocates much memory if a pickle uses a large index in
its memo, and hashes keys that are nested tuples, which can take a very long time. This reader calls no function, and
takes time and memory in proportion to the size of the file.
"""

from __future__ import annotations

import struct
from typing import Any, NoReturn

_MOST_CONTAINERS = 20_000_000
"""The most dicts, lists and tuples in a pickle: enough for 10 million events, each with a stack."""

_LONGEST_LINE = 1 << 20
"""The most bytes of a line in a pickle of protocol 0, which stores texts in lines."""

_LARGEST_NUMBER = 9
"""The most bytes of a whole number: 64 bits and a sign."""

_MOST_DIGITS = 30
"""The most characters of a number in a line: 64 bits and a sign, or all digits of a floating-point number."""

_PLAIN = "a snapshot has only dicts, lists, tuples, texts and numbers"

# The bytes of the length of an item, by the opcode of the item.
_TEXTS = {ord("X"): 4, 0x8D: 8}
_BYTES = {ord("C"): 1, ord("B"): 4, 0x8E: 8}
_WHOLE_NUMBERS = {0x8A: 1, 0x8B: 4}

_FLOAT = struct.Struct(">d")
_TRUTHS = {b"00": False, b"01": True}  # A whole number has no leading zero.
_CONSTANTS = {ord("N"): None, 0x88: True, 0x89: False}
_TUPLES = {ord(")"): 0, 0x85: 1, 0x86: 2, 0x87: 3}
_PLACES_TO_PUT = {ord("q"): 1, ord("r"): 4}
_GLOBAL, _INSTANCE, _STACK_GLOBAL = b"c"[0], b"i"[0], 0x93


def load(data: bytes) -> object:
    """Return the object that the pickle ``data`` holds.

    Args:
        data: A pickle of dicts with texts as keys, lists, tuples, texts, bytes, numbers of at most 64 bits, booleans
            and None, of any protocol.

    Raises:
        ValueError: ``data`` is not a pickle, ends too early, or holds other objects.
    """
    try:
        return _Reader(data).load()
    except (IndexError, KeyError):
        raise ValueError("it is not a pickle, or its end is missing") from None


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0
        self._stack: list[Any] = []
        self._outer: list[list[Any]] = []  # the stacks below the marks
        self._memo: dict[int, Any] = {}
        self._containers = 0

    def load(self) -> object:
        # This loop handles the most frequent opcodes of snapshots without a call, in the order of their frequency: a
        # file of 100 MB has 30 million opcodes.
        data, memo, whole_number = self._data, self._memo, int.from_bytes
        while True:
            position = self._position
            stack = self._stack
            push = stack.append
            while True:
                opcode = data[position]
                if opcode == 0x6A:  # LONG_BINGET
                    push(memo[whole_number(data[position + 1 : position + 5], "little")])
                    position += 5
                elif opcode == 0x68:  # BINGET
                    push(memo[data[position + 1]])
                    position += 2
                elif opcode == 0x94:  # MEMOIZE
                    memo[len(memo)] = stack[-1]
                    position += 1
                elif opcode == 0x4B:  # BININT1
                    push(data[position + 1])
                    position += 2
                elif opcode == 0x8A and data[position + 1] <= _LARGEST_NUMBER:  # LONG1
                    end = position + 2 + data[position + 1]
                    push(whole_number(data[position + 2 : end], "little", signed=True))
                    position = end
                elif opcode == 0x4A:  # BININT
                    push(whole_number(data[position + 1 : position + 5], "little", signed=True))
                    position += 5
                elif opcode == 0x8C:  # SHORT_BINUNICODE
                    end = position + 2 + data[position + 1]
                    push(data[position + 2 : end].decode("utf-8", "surrogatepass"))
                    position = end
                else:
                    break
            self._position = position + 1
            if opcode == 0x2E:  # STOP
                return stack.pop()
            if not (self._read_container(opcode) or self._read_rare(opcode)):
                raise ValueError(f"it has the opcode {opcode:#04x}, and {_PLAIN}")

    def _read_container(self, opcode: int) -> bool:
        if opcode in b"({]dlt" or opcode in _TUPLES:
            self._containers += 1
            if self._containers > _MOST_CONTAINERS:
                raise ValueError(f"it has more than {_MOST_CONTAINERS:,} dicts, lists and tuples")
        if opcode == 0x28:  # MARK
            self._outer.append(self._stack)
            self._stack = []
        elif opcode == 0x7D:  # EMPTY_DICT
            self._stack.append({})
        elif opcode == 0x5D:  # EMPTY_LIST
            self._stack.append([])
        elif opcode == 0x75:  # SETITEMS
            items = self._marked()
            self._fill(self._top(dict), items)
        elif opcode == 0x65:  # APPENDS
            items = self._marked()
            self._top(list).extend(items)
        elif opcode == 0x73:  # SETITEM
            value, key = self._stack.pop(), self._stack.pop()
            self._fill(self._top(dict), [key, value])
        elif opcode == 0x61:  # APPEND
            value = self._stack.pop()
            self._top(list).append(value)
        elif opcode in _TUPLES:
            first = len(self._stack) - _TUPLES[opcode]
            if first < 0:
                raise IndexError
            self._stack[first:] = [tuple(self._stack[first:])]
        elif opcode == 0x74:  # TUPLE
            items = self._marked()
            self._stack.append(tuple(items))
        elif opcode == 0x6C:  # LIST
            items = self._marked()
            self._stack.append(items)
        elif opcode == 0x64:  # DICT
            made: dict[str, Any] = {}
            self._fill(made, self._marked())
            self._stack.append(made)
        else:
            return False
        return True

    def _read_rare(self, opcode: int) -> bool:
        if opcode == 0x4D:  # BININT2
            self._stack.append(self._unsigned(2))
        elif opcode in _WHOLE_NUMBERS:
            self._stack.append(self._whole_number(self._unsigned(_WHOLE_NUMBERS[opcode])))
        elif opcode in _TEXTS:
            text = self._bytes(self._unsigned(_TEXTS[opcode]))
            self._stack.append(text.decode("utf-8", "surrogatepass"))
        elif opcode in _PLACES_TO_PUT:
            self._memo[self._unsigned(_PLACES_TO_PUT[opcode])] = self._stack[-1]
        elif opcode in _CONSTANTS:
            self._stack.append(_CONSTANTS[opcode])
        elif opcode == 0x47:  # BINFLOAT
            self._stack.extend(_FLOAT.unpack(self._bytes(_FLOAT.size)))
        elif opcode in _BYTES:
            self._stack.append(self._bytes(self._unsigned(_BYTES[opcode])))
        elif opcode == 0x80:  # PROTO
            self._bytes(1)
        elif opcode == 0x95:  # FRAME
            self._bytes(8)
        elif opcode == 0x56:  # UNICODE
            self._stack.append(self._line().decode("raw-unicode-escape"))
        elif opcode == 0x49:  # INT
            line = self._line()
            self._stack.append(_TRUTHS[line] if line in _TRUTHS else self._number(line))
        elif opcode == 0x4C:  # LONG
            self._stack.append(self._number(self._line().removesuffix(b"L")))
        elif opcode == 0x46:  # FLOAT
            self._stack.append(float(self._bounded(self._line())))
        elif opcode == 0x70:  # PUT
            self._memo[self._number(self._line())] = self._stack[-1]
        elif opcode == 0x67:  # GET
            self._stack.append(self._memo[self._number(self._line())])
        elif opcode in (_GLOBAL, _INSTANCE, _STACK_GLOBAL):
            self._refuse_code(opcode)
        else:
            return False
        return True

    def _refuse_code(self, opcode: int) -> NoReturn:
        if opcode == _STACK_GLOBAL:
            asked = [str(part)[:100] for part in self._stack[-2:] if isinstance(part, str)]
        else:
            asked = [self._line()[:100].decode(errors="replace") for _ in range(2)]
        raise ValueError(f"it asks for {'.'.join(asked)}, and {_PLAIN}")

    def _bytes(self, size: int) -> bytes:
        start, self._position = self._position, self._position + size
        if self._position > len(self._data):
            raise IndexError
        return self._data[start : self._position]

    def _unsigned(self, size: int) -> int:
        return int.from_bytes(self._bytes(size), "little")

    def _whole_number(self, size: int) -> int:
        if size > _LARGEST_NUMBER:
            raise ValueError(f"it has a whole number of {size:,} bytes; the largest in a snapshot has 64 bits")
        return int.from_bytes(self._bytes(size), "little", signed=True)

    def _line(self) -> bytes:
        end = self._data.find(b"\n", self._position, self._position + _LONGEST_LINE)
        if end < 0:
            raise IndexError
        line = self._bytes(end - self._position)
        self._position += 1
        return line

    def _number(self, digits: bytes) -> int:
        return int(self._bounded(digits))

    @staticmethod
    def _bounded(number: bytes) -> bytes:
        if len(number) > _MOST_DIGITS:
            raise ValueError(f"it has a number of {len(number):,} digits")
        return number

    def _marked(self) -> list[Any]:
        """Remove the items above the last mark and return them."""
        items, self._stack = self._stack, self._outer.pop()
        return items

    def _top(self, kind: type) -> Any:
        top = self._stack[-1]
        if type(top) is not kind:
            raise ValueError(f"it fills a {type(top).__name__} like a {kind.__name__}")
        return top

    @staticmethod
    def _fill(made: dict[str, Any], items: list[Any]) -> None:
        keys, values = items[::2], items[1::2]
        # The hash of a nested tuple could take a very long time, and a file could have numbers with colliding hashes.
        for key in keys:
            if type(key) is not str:
                raise ValueError(f"a dict in it has a key that is a {type(key).__name__}, not a text")
        if len(keys) != len(values):
            raise IndexError
        made.update(zip(keys, values, strict=True))


__all__ = ["load"]
