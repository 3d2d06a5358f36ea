"""The plugin for pytest, in pytest processes of their own, on emulated devices."""

from __future__ import annotations

import importlib.metadata
import os
import re
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from tcuda.testing import plugin

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

pytest_plugins = ["pytester"]


def test_a_test_has_the_same_random_order_alone_and_after_other_tests(
    run: Callable[..., pytest.RunResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        "from tcuda._runtime import runtime\n"
        "@pytest.mark.parametrize('name', 'abcd')\n"
        "def test_order(name):\n"
        "    tcuda.init()\n"
        "    print('order', name, runtime().schedule.order([()] * 9))\n"
    )
    lines = []
    for chosen in ("test_order", "test_order and c"):
        with monkeypatch.context() as context:
            context.setenv("TCUDA_EMULATED_SCHEDULE", "late:3")
            result = run(code, *EMULATED, "-s", "-k", chosen)
        lines.append([line.partition("order c")[2] for line in result.outlines if "order c" in line])
    assert len(lines[0]) == 1
    assert lines[0] == lines[1]


def configuration(**options: str | None) -> SimpleNamespace:
    """Return what the plugin reads of the configuration of pytest."""
    names = ("tcuda_runtime", "tcuda_devices", "tcuda_memory", "tcuda_cupy", "tcuda_checks")
    given = {name: options.get(name) for name in names}
    return SimpleNamespace(known_args_namespace=SimpleNamespace(**given), getini=lambda _: "", stash=pytest.Stash())


EMULATED = ("--tcuda-runtime", "emulated")


def test_pytest_finds_the_plugin() -> None:
    (found,) = importlib.metadata.entry_points(group="pytest11", name="tcuda")
    assert found.load() is plugin


@pytest.mark.parametrize("others", [0, 1])
def test_the_warning_of_an_editable_install_is_left_out(pytester: pytest.Pytester, others: int) -> None:
    names = ["_editable_skbc_tcuda", "another_module"][: 1 + others]
    pytester.makeconftest(
        "import pytest\n"
        "def pytest_configure(config):\n"
        f"    for name in {names}:\n"
        "        text = f'Module already imported so cannot be rewritten; {name}'\n"
        "        config.issue_config_time_warning(pytest.PytestAssertRewriteWarning(text), 2)\n"
    )
    pytester.makepyfile("def test_nothing(): pass")
    options = ("-p", "no:cacheprovider", "-p", "tcuda.testing.plugin")
    with pytest.MonkeyPatch.context() as context:
        context.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        result = pytester.runpytest_subprocess(*options)
    result.assert_outcomes(passed=1, warnings=others)
    assert ("another_module" in result.stdout.str()) == bool(others)
    assert "_editable_skbc_tcuda" not in result.stdout.str()


# The options


def test_options_choose_emulated_devices_for_the_tests_and_their_processes(
    run: Callable[..., pytest.RunResult],
) -> None:
    result = run(
        "import subprocess, sys\n"
        "def count(): return tcuda.device_count(), tcuda.mem_get_info()[1]\n"
        "def test_here():\n"
        "    assert count() == (3, 64 << 20)\n"
        "def test_there():\n"
        "    code = 'import tcuda; print(tcuda.device_count())'\n"
        "    assert subprocess.check_output([sys.executable, '-c', code]).split() == [b'3']\n",
        *EMULATED,
        "--tcuda-devices=3",
        "--tcuda-memory=64MiB",
    )
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["tcuda runtime: emulated"])


def test_the_devices_are_chosen_before_a_conftest_uses_them(
    run: Callable[..., pytest.RunResult], pytester: pytest.Pytester
) -> None:
    pytester.makeconftest("import tcuda\ntcuda.init()\nCOUNT = tcuda.device_count()\n")
    run("def test_a():\n    assert tcuda.device_count() == 2\n", *EMULATED, "--tcuda-devices=2").assert_outcomes(
        passed=1
    )


def test_no_option_changes_nothing_and_loads_nothing(run: Callable[..., pytest.RunResult]) -> None:
    result = run(
        "import os, sys\n"
        "def test_a():\n"
        "    assert not [name for name in os.environ if name.startswith(('TCUDA_RUNTIME', 'TCUDA_EMULATED'))]\n"
        "    assert not {'numpy', 'cupy', 'tcuda.emulation'} & set(sys.modules)\n"
        "    assert not tcuda.is_initialized()\n",
    )
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("tcuda runtime*")


def test_a_wrong_option_is_an_error_of_usage(run: Callable[..., pytest.RunResult]) -> None:
    result = run("def test_a(): pass\n", "--tcuda-runtime=gpu")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--tcuda-runtime*invalid choice: 'gpu'*"])


@pytest.mark.wings
@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("TCUDA_EMULATED_SCHEDULE", "lat:1", "TCUDA_EMULATED_SCHEDULE is 'lat:1'; *Did you mean late?"),
        ("TCUDA_EMULATED_CHECKS", "memroy", "TCUDA_EMULATED_CHECKS is 'memroy'; *"),
        ("TCUDA_EMULATED_DEVICES", "many", "TCUDA_EMULATED_DEVICES is 'many'; *"),
        ("TCUDA_RUNTIME", "emulatd", "TCUDA_RUNTIME is 'emulatd'; *Did you mean emulated?"),
    ],
)
@pytest.mark.parametrize("options", [(), ("--tcuda-cupy", "emulated")], ids=["conftest", "option"])
def test_a_wrong_variable_is_told_once_at_the_start(
    variable: str,
    value: str,
    said: str,
    options: Sequence[str],
    run: Callable[..., pytest.RunResult],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(variable, value)
    result = run("def test_a(): tcuda.emulation.enable()\ndef test_b(): tcuda.init()\n", *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert len([line for line in result.errlines if variable in line]) == 1
    result.stderr.fnmatch_lines([f"*{said}*"])


@pytest.mark.wings
@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--tcuda-sanitise", "There is no option --tcuda-sanitise. Did you mean --tcuda-sanitize?"),
        ("--tcuda-device=2", "There is no option --tcuda-device. Did you mean --tcuda-devices?"),
        ("--tcuda-qqqqqqqqqqq", "There is no option --tcuda-qqqqqqqqqqq. pytest --help lists them."),
    ],
)
def test_a_mistyped_option_names_the_option_that_was_meant(
    option: str, said: str, run: Callable[..., pytest.RunResult]
) -> None:
    result = run("def test_a(): pass\n", option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{said}*"])


OPTION_OF_A_PROJECT = "def pytest_addoption(parser): parser.addoption('--tcuda-device', default='none')\n"


def test_a_project_may_have_an_option_that_begins_like_those_of_the_plugin(
    run: Callable[..., pytest.RunResult], pytester: pytest.Pytester
) -> None:
    pytester.makeconftest(OPTION_OF_A_PROJECT)
    code = "def test_a(request):\n    assert request.config.getoption('--tcuda-device') == 'all'\n"
    run(code, "--tcuda-device=all").assert_outcomes(passed=1)


def test_a_mistyped_option_is_named_beside_the_failure_of_a_conftest(
    run: Callable[..., pytest.RunResult], pytester: pytest.Pytester
) -> None:
    pytester.makeconftest("import no_such_module\n")
    result = run("def test_a(): pass\n", "--tcuda-cupi=emulated")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = "There is no option --tcuda-cupi. Did you mean --tcuda-cupy? *No module named 'no_such_module'*conftest.py*"
    result.stderr.fnmatch_lines([f"*{said}"])
    result = run("def test_a(): pass\n", "-q")
    result.stderr.fnmatch_lines(["*Error while loading conftest*"])


@pytest.mark.wings
@pytest.mark.parametrize(
    ("runtime", "devices", "memory", "message"),
    [
        (None, "2", None, "add --tcuda-runtime emulated"),
        ("cuda", None, "1GiB", "add --tcuda-runtime emulated"),
        ("emulated", "many", None, "'many'; it takes a number of devices, such as 2."),
        ("emulated", "0", None, "Cannot emulate 0 devices; 1 to 64 are possible."),
        ("emulated", None, "much", "--tcuda-memory: 'much' is not a memory size"),
        (None, "0", None, "Cannot emulate 0 devices; 1 to 64 are possible."),
        (None, "many", None, "--tcuda-devices is 'many'; it takes a number of devices, such as 2."),
        (None, None, "8XB", "--tcuda-memory: '8XB' is not a memory size"),
    ],
)
def test_options_that_cannot_be_say_what_is_allowed_and_change_nothing(
    runtime: str | None, devices: str | None, memory: str | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TCUDA_RUNTIME", raising=False)
    before = dict(os.environ)
    config = configuration(tcuda_runtime=runtime, tcuda_devices=devices, tcuda_memory=memory)
    with pytest.raises(pytest.UsageError, match=re.escape(message)):
        plugin._choose_once(config, config.known_args_namespace)  # type: ignore[arg-type]
    assert dict(os.environ) == before


@pytest.mark.parametrize(("gpus", "chosen"), [(0, "emulated"), (2, "cuda")])
def test_auto_chooses_gpus_if_there_are_any(gpus: int, chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in [("RUNTIME", "cuda"), ("EMULATED_DEVICES", "1"), ("EMULATED_MEMORY", "2GiB")]:
        monkeypatch.setenv(f"TCUDA_{name}", value)  # so that the values of before come back
    monkeypatch.setattr(plugin._runtime, "gpus", lambda: gpus)
    config = configuration(tcuda_runtime="auto", tcuda_devices="2", tcuda_memory="64MiB")
    plugin._choose_once(config, config.known_args_namespace)  # type: ignore[arg-type]
    assert os.environ["TCUDA_RUNTIME"] == chosen
    assert (os.environ["TCUDA_EMULATED_DEVICES"], os.environ["TCUDA_EMULATED_MEMORY"]) == ("2", "64MiB")


IMPORTS_CUPY = "def test_it():\n    import cupy\n    assert cupy is tcuda.xp and cupy.ones(3).sum() == 3\n"


@pytest.mark.wings
@pytest.mark.parametrize("way", ["option", "configuration", "auto"])
def test_import_cupy_imports_emulated_devices_on_demand(
    way: str, run: Callable[..., pytest.RunResult], pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    options = []
    if way == "option":
        options = ["--tcuda-cupy=emulated", "--tcuda-runtime=emulated"]
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    else:
        pytester.makeini("[pytest]\ntcuda_cupy = emulated\n")
        options = ["--tcuda-runtime=auto"] if way == "auto" else []
    if way == "configuration":
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    pytester.makeconftest("import cupy\n")
    run(IMPORTS_CUPY, *options).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("value", "options", "message"),
    [
        ("numpy", (), "tcuda_cupy is 'numpy'; it can be 'emulated' or 'installed'."),
        ("", ("--tcuda-cupy=emulated", "--tcuda-runtime=cuda"), "--tcuda-cupy emulated needs emulated devices"),
    ],
)
def test_wrong_choices_of_cupy_are_errors_of_usage(
    value: str, options: tuple[str, ...], message: str, run: Callable[..., pytest.RunResult], pytester: pytest.Pytester
) -> None:
    pytester.makeini(f"[pytest]\ntcuda_cupy = {value}\n")
    result = run("def test_a(): pass\n", *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{message}*"])


@pytest.mark.wings
def test_an_option_goes_before_the_configuration(
    run: Callable[..., pytest.RunResult], pytester: pytest.Pytester
) -> None:
    pytester.makeini("[pytest]\ntcuda_cupy = emulated\n")
    code = "def test_it():\n    import sys\n    assert 'tcuda.emulation.as_cupy.import_hook' not in sys.modules\n"
    for option in ("--tcuda-cupy=installed", "--tcuda-runtime=cuda"):
        run(code, option).assert_outcomes(passed=1)


def test_an_environment_that_asks_for_gpus_contradicts_the_configuration(
    run: Callable[..., pytest.RunResult], pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeini("[pytest]\ntcuda_cupy = emulated\n")
    monkeypatch.setenv("TCUDA_RUNTIME", "cuda")
    result = run("def test_a(): pass\n")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*tcuda_cupy is 'emulated', but: *TCUDA_RUNTIME is 'cuda'*"])


PRINTS_CHECKS = (
    "import os, subprocess, sys\n"
    "def test_it():\n"
    "    code = 'from tcuda.emulation.rtc import chosen; print(chosen().races)'\n"
    "    there = subprocess.check_output([sys.executable, '-c', code], text=True)\n"
    "    print('checks:', os.environ.get('TCUDA_EMULATED_CHECKS'), there)\n"
)


@pytest.mark.wings
@pytest.mark.parametrize(
    ("options", "configured", "variable", "printed"),
    [
        (["--tcuda-checks=memory,races"], "", None, "memory,races True"),
        ([], "races:benign=off", None, "races:benign=off True"),
        (["--tcuda-checks=memory"], "memory,races", "races", "memory False"),
        ([], "memory,races", "memory", "memory False"),
        ([], "", None, "None False"),
    ],
)
def test_the_checks_of_kernels_are_chosen_for_tests_and_their_children(
    options: list[str],
    configured: str,
    variable: str | None,
    printed: str,
    run: Callable[..., pytest.RunResult],
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytester.makeini(f"[pytest]\ntcuda_checks = {configured}\n")
    if variable is not None:
        monkeypatch.setenv("TCUDA_EMULATED_CHECKS", variable)
    result = run(PRINTS_CHECKS, "-s", *EMULATED, *options)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([f"*checks: {printed}"])


def test_a_race_in_a_kernel_fails_its_test(run: Callable[..., pytest.RunResult]) -> None:
    result = run(
        "from tcuda import xp\n"
        "code = 'extern \"C\" __global__ void last(int* out) { out[0] = threadIdx.x; }'\n"
        "def test_wrong():\n"
        "    xp.RawKernel(code, 'last')((1,), (8,), (xp.zeros(1, 'i'),))\n"
        "def test_right():\n"
        "    xp.RawKernel(code, 'last')((1,), (1,), (xp.zeros(1, 'i'),))\n",
        *EMULATED,
        "--tcuda-checks=memory,races",
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*Race in the kernel `last`: two threads use the same memory*"])


@pytest.mark.parametrize(
    ("options", "configured", "message"),
    [
        (["--tcuda-checks=race"], "", "--tcuda-checks is 'race'; write 1 for the usual checks"),
        ([], "race", "tcuda_checks is 'race'; write 1 for the usual checks"),
        (["--tcuda-checks=races", "--tcuda-runtime=cuda"], "", "--tcuda-checks needs emulated devices, and not"),
    ],
)
def test_wrong_checks_are_errors_of_usage(
    options: list[str],
    configured: str,
    message: str,
    run: Callable[..., pytest.RunResult],
    pytester: pytest.Pytester,
) -> None:
    pytester.makeini(f"[pytest]\ntcuda_checks = {configured}\n")
    result = run("def test_a(): pass\n", *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{message}*"])


# The marks


def test_marks_skip_tests_that_need_other_devices_with_a_reason(run: Callable[..., pytest.RunResult]) -> None:
    result = run(
        "@pytest.mark.tcuda_gpu\n"
        "def test_gpu(): raise RuntimeError\n"
        "@pytest.mark.tcuda_devices\n"
        "def test_two(): raise RuntimeError\n"
        "@pytest.mark.tcuda_devices(1)\n"
        "def test_one(): assert tcuda.device_count() == 1\n"
        "@pytest.mark.tcuda_emulated\n"
        "def test_emulated(): assert tcuda.device_count() == 1\n",
        *EMULATED,
    )
    result.assert_outcomes(passed=2, skipped=2)
    result.stdout.fnmatch_lines_random(
        [
            "*needs a GPU, and the devices are emulated (--tcuda-runtime)",
            "*needs 2 devices (--tcuda-devices 2), and there is 1",
        ]
    )


def test_a_mark_for_two_devices_runs_on_two_devices(run: Callable[..., pytest.RunResult]) -> None:
    code = "@pytest.mark.tcuda_devices(2)\ndef test_a(): assert tcuda.device_count() == 2\n"
    run(code, *EMULATED, "--tcuda-devices=2").assert_outcomes(passed=1)


# The fixture

STATE = "pytestmark = pytest.mark.usefixtures('tcuda_check_state')\nkept = []\n"


def test_the_fixture_fails_a_test_that_leaves_a_trace(run: Callable[..., pytest.RunResult]) -> None:
    result = run(
        STATE + "def test_memory():\n"
        "    kept.append(tcuda.xp.zeros(1024, 'b'))\n"
        "def test_device():\n"
        "    tcuda.set_device(1)\n"
        "def test_stream():\n"
        "    tcuda.set_stream(tcuda.Stream())\n"
        "def test_capture():\n"
        "    tcuda.set_stream(tcuda.Stream())\n"
        "    graph = tcuda.CUDAGraph()\n"
        "    graph.capture_begin()\n"
        "    kept.append(graph)\n"
        "def test_after_all_of_these():\n"
        "    assert tcuda.current_device() == 0\n"
        "    assert tcuda.current_stream() == tcuda.default_stream()\n"
        "    with tcuda.graph(tcuda.CUDAGraph()):\n"
        "        tcuda.xp.zeros(3)\n"
        "    tcuda.synchronize()\n",
        *EMULATED,
        "--tcuda-devices=2",
    )
    result.assert_outcomes(passed=5, errors=4)
    result.stdout.fnmatch_lines(
        [
            "1024 bytes of memory of device 0 are still allocated*",
            "Device 1 is current, and device 0 was current before*",
            "*is the current stream of device 0*",
            "The capture of a graph on stream*is still open*",
        ]
    )


def test_the_fixture_passes_tests_that_leave_no_trace(run: Callable[..., pytest.RunResult]) -> None:
    result = run(
        STATE + "@pytest.fixture\n"
        "def array():\n"
        "    return tcuda.xp.zeros(100)\n"
        "@pytest.fixture(scope='module')\n"
        "def shared():\n"
        "    return tcuda.xp.ones(100)\n"
        "def test_nothing(): assert not tcuda.is_initialized()\n"
        "def test_fixtures(array, shared):\n"
        "    with tcuda.device(1), tcuda.stream(tcuda.Stream()):\n"
        "        other = tcuda.xp.zeros(10)\n"
        "def test_cycle():\n"
        "    cycle = [tcuda.xp.zeros(100)]\n"
        "    cycle.append(cycle)\n",
        *EMULATED,
        "--tcuda-devices=2",
    )
    result.assert_outcomes(passed=3)


def test_a_failed_test_has_its_own_error_only(run: Callable[..., pytest.RunResult]) -> None:
    result = run(
        STATE + "def test_a():\n"
        "    array = tcuda.xp.zeros(100)\n"
        "    tcuda.set_device(1)\n"
        "    raise ValueError('of the test')\n"
        "def test_b():\n"
        "    assert tcuda.current_device() == 0\n",
        *EMULATED,
        "--tcuda-devices=2",
    )
    result.assert_outcomes(passed=1, failed=1)


# Where `import cupy` finds no CuPy


@pytest.fixture
def without_cupy(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `import cupy` fail in the pytest that the test starts, as where CuPy is not installed."""
    (pytester.path / "sitecustomize.py").write_text(
        "from importlib.machinery import PathFinder\n"
        "find = PathFinder.find_spec\n"
        "@classmethod\n"
        "def other(cls, name, *args, **kwargs):\n"
        "    return None if name == 'cupy' else find(name, *args, **kwargs)\n"
        "PathFinder.find_spec = other\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(pytester.path))


@pytest.mark.usefixtures("without_cupy")
@pytest.mark.parametrize("options", [(), EMULATED, ("--tcuda-runtime", "auto")], ids=["none", "emulated", "auto"])
@pytest.mark.parametrize(
    "code",
    [
        "import cupy\ndef test_a(): pass\n",
        "from cupy import cuda\ndef test_a(): pass\n",
        "def test_a():\n    import cupy\n",
        "cupy = pytest.importorskip('cupy')\ndef test_a(): pass\n",
    ],
    ids=["module", "from", "test", "importorskip"],
)
def test_where_cupy_is_missing_the_summary_names_the_option_and_the_line_of_the_configuration(
    code: str, options: tuple[str, ...], run: Callable[..., pytest.RunResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    result = run(code, *options)
    result.stdout.fnmatch_lines(
        [
            "=* tcuda *=",
            "`import cupy` found no CuPy in test_where*.py.*",
            "    pytest --tcuda-cupy emulated",
            "or, for all runs, write into pyproject.toml:",
            "    [[]tool.pytest.ini_options]",
            '    tcuda_cupy = "emulated"',
        ]
    )


@pytest.mark.usefixtures("without_cupy")
@pytest.mark.parametrize(
    ("file", "text", "lines"),
    [
        ("pytest.ini", "[pytest]\n", ["    [[]pytest]", "    tcuda_cupy = emulated"]),
        ("setup.cfg", "[tool:pytest]\n", ["    [[]tool:pytest]", "    tcuda_cupy = emulated"]),
        (
            "pyproject.toml",
            "[tool.pytest.ini_options]\n",
            ["    [[]tool.pytest.ini_options]", '    tcuda_cupy = "emulated"'],
        ),
    ],
)
def test_the_summary_names_the_file_from_which_pytest_reads_its_configuration(
    file: str, text: str, lines: list[str], run: Callable[..., pytest.RunResult], pytester: pytest.Pytester
) -> None:
    (pytester.path / file).write_text(text)
    result = run("import cupy\n")
    result.stdout.fnmatch_lines([f"or, for all runs, write into {file}:", *lines])


ON_NUMPY = "try:\n    import cupy as xp\nexcept ImportError:\n    import numpy as xp\n"


@pytest.mark.wings
@pytest.mark.usefixtures("without_cupy")
@pytest.mark.parametrize("processes", [[], ["-p", "xdist.plugin", "-n", "2"]])
def test_the_summary_names_a_library_that_goes_on_without_cupy(
    processes: list[str], run: Callable[..., pytest.RunResult], pytester: pytest.Pytester
) -> None:
    (pytester.mkpydir("library") / "backend.py").write_text(ON_NUMPY)
    result = run("from library.backend import xp\ndef test_a(): assert xp.__name__ == 'numpy'\n", *EMULATED, *processes)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["`import cupy` found no CuPy in library/backend.py. To import emulated*", "    pytest --tcuda-cupy emulated"]
    )


@pytest.mark.usefixtures("without_cupy")
@pytest.mark.parametrize(
    ("options", "file"),
    [
        ((), "library.py"),
        (("--tcuda-runtime", "cuda"), "library.py"),
        ((*EMULATED, "--tcuda-cupy=installed"), "library.py"),
        (EMULATED, "site-packages/library.py"),
    ],
)
def test_the_summary_is_silent_about_a_library_that_goes_on_without_cupy(
    options: Sequence[str], file: str, run: Callable[..., pytest.RunResult], pytester: pytest.Pytester
) -> None:
    path = pytester.path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(ON_NUMPY)
    result = run(f"import sys\nsys.path[:0] = [{str(path.parent)!r}]\nimport library\ndef test_a(): ...\n", *options)
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*found no CuPy*")


@pytest.mark.usefixtures("without_cupy")
def test_a_conftest_that_finds_no_cupy_says_the_same(
    run: Callable[..., pytest.RunResult], pytester: pytest.Pytester
) -> None:
    pytester.makeconftest("import cupy\n")
    result = run("def test_a(): pass\n")
    result.stderr.fnmatch_lines(["`import cupy` found no CuPy in conftest.py.*", "*pytest --tcuda-cupy emulated"])


@pytest.mark.usefixtures("without_cupy")
@pytest.mark.parametrize(
    ("code", "options"),
    [
        ("import cupy\n", ["--tcuda-cupy=installed"]),
        ("import cupy_of_another_name\n", []),
        ("def test_a(): assert 'No module named cupy' == 1\n", []),
    ],
)
def test_the_summary_is_silent_where_the_user_has_chosen_or_another_module_is_missing(
    code: str, options: list[str], run: Callable[..., pytest.RunResult]
) -> None:
    result = run(code, *options)
    assert result.ret
    result.stdout.no_fnmatch_line("*tcuda-cupy emulated*")


@pytest.mark.usefixtures("without_cupy")
def test_the_configuration_that_the_summary_names_lets_the_tests_run(
    run: Callable[..., pytest.RunResult], pytester: pytest.Pytester
) -> None:
    (pytester.path / "sitecustomize.py").unlink()
    (pytester.path / "pyproject.toml").write_text('[tool.pytest.ini_options]\ntcuda_cupy = "emulated"\n')
    run("import cupy\ndef test_a(): assert cupy.arange(3).sum() == 3\n").assert_outcomes(passed=1)


# Imports that emulated devices refuse

FALLS_BACK = (
    "try:\n    import cupyx.cutensor\nexcept ImportError:\n    import numpy\n"
    "@pytest.mark.parametrize('number', range(4))\ndef test_a(number): pass\n"
)


def test_the_summary_names_the_imports_that_emulated_devices_refuse(run: Callable[..., pytest.RunResult]) -> None:
    result = run(FALLS_BACK, "--tcuda-cupy=emulated")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["=* tcuda *=", "The import of cupyx.cutensor at *:3 in <module> was refused, so *"])
    assert result.stdout.str().count("The import of") == 1


def test_the_processes_of_xdist_tell_the_summary_of_refused_imports(run: Callable[..., pytest.RunResult]) -> None:
    result = run(FALLS_BACK, "--tcuda-cupy=emulated", "-p", "xdist", "-n", "2")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["The import of cupyx.cutensor at *"])
    assert result.stdout.str().count("The import of") == 1
