"""The parameters of elementwise and reduction kernels: their declarations, and the types of placeholders."""

from __future__ import annotations

import numpy as np
import pytest

from tcuda.emulation.kernels.parts.parameters import Parameter, parameters_of
from tcuda.emulation.kernels.parts.type_inference import types_of
from tcuda.emulation.kernels.parts.type_names import type_name

pytestmark = pytest.mark.emulated

FLOAT, DOUBLE, INT = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int32)


def test_declarations_become_parameters():
    assert parameters_of("T x, raw float32 y, _non_const raw int64 z,bool  w", True) == (
        Parameter("x", None, "T", False, True),
        Parameter("y", FLOAT, "float", True, True),
        Parameter("z", np.dtype(np.int64), "long long", True, False),
        Parameter("w", np.dtype(bool), "bool", False, True),
    )
    assert parameters_of("complex64 z", False) == (
        Parameter("z", np.dtype(np.complex64), "thrust::complex<float>", False, False),
    )
    assert parameters_of("", True) == ()


@pytest.mark.parametrize(
    ("declarations", "error", "message"),
    [
        ("x", Exception, "Syntax error: 'x'"),
        ("T x,", Exception, "Syntax error: ''"),
        (" ", Exception, "Syntax error"),
        ("row T x", Exception, 'Unknown keyword "row"'),
        ("float33 x", TypeError, "float33"),
        ("float128 x", ValueError, "Unsupported dtype float128"),
        ("object x", ValueError, "Unsupported dtype object"),
        (3, TypeError, "a string such as"),
    ],
)
def test_wrong_declarations_are_refused(declarations, error, message):
    with pytest.raises(error, match=message) as caught:
        parameters_of(declarations, True)
    assert caught.type is error


def test_every_type_of_arrays_has_a_name():
    names = {type_name(np.dtype(character)) for character in "?bhilqBHILQefdFD"}
    assert len(names) == 14
    assert {"float16", "unsigned char", "thrust::complex<double>"} < names


def types(in_params, out_params, inputs, outputs=()):
    return types_of(parameters_of(in_params, True), parameters_of(out_params, False), inputs, outputs)


def test_outputs_decide_on_placeholders_before_inputs():
    found = types("T x, U y", "T z, V w", [None, INT], [FLOAT, DOUBLE])
    assert found.inputs == (FLOAT, INT)
    assert found.outputs == (FLOAT, DOUBLE)
    assert found.placeholders == (("T", FLOAT), ("U", INT), ("V", DOUBLE))


def test_scalars_do_not_decide_on_placeholders():
    found = types("T x, T y, float64 z", "T w", [None, FLOAT, None])
    assert found.inputs == (FLOAT, FLOAT, DOUBLE)
    assert found.outputs == (FLOAT,)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            ("T x, T y", "T z", [FLOAT, DOUBLE]),
            TypeError,
            "Type is mismatched.*y has dtype float64.*T the type float32",
        ),
        (("float32 x", "T z", [DOUBLE], [FLOAT]), TypeError, "Type is mismatched.*x is declared as float32"),
        (("T x", "T z", [FLOAT], [DOUBLE]), TypeError, "Type is mismatched"),
        (("T x", "float32 z", [FLOAT], [DOUBLE]), TypeError, "Type is mismatched.*z is declared as float32"),
        (("X x", "Z z", [FLOAT]), KeyError, "the type Z of the parameter z"),
        (("T x", "T z", [None]), KeyError, "the type T of the parameter x"),
    ],
)
def test_types_that_do_not_fit_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        types(*arguments)
