"""Random numbers in graphs: each replay draws new ones, as torch does."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
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


class TestSavedStates:
    """A state that is saved and restored in a capture: the draws go back in every replay, as they do in torch."""

    @pytest.fixture
    def own(self) -> tcuda.Generator:
        return tcuda.Generator().manual_seed(7)

    @pytest.fixture(autouse=True)
    def seeded(self, runtime: Runtime) -> Iterator[None]:
        with tcuda.random.fork_rng():
            tcuda.manual_seed(5)
            yield

    @staticmethod
    def forked(draw: Callable[[], Any]) -> list[Any]:
        with tcuda.random.fork_rng():
            first = draw()
        return [first, draw(), draw()]

    @staticmethod
    def rewound(save: Callable[[], Any], restore: Callable[[Any], Any], draw: Callable[[], Any]) -> list[Any]:
        skipped = draw()
        state = save()
        first, second = draw(), draw()
        restore(state)
        return [skipped, first, second, draw(), draw()]

    WAYS: ClassVar = {
        "get_rng_state": lambda own, draw: TestSavedStates.rewound(tcuda.get_rng_state, tcuda.set_rng_state, draw),
        "get_rng_state_all": lambda own, draw: TestSavedStates.rewound(
            tcuda.random.get_rng_state_all, tcuda.random.set_rng_state_all, draw
        ),
        "of the default generator": lambda own, draw: TestSavedStates.rewound(
            tcuda.default_generators[0].get_state, tcuda.default_generators[0].set_state, draw
        ),
        "of the accelerator": lambda own, draw: TestSavedStates.rewound(
            tcuda.accelerator.random.get_rng_state, tcuda.set_rng_state, draw
        ),
        "get_state": lambda own, draw: TestSavedStates.rewound(
            lambda: tcuda.random.get_state(tcuda.default_generators[0]),
            lambda state: tcuda.random.set_state(tcuda.default_generators[0], state),
            draw,
        ),
        "fork_rng": lambda own, draw: TestSavedStates.forked(draw),
        "another generator": lambda own, draw: TestSavedStates.rewound(
            own.get_state, own.set_state, lambda: own.random(30)
        ),
    }

    @pytest.mark.parametrize("way", WAYS)
    @pytest.mark.parametrize(
        "draw",
        [
            lambda random: random.rand(30),
            lambda random: random.normal(size=40),
            lambda random: random.randint(0, 1 << 30, 5),
            lambda random: random.uniform(0, 1, 70000),
            lambda random: random.gumbel(size=4),
            lambda random: random.permutation(50),
        ],
    )
    def test_a_graph_draws_what_the_same_calls_draw_outside(
        self, xp: Any, graph: tcuda.CUDAGraph, own: tcuda.Generator, way: str, draw: Callable[[Any], Any]
    ) -> None:
        def work() -> list[Any]:
            drawn: list[Any] = self.WAYS[way](own, lambda: draw(xp.random))
            return drawn

        generators = [*tcuda.default_generators, own]
        work()  # compiles the kernels
        before = [generator.get_state().tobytes() for generator in generators]
        _, arrays = captured(work, graph)
        assert [generator.get_state().tobytes() for generator in generators] == before
        replayed = []
        for _ in range(2):
            graph.replay()
            replayed.append(([array.tolist() for array in arrays], [state.tolist() for state in self.states(own)]))
        for generator, state in zip(generators, before, strict=True):
            generator.set_state(np.frombuffer(state, np.uint8))
        for values, states in replayed:
            assert [array.tolist() for array in work()] == values
            assert [state.tolist() for state in self.states(own)] == states

    @staticmethod
    def states(own: tcuda.Generator) -> list[Any]:
        return [*tcuda.get_rng_state_all(), own.get_state()]

    def test_on_a_side_stream(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        side = tcuda.Stream()
        xp.random.rand(3)
        with tcuda.graph(graph):
            here = tcuda.current_stream()
            state = tcuda.get_rng_state()
            first = xp.random.rand(3)
            side.wait_stream(here)
            with tcuda.stream(side):
                tcuda.set_rng_state(state)
                second = xp.random.rand(3)
            here.wait_stream(side)
        graph.replay()
        tcuda.synchronize()
        assert first.tolist() == second.tolist()

    def test_a_state_that_is_restored_without_a_draw_moves_the_generator_to_its_place(
        self, xp: Any, graph: tcuda.CUDAGraph, own: Any
    ) -> None:
        xp.random.rand(3)
        tcuda.manual_seed(5)

        def work() -> Any:
            state = tcuda.get_rng_state()
            drawn = xp.random.rand(3)
            tcuda.set_rng_state(state)
            return drawn

        _, drawn = captured(work, graph)
        values = []
        for _ in range(2):
            graph.replay()
            values.append(drawn.tolist())
        assert values == 2 * [work().tolist()]
        assert tcuda.default_generators[0].get_offset() == 0

    def test_a_program_may_move_a_state_forward(self, xp: Any, graph: tcuda.CUDAGraph, own: Any) -> None:
        own.random(3)
        own.manual_seed(7)

        def work() -> Any:
            state = own.get_state()
            state.view(np.uint64)[1] += 8
            own.set_state(state)
            return xp.zeros(3)

        captured(work, graph)
        assert own.get_offset() == 0
        graph.replay()
        graph.replay()
        assert own.get_offset() == 16

    @pytest.mark.parametrize("made", ["before", "of another capture", "of another generator", "of another seed"])
    def test_what_cannot_be_rewound_is_refused(self, xp: Any, graph: tcuda.CUDAGraph, own: Any, made: str) -> None:
        xp.random.rand(3)
        same = tcuda.Generator().manual_seed(7)
        state = own.get_state()
        other, _ = captured(lambda: [own.random(3)])
        if made == "of another capture":
            other, state = captured(lambda: [own.get_state(), xp.zeros(3)][0])
        with tcuda.graph(graph):
            if made == "of another generator":
                state = same.get_state()
            if made == "of another seed":
                state = own.get_state()
                state[0] = 8
            first = own.random(3)
            words = "as the original seed" if made == "of another seed" else "has returned in this capture"
            with pytest.raises(RuntimeError, match=words):
                own.set_state(state)
            second = own.random(3)
        graph.replay()
        again = tcuda.Generator().manual_seed(7)
        assert [first.tolist(), second.tolist()] == [again.random(3).tolist() for _ in range(2)]
        other.reset()

    def test_a_state_of_a_capture_is_refused_outside(self, xp: Any, graph: tcuda.CUDAGraph, own: Any) -> None:
        _, state = captured(lambda: [tcuda.get_rng_state(), xp.zeros(3)][0], graph)
        found = tcuda.get_rng_state().tolist()
        for restore in (tcuda.set_rng_state, own.set_state, lambda state: tcuda.set_rng_state_all([state])):
            with pytest.raises(RuntimeError, match="was read during CUDA graph capture"):
                restore(state)
        assert tcuda.get_rng_state().tolist() == found

    def test_copies_of_a_generator_are_refused(self, xp: Any, graph: tcuda.CUDAGraph, own: Any) -> None:
        with tcuda.graph(graph):
            for copied in (own.clone_state, lambda: copy.copy(own), lambda: pickle.dumps(own)):
                with pytest.raises(RuntimeError, match="during CUDA graph capture"):
                    copied()
            xp.zeros(3)

    def test_a_shared_state_is_no_saved_state(self, xp: Any, graph: tcuda.CUDAGraph, own: Any) -> None:
        """graphsafe_get_state() returns the state itself, which moves with every draw, as in torch."""
        clone = own.clone_state()

        def work() -> list[Any]:
            shared = own.graphsafe_get_state()
            first = own.random(3)
            own.graphsafe_set_state(shared)
            second = own.random(3)
            own.graphsafe_set_state(clone)
            third = own.random(3)
            own.graphsafe_set_state(shared)
            return [first, second, third]

        own.random(3)
        own.manual_seed(7)
        _, arrays = captured(work, graph)
        graph.replay()
        values = [array.tolist() for array in arrays]
        again: Any = tcuda.Generator().manual_seed(7)
        assert values[:2] == [again.random(3).tolist() for _ in range(2)]
        assert values[2] == values[0]

    @pytest.mark.skipif(tcuda.device_count() < 2, reason="needs two devices")
    def test_a_generator_of_another_device_is_moved_on_its_device(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        with tcuda.graph(graph):
            state = tcuda.get_rng_state(1)
            tcuda.set_rng_state(state, 1)  # nothing has to move
            state.view(np.uint64)[1] += 8
            with pytest.raises(RuntimeError, match="Expected a 'cuda:0' generator device but found 'cuda:1'"):
                tcuda.set_rng_state(state, 1)
            xp.zeros(3)

    def test_a_block_around_a_capture_restores_the_generator(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        stream = tcuda.Stream()
        tcuda.synchronize()
        with tcuda.stream(stream):
            forked = tcuda.random.fork_rng()
            graph.capture_begin()
            with forked:
                drawn = xp.random.rand(3)
                graph.capture_end()
                graph.replay()
                assert tcuda.default_generators[0].get_offset() == 4
            assert tcuda.default_generators[0].get_offset() == 0
        tcuda.synchronize()
        assert drawn.tolist() == xp.random.rand(3).tolist()

    def test_the_body_of_a_condition_may_fork_but_not_rewind(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        flag = xp.zeros((), bool)
        xp.random.rand(3)
        with tcuda.graph(graph):
            state = tcuda.get_rng_state()
            xp.random.rand(3)
            graph.begin_capture_to_if_node(flag)
            with tcuda.random.fork_rng():
                flag[...] = False
            with pytest.raises(RuntimeError, match="RNG within data-dependent conditional nodes"):
                tcuda.set_rng_state(state)
            graph.end_capture_to_conditional_node()
            tcuda.set_rng_state(state)
        found = tcuda.get_rng_state().tolist()
        graph.replay()
        assert tcuda.get_rng_state().tolist() == found
