"""Wrong uses of functions of JAX: `wrong_uses.py` has the rows."""

from __future__ import annotations

import re

import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed")

import jax.numpy as jnp  # noqa: E402  # after the check
import operator_kernels as kernels  # noqa: E402
import wrong_uses  # noqa: E402
from test_jax_call import X, Y, accumulate, saxpy  # noqa: E402
from weft import cuda  # noqa: E402

pytestmark = pytest.mark.cpu

COPY = "void(float32[:], float32[:])"
NAMES = {
    "jax": jax,
    "jnp": jnp,
    "cuda": cuda,
    "kernels": kernels,
    "X": X,
    "Y": Y,
    "saxpy": saxpy,
    "accumulate": accumulate,
    "typed": kernels.typed.as_jax_call(launch=kernels.over, out=cuda.like("x")),
    "counted": kernels.repeat.as_jax_call(
        launch=kernels.over, out=cuda.like("x"), signature="void(float32[:], int64, float32[:])"
    ),
    "bad_gradient": kernels.copy.as_jax_call(
        launch=kernels.over, out=cuda.like("x"), backward=lambda grad, x: (grad, grad), signature=COPY
    ),
    "bad_launch": kernels.copy.as_jax_call(launch=lambda x: (1, x.size * 1000), out=cuda.like("x"), signature=COPY),
}


@pytest.mark.parametrize("row", wrong_uses.JAX, ids=lambda row: row.code)
def test_wrong_use(row):
    with pytest.raises(row.raises, match="(?s)" + ".*".join(map(re.escape, row.words))):
        row.run(NAMES)
