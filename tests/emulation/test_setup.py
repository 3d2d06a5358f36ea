"""The choice of emulated devices in code, and the exit of a process with living arrays.

Each test starts a process.
"""

from __future__ import annotations

import os
import textwrap

import pytest

pytestmark = pytest.mark.emulated


def checked(run_program):
    def run(program, **environment):
        nothing_chosen = dict.fromkeys(
            name for name in os.environ if name.startswith(("TCUDA_RUNTIME", "TCUDA_EMULATED"))
        )
        done = run_program(textwrap.dedent(program), **nothing_chosen | environment)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.split()

    return run


@pytest.fixture
def run(run_forked):
    """Return a function that runs a program without a chosen runtime, checks its exit and returns its output."""
    return checked(run_forked)


@pytest.fixture
def run_with_imports(run_python):
    """Return a function that does as ``run`` does, in a process that has imported nothing."""
    return checked(run_python)


def test_enable_chooses_devices_and_memory_before_first_use(run):
    assert run("""
        import tcuda.emulation as emulation
        from tcuda._runtime import runtime
        emulation.enable(devices=3, memory="64MiB")
        in_use = runtime()
        print(in_use.name, in_use.getDeviceCount(), in_use.memGetInfo()[1], emulation.clock().now())
        try:
            emulation.enable()
        except RuntimeError as error:
            print("already" in str(error))
    """) == ["emulated", "3", str(64 << 20), "0", "True"]  # fmt: skip


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "devices=3, memory='64MiB'",
        "schedule='late'",
        "schedule='late', seed=7",
        "schedule='eager'",
        "checks='races'",
    ],
)
@pytest.mark.parametrize("between", ["", "tcuda.synchronize()"], ids=["at once", "after a use"])
def test_a_second_enable_with_the_same_arguments_does_nothing(run, arguments, between):
    assert run(f"""
        import tcuda.emulation
        from tcuda._runtime import runtime
        tcuda.emulation.enable({arguments})
        before = runtime()
        {between}
        tcuda.emulation.enable({arguments})
        print(runtime() is before)
    """) == ["True"]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "there", "asked"),
    [
        ("devices=2", "TCUDA_EMULATED_DEVICES=1", "TCUDA_EMULATED_DEVICES=2"),
        ("memory=1024**3", "TCUDA_EMULATED_MEMORY=2147483648", "TCUDA_EMULATED_MEMORY=1073741824"),
        ("schedule='late', seed=7", "TCUDA_EMULATED_SCHEDULE=eager", "TCUDA_EMULATED_SCHEDULE=late:7"),
    ],
)
def test_a_second_enable_with_other_arguments_says_what_to_do_and_changes_nothing(run, arguments, there, asked):
    words = run(f"""
        import os
        import tcuda.emulation
        tcuda.emulation.enable()
        before = dict(os.environ)
        try:
            tcuda.emulation.enable({arguments})
        except RuntimeError as error:
            print(error)
        assert dict(os.environ) == before
    """)
    text = " ".join(words)
    assert text.startswith(f"Devices are already emulated, with {there}. ")
    assert "restart the program, or the kernel of the notebook" in text
    assert text.endswith(f"or set {asked}.")


def test_enable_takes_one_device_of_2_gib_by_default(run):
    assert run("""
        from tcuda import emulation
        emulation.enable()
        from tcuda._runtime import runtime
        print(runtime().getDeviceCount(), runtime().memGetInfo()[1], len(emulation.xp.zeros(5)))
    """) == ["1", str(2 << 30), "5"]  # fmt: skip


@pytest.mark.parametrize("arguments", ["devices=0", "devices=65", "memory=0", "memory='many'"])
def test_enable_refuses_impossible_values_and_can_be_called_again(run, arguments):
    assert run(f"""
        from tcuda import emulation
        try:
            emulation.enable({arguments})
        except ValueError as error:
            print("refused")
        emulation.enable()
        print(emulation.xp.ones(2).sum())
    """) == ["refused", "2.0"]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("devices=2**70", "ValueError"),
        ("devices=1.5", "TypeError"),
        ("devices='2'", "TypeError"),
        ("devices=True", "TypeError"),
        ("devices=None", "TypeError"),
        ("devices=[1]", "TypeError"),
        ("memory=None", "TypeError"),
        ("memory=1.5", "TypeError"),
        ("memory=True", "TypeError"),
        ("memory=float('nan')", "TypeError"),
        ("memory=2**70", "ValueError"),
        ("memory=-1", "ValueError"),
        ("memory='9' * 400", "ValueError"),
        ("memory='9' * 400 + 'GiB'", "ValueError"),
        ("memory='1.' + '9' * 400 + 'GiB'", "ValueError"),
        ("memory='-1GiB'", "ValueError"),
        ("memory=''", "ValueError"),
    ],
)
def test_enable_refuses_bad_types_and_sizes_with_a_reason(run, arguments, error):
    kind, length, *words = run(f"""
        from tcuda import emulation
        try:
            emulation.enable({arguments})
        except Exception as error:
            print(type(error).__name__, len(str(error)), error)
        emulation.enable()
        print(emulation.xp.ones(2).sum())
    """)
    assert kind == error
    assert 20 < int(length) < 200
    assert words[-1] == "2.0"


@pytest.mark.parametrize("variable", ["TCUDA_EMULATED_MEMORY", "TCUDA_EMULATED_DEVICES"])
@pytest.mark.parametrize("value", ["9" * 400, "many", "-1", "1e99"])
def test_impossible_settings_in_the_environment_are_errors_with_a_reason(run, variable, value):
    words = run(
        """
        import tcuda
        try:
            tcuda.init()
        except Exception as error:
            print(type(error).__name__, error)
        """,
        **{"TCUDA_RUNTIME": "emulated", variable: value},
    )
    assert words[0] == "ValueError"
    assert 5 < len(words) < 60


NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}
COUNT = "import tcuda; print(tcuda.device_count(), tcuda.mem_get_info()[1] >> 20)"


def test_empty_variables_are_variables_that_are_not_set(run):
    empty = {"TCUDA_EMULATED_DEVICES": "", "TCUDA_EMULATED_MEMORY": "", "TCUDA_EMULATED_SCHEDULE": ""}
    more = {"TCUDA_EMULATED_CHECKS": "", "TCUDA_ALLOC_CONF": ""}
    assert run(COUNT, TCUDA_RUNTIME="emulated", **empty, **more) == ["1", "2048"]
    assert run("import tcuda; print(tcuda.is_available())", TCUDA_RUNTIME="", **NO_GPU) == ["False"]


def test_auto_means_emulated_devices_without_a_gpu(run):
    variables = {"TCUDA_RUNTIME": "auto", "TCUDA_EMULATED_DEVICES": "3"}
    assert run(COUNT, **variables, **NO_GPU) == ["3", "2048"]  # the variable hides GPUs, and no emulated device
    code = "import os, tcuda; print(tcuda.is_available(), tcuda.device_count(), len(tcuda.xp.ones(3)))"
    assert run(code, **variables, **NO_GPU) == ["True", "3", "3"]


ENABLE = """
    import tcuda.emulation
    print(tcuda.emulation.enable_without_gpu(devices=2, memory="64MiB"))
    print(tcuda.is_available() and (tcuda.device_count(), tcuda.mem_get_info()[1] >> 20))
    print(tcuda.is_available() and tcuda.emulation.enable_without_gpu(devices=5), tcuda.device_count())
"""


@pytest.mark.parametrize(
    ("variables", "printed"),
    [
        ({}, "True (2, 64) True 2"),
        ({"TCUDA_RUNTIME": "auto"}, "True (2, 64) True 2"),
        ({"TCUDA_RUNTIME": "auto", "TCUDA_EMULATED_DEVICES": "4"}, "True (4, 64) True 4"),
        ({"TCUDA_EMULATED_DEVICES": "4", "TCUDA_EMULATED_MEMORY": "1MiB"}, "True (4, 1) True 4"),
        ({"TCUDA_RUNTIME": "emulated", "CUDA_VISIBLE_DEVICES": "1"}, "True (1, 64) True 1"),
        ({"TCUDA_RUNTIME": "cuda"}, "False False False 0"),
    ],
)
def test_one_line_chooses_emulated_devices_without_a_gpu(run, variables, printed):
    assert " ".join(run(ENABLE, **{**NO_GPU, **variables})) == printed


def test_the_line_may_come_after_a_look_for_gpus_and_refuses_bad_values(run):
    printed = run(
        """
        import tcuda
        print(tcuda.is_available())
        for bad in ({"devices": 0}, {"devices": "2"}, {"memory": "much"}):
            try:
                tcuda.emulation.enable_without_gpu(**bad)
            except (TypeError, ValueError) as error:
                print(type(error).__name__)
        print(tcuda.emulation.enable_without_gpu(devices=2), tcuda.device_count())
        """,
        **NO_GPU,
    )
    assert printed == ["False", "ValueError", "TypeError", "ValueError", "True", "2"]


CHECKS = """
    import os, subprocess, sys
    import tcuda.emulation
    {call}
    print(os.environ.get("TCUDA_EMULATED_CHECKS"))
    code = "from tcuda.emulation.rtc import chosen; print(chosen().races)"
    print(subprocess.check_output([sys.executable, "-c", code], text=True).strip())
"""


@pytest.mark.parametrize(
    ("call", "printed"),
    [
        ("tcuda.emulation.enable(checks='memory,races')", ["memory,races", "True"]),
        ("tcuda.emulation.enable()", ["None", "False"]),
        ("tcuda.emulation.enable_without_gpu(checks='races:benign=off')", ["races:benign=off", "True"]),
    ],
)
def test_an_argument_chooses_the_checks_of_kernels_for_children_too(run, call, printed):
    assert run(CHECKS.format(call=call), **NO_GPU) == printed


def test_the_environment_goes_before_the_checks_of_a_line_for_machines_without_a_gpu(run):
    call = "tcuda.emulation.enable_without_gpu(checks='memory,races')"
    assert run(CHECKS.format(call=call), TCUDA_EMULATED_CHECKS="memory", **NO_GPU) == ["memory", "False"]
    twice = f"tcuda.emulation.enable_without_gpu(); {call}"  # the first call chooses
    assert run(CHECKS.format(call=twice), **NO_GPU) == ["None", "False"]
    enable = "tcuda.emulation.enable(checks='memory,races')"
    assert run(CHECKS.format(call=enable), TCUDA_EMULATED_CHECKS="memory", **NO_GPU) == ["memory,races", "True"]


def test_wrong_checks_are_refused_and_change_nothing(run):
    printed = run(
        """
        import os
        import tcuda.emulation
        for call in (tcuda.emulation.enable, tcuda.emulation.enable_without_gpu):
            for bad in ("race", "", 1, ["memory"]):
                try:
                    call(checks=bad)
                except (TypeError, ValueError) as error:
                    print(type(error).__name__, "checks" in str(error))
        print([name for name in os.environ if name.startswith("TCUDA_")])
        tcuda.emulation.enable(devices=2)
        print(tcuda.device_count())
        """,
        **NO_GPU,
    )
    assert printed == [*["ValueError", "True"] * 2, *["TypeError", "True"] * 2] * 2 + ["[]", "2"]


def test_the_clock_belongs_to_emulated_devices_only(run):
    assert run("""
        import tcuda._runtime
        from tcuda import emulation
        class OtherRuntime:
            name = "other"
        tcuda._runtime._in_use = OtherRuntime()
        try:
            emulation.clock()
        except RuntimeError as error:
            print("The other runtime is in use" in str(error), "enable()" in str(error))
    """) == ["True", "True"]  # fmt: skip


def test_importing_the_package_uses_no_device(run_with_imports):
    assert run_with_imports("""
        from tcuda import emulation
        from tcuda import _runtime
        from tcuda._process import lazy
        print(_runtime._in_use, lazy.is_initialized())
        emulation.xp.float32, emulation.xp.linalg.norm, emulation.ndarray
        print(_runtime._in_use)
    """) == ["None", "False", "None"]  # fmt: skip


def test_importing_the_package_imports_no_numpy(run_with_imports):
    assert run_with_imports("""
        import sys, tcuda
        from tcuda import emulation
        emulation.enable()
        print("numpy" in sys.modules, {"xp", "ndarray"} <= set(dir(emulation)))
        from tcuda.emulation import ndarray, xp
        print("numpy" in sys.modules, emulation.xp is xp, isinstance(xp.ones(1), emulation.ndarray))
    """) == ["False", "True", "True", "True", "True"]  # fmt: skip


@pytest.mark.parametrize("first", ["arrays.ndarray", "work.creation", "random", "xp", "arrays.functions"])
def test_a_pickled_array_and_its_class_can_be_loaded_in_a_new_process(run_with_imports, first):
    program = f"""
        import pickle, sys
        import tcuda.emulation.{first}
        from tcuda import emulation
        assert isinstance(emulation.ndarray, type)
        assert pickle.loads(pickle.dumps(emulation.ndarray)) is emulation.ndarray
        print(pickle.dumps(emulation.xp.arange(3)).hex(), pickle.dumps(emulation.xp.empty).hex())
    """
    array, function = run_with_imports(program, TCUDA_RUNTIME="emulated")
    fresh = f"""
        import pickle
        print(pickle.loads(bytes.fromhex("{array}")).sum(), pickle.loads(bytes.fromhex("{function}"))(3).shape)
    """
    assert run_with_imports(fresh, TCUDA_RUNTIME="emulated") == ["3", "(3,)"]


def test_a_process_exits_normally_while_arrays_are_alive(run):
    assert run(
        """
        import atexit, builtins, sys, threading
        from tcuda.emulation import xp

        class Node:
            pass

        node = Node()
        node.itself, node.array = node, xp.ones(10)          # part of a cycle
        builtins.kept = xp.ones(10)                          # until the end of the interpreter
        sys.kept = [xp.ones(10)[1:]]                         # only a view is alive
        local = threading.local()
        local.array = xp.ones(10)
        thread = threading.Thread(target=lambda array: None, args=(xp.ones(10),))
        thread.start()
        atexit.register(lambda: print(float(kept.sum())))    # arrays can be used in atexit functions

        class Late:
            def __init__(self):
                self.array = xp.ones(10)
            def __del__(self):
                del self.array

        builtins.late = Late()
        """,
        TCUDA_RUNTIME="emulated",
    ) == ["10.0"]


def test_nothing_is_freed_once_the_process_is_exiting(run):
    assert run(
        """
        import builtins, os, weakref
        import tcuda
        from tcuda.emulation import xp

        class Watched:
            \"""Writes how much is allocated, and whether the array is dead, when the object dies.\"""

            def __init__(self, array):
                self.block = weakref.ref(array.data.mem)

            def __del__(self, write=os.write, allocated=tcuda.memory_allocated):
                write(1, b"%d %d " % (allocated(), self.block() is None))

        array = xp.ones(10)
        watched = Watched(array)
        del array
        del watched
        builtins.kept = xp.ones(10)                           # The interpreter clears the names in their order.
        builtins.watched = Watched(kept)
        """,
        TCUDA_RUNTIME="emulated",
    ) == ["0", "1", "512", "1"]


def test_the_garbage_collector_may_run_anywhere(run):
    """Run the collector also while the emulation holds locks: a finalizer that takes a lock would wait for ever."""
    assert run(
        """
        import faulthandler, gc
        faulthandler.dump_traceback_later(30, exit=True)
        import tcuda
        from tcuda._runtime import runtime
        from tcuda.emulation import clock, xp

        class Node:
            pass

        stream = tcuda.Stream()

        def garbage():
            node = Node()
            node.itself, node.array, node.pool = node, xp.empty(8), tcuda.MemPool()
            tcuda.memory.record_stream(node.array, stream)  # the free of the array needs the stream
            with tcuda.use_mem_pool(node.pool):
                xp.empty(8)  # the end of the pool waits for the stream of this array
            return node

        gc.collect()
        gc.freeze()
        for threshold in (1, 2, 3, 4):
            for _ in range(100):
                gc.disable()
                node = garbage()
                gc.collect(0)
                gc.set_threshold(threshold, 100, 100)
                gc.enable()
                node = None
                clock().wait_until(5)
        node = garbage()
        with clock()._lock, runtime()._machine.lock:
            node = None
            gc.collect()
        gc.unfreeze()
        gc.collect()
        print(tcuda.memory_allocated(), len(tcuda.memory_snapshot()))
        """,
        TCUDA_RUNTIME="emulated",
    ) == ["0", "1"]


def test_a_forked_child_leaves_the_memory_to_its_parent(run):
    """Let a child drop an array: the child must not call the runtime, whose lock a thread of the parent may hold."""
    assert run(
        """
        import os, signal, threading, warnings
        from tcuda.emulation import xp
        from tcuda._runtime import runtime

        array = xp.arange(3)
        held, done = threading.Event(), threading.Event()

        def hold():
            with runtime()._machine.lock:
                held.set()
                done.wait()

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python warns of forks while there are threads
            child = os.fork()
        if child == 0:
            signal.alarm(20)
            del array
            try:
                xp.ones(3)
            except RuntimeError as error:
                os._exit(7 if "Cannot re-initialize" in str(error) else 1)
        done.set()
        thread.join()
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), array.sum())
        """,
        TCUDA_RUNTIME="emulated",
    ) == ["7", "3"]
