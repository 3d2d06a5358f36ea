"""Algorithms of Thrust for kernels in Python (``cupyx.jit.thrust``). Each thread runs an algorithm alone."""

from __future__ import annotations

from tcuda.emulation.cupyx.jit.types import BOOL, INT32, VOID, Generated, Pointing, Scalar, Structure, Tuple, Type
from tcuda.emulation.cupyx.jit.values import Code, Intrinsic, Scope, Value, code_of

_HEADER = "tcuda/jit_algorithms.h"
_POLICY = Structure("tcuda::jit::Policy", {})

device = Code("device", _POLICY)
host = Code("host", _POLICY)
seq = Code("seq", _POLICY)

_ALGORITHMS: dict[str, tuple[str, str]] = {
    "adjacent_difference": ("first last result", "result"),
    "binary_search": ("first last value", "bool"),
    "copy": ("first last result", "result"),
    "count": ("first last value", "int"),
    "equal": ("first1 last1 first2", "bool"),
    "equal_range": ("first last value", "first first"),
    "exclusive_scan": ("first last result [init]", "result"),
    "exclusive_scan_by_key": ("first1 last1 first2 result [init]", "result"),
    "fill": ("first last value", ""),
    "find": ("first last value", "first"),
    "gather": ("map_first map_last input_first result", "result"),
    "inclusive_scan": ("first last result", "result"),
    "inclusive_scan_by_key": ("first1 last1 first2 result", "result"),
    "inner_product": ("first1 last1 first2 init", "init"),
    "is_sorted": ("first last", "bool"),
    "is_sorted_until": ("first last", "first"),
    "lower_bound": ("first last value", "first"),
    "mismatch": ("first1 last1 first2", "first1 first2"),
    "reduce": ("first last [init]", "value"),
    "reduce_by_key": ("keys_first keys_last values_first keys_output values_output", "keys_output values_output"),
    "remove": ("first last value", "first"),
    "remove_copy": ("first last result value", "result"),
    "replace": ("first last old_value new_value", ""),
    "replace_copy": ("first last result old_value new_value", "result"),
    "reverse": ("first last", ""),
    "reverse_copy": ("first last result", "result"),
    "scatter": ("first last map result", ""),
    "sequence": ("first last [init] [step]", ""),
    "set_difference": ("first1 last1 first2 last2 result", "result"),
    "set_difference_by_key": (
        "keys_first1 keys_last1 keys_first2 keys_last2 values_first1 values_first2 keys_result values_result",
        "keys_result values_result",
    ),
    "set_intersection": ("first1 last1 first2 last2 result", "result"),
    "set_intersection_by_key": (
        "keys_first1 keys_last1 keys_first2 keys_last2 values_first1 keys_result values_result",
        "keys_result values_result",
    ),
    "set_symmetric_difference": ("first1 last1 first2 last2 result", "result"),
    "set_symmetric_difference_by_key": (
        "keys_first1 keys_last1 keys_first2 keys_last2 values_first1 values_first2 keys_result values_result",
        "keys_result values_result",
    ),
    "set_union": ("first1 last1 first2 last2 result", "result"),
    "set_union_by_key": (
        "keys_first1 keys_last1 keys_first2 keys_last2 values_first1 values_first2 keys_result values_result",
        "keys_result values_result",
    ),
    "sort": ("first last", ""),
    "sort_by_key": ("keys_first keys_last values_first", ""),
    "stable_sort": ("first last", ""),
    "stable_sort_by_key": ("keys_first keys_last values_first", ""),
    "swap_ranges": ("first1 last1 first2", "first2"),
    "unique": ("first last", "first"),
    "unique_by_key": ("keys_first keys_last values_first", "keys_first values_first"),
    "upper_bound": ("first last value", "first"),
}
"""The parameters of each algorithm after the policy, and the result: a type, or parameters with the same types."""

_SEARCHES = ("binary_search", "lower_bound", "upper_bound")
"""Algorithms that also take many values, and then an iterator for the results."""

_VALUES = frozenset(["init", "new_value", "old_value", "step", "value"])
"""Parameters that are no iterators."""


def _algorithm(name: str) -> Intrinsic:
    listed, result = _ALGORITHMS[name]

    def translate(scope: Scope, exec_policy: Value, *args: Value) -> Value:
        if not isinstance(exec_policy, Code) or exec_policy.type != _POLICY:
            raise TypeError(f"The first argument of thrust.{name}() must be jit.thrust.seq or jit.thrust.device.")
        scope.include(_HEADER)
        codes = [code_of(arg, scope.mode) for arg in args]
        many = name in _SEARCHES and len(codes) == 5
        names = (
            ["first", "last", "value_first", "value_last", "result"]
            if many
            else listed.replace("[", "").replace("]", "").split()
        )
        least = len(names) if many else len(listed.split()) - listed.count("[")
        if not least <= len(codes) <= len(names):
            raise NotImplementedError(
                f"thrust.{name}() takes a policy and {' '.join(names[:least])} on emulated devices"
                f"{', ' + ', '.join(names[least:]) + ' may follow' if names[least:] else ''}. {len(codes)} arguments "
                "follow the policy. Operations of the program's own are not supported."
            )
        types = dict(zip(names, (code.type for code in codes), strict=False))
        for each, kind in types.items():
            if each not in _VALUES and not isinstance(kind, Pointing):
                raise TypeError(f"`{each}` of thrust.{name}() must be of pointer type: `{kind}`")
            if each.replace("last", "first") in types and types[each.replace("last", "first")] != kind:
                raise TypeError(f"The begin and the end of thrust.{name}() must be of the same type.")
        passed = ", ".join(code.text for code in codes)
        return Code(f"tcuda::jit::{name}({passed})", _result("result" if many else result, types))

    return Intrinsic(f"thrust.{name}", translate, f"Call ``thrust::{name}`` with a policy and {listed}.")


def _result(result: str, types: dict[str, Type]) -> Type:
    if result == "value":  # the type of the initial value, or of the elements
        return types["init"] if "init" in types else types["first"].element  # type: ignore[attr-defined]
    known: dict[str, Type] = {"": VOID, "bool": BOOL, "int": INT32}
    if result in known:
        return known[result]
    found = tuple(types[each] for each in result.split())
    return found[0] if len(found) == 1 else Tuple(found)


def _generated(name: str, kind: str) -> Intrinsic:
    def translate(scope: Scope, x: Value, i: Value | None = None) -> Value:
        scope.include(_HEADER)
        codes = [code_of(value, scope.mode) for value in (x, i) if value is not None]
        if not isinstance(codes[0].type, Scalar):
            raise TypeError(f"thrust.{name}() takes a number.")
        made = Generated(kind, codes[0].type)
        return Code(f"{made}{{{', '.join(code.text for code in codes)}}}", made)

    return Intrinsic(f"thrust.{name}", translate, f"Call ``thrust::{name}``.")


make_constant_iterator = _generated("make_constant_iterator", "Constants")
make_counting_iterator = _generated("make_counting_iterator", "Counting")

globals().update({name: _algorithm(name) for name in _ALGORITHMS})

__all__ = [*_ALGORITHMS, "device", "host", "make_constant_iterator", "make_counting_iterator", "seq"]


def __dir__() -> list[str]:
    return sorted(__all__)
