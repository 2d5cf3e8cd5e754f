"""Wrong uses of operators of PyTorch: `wrong_uses.py` has the rows."""

from __future__ import annotations

import re

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import operator_kernels as kernels  # noqa: E402  # after the check
import wrong_uses  # noqa: E402
from test_torch_op import saxpy, saxpy_  # noqa: E402
from weft import cuda  # noqa: E402

pytestmark = pytest.mark.cpu

COPY = "void(float32[:], float32[:])"
NAMES = {
    "torch": torch,
    "np": np,
    "cuda": cuda,
    "kernels": kernels,
    "saxpy": saxpy,
    "saxpy_": saxpy_,
    "typed": kernels.typed.as_torch_op("weft_tests::typed", launch=kernels.over, out=cuda.like("x")),
    "bad_gradient": kernels.copy.as_torch_op(
        "weft_tests::bad_gradient",
        launch=kernels.over,
        out=cuda.like("x"),
        backward=lambda grad, x: (grad, grad),
        signature=COPY,
    ),
    "bad_launch": kernels.copy.as_torch_op(
        "weft_tests::bad_launch", launch=lambda x: (1, x.size * 1000), out=cuda.like("x"), signature=COPY
    ),
}


@pytest.mark.parametrize("row", wrong_uses.TORCH, ids=lambda row: row.code)
def test_wrong_use(row):
    x = torch.arange(6.0)
    with pytest.raises(row.raises, match="(?s)" + ".*".join(map(re.escape, row.words))) as raised:
        row.run(NAMES | {"x": x, "y": torch.ones(6)})
    assert "Exception raised from" not in str(raised.value)
