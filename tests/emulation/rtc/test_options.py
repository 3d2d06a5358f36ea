"""The options of NVRTC and nvcc, and what the C++ compiler gets for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tcuda.emulation.rtc.options import InvalidOption, translate

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ((), ["-std=c++17", "-O2"]),
        (("-DN=3", "-D", "M=a=b", "--define-macro=K", "--define-macro", "L"),
         ["-std=c++17", "-O2", "-DN=3", "-DM=a=b", "-DK", "-DL"]),
        (("-UN", "--undefine-macro=M"), ["-std=c++17", "-O2", "-UN", "-UM"]),
        (("-I/a/b", "-I", "/c", "--include-path=/d"), ["-std=c++17", "-O2", "-I/a/b", "-I/c", "-I/d"]),
        (("-include", "x.h", "--pre-include=y.h"), ["-std=c++17", "-O2", "-include", "x.h", "-include", "y.h"]),
        (("-std=c++11",), ["-std=c++17", "-O2"]),
        (("--std=c++14",), ["-std=c++17", "-O2"]),
        (("--std", "c++20"), ["-std=c++20", "-O2"]),
        (("-G", "-lineinfo"), ["-std=c++17", "-O0", "-g"]),
        (("-w", "--restrict", "--use_fast_math", "-default-device"),
         ["-std=c++17", "-O2", "-D__USE_FAST_MATH__=1", "-w"]),
        (("--maxrregcount=32", "-maxrregcount", "64", "-arch=sm_90a", "--gpu-architecture", "compute_75"),
         ["-std=c++17", "-O2"]),
        (("--fmad=false", "-ftz=true", "--ftz", "-dc", "-rdc=true", "--dopt", "-prec-div=false", "-Xptxas", "-v"),
         ["-std=c++17", "-O2"]),
    ],
)  # fmt: skip
def test_options_of_nvrtc_are_translated(options: tuple[str, ...], arguments: list[str]) -> None:
    assert translate(options).arguments() == arguments


def test_a_folder_of_headers_does_not_depend_on_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert translate(("-Iheaders",)).include == [tmp_path / "headers"]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--foo", "nvrtc: error: unrecognized option --foo"),
        ("-O3", "nvrtc: error: unrecognized option -O3"),
        ("kernel.cu", "nvrtc: error: unrecognized option kernel.cu"),
        ("--restrict=true", "nvrtc: error: unrecognized option --restrict=true"),
        ("-arch=volta", "nvrtc: error: invalid value for --gpu-architecture (-arch): 'volta'"),
        ("-std=c++99", "nvrtc: error: invalid value for --std (-std): 'c++99'"),
        ("--maxrregcount=many", "nvrtc: error: invalid value for --maxrregcount (-maxrregcount): 'many'"),
        ("--fmad=maybe", "nvrtc: error: invalid value for --fmad (-fmad): 'maybe'"),
        ("-I", "nvrtc: error: invalid value for --include-path (-I): ''"),
    ],
)
def test_options_that_nvrtc_does_not_know_are_refused(option: str, message: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        translate((option,))
    assert str(caught.value) == message


@pytest.mark.parametrize("option", ["-O3", "-Xcompiler=-fPIC", "--expt-relaxed-constexpr", "-g", "-m64"])
def test_nvcc_has_more_options_than_nvrtc(option: str) -> None:
    assert translate((option,), "nvcc").arguments() == ["-std=c++17", "-O2"]
    with pytest.raises(InvalidOption, match="nvrtc: error: unrecognized option"):
        translate((option,))
