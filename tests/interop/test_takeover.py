"""tcuda takes CuPy over in either order of import, at any first use, and only if the program allows it."""

from __future__ import annotations

import sys
from textwrap import dedent
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from tcuda._base.imports import FollowedImport
from tcuda._cupy import takeover
from tcuda._process.ledger import ledger

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.fixture_types import OutputOf, RunPython

ORDERS = pytest.mark.parametrize("imports", ["import cupy, tcuda", "import tcuda, cupy"])

STAND_IN = '''
"""The parts of CuPy that tcuda changes. Arrays are sizes."""

from types import SimpleNamespace


class Pool:
    def malloc(self, size):
        return "pool", size


class Stream:
    def __init__(self): self.ptr, self.device_id = 7, 0
    def __del__(self): pass


class Event:
    pass


_pool = Pool()
_allocator = _pool.malloc


def set_allocator(allocator):
    global _allocator
    _allocator = allocator


def get_default_memory_pool(): return _pool


class PinnedMemoryPointer:
    def __init__(self, mem, offset): self.mem, self.ptr = mem, mem.ptr + offset


def set_pinned_memory_allocator(allocator):
    global _pinned_allocator
    _pinned_allocator = allocator


def get_default_pinned_memory_pool(): return _pool


cuda = SimpleNamespace(
    get_allocator=lambda: _allocator, set_allocator=set_allocator, alloc=lambda size: _allocator(size),
    Stream=Stream, Event=Event, PinnedMemoryPointer=PinnedMemoryPointer,
    set_pinned_memory_allocator=set_pinned_memory_allocator, alloc_pinned_memory=lambda size: _pinned_allocator(size),
)
random = SimpleNamespace(get_random_state=lambda: "state")
random._generator = SimpleNamespace(get_random_state=random.get_random_state)
'''


@pytest.fixture
def stand_in(tmp_path: Path) -> None:
    """Put a package named cupy before CuPy on the path of the test's processes."""
    (tmp_path / "cupy").mkdir()
    (tmp_path / "cupy" / "__init__.py").write_text(STAND_IN)


class TestImport:
    @pytest.mark.wings
    @ORDERS
    @pytest.mark.usefixtures("stand_in")
    def test_cupy_is_watched_in_either_order(self, output_of: OutputOf, imports: str) -> None:
        code = f"{imports}; print(cupy.cuda.get_allocator().__self__.__class__.__name__, tcuda.is_initialized())"
        assert output_of(code, TCUDA_RUNTIME="emulated") == "FirstUse False"

    @pytest.mark.wings
    @pytest.mark.usefixtures("stand_in")
    def test_looking_for_cupy_does_not_end_the_wait_for_its_import(self, output_of: OutputOf) -> None:
        code = """
            import importlib.util, sys, tcuda
            for _ in range(3):
                spec = importlib.util.find_spec("cupy")
            assert "cupy" not in sys.modules
            hooks = len(sys.meta_path)
            import cupy
            print(type(spec.loader).__name__, type(cupy.__spec__.loader).__name__, hooks - len(sys.meta_path))
            print(cupy.cuda.get_allocator().__self__.__class__.__name__)
        """
        told = output_of(dedent(code), TCUDA_RUNTIME="emulated").split()
        assert told == ["SourceFileLoader", "SourceFileLoader", "1", "FirstUse"]

    @pytest.mark.wings
    def test_an_import_that_failed_can_be_repeated(self, output_of: OutputOf, tmp_path: Path) -> None:
        (tmp_path / "cupy").mkdir()
        source = f"import sys\nif not hasattr(sys, 'works'): raise ImportError('no driver')\n{STAND_IN}"
        (tmp_path / "cupy" / "__init__.py").write_text(source)
        code = """
            import sys, tcuda
            try:
                import cupy
            except ImportError as error:
                print(error)
            sys.works = True
            import cupy
            print(cupy.cuda.get_allocator().__self__.__class__.__name__)
        """
        assert output_of(dedent(code), TCUDA_RUNTIME="emulated").split("\n") == ["no driver", "FirstUse"]

    @pytest.mark.wings
    @ORDERS
    @pytest.mark.usefixtures("stand_in")
    def test_cupy_is_left_alone_if_devices_are_emulated(self, output_of: OutputOf, imports: str) -> None:
        code = f"""
            {imports}
            tcuda.init()
            cupy.cuda.Stream(), cupy.cuda.Event(), cupy.random.get_random_state()
            print(*cupy.cuda.alloc(10), tcuda.memory_allocated())
        """
        assert output_of(dedent(code), TCUDA_RUNTIME="emulated") == "pool 10 0"

    @pytest.mark.wings
    @ORDERS
    @pytest.mark.usefixtures("stand_in")
    def test_the_variable_leaves_cupy_alone(self, output_of: OutputOf, imports: str) -> None:
        code = f"{imports}; print(cupy.cuda.get_allocator().__self__.__class__.__name__)"
        assert output_of(code, TCUDA_RUNTIME="emulated", TCUDA_NO_CUPY_TAKEOVER="1") == "Pool"


class Pool:
    def malloc(self, size: int) -> tuple[str, int]:
        return "pool", size


def ledgers(size: int) -> tuple[str, int]:
    return "ledger", size


def programs(size: int) -> tuple[str, int]:
    return "program", size


class FakeLedger:
    def __init__(self) -> None:
        self.streams: list[tuple[str, int, int]] = []

    def stream_created(self, device: int, handle: int) -> None:
        self.streams.append(("created", device, handle))

    def stream_about_to_be_destroyed(self, device: int, handle: int) -> None:
        self.streams.append(("destroyed", device, handle))


class FakeCupy:
    """The parts of CuPy that tcuda changes, as an object."""

    def __init__(self) -> None:
        class Stream:
            def __init__(self, null: bool = False) -> None:
                self.ptr, self.device_id = (0, -1) if null else (7, 0)

            def __del__(self) -> None:
                pass

        class Event:
            def __init__(self) -> None:
                pass

        self._pool = Pool()
        self._allocator: Any = self._pool.malloc
        self._pinned_allocator: Any = self._pool.malloc
        self.forbids_to_set = False
        self.cuda = SimpleNamespace(
            get_allocator=lambda: self._allocator,
            set_allocator=self._set,
            set_pinned_memory_allocator=self._set_pinned,
            alloc_pinned_memory=lambda size: self._pinned_allocator(size),
            PinnedMemoryPointer=lambda memory, offset: (memory, offset),
            Stream=Stream,
            Event=Event,
        )

        def get_random_state() -> str:
            return "state"

        self.random = SimpleNamespace(
            get_random_state=get_random_state, _generator=SimpleNamespace(get_random_state=get_random_state)
        )
        self.originals = self.places()

    def get_default_memory_pool(self) -> Pool:
        return self._pool

    def get_default_pinned_memory_pool(self) -> Pool:
        return self._pool

    def _set(self, allocator: Any) -> None:
        self._allocator = allocator

    def _set_pinned(self, allocator: Any) -> None:
        self._pinned_allocator = allocator

    def places(self) -> list[Any]:
        random = self.random
        places = [self.cuda.Stream.__init__, self.cuda.Event.__init__]
        return [*places, random.get_random_state, random._generator.get_random_state]


USES = {
    "array": lambda cupy: cupy.cuda.get_allocator()(8),
    "random number": lambda cupy: cupy.random._generator.get_random_state(),
    "random state": lambda cupy: cupy.random.get_random_state(),
    "stream": lambda cupy: cupy.cuda.Stream(),
    "event": lambda cupy: cupy.cuda.Event(),
    "page-locked memory": lambda cupy: cupy.cuda.alloc_pinned_memory(8),
}


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCupy]:
    monkeypatch.setattr(takeover, "_first_use", None)
    monkeypatch.delenv(takeover.VARIABLE, raising=False)
    monkeypatch.setattr(takeover, "_host_allocator", lambda cupy, ledger: lambda size: ("host", size))
    return FakeCupy()


class TestFirstUse:
    @pytest.mark.parametrize("use", USES)
    def test_only_the_first_use_initialises(self, cupy: FakeCupy, use: str) -> None:
        calls = []

        def initialize() -> None:
            calls.append(use)
            takeover.take_over(cupy, ledgers, FakeLedger())

        takeover.watch(cupy, initialize)
        first = USES[use](cupy)
        for each in USES.values():
            each(cupy)
        assert calls == [use]
        assert first == ("ledger", 8) or use != "array"
        assert cupy.cuda.get_allocator() is ledgers
        assert cupy.places()[1:] == cupy.originals[1:]  # Stream.__init__ stays replaced, because it notifies the ledger

    @pytest.mark.parametrize("use", USES)
    def test_a_failed_initialisation_raises_and_is_repeated_at_the_next_use(self, cupy: FakeCupy, use: str) -> None:
        calls = []

        def initialize() -> None:
            calls.append(use)
            raise ValueError("there is no option 'a'")

        takeover.watch(cupy, initialize)
        for _ in range(2):
            with pytest.raises(ValueError, match="there is no option 'a'"):
                USES[use](cupy)
        assert len(calls) == 2

    def test_without_a_device_cupys_own_pool_allocates(self, cupy: FakeCupy) -> None:
        takeover.watch(cupy, lambda: None)
        assert USES["array"](cupy) == ("pool", 8)

    def test_initialising_in_another_way_ends_the_watch(self, cupy: FakeCupy) -> None:
        calls: list[str] = []
        takeover.watch(cupy, lambda: calls.append("initialize"))
        takeover.take_over(cupy, ledgers, FakeLedger())
        assert [USES[use](cupy) for use in ("array", "random state")] == [("ledger", 8), "state"]
        assert calls == []

    def test_the_ledger_is_notified_of_streams(self, cupy: FakeCupy) -> None:
        ledger = FakeLedger()
        takeover.watch(cupy, lambda: takeover.take_over(cupy, ledgers, ledger))
        stream = cupy.cuda.Stream()
        later = cupy.cuda.Stream()
        default = cupy.cuda.Stream(null=True)
        del stream, later, default
        # The ledger was made during the creation of the first stream, so the ledger knows only of its end.
        assert ledger.streams == [("created", 0, 7), ("destroyed", 0, 7), ("destroyed", 0, 7)]

    def test_every_first_use_in_a_forked_child_initialises(self, cupy: FakeCupy) -> None:
        calls: list[str] = []
        takeover.watch(cupy, lambda: calls.append("initialize"))
        takeover.take_over(cupy, ledgers, FakeLedger())
        takeover._refuse_in_child()
        for use in USES.values():
            use(cupy)
        assert calls == ["initialize"] * len(USES)

    def test_a_replacement_by_another_library_stays(self, cupy: FakeCupy) -> None:
        takeover.watch(cupy, lambda: None)

        def others() -> str:
            return "others"

        cupy.random.get_random_state = others
        takeover.take_over(cupy, ledgers, FakeLedger())
        assert cupy.random.get_random_state is others


class TestPageLockedMemory:
    def test_it_comes_from_the_ledger(self, cupy: FakeCupy) -> None:
        takeover.watch(cupy, lambda: None)
        assert cupy.cuda.alloc_pinned_memory(8) == ("pool", 8)  # without a device
        takeover.take_over(cupy, ledgers, FakeLedger())
        assert cupy.cuda.alloc_pinned_memory(8) == ("host", 8)

    def test_an_allocator_that_the_program_chooses_later_stays(self, cupy: FakeCupy) -> None:
        takeover.watch(cupy, lambda: None)
        cupy.cuda.set_pinned_memory_allocator(programs)
        takeover.take_over(cupy, ledgers, FakeLedger())
        takeover._refuse_in_child()
        assert cupy.cuda.alloc_pinned_memory(8) == programs(8)

    def test_cupys_pointer_keeps_the_memory_and_cupys_error_is_raised(self, runtime: Any) -> None:
        class CudaRuntimeError(RuntimeError):
            def __init__(self, status: int) -> None:
                self.status = status

        cuda = SimpleNamespace(
            PinnedMemoryPointer=lambda memory, offset: (memory, offset),
            runtime=SimpleNamespace(CUDARuntimeError=CudaRuntimeError),
        )
        before = tcuda.host_memory_stats()["active_requests.current"]
        malloc = takeover._host_allocator(SimpleNamespace(cuda=cuda), ledger())
        memory, offset = malloc(100)
        assert (memory.size, offset) == (100, 0)
        assert tcuda.memory.is_pinned(np.frombuffer(memory, np.uint8))
        assert tcuda.host_memory_stats()["active_requests.current"] == before + 1
        with pytest.raises(CudaRuntimeError) as error:
            malloc(1 << 56)
        assert error.value.status == 2


class TestAllocatorOfTheProgram:
    def test_set_before_the_watch(self, cupy: FakeCupy) -> None:
        cupy.cuda.set_allocator(programs)
        takeover.watch(cupy, lambda: None)
        takeover.take_over(cupy, ledgers, FakeLedger())
        assert cupy.cuda.get_allocator() is programs

    def test_set_after_the_watch(self, cupy: FakeCupy) -> None:
        takeover.watch(cupy, lambda: None)
        cupy.cuda.set_allocator(programs)
        takeover.take_over(cupy, ledgers, FakeLedger())
        assert cupy.cuda.get_allocator() is programs

    def test_that_calls_the_allocator_before_it(self, cupy: FakeCupy) -> None:
        """Keep the function that watches for a first use, and make that function the allocator again."""
        takeover.watch(cupy, lambda: takeover.take_over(cupy, ledgers, FakeLedger()))
        before = cupy.cuda.get_allocator()
        cupy.cuda.set_allocator(lambda size: ("program", *before(size)))
        assert cupy.cuda.get_allocator()(8) == ("program", "ledger", 8)
        cupy.cuda.set_allocator(before)
        assert cupy.cuda.get_allocator()(8) == ("ledger", 8)

    def test_the_variable_leaves_cupy_its_pool(self, cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(takeover.VARIABLE, "1")
        takeover.watch(cupy, lambda: pytest.fail("nothing is to be initialised"))
        takeover.take_over(cupy, ledgers, FakeLedger())
        assert cupy.cuda.get_allocator()(8) == ("pool", 8)


FIRST_TOUCHES = {
    "array": "cupy.ones(5)",
    "array of the host": "cupy.asarray([1, 2])",
    "random number": "cupy.random.random()",
    "seed": "cupy.random.seed(5)",
    "stream": "cupy.cuda.Stream()",
    "event": "cupy.cuda.Event()",
    "page-locked memory": "cupy.cuda.alloc_pinned_memory(8)",
}


@pytest.mark.gpu
class TestCuPy:
    @ORDERS
    @pytest.mark.parametrize("touch", FIRST_TOUCHES)
    def test_any_first_touch_initialises(self, output_of: OutputOf, imports: str, touch: str) -> None:
        code = f"{imports}; before = tcuda.is_initialized(); x = {FIRST_TOUCHES[touch]}; "
        code += "print(before, tcuda.is_initialized())"
        assert output_of(code) == "False True"

    @ORDERS
    def test_the_first_array_is_counted(self, output_of: OutputOf, imports: str) -> None:
        code = f"{imports}; x = cupy.empty(1000); print(tcuda.memory_allocated(), type(x).__module__)"
        assert output_of(code) == "8192 cupy"

    @ORDERS
    def test_a_pluggable_allocator_gets_the_first_array(
        self, output_of: OutputOf, imports: str, plugged_path: str
    ) -> None:
        code = f"""
            {imports}
            allocator = tcuda.CUDAPluggableAllocator({plugged_path!r}, "logged_alloc", "logged_free")
            tcuda.change_current_allocator(allocator)
            x = cupy.ones(5)
            print(tcuda.get_allocator_backend())
            try: tcuda.change_current_allocator(allocator)
            except RuntimeError as error: print(str(error).split(":")[0])
        """
        told = output_of(dedent(code)).splitlines()
        assert told == ["pluggable", "Can't swap an already initialized allocator"]

    @ORDERS
    def test_settings_of_the_environment_apply(self, output_of: OutputOf, imports: str) -> None:
        code = f"{imports}; x = cupy.empty(1000); print(tcuda.get_allocator_backend(), tcuda.memory_reserved())"
        assert output_of(code, TCUDA_ALLOC_CONF="backend:cudaMallocAsync") == "cudaMallocAsync 0"

    @ORDERS
    def test_a_memory_limit_of_the_environment_applies(self, output_of: OutputOf, imports: str) -> None:
        code = f"""
            {imports}
            try: cupy.empty(4 << 30, dtype="uint8")
            except tcuda.OutOfMemoryError as error: print(type(error).__name__)
        """
        fraction = "per_process_memory_fraction:0.01"
        assert output_of(dedent(code), TCUDA_ALLOC_CONF=fraction) == "OutOfMemoryError"

    @ORDERS
    def test_an_unknown_setting_fails_the_first_array(self, run_python: RunPython, imports: str) -> None:
        done = run_python(f"{imports}; cupy.ones(5)", TCUDA_ALLOC_CONF="colour:red")
        assert done.returncode == 1
        assert "there is no option 'colour'" in done.stderr

    @ORDERS
    def test_a_fork_after_the_first_array_is_recognised(self, output_of: OutputOf, imports: str) -> None:
        assert output_of(FORK.format(before=f"{imports}; x = cupy.ones(5)")) == f"{FORKED * 3}|"

    def test_a_fork_is_recognised_if_cupy_was_used_before_the_import(self, output_of: OutputOf) -> None:
        assert output_of(FORK.format(before="import cupy; x = cupy.ones(5); import tcuda")) == f"{FORKED * 3}|"

    @pytest.mark.parametrize("point", ["before", "after"])
    def test_a_program_keeps_an_allocator_of_its_own(self, output_of: OutputOf, point: str) -> None:
        own = "pool = cupy.cuda.MemoryPool(); cupy.cuda.set_allocator(pool.malloc)"
        imports = f"import cupy; {own}; import tcuda" if point == "before" else f"import tcuda, cupy; {own}"
        code = f"""
            {imports}
            x = cupy.zeros(1000)
            print(pool.used_bytes())
            tcuda.init()
            y = cupy.zeros(1000)
            print(pool.used_bytes(), tcuda.memory_allocated())
        """
        assert output_of(dedent(code)).split() == ["8192", "16384", "0"]

    @ORDERS
    def test_the_variable_turns_the_takeover_off(self, output_of: OutputOf, imports: str) -> None:
        code = f"""
            {imports}
            cupy.random.seed(3)
            x = cupy.random.random(1000)
            print(tcuda.is_initialized())
            tcuda.manual_seed(5)
            y = cupy.zeros(1000)
            print(cupy.get_default_memory_pool().used_bytes() >= 16384, tcuda.memory_allocated())
        """
        assert output_of(dedent(code), TCUDA_NO_CUPY_TAKEOVER="1").split() == ["False", "True", "0"]

    def test_a_scope_with_another_allocator_keeps_that_allocator(self, output_of: OutputOf) -> None:
        code = """
            import cupy
            pool = cupy.cuda.MemoryPool()
            with cupy.cuda.using_allocator(pool.malloc):
                import tcuda
                x = cupy.zeros(1000)
                tcuda.init()
                y = cupy.zeros(1000)
            z = cupy.zeros(1000)
            print(pool.used_bytes(), tcuda.memory_allocated())
        """
        assert output_of(dedent(code)).split() == ["16384", "8192"]

    def test_arrays_from_before_the_import_keep_their_memory(self, output_of: OutputOf) -> None:
        code = """
            import cupy
            x = cupy.arange(1000)
            import tcuda
            y = x + 1
            print(tcuda.memory_allocated(), int(y.sum()), cupy.get_default_memory_pool().used_bytes())
            del x
            print(cupy.get_default_memory_pool().used_bytes())
        """
        assert output_of(dedent(code)).split() == ["8192", "500500", "8192", "0"]

    @ORDERS
    def test_a_seed_given_to_cupy_first_is_kept(self, output_of: OutputOf, imports: str) -> None:
        code = f"{imports}; cupy.random.seed(7); print(tcuda.initial_seed())"
        assert output_of(code) == "7"

    @ORDERS
    def test_without_a_device_cupy_raises_its_own_error(self, run_python: RunPython, imports: str) -> None:
        done = run_python(f"{imports}; cupy.ones(5)", CUDA_VISIBLE_DEVICES="")
        assert "CUDARuntimeError: cudaErrorNoDevice" in done.stderr
        assert "tcuda" not in done.stderr.splitlines()[-1]


FORKED = "Cannot re-initialize CUDA in forked subprocess. "

FORK = """
import os, warnings
warnings.simplefilter("ignore")
{before}
read, write = os.pipe()
if os.fork() == 0:
    said = ""
    for call in (tcuda.current_device, lambda: cupy.ones(5), lambda: cupy.random.random()):
        try: said += f"{{call()}} "
        except RuntimeError as error: said += str(error).split("To use")[0]
    os.write(write, said.encode())
    os._exit(0)
os.wait()
print(os.read(read, 10000).decode(), end="|")
"""


def test_the_import_hook_is_removed_once_cupy_is_imported() -> None:
    names = [finder._name for finder in sys.meta_path if isinstance(finder, FollowedImport)]
    assert ("cupy" in names) == ("cupy" not in sys.modules)


@pytest.mark.gpu
@pytest.mark.alone
@pytest.mark.parametrize("first", ["", "tcuda.init()", "tcuda.memory_allocated()", "tcuda.xp.random"])
def test_the_first_array_begins_the_runtime_of_the_device(fresh_output_of: OutputOf, first: str) -> None:
    code = f"""
import time, cupy, tcuda

def shortest():
    times = []
    for _ in range(50):
        begin = time.perf_counter_ns()
        for _ in range(100):
            cupy.cuda.runtime.getDevice()
        times.append(time.perf_counter_ns() - begin)
    return min(times)

{first}
x = cupy.empty(1000)
before = shortest()
x += 1  # a kernel begins the runtime too
cupy.cuda.Device().synchronize()
print(before / shortest())
"""
    assert float(fresh_output_of(code)) < 3
