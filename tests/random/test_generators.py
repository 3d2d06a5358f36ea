"""Generators: their seeds, their states, the draws from them, and the arguments that they refuse."""

from __future__ import annotations

import copy
import hashlib
import pickle
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.threads import in_threads
from tcuda import xp
from tcuda._runtime.protocol import CAPTURE_RELAXED

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.fixture_types import OutputOf
    from tcuda._runtime.protocol import Runtime

pytestmark = pytest.mark.usefixtures("states_as_found")

DEVICES = range(tcuda.device_count())
WORD = (1 << 64) - 1
needs_two = pytest.mark.skipif(len(DEVICES) < 2, reason="needs two devices")


@pytest.fixture
def generator() -> tcuda.Generator:
    return tcuda.Generator()


def bytes_of(seed: int, offset: int = 0) -> np.ndarray[Any, Any]:
    return np.array([seed, offset], "<u8").view(np.uint8)


def draw(generator: tcuda.Generator | None = None, size: int = 100) -> bytes:
    """Return the bytes of ``size`` numbers from ``generator``, or from the default generator if None."""
    source: Any = xp.random if generator is None else generator
    data: bytes = source.random_sample(size).get().tobytes()
    return data


class TestDefaultGenerators:
    def test_there_is_one_for_each_device(self) -> None:
        assert len(tcuda.default_generators) == len(DEVICES)
        assert [generator.device for generator in tcuda.default_generators] == [("cuda", index) for index in DEVICES]
        assert tcuda.default_generators[0] is tcuda.random.default_generators[0]
        assert tcuda.default_generators[:1] == (tcuda.default_generators[0],)

    def test_the_array_module_draws_from_the_default_generator(self) -> None:
        generator = tcuda.default_generators[0]
        assert isinstance(generator, tcuda.Generator)
        assert isinstance(generator, xp.random.RandomState)
        assert xp.random.get_random_state() is generator
        tcuda.manual_seed(5)
        numbers = draw()
        assert generator.get_offset() == 4
        assert generator.manual_seed(5) is generator
        assert draw(generator) == numbers

    @needs_two
    def test_each_device_has_its_own_sequence(self) -> None:
        tcuda.manual_seed_all(1)
        first = draw()
        with tcuda.device(1):
            assert xp.random.get_random_state() is tcuda.default_generators[1]
            assert draw() == first
        assert [generator.get_offset() for generator in tcuda.default_generators] == [4, 4, *[0] * len(DEVICES)][
            : len(DEVICES)
        ]

    def test_seeding_by_the_array_module_seeds_the_default_generator(self) -> None:
        xp.random.seed(77)
        assert tcuda.initial_seed() == 77
        np.testing.assert_array_equal(tcuda.get_rng_state(), bytes_of(77))
        xp.random.seed(np.arange(3))
        assert tcuda.initial_seed() == int(hashlib.md5(np.arange(3).tobytes()).hexdigest()[:16], 16)
        with pytest.raises(TypeError, match="Seed must be an integer"):
            xp.random.seed(1.5)
        with pytest.raises(ValueError, match="between 0 and 2"):
            xp.random.seed(-1)

    def test_set_random_state_replaces_the_generator_of_the_array_module(self) -> None:
        other = tcuda.Generator().manual_seed(9)
        before = xp.random.get_random_state()
        xp.random.set_random_state(other)
        try:
            draw()
            assert other.get_offset() == 4
        finally:
            xp.random.set_random_state(before)
        with pytest.raises(TypeError, match="Random state must be an instance of RandomState"):
            xp.random.set_random_state(3)
        assert xp.random.get_random_state() is before

    def test_a_library_can_put_other_generators_in_place_and_restore_them(self) -> None:
        """``cupy.testing.fix_random`` does so."""
        found = xp.random.get_random_state()
        module = xp.random._generator
        states = module._random_states
        try:
            xp.random.reset_states()
            assert module._random_states is not states
            xp.random.seed(3)
            numbers = draw()
            assert xp.random.get_random_state() is not found
            xp.random.seed(3)
            assert draw() == numbers
        finally:
            module._random_states = states
        assert xp.random.get_random_state() is found


class TestSeeds:
    @pytest.mark.parametrize(
        ("seed", "kept"),
        [(0, 0), (42, 42), (-1, WORD), (-(1 << 63), 1 << 63), (WORD, WORD), (np.int32(-2), WORD - 1), (True, 1)],
    )
    def test_a_seed_has_64_bits(self, seed: int, kept: int) -> None:
        draw()
        tcuda.manual_seed(seed)
        assert tcuda.initial_seed() == kept
        np.testing.assert_array_equal(tcuda.get_rng_state(), bytes_of(kept))

    @pytest.mark.parametrize("seed", [1 << 64, -(1 << 63) - 1])
    @pytest.mark.parametrize("function", [tcuda.manual_seed, tcuda.manual_seed_all])
    def test_a_seed_out_of_range_is_refused(self, function: Callable[[int], None], seed: int) -> None:
        before = tcuda.get_rng_state_all()
        with pytest.raises(ValueError, match=f"Overflow when unpacking long long: .*; got {seed}"):
            function(seed)
        np.testing.assert_array_equal(tcuda.get_rng_state_all(), before)

    @pytest.mark.parametrize("function", [tcuda.manual_seed, tcuda.manual_seed_all])
    @pytest.mark.parametrize(("seed", "error"), [("a", ValueError), (None, TypeError), ([], TypeError)])
    def test_a_seed_that_is_no_number_is_refused_by_the_name_of_the_call(
        self, runtime: Runtime, function: Any, seed: Any, error: type[Exception]
    ) -> None:
        with pytest.raises(error) as caught:
            function(seed)
        assert str(caught.value) == f"{function.__name__}() takes an integer as the seed, such as 42; got {seed!r}."

    def test_manual_seed_of_the_module_accepts_texts_and_floats_and_of_a_generator_only_integers(
        self, generator: tcuda.Generator
    ) -> None:
        tcuda.manual_seed("12")  # type: ignore[arg-type]
        tcuda.manual_seed(12.7)  # type: ignore[arg-type]
        assert tcuda.initial_seed() == 12
        for seed, name in (("12", "str"), (1.5, "float"), (True, "bool"), (None, "NoneType")):
            with pytest.raises(RuntimeError, match=f"manual_seed expected a long, but got {name}"):
                generator.manual_seed(seed)  # type: ignore[arg-type]

    def test_all_devices_are_seeded(self) -> None:
        tcuda.manual_seed_all(-3)
        assert {generator.initial_seed() for generator in tcuda.default_generators} == {WORD - 2}

    @needs_two
    def test_only_the_current_device_is_seeded(self) -> None:
        tcuda.manual_seed_all(1)
        with tcuda.device(1):
            tcuda.manual_seed(2)
            assert tcuda.initial_seed() == 2
        assert tcuda.initial_seed() == 1

    def test_seed_sets_a_different_random_seed_at_every_call(self) -> None:
        seeds = set()
        for _ in range(20):
            tcuda.seed()
            seeds.add(tcuda.initial_seed())
            assert tcuda.default_generators[0].get_offset() == 0
        assert len(seeds) == 20
        assert max(seeds) < 1 << 53
        tcuda.seed_all()
        assert len({generator.initial_seed() for generator in tcuda.default_generators}) == 1
        assert tcuda.initial_seed() not in seeds


class TestStates:
    def test_a_state_is_16_bytes_of_the_host(self) -> None:
        tcuda.manual_seed(0x1122334455667788)
        draw()
        state = tcuda.get_rng_state()
        assert (type(state), state.dtype, state.shape) == (np.ndarray, np.uint8, (16,))
        assert state.tobytes().hex() == "8877665544332211" + "0400000000000000"
        state[:] = 0  # changes only a copy
        assert tcuda.initial_seed() == 0x1122334455667788

    def test_drawing_goes_on_from_a_state(self) -> None:
        draw(size=7)
        state = tcuda.get_rng_state()
        numbers = draw()
        assert draw() != numbers
        tcuda.set_rng_state(state)
        assert draw() == numbers

    @pytest.mark.parametrize("device", ["cuda", "cuda:0", 0, None])
    def test_a_device_may_be_a_text_an_index_or_none(self, device: Any) -> None:
        tcuda.set_rng_state(bytes_of(3, 8), device)
        np.testing.assert_array_equal(tcuda.get_rng_state(device), bytes_of(3, 8))
        np.testing.assert_array_equal(tcuda.default_generators[0].get_state(), bytes_of(3, 8))

    def test_the_offset_of_a_device_is_set_and_read(self) -> None:
        last = DEVICES[-1]
        tcuda.set_rng_state(bytes_of(3, 8), last)
        assert tcuda._get_rng_state_offset(last) == 8
        tcuda._set_rng_state_offset(12, f"cuda:{last}")
        np.testing.assert_array_equal(tcuda.get_rng_state(last), bytes_of(3, 12))
        tcuda._set_rng_state_offset(4)
        assert tcuda._get_rng_state_offset() == tcuda.default_generators[0].get_offset() == 4
        for offset, error in ((3, RuntimeError), (-4, ValueError), (1 << 64, ValueError), ("x", RuntimeError)):
            with pytest.raises(error):
                tcuda._set_rng_state_offset(offset)  # type: ignore[arg-type]
        assert tcuda._get_rng_state_offset() == 4

    def test_set_rng_state_all_sets_the_states_of_all_devices(self) -> None:
        states = [bytes_of(index, 4 * index) for index in DEVICES]
        tcuda.set_rng_state_all(iter(states))
        np.testing.assert_array_equal(tcuda.get_rng_state_all(), states)

    def test_one_invalid_state_of_many_changes_no_generator(self) -> None:
        before = tcuda.get_rng_state_all()
        with pytest.raises(RuntimeError, match="RNG state is wrong size"):
            tcuda.set_rng_state_all([bytes_of(1), bytes_of(1)[:3]])
        with pytest.raises(IndexError, match="there is no generator for device"):
            tcuda.set_rng_state_all([bytes_of(1)] * (len(DEVICES) + 1))
        np.testing.assert_array_equal(tcuda.get_rng_state_all(), before)

    @pytest.mark.parametrize("size", [0, 3, 15, 17, 32])
    def test_a_state_of_another_size_is_refused(self, generator: tcuda.Generator, size: int) -> None:
        for change in (tcuda.set_rng_state, generator.set_state):
            with pytest.raises(RuntimeError, match=f"RNG state is wrong size: {size} bytes"):
                change(np.zeros(size, np.uint8))
        assert generator.get_offset() == 0

    @pytest.mark.parametrize("state", [np.zeros(16), np.zeros(16, np.int8), [0] * 16, b"0" * 16, 1, None])
    def test_a_state_of_another_type_is_refused(self, generator: tcuda.Generator, state: Any) -> None:
        for change in (tcuda.set_rng_state, generator.set_state):
            with pytest.raises(TypeError, match=r"RNG state must be a torch.ByteTensor, or an array of NumPy's"):
                change(state)
        assert generator.initial_seed() == 67280421310721

    def test_a_state_on_a_device_is_refused(self) -> None:
        with pytest.raises(TypeError, match=r"RNG state must be a torch.ByteTensor.* on the host"):
            tcuda.set_rng_state(xp.zeros(16, xp.uint8))

    def test_a_state_of_8_bytes_is_a_seed_with_offset_0(self, generator: tcuda.Generator) -> None:
        generator.set_offset(8)
        generator.set_state(bytes_of(5)[:8])
        np.testing.assert_array_equal(generator.get_state(), bytes_of(5))

    def test_a_state_may_be_any_array_that_numpy_can_read(self, generator: tcuda.Generator) -> None:
        class Tensor:
            dtype = "torch.uint8"

            def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
                return bytes_of(6, 12)

        generator.set_state(Tensor())  # type: ignore[arg-type]
        np.testing.assert_array_equal(generator.get_state(), bytes_of(6, 12))
        generator.set_state(np.repeat(bytes_of(7, 16), 2)[::2])
        np.testing.assert_array_equal(generator.get_state(), bytes_of(7, 16))

    def test_an_offset_is_a_multiple_of_4(self, generator: tcuda.Generator) -> None:
        generator.set_offset(np.int64(8))
        assert generator.get_offset() == 8
        with pytest.raises(RuntimeError, match="offset must be a multiple of 4, not 3"):
            generator.set_offset(3)
        with pytest.raises(RuntimeError, match="offset must be a multiple of 4, not 6"):
            generator.set_state(bytes_of(1, 6))
        with pytest.raises(RuntimeError, match="manual_offset expected a long, but got str"):
            generator.set_offset("8")  # type: ignore[arg-type]
        for offset in (-4, 1 << 64):
            with pytest.raises(ValueError, match=f"got {offset}"):
                generator.set_offset(offset)
        np.testing.assert_array_equal(generator.get_state(), bytes_of(67280421310721, 8))

    @pytest.mark.parametrize("device", [len(DEVICES), -1, 2**70, "cuda:99"])
    def test_a_generator_of_a_missing_device_is_refused(self, device: Any) -> None:
        with pytest.raises(RuntimeError, match="invalid device ordinal"):
            tcuda.Generator(device)

    @pytest.mark.parametrize(
        ("device", "error", "text"),
        [
            (len(DEVICES), IndexError, "there is no generator for device"),
            ("cuda:99", IndexError, "there is no generator for device 99"),
            (2**70, IndexError, "there is no generator for device"),
            (-1, RuntimeError, "Device index must not be negative; got -1"),
        ],
    )
    def test_a_missing_device_is_refused(self, device: Any, error: type[Exception], text: str) -> None:
        for call in (
            lambda: tcuda.get_rng_state(device),
            lambda: tcuda.set_rng_state(bytes_of(1), device),
            lambda: tcuda._get_rng_state_offset(device),
            lambda: tcuda._set_rng_state_offset(4, device),
        ):
            with pytest.raises(error, match=text):
                call()
        with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
            tcuda.get_rng_state("cpu")


class TestFork:
    def test_fork_rng_restores_the_state(self) -> None:
        tcuda.manual_seed(1)
        with tcuda.random.fork_rng():
            numbers = draw()
            tcuda.manual_seed(2)
        assert tcuda.initial_seed() == 1
        assert draw() == numbers

    def test_fork_rng_restores_the_state_after_an_exception(self) -> None:
        state = tcuda.get_rng_state()

        def fail() -> None:
            with tcuda.random.fork_rng([0]):
                draw()
                raise KeyError

        with pytest.raises(KeyError):
            fail()
        np.testing.assert_array_equal(tcuda.get_rng_state(), state)

    def test_fork_rng_without_devices_or_not_enabled_does_nothing(self) -> None:
        tcuda.manual_seed(1)
        with tcuda.random.fork_rng(enabled=False):
            draw()
        assert tcuda.default_generators[0].get_offset() == 4
        with tcuda.random.fork_rng(devices=[]):
            draw()
        assert tcuda.default_generators[0].get_offset() == 8

    @needs_two
    def test_fork_rng_restores_only_the_given_devices(self) -> None:
        tcuda.manual_seed_all(1)
        with tcuda.random.fork_rng(iter(["cuda:1"])):
            tcuda.manual_seed_all(2)
        assert [tcuda.default_generators[index].initial_seed() for index in (0, 1)] == [2, 1]

    def test_fork_rng_of_a_missing_device_is_refused(self) -> None:
        with pytest.raises(IndexError, match="no generator for device"), tcuda.random.fork_rng([len(DEVICES)]):
            pytest.fail("the scope was entered")


class TestGenerator:
    def test_a_new_generator_has_the_default_seed_of_torch(self, generator: tcuda.Generator) -> None:
        assert generator.initial_seed() == 67280421310721
        assert generator.get_offset() == 0
        assert generator.device == ("cuda", 0)

    def test_a_generator_does_not_affect_the_default_generator(self, generator: tcuda.Generator) -> None:
        before = tcuda.get_rng_state()
        draw(generator)
        np.testing.assert_array_equal(tcuda.get_rng_state(), before)
        assert generator.get_offset() == 4

    def test_seed_returns_the_random_seed(self, generator: tcuda.Generator) -> None:
        assert generator.seed() == generator.initial_seed() != generator.seed()

    def test_a_clone_continues_independently(self, generator: tcuda.Generator) -> None:
        draw(generator)
        clone = generator.clone_state()
        assert type(clone) is type(generator)
        numbers = draw(generator)
        assert draw(clone) == numbers
        clone.manual_seed(1)
        assert generator.initial_seed() != 1

    @pytest.mark.emulated
    def test_a_generator_of_the_array_module_is_cloned_too(self) -> None:
        made = xp.random.RandomState(3)
        draw(made)
        assert draw(made.clone_state()) == draw(pickle.loads(pickle.dumps(made))) == draw(made)

    def test_a_graphsafe_state_is_shared(self, generator: tcuda.Generator) -> None:
        other = generator.graphsafe_get_state()
        assert other is not generator
        draw(generator)
        assert other.get_offset() == 4
        third = tcuda.Generator()
        third.graphsafe_set_state(other)
        third.manual_seed(3)
        assert generator.initial_seed() == 3
        with pytest.raises(TypeError, match="expected a Generator, but got int"):
            third.graphsafe_set_state(3)  # type: ignore[arg-type]

    @needs_two
    def test_a_state_of_another_device_cannot_be_shared(self, generator: tcuda.Generator) -> None:
        with pytest.raises(RuntimeError, match="Expected a 'cuda:0' generator device but found 'cuda:1'"):
            generator.graphsafe_set_state(tcuda.Generator(1))

    @needs_two
    @pytest.mark.parametrize("name", ["random_sample", "standard_normal", "tomaxint", "standard_cauchy"])
    def test_a_generator_fills_only_arrays_of_its_own_device(self, name: str) -> None:
        generator = tcuda.Generator(1)
        with pytest.raises(RuntimeError, match="Expected a 'cuda:0' generator device but found 'cuda:1'"):
            getattr(generator, name)(3)
        assert generator.get_offset() == 0
        with tcuda.device(1):
            assert getattr(generator, name)(3).device.id == 1

    @pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
    def test_a_copy_has_the_same_state_and_device(self, generator: tcuda.Generator, copied: Callable[..., Any]) -> None:
        generator.manual_seed(WORD)
        draw(generator)
        made = copied(generator)
        numbers = draw(generator)
        assert made.device == generator.device
        assert draw(made) == numbers

    def test_the_repr_shows_device_seed_and_offset(self, generator: tcuda.Generator) -> None:
        generator.set_state(bytes_of(3, 8))
        assert repr(generator) == "<tcuda.Generator device='cuda:0' seed=3 offset=8>"

    def test_threads_never_draw_the_same_numbers(self, generator: tcuda.Generator) -> None:
        draws: list[bytes] = []
        start = threading.Barrier(4)

        def work() -> None:
            start.wait()
            draws.extend(draw(generator, 5) for _ in range(50))

        in_threads(work, 4 * [()])
        assert generator.get_offset() == 4 * 200
        alone = tcuda.Generator()
        assert set(draws) == {draw(alone, 5) for _ in range(200)}
        assert len(set(draws)) == 200

    @pytest.mark.parametrize("name", ["random_sample", "standard_normal", "tomaxint", "standard_gamma"])
    def test_a_capturing_stream_is_refused_before_the_capture_is_invalidated(
        self, runtime: Runtime, generator: tcuda.Generator, name: str
    ) -> None:
        derived = name == "standard_gamma"
        arguments = (2.0, 3) if derived else (3,)
        words = "while the current stream is capturing" if derived else "in a capture that tcuda.graph has not begun"
        stream = tcuda.Stream()
        with tcuda.stream(stream):
            runtime.streamBeginCapture(stream.cuda_stream, CAPTURE_RELAXED)
            try:
                with pytest.raises(RuntimeError, match=f"cannot be drawn {words}"):
                    getattr(generator, name)(*arguments)
            finally:
                graph = runtime.streamEndCapture(stream.cuda_stream)
        runtime.graphDestroy(graph)
        assert generator.get_offset() == 0
        assert draw(generator) == draw(tcuda.Generator())


class TestDefaultRng:
    def test_default_rng_has_the_methods_of_a_numpy_generator(self) -> None:
        rng: Any = tcuda.random.default_rng(seed=4)
        assert rng.initial_seed() == 4
        old = tcuda.Generator().manual_seed(4)
        assert rng.random(10).get().tobytes() == draw(old, 10)
        np.testing.assert_array_equal(rng.integers(5, size=100).get(), old.randint(0, 5, 100).get())
        np.testing.assert_array_equal(
            rng.integers(-5, 5, 100, "i2", endpoint=True).get(), old.randint(-5, 6, 100, "i2").get()
        )
        np.testing.assert_array_equal(rng.standard_normal((2, 3), "f").get(), old.randn(2, 3, dtype="f").get())

    def test_generators_without_a_seed_differ(self) -> None:
        assert tcuda.random.default_rng().initial_seed() != tcuda.random.default_rng("cuda:0").initial_seed()

    def test_out_is_filled_and_returned(self) -> None:
        rng: Any = tcuda.random.default_rng(seed=4)
        out = xp.zeros((2, 5), xp.float32)
        assert rng.random(out=out, dtype=xp.float32) is out
        same: Any = tcuda.random.default_rng(seed=4)
        np.testing.assert_array_equal(out.get(), same.random((2, 5), xp.float32).get())
        assert rng.standard_normal((2, 5), xp.float32, out) is out
        np.testing.assert_array_equal(out.get(), same.standard_normal((2, 5), xp.float32).get())

    def test_an_unsuitable_out_is_refused(self) -> None:
        rng: Any = tcuda.random.default_rng(seed=4)
        with pytest.raises(TypeError, match="Expected float64, got float32"):
            rng.random(out=xp.zeros(3, xp.float32))
        with pytest.raises(ValueError, match=r"size must match out.shape"):
            rng.random(4, out=xp.zeros(3))
        with pytest.raises(ValueError, match="not C-contiguous"):
            rng.random(out=xp.zeros((3, 3))[:, 1])
        assert rng.get_offset() == 0

    def test_pickling_keeps_the_state(self) -> None:
        rng: Any = tcuda.random.default_rng()
        rng.random(5)
        again = pickle.loads(pickle.dumps(rng))
        np.testing.assert_array_equal(again.random(5).get(), rng.random(5).get())


class TestBeforeInitialisation:
    def test_seeds_are_kept_in_order_until_initialisation(self, output_of: OutputOf) -> None:
        code = """
            import tcuda
            tcuda.manual_seed_all(5)
            tcuda.manual_seed(7)
            assert not tcuda.is_initialized()
            print(tcuda.initial_seed(), [generator.initial_seed() for generator in tcuda.default_generators][1:])
        """
        assert output_of(dedented(code)) == f"7 {[5] * (len(DEVICES) - 1)}"
        swapped = code.replace("_all(5)", "(5)").replace("seed(7)", "seed_all(7)")
        assert output_of(dedented(swapped)) == f"7 {[7] * (len(DEVICES) - 1)}"

    def test_a_state_is_copied_until_initialisation_and_an_offset_is_kept(self, output_of: OutputOf) -> None:
        code = """
            import numpy, tcuda
            state = numpy.zeros(16, numpy.uint8)
            state[0], state[8] = 9, 8
            tcuda.set_rng_state(state)
            state[0] = 1
            tcuda._set_rng_state_offset(4)
            assert not tcuda.is_initialized()
            print(tcuda.get_rng_state().tolist())
        """
        assert output_of(dedented(code)) == str([9, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0])

    def test_invalid_seeds_and_states_are_refused_before_initialisation(self, output_of: OutputOf) -> None:
        code = """
            import numpy, tcuda
            for call, value in ((tcuda.manual_seed, 1 << 64), (tcuda.manual_seed_all, 1 << 64),
                                (tcuda.set_rng_state, numpy.zeros(3, numpy.uint8)), (tcuda._set_rng_state_offset, 3)):
                try:
                    call(value)
                except (ValueError, RuntimeError) as error:
                    print(type(error).__name__)
            tcuda.init()
        """
        assert output_of(dedented(code)).split() == ["ValueError", "ValueError", "RuntimeError", "RuntimeError"]

    def test_without_a_seed_every_process_has_a_different_seed(self, output_of: OutputOf) -> None:
        code = "import tcuda; print(tcuda.initial_seed())"
        assert output_of(code) != output_of(code)
        assert output_of(code, CUPY_SEED="31") == "31"

    def test_a_seed_of_the_environment_that_is_no_number_is_refused(self, output_of: OutputOf) -> None:
        code = """
            import tcuda
            try:
                tcuda.initial_seed()
            except ValueError as error:
                print(error)
        """
        assert output_of(dedented(code), CUPY_SEED="x") == (
            "CUPY_SEED must be an integer, such as CUPY_SEED=7; got 'x'. Correct or remove the variable."
        )

    def test_a_seed_may_be_set_by_the_array_module_first(self, output_of: OutputOf) -> None:
        code = "import tcuda; xp = tcuda.xp; xp.random.seed(8); print(tcuda.initial_seed())"
        assert output_of(code) == "8"

    @pytest.mark.parametrize("first", ["rand(3)", "gamma(2.0, size=3)", "seed(5)", "get_random_state()"])
    def test_the_first_draw_uses_the_seed_from_before_initialisation(self, output_of: OutputOf, first: str) -> None:
        code = f"""
            import tcuda
            from tcuda import xp
            tcuda.manual_seed(5)
            xp.random.{first}
            xp.random.gamma(2.0, size=3)
            print(tcuda.initial_seed(), tcuda.default_generators[0].get_offset())
        """
        assert output_of(dedented(code)) == f"5 {4 if first in ('seed(5)', 'get_random_state()') else 8}"

    def test_reading_the_default_generators_initialises(self, output_of: OutputOf) -> None:
        code = "import tcuda; len(tcuda.default_generators); print(tcuda.is_initialized())"
        assert output_of(code) == "True"

    @pytest.mark.gpu
    @pytest.mark.parametrize("device", [0, pytest.param(1, marks=pytest.mark.multigpu)])
    def test_seeding_creates_no_cuda_context(self, output_of: OutputOf, device: int) -> None:
        code = f"""
            import ctypes, tcuda
            if {device}:
                tcuda.xp.random.rand(3)  # device 0 is in use
            tcuda.manual_seed(1); tcuda.manual_seed_all(1); tcuda.seed_all()
            if {device}:
                tcuda.set_rng_state(tcuda.get_rng_state({device}), {device})
            driver = ctypes.CDLL("libcuda.so.1")
            flags, active = ctypes.c_uint(), ctypes.c_int()
            assert driver.cuInit(0) == 0
            assert driver.cuDevicePrimaryCtxGetState({device}, ctypes.byref(flags), ctypes.byref(active)) == 0
            print(active.value)
        """
        assert output_of(dedented(code)) == "0"

    def test_seeding_without_a_device_is_ignored(self, output_of: OutputOf) -> None:
        code = """
            import tcuda
            tcuda.manual_seed(1); tcuda.manual_seed_all(1); tcuda.seed(); tcuda.seed_all()
            try:
                tcuda.get_rng_state()
            except RuntimeError as error:
                print("No CUDA GPUs" in str(error) or "CuPy cannot be imported" in str(error))
        """
        assert output_of(dedented(code), TCUDA_RUNTIME="cuda", CUDA_VISIBLE_DEVICES="") == "True"


def dedented(code: str) -> str:
    return "\n".join(line[12:] for line in code.splitlines())
