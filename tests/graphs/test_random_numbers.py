"""Random numbers in graphs: each replay draws new ones, as torch does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.captures import captured

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tcuda._runtime.protocol import Runtime

pytestmark = pytest.mark.usefixtures("allocator_as_found")


class TestRandomNumbers:
    @pytest.fixture(autouse=True)
    def seeded(self, runtime: Runtime) -> Iterator[None]:
        with tcuda.random.fork_rng():
            tcuda.manual_seed(5)
            yield

    @staticmethod
    def draw(xp: Any) -> list[Any]:
        random = xp.random
        return [
            random.random_sample(1000).astype("f"),
            random.standard_normal(10),
            random.randint(0, 10, 100),
            random.uniform(2, 3, 7, "f"),
        ]

    @staticmethod
    def values(arrays: list[Any]) -> list[bytes]:
        return [array.get().tobytes() for array in arrays]

    def test_of_replays_are_those_of_the_same_calls_outside_of_a_graph(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        generator = tcuda.default_generators[0]
        _, arrays = captured(lambda: self.draw(xp), graph)
        assert generator.get_offset() == 0
        replayed, offsets = [], []
        for _ in range(3):
            graph.replay()
            replayed.append(self.values(arrays))
            offsets.append(generator.get_offset())
        tcuda.manual_seed(5)
        for values, offset in zip(replayed, offsets, strict=True):
            assert self.values(self.draw(xp)) == values
            assert generator.get_offset() == offset
        assert len({values[0] for values in replayed}) == 3

    def test_depend_on_the_state_at_the_replay(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        _, arrays = captured(lambda: self.draw(xp), graph)
        tcuda.manual_seed(99)
        self.draw(xp)
        state = tcuda.get_rng_state()
        graph.replay()
        first = self.values(arrays)
        tcuda.set_rng_state(state)
        graph.replay()
        assert self.values(arrays) == first
        tcuda.set_rng_state(state)
        assert self.values(self.draw(xp)) == first

    def test_of_replays_and_of_calls_outside_continue_one_sequence(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        _, arrays = captured(lambda: self.draw(xp), graph)
        graph.replay()
        mixed = [self.values(arrays), self.values(self.draw(xp))]
        graph.replay()
        mixed.append(self.values(arrays))
        tcuda.manual_seed(5)
        assert [self.values(self.draw(xp)) for _ in range(3)] == mixed

    def test_of_replays_without_a_wait_between_them_differ(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        kept = xp.zeros((20, 100))
        row = xp.zeros((), xp.int64)

        def step() -> None:
            kept[...] = xp.where(xp.arange(20)[:, None] == row, xp.random.random_sample(100)[None], kept)
            row.__iadd__(1)

        captured(step, graph)
        streams = [tcuda.Stream(), tcuda.Stream()]
        tcuda.synchronize()
        for turn in range(20):  # without a wait between the replays
            with tcuda.stream(streams[turn % 2]):
                graph.replay()
        tcuda.synchronize()
        tcuda.manual_seed(5)
        assert (kept.get() == [xp.random.random_sample(100).get() for _ in range(20)]).all()

    def test_on_side_streams(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        side = tcuda.Stream()
        with tcuda.graph(graph):
            here = tcuda.current_stream()
            side.wait_stream(here)
            with tcuda.stream(side):
                first = xp.random.random_sample(50)
            second = xp.random.random_sample(50)
            here.wait_stream(side)
        graph.replay()
        tcuda.synchronize()
        tcuda.manual_seed(5)
        assert (first.get() == xp.random.random_sample(50).get()).all()
        assert (second.get() == xp.random.random_sample(50).get()).all()

    def test_of_a_registered_generator(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        generator: Any = tcuda.Generator()
        graph.register_generator_state(generator)
        _, y = captured(lambda: generator.random(100), graph)
        graph.replay()
        first = y.get().tobytes()
        graph.replay()
        assert tcuda.default_generators[0].get_offset() == 0
        again: Any = tcuda.Generator()
        assert [again.random(100).get().tobytes() for _ in range(2)] == [first, y.get().tobytes()]
        assert again.get_offset() == generator.get_offset()

    def test_of_two_graphs(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        handle = tcuda.graph_pool_handle()
        other, x = captured(lambda: xp.random.random_sample(100), pool=handle)
        _, y = captured(lambda: xp.random.random_sample(100), graph, pool=handle)
        other.replay()
        graph.replay()
        tcuda.manual_seed(5)
        assert (x.get() == xp.random.random_sample(100).get()).all()
        assert (y.get() == xp.random.random_sample(100).get()).all()
        other.reset()

    def test_with_a_kept_graph(self, xp: Any) -> None:
        graph, y = captured(lambda: xp.random.random_sample(100), tcuda.CUDAGraph(keep_graph=True))
        graph.replay()
        graph.instantiate()
        graph.replay()
        tcuda.manual_seed(5)
        xp.random.random_sample(100)
        assert (y.get() == xp.random.random_sample(100).get()).all()

    @pytest.mark.parametrize(
        "draw",
        [
            lambda random: random.random_sample(100, "f"),
            lambda random: random.standard_normal(100),
            lambda random: random.normal(2.0, 3.0, 100, "f"),
            lambda random: random.lognormal(1.0, 2.0, 100),
            lambda random: random.uniform(2.0, 3.0, 100),
            lambda random: random.randint(-5, 5, 100),
            lambda random: random.standard_exponential(100),
            lambda random: random.standard_cauchy(100),
            lambda random: random.gumbel(1.0, 2.0, 100),
            lambda random: random.laplace(1.0, 2.0, 100),
            lambda random: random.permutation(100),
            lambda random: random.choice(10, 100),
        ],
    )
    def test_of_functions_that_can_be_captured(
        self, xp: Any, graph: tcuda.CUDAGraph, draw: Callable[[Any], Any]
    ) -> None:
        draw(xp.random)
        tcuda.manual_seed(5)
        _, y = captured(lambda: draw(xp.random), graph)
        drawn = []
        for _ in range(2):
            graph.replay()
            drawn.append(y.get().tobytes())
        tcuda.manual_seed(5)
        assert [draw(xp.random).get().tobytes() for _ in range(2)] == drawn
        assert drawn[0] != drawn[1]

    @pytest.mark.parametrize(
        ("words", "draw"),
        [
            ("takes a seed", lambda random: random.standard_gamma(2.0, 10)),
            ("takes a seed", lambda random: random.beta(2.0, 3.0, 10)),
            ("takes a seed", lambda random: random.poisson(2.0, 10)),
            ("takes a seed", lambda random: random.binomial(5, 0.5, 10)),
            ("D2H transfers are disallowed", lambda random: random.exponential(2.0, 10)),
            ("D2H transfers are disallowed", lambda random: random.rayleigh(2.0, 10)),
            ("D2H transfers are disallowed", lambda random: random.weibull(2.0, 10)),
        ],
    )
    def test_of_functions_that_cannot_be_captured_are_refused(
        self, xp: Any, graph: tcuda.CUDAGraph, words: str, draw: Callable[[Any], Any]
    ) -> None:
        with tcuda.graph(graph):
            with pytest.raises(RuntimeError, match=words):
                draw(xp.random)
            y = xp.random.random_sample(10)
        graph.replay()
        tcuda.manual_seed(5)
        assert (y.get() == xp.random.random_sample(10).get()).all()

    def test_cannot_be_reseeded_during_the_capture(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        generator = tcuda.default_generators[0]
        with tcuda.graph(graph):
            tcuda.manual_seed(5)
            with pytest.raises(RuntimeError, match="only if new seed is the same as the original seed"):
                generator.manual_seed(6)
            for call in (generator.seed, generator.get_offset, lambda: generator.set_offset(8)):
                with pytest.raises(RuntimeError, match="during CUDA graph capture"):
                    call()
            assert generator.initial_seed() == 5
            assert tcuda.get_rng_state()[0] == 5
            xp.random.random_sample(10)
        assert generator.get_offset() == 0

    def test_of_a_bit_generator_differ_at_each_replay(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        def draw(generator: Any) -> list[Any]:
            return [generator.random(10), generator.integers(0, 1000, 10), generator.standard_normal(10, "float32")]

        generator, same = (xp.random.default_rng(5) for _ in range(2))
        expected = [self.values(draw(same)) for _ in range(4)]
        assert self.values(draw(generator)) == expected[0]
        _, arrays = captured(lambda: draw(generator), graph)
        for values in expected[1:]:
            graph.replay()
            assert self.values(arrays) == values

    @pytest.mark.emulated
    def test_of_a_bit_generator_with_parameters_on_the_device_are_refused(
        self, xp: Any, graph: tcuda.CUDAGraph
    ) -> None:
        generator = xp.random.default_rng(5)

        def draw() -> Any:
            for name in ("poisson", "standard_gamma", "geometric"):
                with pytest.raises(RuntimeError, match="H2D transfers are disallowed"):
                    getattr(generator, name)(0.5, 5)
            return generator.standard_exponential(5)

        _, drawn = captured(draw, graph)
        graph.replay()
        assert len(set(drawn.tolist())) == 5

    @pytest.mark.emulated
    def test_of_choices_without_replacement_are_refused(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        def draw() -> Any:
            with pytest.raises(RuntimeError, match="This distribution cannot be drawn"):
                xp.random.choice(10, 3, replace=False)
            return xp.random.choice(xp.arange(10), 3, replace=False)

        _, drawn = captured(draw, graph)
        graph.replay()
        assert len(set(drawn.tolist())) == 3
