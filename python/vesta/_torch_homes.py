"""Classes whose module is another one in PyTorch: for names in files, and for programs under ``vesta.as_torch``."""

from __future__ import annotations

#: PyTorch's module by (Vesta's module, name); a class that is not here is in ``torch.X`` if Vesta's is in ``vesta.X``.
MOVED = {
    ("vesta.nn.modules.attention", "MultiheadAttention"): "torch.nn.modules.activation",
    ("vesta.nn.modules.linear_cross_entropy", "LinearCrossEntropyLoss"): "torch.nn.modules.loss",
    ("vesta.nn.modules.parameter_container", "ParameterList"): "torch.nn.modules.container",
    ("vesta.nn.modules.parameter_container", "ParameterDict"): "torch.nn.modules.container",
    ("vesta", "Tensor"): "torch",
}
