"""Subclasses of the array: how programs make them, and what their results are."""

from __future__ import annotations

from typing import Any

import pytest

from tcuda import xp


class Mesh(xp.ndarray):  # type: ignore[misc, name-defined]
    """An array of a solver, which makes and fills itself."""

    def __new__(cls, shape: Any, val: float = 0.0) -> Any:
        obj = xp.ndarray.__new__(cls, shape=shape, dtype="f8")
        obj.fill(val)
        return obj


class Noted(xp.ndarray):  # type: ignore[misc, name-defined]
    """A view with a note, which results inherit."""

    def __new__(cls, array: Any, note: Any = None) -> Any:
        view = array.view(type=cls)
        view.note = note
        return view

    def __array_finalize__(self, obj: Any) -> None:
        self.note = getattr(obj, "note", "new" if obj is None else "of a plain array")


def test_new_of_the_array_makes_an_instance_of_the_subclass() -> None:
    mesh = Mesh((2, 3), val=2.5)
    assert type(mesh) is Mesh
    assert mesh.tolist() == [[2.5] * 3] * 2
    assert mesh.dtype == "f8"


def test_results_are_of_the_subclass_and_finalize_sets_their_attributes() -> None:
    noted = Noted(xp.arange(6.0).reshape(2, 3), note=1)
    for result in (noted[1:], noted[0], noted[:, None], noted.T, noted.reshape(6), noted + 1, 2 * noted, -noted):
        assert type(result) is Noted
        assert result.note == 1
    assert Noted(xp.zeros(2)).copy().__class__ is xp.ndarray  # as in CuPy
    assert xp.zeros(2).view(Noted).note == "of a plain array"
    assert xp.ndarray.__new__(Noted, 2).note == "new"


def test_the_first_operand_of_a_subclass_decides() -> None:
    class Other(xp.ndarray):  # type: ignore[misc, name-defined]
        __array_priority__ = 1000

    noted, other = Noted(xp.ones(2), note=1), xp.ones(2).view(Other)
    assert type(noted + other) is Noted
    assert type(other + noted) is Other
    assert type(xp.ones(2) + noted) is Noted


def test_an_error_of_finalize_reaches_the_program() -> None:
    class Broken(xp.ndarray):  # type: ignore[misc, name-defined]
        def __array_finalize__(self, obj: Any) -> None:
            if obj is not None:
                raise ZeroDivisionError

    broken = Broken(2)
    with pytest.raises(ZeroDivisionError):
        broken[1:]
    with pytest.raises(ZeroDivisionError):
        broken + 1


def test_init_takes_any_arguments_and_changes_nothing() -> None:
    class Quiet(xp.ndarray):  # type: ignore[misc, name-defined]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self.ready = True

    class Tagged(xp.ndarray):  # type: ignore[misc, name-defined]
        def __new__(cls, shape: Any, tag: str) -> Any:
            return super().__new__(cls, shape, dtype="f4")

        def __init__(self, shape: Any, tag: str) -> None:
            super().__init__(shape, tag)
            self.tag = tag

    assert Quiet((2, 2), dtype="f4").shape == (2, 2)
    tagged = Tagged((2,), "t")
    assert (tagged.dtype, tagged.tag) == ("f4", "t")
    x = xp.ones(3)
    x.__init__((7,), "i4")
    assert x.tolist() == [1.0, 1.0, 1.0]


def test_an_array_without_init_is_an_array() -> None:
    assert xp.ndarray.__new__(xp.ndarray, (3,), "f4").shape == (3,)
    with pytest.raises(TypeError, match="shape|takes at least 1 positional argument"):
        xp.ndarray.__new__(xp.ndarray)


def test_functions_call_the_methods_of_a_subclass() -> None:
    calls: list[str] = []

    def noting(name: str) -> Any:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            calls.append(name)
            return getattr(xp.ndarray, name)(self, *args, **kwargs)

        return method

    names = ["clip", "compress", "copy", "dot", "max", "mean", "partition", "reshape", "sort", "sum", "take"]
    noted = type("Counting", (xp.ndarray,), {name: noting(name) for name in names})
    x = xp.asarray([3.0, 1.0, 2.0]).view(noted)
    assert xp.clip(x, 1, 2).tolist() == [2, 1, 2]
    assert xp.compress(xp.asarray([True, False, True]), x).tolist() == [3, 2]
    assert xp.dot(x, x).item() == 14
    del calls[calls.index("dot") + 1 :]  # dot() of CuPy calls sum()
    assert xp.max(x).item() == 3
    assert xp.mean(a=x).item() == 2
    assert xp.reshape(x, (3, 1)).shape == (3, 1)
    assert xp.sort(x).tolist() == [1, 2, 3]
    assert xp.sum(x, 0).item() == 6
    assert xp.take(x, 1).item() == 1
    assert calls == ["clip", "compress", "dot", "max", "mean", "reshape", "copy", "sum", "take"]
    x.sort()
    x.partition(1)
    assert x.tolist() == [1, 2, 3]
    assert x.clip(2).tolist() == [2, 2, 3]
    assert x.compress([True, False, True]).tolist() == [1, 3]
