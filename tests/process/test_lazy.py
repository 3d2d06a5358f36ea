"""Initialisation: the calls that start it, the calls that wait for it, and its error in a forked child."""

from __future__ import annotations

import os
import pickle
import re
from typing import TYPE_CHECKING

import pytest

import tcuda
from support.devices import WITHOUT_DEVICE

if TYPE_CHECKING:
    from support.fixture_types import OutputOf, RunPython


def test_the_first_call_that_needs_a_device_initialises(output_of: OutputOf) -> None:
    code = (
        "import tcuda\n"
        "before = tcuda.is_initialized()\n"
        "tcuda.device_count(); tcuda.is_available(); tcuda.Event(); tcuda.device(0)\n"
        "still = tcuda.is_initialized()\n"
        "tcuda.current_device()\n"
        "print(before, still, tcuda.is_initialized())"
    )
    assert output_of(code) == "False False True"


def test_init_may_be_called_again() -> None:
    tcuda.init()
    tcuda.init()
    assert tcuda.is_initialized()


def test_queued_calls_run_once_in_order_at_initialisation(output_of: OutputOf) -> None:
    code = (
        "import tcuda\n"
        "calls = []\n"
        "tcuda._lazy_call(lambda: calls.append(1))\n"
        "tcuda._lazy_call(lambda: calls.append(tcuda.current_device() + 2))\n"  # needs initialisation itself
        "queued = list(calls)\n"
        "tcuda.init(); tcuda.init()\n"
        "tcuda._lazy_call(lambda: calls.append(3))\n"
        "print(queued, calls)"
    )
    assert output_of(code) == "[] [1, 2, 3]"


def test_the_error_of_a_queued_call_shows_where_it_was_queued(output_of: OutputOf) -> None:
    code = (
        "import tcuda\n"
        "def queue_it_here(): tcuda._lazy_call(lambda: 1 / 0)\n"
        "queue_it_here()\n"
        "try: tcuda.init()\n"
        "except tcuda.DeferredCudaCallError as error: print(error, type(error.__cause__).__name__)\n"
        "print(tcuda.is_initialized())"
    )
    printed = output_of(code)
    assert printed.startswith("CUDA call failed lazily at initialization with error: division by zero")
    assert "queue_it_here" in printed
    assert "ZeroDivisionError" in printed
    assert printed.endswith("False")


def test_an_initialisation_that_is_tried_again_keeps_its_ledger(output_of: OutputOf) -> None:
    code = (
        "import tcuda\n"
        "made = []\n"
        "def queued():\n"
        "    made.append(tcuda.xp.ones(1000))\n"
        "    assert len(made) == 2, 'the first time it fails'\n"
        "tcuda._lazy_call(queued)\n"
        "try: tcuda.init()\n"
        "except tcuda.DeferredCudaCallError as error: print('the first time it fails' in str(error))\n"
        "tcuda.init()\n"
        "print(tcuda.memory_allocated())\n"
        "made.clear()\n"
        "tcuda.empty_cache()\n"
        "print(tcuda.memory_allocated(), tcuda.memory_reserved())"
    )
    assert output_of(code).split() == ["True", "16384", "0", "0"]


def test_initialisation_can_be_repeated_with_a_corrected_setting(output_of: OutputOf) -> None:
    code = (
        "import os, tcuda\n"
        "try: tcuda.init()\n"
        "except ValueError as error: print('no option' in str(error), tcuda.is_initialized())\n"
        "os.environ['TCUDA_ALLOC_CONF'] = 'backend:cupy'\n"
        "x = tcuda.xp.ones(1000)\n"
        "print(tcuda.get_allocator_backend(), tcuda.memory_allocated())"
    )
    assert output_of(code, TCUDA_ALLOC_CONF="colour:red").split() == ["True", "False", "cupy", "8192"]


@pytest.mark.emulated
def test_initialisation_of_emulated_devices_imports_no_arrays(fresh_output_of: OutputOf) -> None:
    code = (
        "import sys, tcuda\n"
        "tcuda.init()\n"
        "with tcuda.stream(tcuda.Stream()): tcuda.Event().record()\n"
        "tcuda.synchronize()\n"
        "print(tcuda.is_initialized(), sorted({'numpy', 'cupy', 'tcuda.emulation.xp'} & sys.modules.keys()))\n"
        "x = tcuda.xp.ones(3)\n"
        "print('numpy' in sys.modules, 'xp' in vars(tcuda))"
    )
    assert fresh_output_of(code) == "True []\nTrue True"


def test_a_finalizer_may_use_streams_during_initialisation(output_of: OutputOf) -> None:
    code = (
        "import gc, tcuda\n"
        "from tcuda._process import lazy, ledger\n"
        "made, garbage = [], [1]\n"
        "class Finalized:\n"
        "    def __del__(self): made.append(tcuda.Stream())\n"
        "make = ledger._core.Ledger\n"
        "def collecting(*args):\n"
        "    ledger = make(*args)\n"
        "    if garbage and garbage.pop(): Finalized()\n"
        "    return ledger\n"
        "class Core:\n"
        "    def __getattr__(self, name, core=ledger._core):\n"
        "        return collecting if name == 'Ledger' else getattr(core, name)\n"
        "ledger._core = Core()\n"
        "x = tcuda.xp.ones(1000)\n"
        "with tcuda.stream(made[0]): y = tcuda.xp.ones(1000)\n"
        "print(len(made), tcuda.memory_allocated())"
    )
    assert output_of(code) == "1 16384"


FORK = """
import os, sys, warnings
warnings.simplefilter("ignore")
import tcuda
{before}
read, write = os.pipe()
pid = os.fork()
if pid == 0:
    try:
        answer = f"device {{tcuda.current_device()}}"
    except RuntimeError as error:
        answer = str(error)
    os.write(write, f"{{answer}} {{tcuda.is_initialized()}}".encode())
    os._exit(0)
os.waitpid(pid, 0)
print(os.read(read, 10000).decode())
"""


def test_a_forked_child_of_an_initialised_process_gets_an_error(output_of: OutputOf) -> None:
    printed = output_of(FORK.format(before="tcuda.init(); event = tcuda.Event(); event.record()"))
    assert printed.startswith("Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, ")
    assert printed.endswith("False")


def test_asking_for_devices_does_not_prevent_a_fork(output_of: OutputOf) -> None:
    before = "tcuda.is_available(); tcuda.device_count(); tcuda.Event()"
    assert output_of(FORK.format(before=before)) == "device 0 True"


def test_asking_for_page_locked_memory_does_not_prevent_a_fork(output_of: OutputOf) -> None:
    before = "import numpy; assert not tcuda.memory.is_pinned(numpy.ones(10))"
    assert output_of(FORK.format(before=before)) == "device 0 True"


@pytest.mark.gpu
def test_an_import_does_not_initialise_the_driver(fresh_output_of: OutputOf) -> None:
    code = (
        "import ctypes, tcuda\n"
        "count = ctypes.c_int()\n"
        "print(ctypes.CDLL('libcuda.so.1').cuDeviceGetCount(ctypes.byref(count)))"
    )
    assert fresh_output_of(code) == "3"  # CUDA_ERROR_NOT_INITIALIZED


def test_a_device_that_is_hidden_after_the_import_is_not_counted(fresh_output_of: OutputOf) -> None:
    code = "import os, tcuda; os.environ['CUDA_VISIBLE_DEVICES'] = '32'; print(tcuda.device_count())"
    assert fresh_output_of(code) == "0"


NO_DEVICE_NEEDED = {
    "is_available()": "False",
    "device_count()": "0",
    "is_initialized()": "False",
    "is_bf16_supported()": "False",
    "is_tf32_supported()": "False",
    "get_arch_list()": "[]",
    "get_gencode_flags()": "",
    "Event()": "<tcuda.Event uninitialized>",
    "Event().query()": "True",
    "stream(None).__enter__()": "None",
    "device(-1).__enter__()": "None",
    "device(None) is None": None,
    "nvtx.range_push('a')": "-2",
    "CudaError(2)": "out of memory (2)",
}


@pytest.mark.parametrize("call", [call for call, answer in NO_DEVICE_NEEDED.items() if answer is not None])
def test_without_a_device_some_calls_work(output_of: OutputOf, call: str) -> None:
    assert output_of(f"import tcuda; print(tcuda.{call})", **WITHOUT_DEVICE) == NO_DEVICE_NEEDED[call]


@pytest.mark.parametrize(
    "call",
    [
        "init()",
        "current_device()",
        "Stream()",
        "current_stream()",
        "default_stream()",
        "Event().record()",
        "device(0).__enter__()",
        "set_device(0)",
        "synchronize()",
        "mem_get_info()",
        "get_device_name()",
        "cudart()",
        "_sleep(1)",
        "ExternalStream(0)",
        "utilization()",
    ],
)
def test_without_a_device_other_calls_raise_an_error_with_advice(run_forked: RunPython, call: str) -> None:
    done = run_forked(f"import tcuda; tcuda.{call}", **WITHOUT_DEVICE)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(("RuntimeError: No CUDA GPUs are available", "RuntimeError: CuPy cannot be imported"))
    assert "TCUDA_RUNTIME=emulated" in last


@pytest.mark.wings
def test_a_program_may_look_for_gpus_before_it_emulates_devices(output_of: OutputOf) -> None:
    code = (
        "import tcuda\n"
        "if not tcuda.is_available(): tcuda.emulation.enable(devices=3)\n"
        "print(tcuda.device_count(), tcuda.get_device_name(2))"
    )
    assert output_of(code, **WITHOUT_DEVICE) == "3 tcuda emulated device"


@pytest.mark.wings
def test_emulation_cannot_be_enabled_after_the_runtime_was_used(run_python: RunPython) -> None:
    done = run_python("import tcuda; tcuda.init(); tcuda.emulation.enable(devices=64)")
    assert re.search("runtime is already in use|Devices are already emulated", done.stderr)


@pytest.mark.wings
def test_a_program_may_count_the_devices_before_it_emulates_others(output_of: OutputOf) -> None:
    code = (
        "import tcuda; print(tcuda.device_count() > 0); tcuda.emulation.enable(devices=3); print(tcuda.device_count())"
    )
    assert output_of(code).split() == ["True", "3"]


def test_the_devices_are_counted_anew_until_initialisation(output_of: OutputOf) -> None:
    code = (
        "import os, tcuda\n"
        "counts = []\n"
        "for visible in ('0', '', '0'):\n"
        "    os.environ['CUDA_VISIBLE_DEVICES'] = visible\n"
        "    counts.append((tcuda.device_count(), tcuda.is_available(), tcuda.accelerator.device_count()))\n"
        "tcuda.xp.ones(3)\n"
        "os.environ['CUDA_VISIBLE_DEVICES'] = ''\n"
        "print(counts, tcuda.device_count(), tcuda.cudart().cudaMemGetInfo(0)[1] > 0)"
    )
    assert output_of(code) == "[(1, True, 1), (0, False, 0), (1, True, 1)] 1 True"


@pytest.mark.skipif(tcuda.device_count() < 2, reason="needs two devices")
def test_a_device_that_the_program_hides_after_counting_is_not_used(output_of: OutputOf) -> None:
    code = (
        "import os, tcuda\n"
        "tcuda.device_count()\n"
        "os.environ['CUDA_VISIBLE_DEVICES'] = os.environ.get('CUDA_VISIBLE_DEVICES', '0,1').split(',')[1]\n"
        "print(tcuda.device_count(), tcuda.get_device_properties().uuid)\n"
    )
    assert output_of(code) == f"1 {tcuda.get_device_properties(1).uuid}"


def test_without_cupy_there_is_no_device(run_python: RunPython) -> None:
    code = "import sys; sys.modules['cupy'] = None; import tcuda; print(tcuda.is_available()); tcuda.init()"
    done = run_python(code, TCUDA_RUNTIME=None)
    assert done.stdout.strip() == "False"
    assert "CuPy cannot be imported" in done.stderr
    assert "pip install cupy-cuda13x" in done.stderr


def test_an_unknown_runtime_is_refused(run_python: RunPython) -> None:
    done = run_python("import tcuda; tcuda.init()", TCUDA_RUNTIME="metal")
    assert "ValueError: TCUDA_RUNTIME is 'metal'; it can be 'cuda', 'emulated' or 'auto'." in done.stderr


@pytest.mark.wings
@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("TCUDA_EMULATED_DEVICES", "two", "takes a number of devices"),
        ("TCUDA_EMULATED_DEVICES", "0", "1 to 64 are possible"),
        ("TCUDA_EMULATED_DEVICES", "65", "1 to 64 are possible"),
        ("TCUDA_EMULATED_MEMORY", "plenty", "'plenty' is not a memory size"),
        ("TCUDA_EMULATED_MEMORY", "0", "give it at least 1"),
    ],
)
def test_a_bad_setting_of_the_emulation_is_refused(
    run_python: RunPython, variable: str, value: str, message: str
) -> None:
    done = run_python("import tcuda; tcuda.init()", **{"TCUDA_RUNTIME": "emulated", variable: value})
    assert "ValueError" in done.stderr
    assert message in done.stderr


@pytest.mark.wings
@pytest.mark.parametrize("memory", ["1536MiB", "1.5GiB", "1610612736"])
def test_the_environment_sets_the_emulated_devices(output_of: OutputOf, memory: str) -> None:
    code = "import tcuda; print(tcuda.device_count(), tcuda.get_device_properties().total_memory)"
    env = {"TCUDA_RUNTIME": "emulated", "TCUDA_EMULATED_DEVICES": "3", "TCUDA_EMULATED_MEMORY": memory}
    assert output_of(code, **env) == f"3 {3 << 29}"


def test_a_process_with_live_objects_exits_without_an_error(run_python: RunPython) -> None:
    code = (
        "import tcuda\n"
        "keep = [tcuda.Stream(), tcuda.Event(), tcuda.Event(interprocess=True), tcuda.xp.zeros(1000)]\n"
        "for event in keep[1:3]: event.record(keep[0])\n"
        "context = tcuda.stream(keep[0]); context.__enter__()\n"
        "tcuda._sleep(1000000)\n"
        "class AtExit:\n"
        "    def __del__(self, keep=keep): keep.clear()\n"
        "import builtins; builtins.last = AtExit()\n"
    )
    done = run_python(code)
    assert (done.returncode, done.stderr) == (0, "")


def test_errors_survive_pickling() -> None:
    error = pickle.loads(pickle.dumps(tcuda.AcceleratorError(101, "cudaSetDevice(9)")))
    assert (error.error_code, str(error)) == (101, str(tcuda.AcceleratorError(101, "cudaSetDevice(9)")))
    assert str(pickle.loads(pickle.dumps(tcuda.CudaError(2)))) == "out of memory (2)"


def test_the_test_run_uses_the_runtime_of_the_environment() -> None:
    from tcuda._runtime import runtime

    assert runtime().name == os.environ["TCUDA_RUNTIME"]
