"""Softmax over many classes, most of which are rare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import vesta
from vesta import Tensor
from vesta._arguments import checked, expect
from vesta._types import Device, DType
from vesta.nn import functional as F
from vesta.nn.modules.container import ModuleList, Sequential
from vesta.nn.modules.linear import Linear
from vesta.nn.modules.module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _ASMoutput(NamedTuple):
    """The log-probability of each target, and the mean loss."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """The negative log-likelihood of classes in clusters by frequency: rare ones get less memory and time.

    Grave et al., "Efficient softmax approximation for GPUs", 2017. Classes are numbered by frequency. The first
    ``cutoffs[0]`` and one entry for each further cluster are in the head, a cluster is a softmax of its own.

    Args:
        in_features: size of the input.
        n_classes: the number of classes.
        cutoffs: where clusters begin, increasing.
        div_value: cluster i has in_features / div_value ** (i + 1) hidden features.
        head_bias: whether the head has a bias.

    Shapes: input [N, in_features] or [in_features], target [N] or []; ``output`` as target, ``loss`` [].

    Example::

        >>> import vesta
        >>> layer = vesta.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10], div_value=2.0)
        >>> layer(vesta.zeros(3, 8), vesta.tensor([0, 5, 19])).output.shape
        vesta.Size([3])
    """

    @checked
    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        for cutoff in cutoffs:
            expect("AdaptiveLogSoftmaxWithLoss", "cutoffs", cutoff, int, "integers")
        rising = all(low < high for low, high in zip(cutoffs, cutoffs[1:]))
        if not rising or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1:
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                "value is between 1 and n_classes-1"
            )
        if div_value <= 0:
            raise ValueError(f"AdaptiveLogSoftmaxWithLoss: expected div_value > 0, got {div_value} (div_value).")
        where = {"device": device, "dtype": dtype}
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = cutoffs[0]
        self.n_clusters = len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **where)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            hidden = int(in_features // div_value ** (i + 1))
            parts = Linear(in_features, hidden, bias=False, **where), Linear(hidden, high - low, bias=False, **where)
            self.tail.append(Sequential(*parts))

    def reset_parameters(self) -> None:
        """Redraws all weights."""
        for layer in (self.head, *(layer for cluster in self.tail for layer in cluster)):
            layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """Returns the log-probability of each target, and the mean of their negatives."""
        for name, value in (("input_", input_), ("target_", target_)):
            expect("AdaptiveLogSoftmaxWithLoss", name, value, Tensor, "Tensor")
        dims = target_.dim()
        if dims > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if input_.dim() != dims + 1:
            raise RuntimeError(
                f"{dims}D target tensor expects {dims + 1}D input tensors, but found inputs with size {input_.size()}"
            )
        if dims == 1 and input_.size(0) != target_.size(0):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        input, target = (input_, target_) if dims else (input_.unsqueeze(0), target_.unsqueeze(0))
        if target.numel() and not 0 <= int(target.min()) <= int(target.max()) < self.n_classes:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range [{target.min().item()}, "
                f"{target.max().item()}] were found. "
            )
        output, entries = input.new_zeros((target.size(0),)), target.clone()
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            inside = F.log_softmax(self.tail[i](input[rows]), dim=1)
            output = output.index_add(0, rows, inside.gather(1, (target[rows] - low).unsqueeze(1)).squeeze(1))
            entries[rows] = self.shortlist_size + i
        head = F.log_softmax(self.head(input), dim=1)
        output = output + head.gather(1, entries.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if dims else output.squeeze(0), loss)

    def log_prob(self, input: Tensor) -> Tensor:
        """Returns the log-probabilities of all classes [N, n_classes] for ``input`` [N, in_features]."""
        expect("AdaptiveLogSoftmaxWithLoss.log_prob", "input", input, Tensor, "Tensor")
        head = F.log_softmax(self.head(input), dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            parts.append(F.log_softmax(cluster(input), dim=1) + head[:, self.shortlist_size + i].unsqueeze(1))
        return vesta.cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """Returns the most probable class [N] for ``input`` [N, in_features]."""
        expect("AdaptiveLogSoftmaxWithLoss.predict", "input", input, Tensor, "Tensor")
        head = self.head(input)
        best = head.argmax(1)
        rare = (best >= self.shortlist_size).nonzero().squeeze(1)
        if rare.numel():  # the head alone cannot tell which class of a cluster it is
            best[rare] = self.log_prob(input[rare]).argmax(1)
        return best
