"""``torch._ops``: where ``torch.ops`` comes from inside of PyTorch, and the classes of operators."""

from __future__ import annotations

from vesta import ops
from vesta.library.operators import OpOverload, OpPacket

__all__ = ["OpOverload", "OpOverloadPacket", "ops"]

OpOverloadPacket = OpPacket
