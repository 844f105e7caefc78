"""Both libraries in one process, for the tests that need PyTorch; a file that imports this is skipped without it."""

from __future__ import annotations

from typing import Any

import pytest
import vesta

__all__ = ["same", "torch"]

torch: Any = pytest.importorskip("torch", reason="row 26 of tests/EXCEPTIONS.md")
if torch.Tensor is vesta.Tensor:
    pytest.skip("row 26 of tests/EXCEPTIONS.md", allow_module_level=True)


def same(a: Any, b: Any, atol: float = 1e-6) -> bool:
    """Returns whether tensors of either library have the same shape and values."""
    a, b = (x.detach() if isinstance(x, vesta.Tensor) else vesta.from_torch(x.detach()) for x in (a, b))
    return a.shape == b.shape and vesta.allclose(a.double(), b.double(), rtol=1e-5, atol=atol)
