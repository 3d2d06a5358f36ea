"""Graphed callables: their copies, replays, results and errors, and the nested containers of their arguments."""

from __future__ import annotations

import functools
import gc
import inspect
import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

import tcuda
from support.busy_streams import LONG
from support.pools import held_by, pool_of
from tcuda.graphs._tree import describe, flatten, flatten_as, paths, unflatten

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.fixture_types import Changes
    from tcuda._runtime.protocol import Runtime


class Pair(NamedTuple):
    first: Any
    second: Any


class Empty(NamedTuple):
    pass


class TestNestedContainers:
    @pytest.mark.parametrize(
        ("tree", "leaves", "described", "ways"),
        [
            ("a", ["a"], "x", [""]),
            ((), [], "()", []),
            (("a",), ["a"], "(x,)", ["[0]"]),
            (["a", ("b", "c")], ["a", "b", "c"], "[x, (x, x)]", ["[0]", "[1][0]", "[1][1]"]),
            ({"k": "a", 2: ["b"]}, ["a", "b"], "{'k': x, 2: [x]}", ["['k']", "[2][0]"]),
            (Pair("a", {}), ["a"], "Pair(first=x, second={})", [".first"]),
            ((Pair(["a"], "b"),), ["a", "b"], "(Pair(first=[x], second=x),)", ["[0].first[0]", "[0].second"]),
            ([Empty(), None], [None], "[Empty(), x]", ["[1]"]),
        ],
    )
    def test_a_tree_is_flattened_described_and_unflattened(
        self, tree: Any, leaves: list[Any], described: str, ways: list[str]
    ) -> None:
        found, structure = flatten(tree)
        assert found == leaves
        assert describe(structure, "x" * len(leaves)) == described
        assert paths(structure) == ways
        assert flatten_as(structure, tree) == leaves
        again = unflatten(structure, leaves)
        assert (again, type(again)) == (tree, type(tree))

    def test_unflatten_makes_new_containers(self) -> None:
        tree: Any = ([1], {"k": [2]})
        leaves, structure = flatten(tree)
        again = unflatten(structure, leaves)
        again[0].append(3)
        again[1]["k"].append(4)
        assert tree == ([1], {"k": [2]})
        assert unflatten(structure, leaves) == tree

    @pytest.mark.parametrize("tree", [OrderedDict(k=1), {1, 2}, "text", range(3), np.zeros(2)])
    def test_an_object_of_another_type_is_a_leaf(self, tree: Any) -> None:
        leaves, structure = flatten([tree])
        assert len(leaves) == 1
        assert leaves[0] is tree
        assert unflatten(structure, leaves)[0] is tree

    def test_dicts_are_matched_by_their_keys(self) -> None:
        _, structure = flatten({"a": 1, "b": (2, 3)})
        assert flatten_as(structure, {"b": (20, 30), "a": 10}) == [10, 20, 30]

    @pytest.mark.parametrize(
        "other",
        [
            (1, [2], {"a": 3}),
            (1, [2], {"a": 3, "c": 4}),
            (1, (2,), {"a": 3, "b": 4}),
            (1, [2, 2], {"a": 3, "b": 4}),
            [1, [2], {"a": 3, "b": 4}],
            (1, [2]),
            (1, 2, {"a": 3, "b": 4}),
            (1, [2], OrderedDict(a=3, b=4)),
            1,
        ],
    )
    def test_flatten_as_returns_none_for_another_structure(self, other: Any) -> None:
        _, structure = flatten((1, [2], {"a": 3, "b": 4}))
        assert flatten_as(structure, other) is None

    def test_a_named_tuple_and_a_tuple_are_different_structures(self) -> None:
        _, structure = flatten(Pair(1, 2))
        assert flatten_as(structure, (1, 2)) is None

    def test_a_container_may_stand_for_a_leaf(self) -> None:
        _, structure = flatten((1, 2))
        assert flatten_as(structure, ([3], {})) == [[3], {}]


class TestOne:
    def test_a_call_has_the_result_of_the_callable(self, xp: Any) -> None:
        weights = xp.arange(12, dtype="f").reshape(3, 4)

        def layer(x: Any, bias: Any) -> Any:
            return xp.tanh(x @ weights + bias)

        graphed = tcuda.make_graphed_callables(layer, (xp.zeros((2, 3), "f"), xp.zeros(4, "f")))
        for number in (1, 2, 3):
            x, bias = xp.full((2, 3), number / 100, "f"), xp.full(4, -number, "f")
            np.testing.assert_allclose(graphed(x, bias).get(), layer(x, bias).get(), rtol=1e-5)

    def test_every_call_returns_the_same_memory(self, xp: Any) -> None:
        graphed = tcuda.make_graphed_callables(xp.square, (xp.zeros(3),))
        first = graphed(xp.full(3, 2.0))
        assert first.get().tolist() == [4, 4, 4]
        second = graphed(xp.full(3, 3.0))
        assert second.data.ptr == first.data.ptr
        assert first.get().tolist() == [9, 9, 9]

    def test_the_graph_reads_its_samples(self, xp: Any) -> None:
        sample = xp.zeros(3)
        graphed = tcuda.make_graphed_callables(xp.square, (sample,))
        graphed(xp.full(3, 2.0))
        assert sample.get().tolist() == [2, 2, 2]
        sample[...] = 5
        assert graphed(sample).get().tolist() == [25, 25, 25]

    def test_an_array_in_two_places_of_the_sample_takes_one_array(self, xp: Any) -> None:
        sample, other = xp.zeros(3), xp.zeros(3)

        def difference(first: Any, rest: dict[str, Any]) -> Any:
            return first * 2 - rest["second"] + rest["third"]

        graphed = tcuda.make_graphed_callables(difference, (sample, {"second": sample, "third": other}))
        one, two = xp.full(3, 5.0), xp.full(3, 7.0)
        with pytest.raises(
            RuntimeError, match=r"args\[0\] and args\[1\]\['second'\] of difference\(\) are two arrays; .* copy"
        ):
            graphed(one, {"second": two, "third": one})
        assert sample.tolist() == [0] * 3
        assert graphed(one, {"second": one, "third": two}).tolist() == [12] * 3
        assert graphed(one, {"second": one[:], "third": one}).tolist() == [10] * 3
        with pytest.raises(RuntimeError, match="are two arrays"):
            graphed(sample, {"second": two, "third": one})

    def test_the_graph_reads_and_writes_other_arrays_in_place(self, xp: Any) -> None:
        weight, calls = xp.ones(3), xp.zeros(1)

        def counted(x: Any) -> Any:
            calls[...] += 1
            return x * weight

        graphed = tcuda.make_graphed_callables(counted, (xp.zeros(3),))
        calls[...] = 0
        weight[...] = 7
        assert graphed(xp.full(3, 2.0)).get().tolist() == [14, 14, 14]
        graphed(xp.full(3, 2.0))
        assert calls.get().tolist() == [2]

    def test_in_place_changes_apply_to_the_samples_and_not_to_the_arguments(self, xp: Any) -> None:
        def halve(x: Any) -> None:
            x /= 2

        sample, given = xp.zeros(3), xp.full(3, 8.0)
        graphed = tcuda.make_graphed_callables(halve, (sample,))
        assert graphed(given) is None
        assert (sample.get().tolist(), given.get().tolist()) == ([4, 4, 4], [8, 8, 8])

    def test_arguments_and_results_may_be_nested(self, xp: Any) -> None:
        def mixed(pair: Pair, options: dict[str, Any]) -> Any:
            total = pair.first + options["a"] * options["b"][0]
            return {"total": total, "parts": [Pair(total - 1, "text"), (total * 2, 5)], "none": None}

        def arguments(a: float, b: float, c: float) -> Any:
            return Pair(xp.full(2, a), xp.zeros(1)), {"a": xp.full(2, b), "b": [xp.full(2, c)]}

        graphed = tcuda.make_graphed_callables(mixed, arguments(0, 0, 0))
        pair, options = arguments(1, 2, 3)
        result = graphed(pair, dict(reversed(options.items())))
        assert list(result) == ["total", "parts", "none"]
        (part, words), (doubled, five) = result["parts"]
        assert type(result["parts"][0]) is Pair
        assert [array.get().tolist() for array in (result["total"], part, doubled)] == [[7, 7], [6, 6], [14, 14]]
        assert (words, five, result["none"]) == ("text", 5, None)

    def test_containers_of_results_are_new_each_time(self, xp: Any) -> None:
        graphed = tcuda.make_graphed_callables(lambda x: [x + 1], (xp.zeros(2),))
        graphed(xp.ones(2)).clear()
        assert [array.get().tolist() for array in graphed(xp.ones(2))] == [[2, 2]]

    def test_results_may_be_arguments_and_views_of_them(self, xp: Any) -> None:
        def views(x: Any) -> Any:
            x += 1
            return x, x[1:], x.reshape(2, 2).T

        graphed = tcuda.make_graphed_callables(views, (xp.zeros(4),))
        results = [array.get().tolist() for array in graphed(xp.arange(4.0))]
        assert results == [[1, 2, 3, 4], [2, 3, 4], [[1, 3], [2, 4]]]

    def test_a_callable_may_have_no_arguments(self, xp: Any) -> None:
        counter = xp.zeros(1)

        def count() -> Any:
            counter[...] += 1
            return counter

        graphed = tcuda.make_graphed_callables(count, ())
        counter[...] = 0
        assert [graphed().get().item() for _ in range(3)] == [1, 2, 3]

    def test_arrays_without_dimensions_or_elements_are_arguments_too(self, xp: Any) -> None:
        graphed = tcuda.make_graphed_callables(lambda x, y: (x * 2, y * 2), (xp.zeros(()), xp.zeros((0, 3))))
        doubled, nothing = graphed(xp.full((), 4.0), xp.ones((0, 3)))
        assert (doubled.get().item(), nothing.shape) == (8, (0, 3))

    def test_the_graphed_callable_has_the_name_docstring_and_signature_of_the_callable(self, xp: Any) -> None:
        def add_one(x: Any) -> Any:
            """Add one."""
            return x + 1

        graphed = tcuda.make_graphed_callables(add_one, (xp.zeros(2),))
        assert (graphed.__name__, graphed.__doc__) == ("add_one", "Add one.")
        assert graphed.__wrapped__ is add_one  # type: ignore[attr-defined]
        assert inspect.signature(graphed) == inspect.signature(add_one)

    def test_any_callable_object_is_accepted(self, xp: Any) -> None:
        class Scale:
            """Scale by a factor."""

            def __init__(self) -> None:
                self.factor = xp.full(2, 3.0)

            def __call__(self, x: Any) -> Any:
                return x * self.factor

        scale = Scale()
        for function in (scale, scale.__call__, functools.partial(xp.multiply, scale.factor)):
            graphed = tcuda.make_graphed_callables(function, (xp.zeros(2),))
            assert graphed(xp.ones(2)).get().tolist() == [3, 3]
        graphed = tcuda.make_graphed_callables(scale, (xp.zeros(2),))
        assert graphed.__doc__ == "Scale by a factor."
        assert not hasattr(graphed, "factor")  # a copied attribute would not follow a change of the object

    def test_keyword_arguments_are_refused(self, xp: Any) -> None:
        graphed = tcuda.make_graphed_callables(lambda x: x + 1, (xp.zeros(2),))
        with pytest.raises(TypeError, match="unexpected keyword argument 'x'"):
            graphed(x=xp.zeros(2))


class TestCopying:
    def test_dtypes_are_converted(self, xp: Any) -> None:
        graphed = tcuda.make_graphed_callables(lambda x: x * 2, (xp.zeros(3, "i"),))
        result = graphed(xp.asarray([1.75, -1.75, 3]))
        assert (result.dtype, result.get().tolist()) == (np.dtype("i"), [2, -2, 6])

    def test_arguments_may_have_any_strides(self, xp: Any) -> None:
        graphed = tcuda.make_graphed_callables(lambda x: x + 0, (xp.zeros((2, 3)).T,))
        given = xp.arange(12.0).reshape(3, 4)[:, ::2]
        assert graphed(given).get().tolist() == given.get().tolist()

    def test_the_sample_transposed_is_another_argument(self, xp: Any) -> None:
        sample = xp.arange(4.0).reshape(2, 2)
        graphed = tcuda.make_graphed_callables(lambda x: x + 0, (sample,))
        assert graphed(sample.T).get().tolist() == [[0, 2], [1, 3]]

    def test_the_sample_reversed_is_another_argument(self, xp: Any) -> None:
        sample = xp.arange(1000.0)
        graphed = tcuda.make_graphed_callables(lambda x: x + 0, (sample,))
        assert graphed(sample[::-1]).get().tolist() == list(range(999, -1, -1))

    def test_the_bytes_of_the_sample_as_another_dtype_are_another_argument(self, xp: Any) -> None:
        sample = xp.ones(3)
        graphed = tcuda.make_graphed_callables(lambda x: x * 1, (sample,))
        assert graphed(sample.view("q")).get().tolist() == [float(0x3FF0000000000000)] * 3

    def test_the_sample_itself_is_not_copied(self, xp: Any, changes: Changes) -> None:
        sample = xp.ones((2, 3))
        graphed = tcuda.make_graphed_callables(lambda x: x * 1, (sample,))
        with changes() as changed:
            graphed(sample)
            graphed(sample[...])
        assert changed == {}

    def test_samples_may_change_places(self, xp: Any) -> None:
        a, b = xp.full(3, 1.0), xp.full(3, 2.0)
        graphed = tcuda.make_graphed_callables(lambda x, y: x * 10 + y, (a, b))
        assert graphed(b, a).get().tolist() == [21, 21, 21]

    def test_a_result_may_be_the_next_argument(self, xp: Any) -> None:
        graphed = tcuda.make_graphed_callables(lambda x: x * 2, (xp.zeros(2),))
        x = xp.ones(2)
        for _ in range(5):
            x = graphed(x)
        assert x.get().tolist() == [32, 32]

    def test_arguments_are_copied_and_the_graph_replayed_on_the_current_stream(self, xp: Any) -> None:
        graphed = tcuda.make_graphed_callables(lambda x: x + 1, (xp.zeros(3),))
        given, side = xp.full(3, 4.0), tcuda.Stream()
        tcuda.synchronize()
        with tcuda.stream(side):
            tcuda._sleep(LONG)
            result = graphed(given)
            assert not side.query()
            assert tcuda.default_stream().query()
            assert result.get().tolist() == [5, 5, 5]

    def test_the_device_of_the_capture_need_not_be_current(self, xp: Any) -> None:
        last = tcuda.device_count() - 1
        with tcuda.device(last):
            graphed = tcuda.make_graphed_callables(lambda x: x + 1, (xp.zeros(3),))
            given = xp.full(3, 4.0)
        result = graphed(given)
        assert result.data.device_id == last
        with tcuda.device(last):
            assert result.get().tolist() == [5, 5, 5]
        assert tcuda.current_device() == 0


class TestSeveral:
    def test_a_tuple_makes_a_tuple(self, xp: Any) -> None:
        doubled, added = tcuda.make_graphed_callables(
            (lambda x: x * 2, lambda x, y: x + y), ((xp.zeros(2),), (xp.zeros(2), xp.zeros(2)))
        )
        assert added(doubled(xp.ones(2)), xp.full(2, 5.0)).get().tolist() == [7, 7]

    def test_a_tuple_of_one_makes_a_tuple_of_one(self, xp: Any) -> None:
        (graphed,) = tcuda.make_graphed_callables((lambda x: x * 2,), ((xp.zeros(2),),))
        assert graphed(xp.ones(2)).get().tolist() == [2, 2]
        assert tcuda.make_graphed_callables((), ()) == ()

    def test_callables_made_together_share_a_private_pool(self, xp: Any) -> None:
        graphed = tcuda.make_graphed_callables((xp.square, xp.sqrt), ((xp.ones(2),), (xp.ones(2),)))
        first, second = (pool_of(each(xp.ones(2))) for each in graphed)
        other = pool_of(tcuda.make_graphed_callables(xp.square, (xp.ones(2),))(xp.ones(2)))
        assert first == second != other
        assert (0, 0) not in (first, other)

    def test_callables_use_the_given_pool(self, xp: Any) -> None:
        pool = tcuda.graph_pool_handle()
        graphed = tcuda.make_graphed_callables(xp.square, (xp.ones(2),), pool=pool)
        assert pool_of(graphed(xp.ones(2))) == pool

    def test_a_capture_has_the_given_mode(self, xp: Any) -> None:
        with pytest.raises(RuntimeError, match="Unknown capture error mode"):
            tcuda.make_graphed_callables(xp.square, (xp.ones(2),), capture_error_mode="strict")
        with pytest.raises(NotImplementedError, match="enable_annotations"):
            tcuda.make_graphed_callables(xp.square, (xp.ones(2),), enable_annotations=True)
        graphed = tcuda.make_graphed_callables(xp.square, (xp.ones(2),), capture_error_mode="thread_local")
        assert graphed(xp.full(2, 3.0)).get().tolist() == [9, 9]

    def test_results_of_one_are_not_overwritten_by_the_next(self, xp: Any) -> None:
        functions = tuple(functools.partial(xp.add, xp.full(1000, number)) for number in range(4))
        graphed = tcuda.make_graphed_callables(functions, tuple((xp.zeros(1000),) for _ in functions))
        results = [each(xp.ones(1000)) for each in graphed]
        assert [set(result.get().tolist()) for result in results] == [{1}, {2}, {3}, {4}]


class TestWarmingUp:
    @pytest.mark.parametrize(
        ("options", "warmups"), [({}, 3), ({"num_warmup_iters": 0}, 0), ({"num_warmup_iters": 5}, 5)]
    )
    def test_each_callable_runs_num_warmup_iters_times_and_is_then_captured(
        self, xp: Any, options: dict[str, Any], warmups: int
    ) -> None:
        xp.square(xp.zeros(2))  # compiles the kernel before the capture
        runs: list[tuple[str, bool, tcuda.Stream]] = []

        def noted(name: str) -> Callable[[Any], Any]:
            def function(x: Any) -> Any:
                stream = tcuda.current_stream()
                runs.append((name, stream.is_capturing(), stream))
                return xp.square(x)

            return function

        before = tcuda.current_stream()
        tcuda.make_graphed_callables((noted("a"), noted("b")), ((xp.zeros(2),), (xp.zeros(2),)), **options)
        names = [(name, capturing) for name, capturing, _ in runs]
        assert names == [("a", False)] * warmups + [("b", False)] * warmups + [("a", True), ("b", True)]
        assert before not in [stream for *_, stream in runs]
        assert tcuda.current_stream() == before

    def test_the_warm_up_waits_for_the_samples(self, xp: Any) -> None:
        seen = xp.zeros(3)
        side = tcuda.Stream()
        with tcuda.stream(side):
            tcuda._sleep(LONG)
            sample = xp.full(3, 4.0)

            def keep(x: Any) -> None:
                seen[...] = x

            tcuda.make_graphed_callables(keep, (sample,), num_warmup_iters=1)
        assert seen.get().tolist() == [4, 4, 4]

    def test_an_exception_of_a_warm_up_is_raised(self, xp: Any) -> None:
        def broken(x: Any) -> Any:
            raise KeyError("broken")

        before = tcuda.current_stream()
        with pytest.raises(KeyError, match="broken"):
            tcuda.make_graphed_callables(broken, (xp.zeros(2),))
        assert tcuda.current_stream() == before


class TestLifetime:
    def test_the_graphed_callable_keeps_the_samples_and_the_callable_alive(self, xp: Any) -> None:
        class Scale:
            def __init__(self) -> None:
                self.factor = xp.full(1000, 3.0)

            def __call__(self, x: Any) -> Any:
                return x * self.factor

        scale = Scale()
        graphed = tcuda.make_graphed_callables(scale, (xp.zeros(1000),))
        alive = weakref.ref(scale)
        del scale
        gc.collect()
        tcuda.empty_cache()
        others = [xp.full(1000, 9.0) for _ in range(20)]  # new arrays would overwrite freed memory of the graph
        assert set(graphed(xp.full(1000, 2.0)).get().tolist()) == {6}
        assert alive() is not None
        del graphed, others
        gc.collect()
        assert alive() is None

    def test_all_memory_is_given_back_after_the_end_of_the_graphed_callable(self, xp: Any) -> None:
        pool = tcuda.graph_pool_handle()
        graphed = tcuda.make_graphed_callables(xp.square, (xp.zeros(1000),), pool=pool)
        result = graphed(xp.ones(1000))
        assert held_by(pool) > 0
        del graphed, result
        gc.collect()
        tcuda.synchronize()
        tcuda.empty_cache()
        assert held_by(pool) == 0


class TestRefusals:
    @pytest.mark.parametrize("value", [1, None, "x", np.zeros(2), {1}])
    def test_samples_must_be_arrays(self, value: Any, xp: Any) -> None:
        kind = "numpy.ndarray" if isinstance(value, np.ndarray) else type(value).__name__
        with pytest.raises(AssertionError) as raised:
            tcuda.make_graphed_callables(lambda x, y: x, (xp.zeros(2), {"k": [value]}))
        text = str(raised.value)
        assert text.startswith(
            "In the beta API, sample_args for each callable must contain only Tensors. Other types are not allowed. "
            f"sample_args[1]['k'][0] is a{'n' if kind == 'int' else ''} {kind};"
        )
        with pytest.raises(AssertionError, match=r"sample_args\[1\]\[0\]\.second is a"):
            tcuda.make_graphed_callables((abs, abs), ((xp.zeros(2),), (Pair(xp.zeros(2), value),)))

    @pytest.mark.parametrize(
        ("callables", "samples", "error", "text"),
        [
            (abs, [], TypeError, r"^sample_args must be a tuple, such as \(x,\) for one argument; got a list\.$"),
            (abs, np.zeros(2), TypeError, r"^sample_args must be a tuple, .*; got a numpy\.ndarray\.$"),
            ((abs,), ([],), TypeError, r"^sample_args\[0\] must be a tuple, .*; got a list\.$"),
            (5, (), TypeError, r"^callables must be a callable or a tuple of callables; got an int\.$"),
            ([abs], (), TypeError, r"^callables must be a callable or a tuple of callables; got a list\.$"),
            ((abs, None), ((), ()), TypeError, r"^callables must be .*; got a NoneType\.$"),
            ((abs, abs), ((),), ValueError, r"^sample_args must have a tuple .*; got 1 for 2 callables\.$"),
            ((abs,), ((), ()), ValueError, r"^sample_args must have a tuple .*; got 2 for 1 callables\.$"),
        ],
    )
    def test_invalid_callables_and_samples_are_refused(
        self, callables: Any, samples: Any, error: Any, text: str, runtime: Runtime
    ) -> None:
        with pytest.raises(error, match=text):
            tcuda.make_graphed_callables(callables, samples)

    def test_a_sample_outside_a_tuple_is_refused(self, xp: Any) -> None:
        with pytest.raises(TypeError, match=r"^sample_args must be a tuple, such as \(x,\) for one argument; got a"):
            tcuda.make_graphed_callables(abs, xp.zeros(2))

    @pytest.mark.parametrize(
        ("count", "error", "text"),
        [
            (-1, ValueError, "^num_warmup_iters must be 0 or more; got -1.$"),
            (1.5, TypeError, "^num_warmup_iters must be an integer; got a float.$"),
        ],
    )
    def test_an_invalid_number_of_warm_ups_is_refused(self, count: Any, error: Any, text: str, xp: Any) -> None:
        with pytest.raises(error, match=text):
            tcuda.make_graphed_callables(abs, (xp.zeros(2),), num_warmup_iters=count)

    def test_an_invalid_pool_is_refused(self, xp: Any) -> None:
        with pytest.raises(TypeError, match="pool"):
            tcuda.make_graphed_callables(xp.square, (xp.zeros(2),), pool="mine")  # type: ignore[call-overload]

    @pytest.mark.parametrize(
        ("make", "error", "text"),
        [
            (lambda xp: (), TypeError, r"(array, {'k': array}); got ()."),
            (lambda xp: (xp.ones(3), {"k": xp.ones(3)}, 1), TypeError, "; got (array, {'k': array}, int)."),
            (lambda xp: (xp.ones(3), [xp.ones(3)]), TypeError, "; got (array, [array])."),
            (lambda xp: (xp.ones(3), {"other": xp.ones(3)}), TypeError, "; got (array, {'other': array})."),
            (lambda xp: (xp.ones(3), {"k": 2.5}), TypeError, "; got (array, {'k': float})."),
            (lambda xp: (xp.ones(3), {"k": np.ones(3)}), TypeError, "; got (array, {'k': numpy.ndarray})."),
            (lambda xp: (xp.ones(3), {"k": [xp.ones(3)]}), TypeError, "; got (array, {'k': [array]})."),
            (lambda xp: (xp.ones(3), {"k": xp.ones(4)}), RuntimeError, "args[1]['k'] of total() has the shape (4,); "),
            (lambda xp: (xp.ones(3), {"k": xp.ones(())}), RuntimeError, "(); it was captured with the shape (3,)"),
            (lambda xp: (xp.ones((1, 3)), {"k": xp.ones(3)}), RuntimeError, "args[0] of total() has the shape (1, 3)"),
        ],
    )
    def test_a_call_with_unsuitable_arguments_is_refused_and_changes_nothing(
        self, make: Any, error: Any, text: str, xp: Any
    ) -> None:
        def total(x: Any, y: dict[str, Any]) -> Any:
            return x + y["k"]

        x, y = xp.zeros(3), xp.zeros(3)
        graphed = tcuda.make_graphed_callables(total, (x, {"k": y}))
        result = graphed(xp.full(3, 2.0), {"k": xp.full(3, 5.0)})
        with pytest.raises(error) as raised:
            graphed(*make(xp))
        assert text in str(raised.value)
        assert type(raised.value) is error
        assert [array.get().tolist() for array in (x, y, result)] == [[2] * 3, [5] * 3, [7] * 3]

    def test_an_array_of_another_device_is_refused(self, xp: Any) -> None:
        if tcuda.device_count() == 1:
            pytest.skip("needs two devices")
        sample = xp.zeros(3)
        graphed = tcuda.make_graphed_callables(lambda x, y: x + y, (sample, xp.zeros(3)))
        with tcuda.device(1):
            there = xp.ones(3)
        with pytest.raises(
            ValueError, match=r"^args\[1\] of <lambda>\(\) is on device 1; it was captured on device 0\."
        ):
            graphed(xp.ones(3), there)
        assert sample.get().tolist() == [0, 0, 0]
        with pytest.raises(ValueError, match=r"^sample_args\[0\] is on device 1 and the current device, .*, is 0;"):
            tcuda.make_graphed_callables(xp.square, (there,))


class TestFailures:
    def test_a_failed_capture_leaves_nothing_behind(self, xp: Any) -> None:
        pool, samples = tcuda.graph_pool_handle(), ((xp.ones(3),), (xp.ones(3),), (xp.ones(3),))

        def broken(x: Any) -> Any:
            if tcuda.is_current_stream_capturing():
                raise KeyError("broken")
            return x * 2

        before = tcuda.current_stream()
        with pytest.raises(KeyError, match="broken") as raised:
            tcuda.make_graphed_callables((xp.square, broken, xp.square), samples, pool=pool)
        assert tcuda.current_stream() == before
        assert not tcuda.is_current_stream_capturing()
        gc.collect()
        tcuda.empty_cache()
        assert held_by(pool) == 0  # although the exception and its traceback are alive
        assert raised.value.__context__ is None
        graphed = tcuda.make_graphed_callables(xp.square, (xp.ones(3),))
        assert graphed(xp.full(3, 3.0)).get().tolist() == [9, 9, 9]

    def test_the_error_of_a_call_that_a_capture_forbids_is_raised(self, xp: Any) -> None:
        def waits(x: Any) -> Any:
            y = x * 2
            tcuda.synchronize()
            return y

        with pytest.raises(tcuda.AcceleratorError) as raised:
            tcuda.make_graphed_callables(waits, (xp.ones(3),))
        assert raised.value.error_code == 900
        tcuda.synchronize()  # fails while a stream captures
        graphed = tcuda.make_graphed_callables(xp.square, (xp.ones(3),))
        assert graphed(xp.full(3, 3.0)).get().tolist() == [9, 9, 9]
