"""Nested containers: how to split a container into its leaves, and how to build the container again.

A container is a tuple, a list, a dict or a named tuple. An object of any other type, such as a subclass of dict, is a
leaf, because this module does not know how to make another object of that type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence


class Structure(NamedTuple):
    """The structure of nested containers, without their leaves.

    Attributes:
        kind: The type of the outermost container; None for a leaf.
        keys: The keys of a dict in their order, or the names of the fields of a named tuple.
        parts: The structures of the elements of the container.
    """

    kind: type | None
    keys: tuple[Hashable, ...] = ()
    parts: tuple[Structure, ...] = ()


_LEAF = Structure(None)


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """Return the leaves of ``tree`` in their order, and the structure of ``tree``."""
    leaves: list[Any] = []
    return leaves, _gather(tree, leaves)


def flatten_as(structure: Structure, tree: Any) -> list[Any] | None:
    """Return the leaves of ``tree`` in the order of ``structure``; None if ``tree`` does not have that structure.

    An element in the place of a leaf is a leaf, even if the element is a container. The keys of dicts may be in any
    order.
    """
    leaves: list[Any] = []
    return leaves if _gather_as(structure, tree, leaves) else None


def unflatten(structure: Structure, leaves: Iterable[Any]) -> Any:
    """Return new containers of ``structure`` around ``leaves``."""
    return _rebuild(structure, iter(leaves))


def describe(structure: Structure, names: Iterable[str]) -> str:
    """Return a text that shows ``structure`` with ``names`` for its leaves, such as ``(array, {'x': array})``."""
    return _describe(structure, iter(names))


def paths(structure: Structure) -> list[str]:
    """Return for each leaf the expression that leads from the whole to the leaf, such as ``[1]['x']``."""
    if structure.kind is None:
        return [""]
    return [step + rest for step, part in zip(_steps(structure), structure.parts, strict=True) for rest in paths(part)]


def _parts(tree: Any) -> tuple[tuple[Hashable, ...], Sequence[Any]] | None:
    """Return the keys and the elements of a container; None if ``tree`` is a leaf."""
    kind = type(tree)
    if kind is tuple or kind is list:
        return (), tree
    if kind is dict:
        return tuple(tree), tuple(tree.values())
    if _is_named_tuple(kind):
        return kind._fields, tree
    return None


def _is_named_tuple(kind: type) -> bool:
    return issubclass(kind, tuple) and isinstance(getattr(kind, "_fields", None), tuple)


def _gather(tree: Any, leaves: list[Any]) -> Structure:
    found = _parts(tree)
    if found is None:
        leaves.append(tree)
        return _LEAF
    keys, contents = found
    return Structure(type(tree), keys, tuple([_gather(part, leaves) for part in contents]))


def _gather_as(structure: Structure, tree: Any, leaves: list[Any]) -> bool:
    if structure.kind is None:
        leaves.append(tree)
        return True
    contents: Any = tree
    if type(tree) is not structure.kind or len(contents) != len(structure.parts):
        return False
    if structure.kind is dict:
        if any(key not in contents for key in structure.keys):
            return False
        contents = [contents[key] for key in structure.keys]
    return all(_gather_as(part, content, leaves) for part, content in zip(structure.parts, contents, strict=True))


def _rebuild(structure: Structure, leaves: Iterator[Any]) -> Any:
    kind = structure.kind
    if kind is None:
        return next(leaves)
    contents = [_rebuild(part, leaves) for part in structure.parts]
    if kind is dict:
        return dict(zip(structure.keys, contents, strict=True))
    make = getattr(kind, "_make", kind)  # the constructor of a named tuple takes its elements one by one
    return make(contents)


def _describe(structure: Structure, names: Iterator[str]) -> str:
    kind = structure.kind
    if kind is None:
        return next(names)
    contents = [_describe(part, names) for part in structure.parts]
    if kind is list:
        return f"[{', '.join(contents)}]"
    if kind is dict:
        return f"{{{', '.join(f'{key!r}: {part}' for key, part in zip(structure.keys, contents, strict=True))}}}"
    if kind is tuple:
        return f"({contents[0]},)" if len(contents) == 1 else f"({', '.join(contents)})"
    return f"{kind.__name__}({', '.join(f'{key}={part}' for key, part in zip(structure.keys, contents, strict=True))})"


def _steps(structure: Structure) -> list[str]:
    if structure.kind is dict:
        return [f"[{key!r}]" for key in structure.keys]
    if structure.keys:
        return [f".{key}" for key in structure.keys]
    return [f"[{index}]" for index in range(len(structure.parts))]
