"""The elements, parts and attributes of arrays, pointers and tuples in a kernel that is written in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda.emulation.cupyx.jit.types import INT64, Array, Pointer, Pointing, Scalar, Steps, Structure, Tuple
from tcuda.emulation.cupyx.jit.values import Code, Constant, Intrinsic, Items, Scope, Value, code_of

if TYPE_CHECKING:
    from collections.abc import Sequence


def element_of(value: Value, index: Value, mode: str) -> Value:
    """Return the element or the part of ``value`` at ``index``.

    Args:
        value: An array, a pointer, a tuple, or a constant.
        index: The index.
        mode: The rules for the types of numbers.

    Raises:
        IndexError: There are more indices than axes.
        TypeError: ``value`` has no elements, or ``index`` is no index.
    """
    if isinstance(value, (Constant, Items)):
        if not isinstance(index, Constant):
            raise TypeError("A tuple or a constant has only elements at constant indices.")
        return Constant(value.value[index.value]) if isinstance(value, Constant) else value.values[index.value]
    if isinstance(value.type, Tuple):
        return _item_of(value, value.type, index)
    places = [_place(each, mode) for each in items_of(index)]
    if isinstance(value.type, Array):
        return _element_of_array(value, value.type, places)
    if isinstance(value.type, Pointing):
        if len(places) != 1:
            raise IndexError("A pointer takes one index.")
        return Code(f"{value.text}[{places[0]}]", value.type.element)
    raise TypeError(f"{value.text} is not subscriptable.")


def items_of(value: Value) -> Sequence[Value]:
    """Return the items of a tuple, and of another value the value alone."""
    if isinstance(value, Items):
        return value.values
    if isinstance(value, Constant):
        return [*map(Constant, value.value)] if isinstance(value.value, tuple) else [value]
    if isinstance(value.type, Tuple):
        return [_item_of(value, value.type, Constant(place)) for place in range(len(value.type.types))]
    return [value]


def _item_of(value: Code, kind: Tuple, index: Value) -> Code:
    if not isinstance(index, Constant):
        raise TypeError("Tuple is not subscriptable with non-constants.")
    place = range(len(kind.types))[index.value]
    return Code(f"tcuda::jit::get<{place}>({value.text})", kind.types[place])


def _place(index: Value, mode: str) -> str:
    code = code_of(index, mode)
    if isinstance(code.type, Array):
        raise TypeError("Advanced indexing is not supported.")
    if not isinstance(code.type, Scalar):
        raise TypeError("Array indices must be scalar.")
    if code.type.dtype.kind not in "iu":
        raise TypeError("Array indices must be integers.")
    return f"static_cast<ptrdiff_t>({code.text})"


def _element_of_array(array: Code, kind: Array, places: Sequence[str]) -> Code:
    if len(places) > kind.ndim:
        raise IndexError(f"The number of indices is beyond array dim: {kind.ndim}")
    if kind.ndim == 0:
        return Code(f"{array.text}[0]", kind.element)
    if len(places) < kind.ndim:
        listed = ", ".join([array.text, *places])
        return Code(f"tcuda::jit::part({listed})", kind.part(len(places))) if places else array
    if len(places) == 1:
        return Code(f"{array.text}[{places[0]}]", kind.element)
    return Code(f"{array.text}[{{{', '.join(places)}}}]", kind.element)


def attribute_of(value: Value, name: str) -> Value:
    """Return an attribute of ``value``.

    Raises:
        AttributeError: ``value`` has no attribute ``name``.
    """
    if isinstance(value, Constant):
        return Constant(getattr(value.value, name))
    if isinstance(value, Code):
        if isinstance(value.type, Array):
            found = _attribute_of_array(value, value.type, name)
            if found is not None:
                return found
        if isinstance(value.type, Structure) and name in value.type.members:
            return Code(f"{value.text}.{name}", value.type.members[name])
        method = getattr(value.type, "method", None)
        found = None if method is None else method(value, name)
        if found is not None:
            return Constant(found)
    raise AttributeError(f"Unknown attribute: {name}")


def _attribute_of_array(array: Code, kind: Array, name: str) -> Value | None:
    if name == "ndim":
        return Constant(kind.ndim)
    if name == "size":
        return Code(f"static_cast<long long>({array.text}.size())", INT64)
    if name in ("shape", "strides"):
        return Items(
            tuple(Code(f"static_cast<long long>({array.text}.{name}()[{axis}])", INT64) for axis in range(kind.ndim))
        )
    if name in ("begin", "end"):
        return Constant(_end_of_array(array, kind, name))
    return None


def _end_of_array(array: Code, kind: Array, name: str) -> Intrinsic:
    def translate(scope: Scope) -> Value:
        """Return the iterator at the start or behind the end of an array with one axis."""
        if kind.ndim != 1:
            raise NotImplementedError(f"{name}() of an array with {kind.ndim} axes; only one axis is supported.")
        return Code(
            f"tcuda::jit::{name}({array.text})", Pointer(kind.element) if kind.contiguous else Steps(kind.element)
        )

    return Intrinsic(name, translate)
