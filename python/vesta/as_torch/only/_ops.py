"""``torch._ops``: where ``torch.ops`` comes from inside of PyTorch, and the classes of operators."""

from __future__ import annotations

from vesta.as_torch.only import ops
from vesta.as_torch.only.ops import Operator

__all__ = ["OpOverload", "OpOverloadPacket", "ops"]

OpOverload = OpOverloadPacket = Operator
