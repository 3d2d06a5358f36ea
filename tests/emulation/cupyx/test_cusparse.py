"""The descriptors of cuSPARSE, which libraries import to pickle sparse matrices."""

from __future__ import annotations

import pickle

import pytest

from tcuda.emulation import cupyx

pytestmark = pytest.mark.emulated

MatDescriptor = cupyx.cusparse.MatDescriptor


def test_a_descriptor_can_be_made_set_and_pickled() -> None:
    descriptor = MatDescriptor.create()
    assert descriptor.descriptor
    assert descriptor.descriptor != MatDescriptor.create().descriptor
    descriptor.set_mat_type(3)
    descriptor.set_mat_index_base(1)
    descriptor.set_mat_fill_mode(1)
    descriptor.set_mat_diag_type(1)
    assert type(pickle.loads(pickle.dumps(descriptor))) is MatDescriptor


@pytest.mark.parametrize("name", ["set_mat_type", "set_mat_index_base", "set_mat_fill_mode", "set_mat_diag_type"])
@pytest.mark.parametrize("value", [-1, 4])
def test_a_setting_that_cusparse_does_not_have_is_refused(name: str, value: int) -> None:
    with pytest.raises(RuntimeError, match=f"CUSPARSE_STATUS_INVALID_VALUE: .* got {value}"):
        getattr(MatDescriptor.create(), name)(value)
