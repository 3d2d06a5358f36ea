"""The plugin for pytest: the options ``--tcuda-...``, the marks ``tcuda_...``, and the fixture ``tcuda_check_state``.

pytest loads this module in every run where tcuda is installed. So the module imports neither CuPy nor NumPy, and
chooses no devices unless an option or a test asks for devices.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from tcuda import _runtime
from tcuda._base.messages import similar
from tcuda._base.parts import begin_part
from tcuda._base.wings import has_wing, wing_module
from tcuda.testing import _sanitizing
from tcuda.testing._annotations import annotations_of
from tcuda.testing._cupy_imports import CupyImports
from tcuda.testing._state import Memory, restore, state
from tcuda.testing._tracebacks import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MARKS = (
    "tcuda_gpu: the test needs a GPU; without one the test is skipped",
    "tcuda_emulated: the test needs emulated devices; on a GPU the test is skipped",
    "tcuda_devices(count): the test needs so many devices, 2 by default; with fewer devices the test is skipped",
    f"{_sanitizing.MARK}: the test may have races; --tcuda-sanitize does not look for them",
)

_HARMLESS = "PytestAssertRewriteWarning: Module already imported so cannot be rewritten; _editable_skbc_tcuda"

_passed = pytest.StashKey[bool]()
_has_chosen = pytest.StashKey[bool]()

_CUPY = "tcuda_cupy"
_CUPYS = ("emulated", "installed")
_CHECKS = "tcuda_checks"
_OF_EMULATED = ("TCUDA_EMULATED_DEVICES", "TCUDA_EMULATED_MEMORY", "TCUDA_EMULATED_SCHEDULE", "TCUDA_EMULATED_CHECKS")


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the options, and the plugin that looks at the imports of CuPy (a hook of pytest)."""
    pluginmanager.register(CupyImports(), "tcuda_cupy_imports")
    group = parser.getgroup("tcuda", "devices of tcuda")
    group.addoption(
        "--tcuda-runtime",
        choices=("emulated", "cuda", "auto"),
        help="the devices of the tests; auto means the GPUs if there are any, or else emulated devices "
        "(default: the environment variable TCUDA_RUNTIME, or else cuda)",
    )
    group.addoption("--tcuda-devices", metavar="N", help="the number of emulated devices (default: 1)")
    group.addoption(
        "--tcuda-memory", metavar="BYTES", help="the memory of each emulated device, such as 512MiB (default: 2GiB)"
    )
    group.addoption(
        "--tcuda-cupy",
        choices=_CUPYS,
        help="what 'import cupy' imports: the arrays of emulated devices, or the installed CuPy "
        f"(default: the value {_CUPY} in the configuration of pytest, or else installed)",
    )
    group.addoption(
        "--tcuda-checks",
        metavar="CHECKS",
        help="the checks of kernels on emulated devices, such as memory,races (default: the environment variable "
        f"TCUDA_EMULATED_CHECKS, or else the value {_CHECKS} in the configuration of pytest)",
    )
    group.addoption(
        "--tcuda-sanitize",
        metavar="MODE",
        nargs="?",
        const="raise",
        type=_sanitizing.mode,
        help="look for missing waits in each test; with MODE raise, which is the default, the operation "
        "that makes a race raises an error, and with --tcuda-sanitize=warn it warns",
    )
    group.addoption("--tcuda-html", metavar="FILE", help="with --tcuda-sanitize, write a page that shows the races")
    parser.addini(_CHECKS, "the checks of kernels on emulated devices, such as memory,races")
    parser.addini(_CUPY, f"what 'import cupy' imports: {' or '.join(_CUPYS)}")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Iterator[None]:
    """Choose the devices before a ``conftest.py`` may use them, and look for mistyped options (a hook of pytest).

    A ``conftest.py`` may add options that begin with ``--tcuda-`` too.
    """
    _choose_once(early_config, early_config.known_args_namespace)
    try:
        yield
    except Exception as error:  # perhaps because of the option: 'import cupy' in a conftest.py needs --tcuda-cupy
        _refuse_mistyped(parser, args, f" A conftest.py, which may add options, has failed: {error}")
        raise
    _refuse_mistyped(parser, args)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the devices if a ``conftest.py`` has loaded this plugin, and add the marks (a hook of pytest)."""
    _choose_once(config, config.option)
    _sanitizing.begin(config)
    for mark in _MARKS:
        config.addinivalue_line("markers", mark)


def pytest_report_header() -> str | None:
    """Name the devices if an option or the environment names them (a hook of pytest)."""
    chosen = os.environ.get("TCUDA_RUNTIME")
    return f"tcuda runtime: {chosen}" if chosen else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose marks need other devices, and begin its order of work (a hook of pytest)."""
    begin_part(item.nodeid)
    reason = _missing(item)
    if reason is not None:
        pytest.skip(reason)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Shorten the traceback of a failure, and note whether the test passed, for the fixture (a hook of pytest)."""
    shorten(item, call)
    outcome: Any = yield
    report = outcome.get_result()
    if report.failed and call.excinfo is not None:
        report.tcuda_annotations = annotations_of(call.excinfo.value, item.config.rootpath)
    if report.when == "call":
        item.stash[_passed] = report.passed


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Leave a warning out of the summary that says nothing about the tests (a hook of pytest).

    pytest warns of the module that finds the sources of an editable install: Python imports this module before pytest.
    """
    reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
    stats = {} if reporter is None else reporter.stats
    others = [each for each in stats.pop("warnings", ()) if _HARMLESS not in each.message]
    if others:
        stats["warnings"] = others


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write the annotations of the failures for GitHub (a hook of pytest)."""
    for outcome in ("failed", "error"):
        for report in terminalreporter.stats.get(outcome, ()):
            for line in getattr(report, "tcuda_annotations", ()):
                terminalreporter.write_line(line)


@pytest.fixture
def tcuda_check_state(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaks device memory, leaves another device or stream current, or holds a capture open.

    The message about memory has the lines that allocated the memory. The memory is not checked if the test fails,
    because the traceback of the error keeps arrays alive.

    Example:
        >>> import pytest
        >>> @pytest.mark.usefixtures("tcuda_check_state")  # fails if the test leaves side current
        ... def test_step():
        ...     side = tcuda.Stream()
        ...     with tcuda.stream(side):
        ...         assert tcuda.xp.ones(3).sum() == 3
    """
    before = state()
    measured = Memory()
    try:
        yield
        wrong = restore(before)
        node: Any = request.node
        if not node.stash.get(_passed, False):
            return
        # pytest keeps the values of the fixtures of a test longer than the fixtures, and the values may be arrays.
        wrong += measured.leaks(node.funcargs.clear)
    finally:
        measured.end()
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def _refuse_mistyped(parser: pytest.Parser, args: Sequence[str], reason: str = "") -> None:
    """Name the option that is meant by a mistyped one, because pytest itself names the mistyped one only.

    Args:
        parser: The parser with all options that are known.
        args: The arguments of the command line.
        reason: What the message also says.

    Raises:
        pytest.UsageError: There is no such option.
    """
    own = [name for option in parser.getgroup("tcuda").options for name in option.names()]
    _, unknown = parser.parse_known_and_unknown_args(args)
    for option in (each.partition("=")[0] for each in unknown if each.startswith("--tcuda-")):
        raise pytest.UsageError(f"There is no option {option}.{similar(option, own)} pytest --help lists them.{reason}")


def _choose_once(config: pytest.Config, options: Any) -> None:
    if config.stash.get(_has_chosen, False):
        return
    config.stash[_has_chosen] = True
    _require_runtime(options)
    checks = _checks(config, options)
    emulates = _emulates_cupy(config, options)
    found_gpus = _choose(options, "emulated" if emulates else None)
    os.environ.update(checks)
    _require_variables()
    if found_gpus or not emulates:
        return
    try:
        wing_module("emulation").install_as_cupy()
    except RuntimeError as error:
        raise pytest.UsageError(f"{_CUPY} is 'emulated', but: {error}") from None


def _require_runtime(options: Any) -> None:
    """Refuse a runtime that the environment names and that does not exist, unless an option names another one.

    Raises:
        pytest.UsageError: There is no such runtime.
    """
    try:
        if options.tcuda_runtime is None:
            _runtime.asked_for("cuda")
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None


def _require_variables() -> None:
    """Refuse wrong variables of emulated devices at the start, because each test would fail with the same error.

    Raises:
        pytest.UsageError: A variable has a value that is not allowed.
    """
    named = os.environ.get("TCUDA_RUNTIME")
    is_asked = named in ("emulated", "auto") or any(map(os.environ.get, _OF_EMULATED))
    if named == "cuda" or not is_asked or not has_wing("emulation"):
        return
    try:
        wing_module("emulation.as_cupy.variables").require_valid(emulated=True)
    except (OSError, ValueError) as error:
        raise pytest.UsageError(str(error)) from None


def _checks(config: pytest.Config, options: Any) -> dict[str, str]:
    """Return the environment variable that chooses checks of kernels; nothing if it stays as it is.

    Raises:
        pytest.UsageError: A check is unknown, the option contradicts another one, or the installation lacks emulated
            devices.
    """
    option, configured = options.tcuda_checks, config.getini(_CHECKS)
    if option is not None and options.tcuda_runtime == "cuda":
        raise pytest.UsageError("--tcuda-checks needs emulated devices, and not --tcuda-runtime cuda.")
    chosen, name = (configured, _CHECKS) if option is None else (option, "--tcuda-checks")
    if option is None and not configured:
        return {}
    try:
        checks = wing_module("emulation.rtc.checks")  # here, because few programs choose checks
        checks.parsed(chosen, name)
    except (RuntimeError, ValueError) as error:
        raise pytest.UsageError(str(error)) from None
    return {} if option is None and os.environ.get(checks.VARIABLE) else {checks.VARIABLE: chosen}


def _emulates_cupy(config: pytest.Config, options: Any) -> bool:
    """Return whether ``import cupy`` is to import emulated devices, as an option or the configuration says.

    Raises:
        pytest.UsageError: The value in the configuration is not allowed, or two options contradict each other.
    """
    option, configured = options.tcuda_cupy, config.getini(_CUPY)
    if configured not in ("", *_CUPYS):
        raise pytest.UsageError(f"{_CUPY} is {configured!r}; it can be 'emulated' or 'installed'.")
    if options.tcuda_runtime == "cuda":
        if option == "emulated":
            raise pytest.UsageError("--tcuda-cupy emulated needs emulated devices, and not --tcuda-runtime cuda.")
        return False
    return bool((option or configured) == "emulated")


def _choose(options: Any, otherwise: str | None) -> bool:
    """Choose the devices that the options name, for this process and for the processes that tests start.

    Args:
        options: The options.
        otherwise: The runtime if neither an option nor the environment names one; None for the usual one.

    Returns:
        Whether the choice was ``auto``, and there are GPUs.
    """
    runtime, devices, memory = options.tcuda_runtime, options.tcuda_devices, options.tcuda_memory
    if runtime is devices is memory is otherwise is None:
        return False
    chosen = runtime or os.environ.get("TCUDA_RUNTIME") or otherwise or "cuda"
    is_auto = chosen == "auto"
    if is_auto:
        chosen = "cuda" if _runtime.gpus() else "emulated"
    names = {"TCUDA_EMULATED_DEVICES": devices, "TCUDA_EMULATED_MEMORY": memory}
    wanted = {"TCUDA_RUNTIME": chosen, **{name: value for name, value in names.items() if value is not None}}
    try:
        if has_wing("emulation"):
            settings = wing_module("emulation.runtime.settings")
            settings.check(*settings.from_environment({**os.environ, **wanted}))
    except ValueError as error:
        message = str(error)
        for name, option in (
            ("TCUDA_EMULATED_DEVICES", "--tcuda-devices"),
            ("TCUDA_EMULATED_MEMORY", "--tcuda-memory"),
        ):
            message = message.replace(name, option if name in wanted else name)
        raise pytest.UsageError(message) from None
    if chosen != "emulated" and not is_auto and not devices is memory is None:
        raise pytest.UsageError(
            "--tcuda-devices and --tcuda-memory are for emulated devices: add --tcuda-runtime emulated, or choose GPUs "
            "by CUDA_VISIBLE_DEVICES."
        )
    if is_auto and chosen == "emulated":
        os.environ.pop("CUDA_VISIBLE_DEVICES", None)  # the variable hides GPUs, and would hide emulated devices too
    os.environ.update(wanted)
    return is_auto and chosen == "cuda"


def _missing(item: pytest.Item) -> str | None:
    """Return the reason for which a test cannot run on the devices in use; None if the test can run."""
    devices = [_count(mark) for mark in item.iter_markers("tcuda_devices")]
    gpu, emulated = (item.get_closest_marker(f"tcuda_{kind}") is not None for kind in ("gpu", "emulated"))
    if not (devices or gpu or emulated):
        return None
    kind = _runtime.environment()["TCUDA_RUNTIME"]
    if gpu and kind != "cuda":
        return f"needs a GPU, and the devices are {kind} (--tcuda-runtime)"
    if emulated and kind != "emulated":
        return "needs emulated devices (--tcuda-runtime emulated), and the runtime is CUDA"
    there, needed = tcuda.device_count(), max(devices, default=1)
    if there < needed:
        more = f" (--tcuda-devices {needed})" if kind == "emulated" else ""
        return f"needs {needed} {'device' if needed == 1 else 'devices'}{more}, and there {_are(there)}"
    return None


def _are(count: int) -> str:
    return "is 1" if count == 1 else f"are {count or 'none'}"


def _count(mark: pytest.Mark) -> int:
    """Return the number of devices that a mark ``tcuda_devices`` names."""
    count: object = mark.args[0] if mark.args else mark.kwargs.get("count", 2)
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise pytest.UsageError(f"The mark tcuda_devices takes a number of devices, such as 2; got {count!r}.")
    return count
