"""Recurrent layers: plain, LSTM and GRU, over whole sequences and step by step.

The recurrences are ops (``vesta.lstm``, ``vesta.gru``, ...); here are their parameters and the shapes of what goes in.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, overload

import vesta
from vesta import Tensor
from vesta._arguments import checked, expect
from vesta._types import Device, DType
from vesta.nn import init
from vesta.nn.functional.ops import ops
from vesta.nn.modules.module import Module
from vesta.nn.modules.utils import count
from vesta.nn.parameter import Parameter
from vesta.nn.utils.rnn import PackedSequence

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"]

#: For each mode: the number of gates, and the op.
_MODES = {"LSTM": (4, "lstm"), "GRU": (3, "gru"), "RNN_TANH": (1, "rnn_tanh"), "RNN_RELU": (1, "rnn_relu")}


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """Returns ``tensor`` with its entries along ``dim`` in another order; warns: use ``index_select``."""
    warnings.warn(
        "apply_permutation is deprecated, please use tensor.index_select(dim, permutation) instead",
        FutureWarning,
        stacklevel=2,
    )
    return tensor.index_select(dim, permutation)


class RNNBase(Module):
    """The common part of ``RNN``, ``LSTM`` and ``GRU``: parameters, shapes, packed sequences.

    Args:
        mode: ``"LSTM"``, ``"GRU"``, ``"RNN_TANH"`` or ``"RNN_RELU"``.
        input_size, hidden_size: sizes of an input and of a state.
        num_layers: layers on top of each other.
        bias: whether there are biases.
        batch_first: inputs and outputs are [N, L, *] instead of [L, N, *].
        dropout: the part of each layer's output but the last one's that is dropped in training.
        bidirectional: a second recurrence from the end to the start; both outputs are concatenated.
        proj_size: the size to which the LSTM's output is projected; 0: not at all.

    Parameters of layer k (``_reverse`` behind the names of the second direction): ``weight_ih_l{k}``
    [gates * hidden_size, input size], ``weight_hh_l{k}`` [gates * hidden_size, output size], ``bias_ih_l{k}`` and
    ``bias_hh_l{k}`` [gates * hidden_size], ``weight_hr_l{k}`` [proj_size, hidden_size]; all start uniform in [-k, k],
    k = 1 / sqrt(hidden_size).
    """

    if TYPE_CHECKING:  # weight_ih_l0 and the like

        def __getattr__(self, name: str) -> Parameter: ...

    @checked
    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        if mode not in _MODES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        if isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        for name, flag in (("bias", bias), ("batch_first", batch_first)):
            if not isinstance(flag, bool):
                raise TypeError(f"{name} should be of type bool, got: {type(flag).__name__}")
        if input_size <= 0:
            raise ValueError("input_size must be greater than zero")
        if hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if count(mode, "num_layers", num_layers) <= 0:
            raise ValueError("num_layers must be greater than zero")
        if proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                stacklevel=4,
            )
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse") if bidirectional else ("",):
                shapes = self._shapes(layer, f"_l{layer}{suffix}")
                for name, shape in shapes.items():
                    setattr(self, name, Parameter(vesta.empty(shape, device=device, dtype=dtype)))
                self._all_weights.append(list(shapes))
        self.reset_parameters()

    def _shapes(self, layer: int, suffix: str) -> dict[str, tuple[int, ...]]:
        """Returns the parameters of one layer and direction, in the order that the op takes them."""
        output = self.proj_size or self.hidden_size
        directions = 2 if self.bidirectional else 1
        rows = _MODES[self.mode][0] * self.hidden_size
        shapes: dict[str, tuple[int, ...]] = {
            f"weight_ih{suffix}": (rows, self.input_size if layer == 0 else output * directions),
            f"weight_hh{suffix}": (rows, output),
        }
        if self.bias:
            shapes |= {f"bias_ih{suffix}": (rows,), f"bias_hh{suffix}": (rows,)}
        if self.proj_size:
            shapes[f"weight_hr{suffix}"] = (self.proj_size, self.hidden_size)
        return shapes

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Tensor]:
        given = self.__dict__.get("_given_weights")
        return given or [getattr(self, name) for names in self._all_weights for name in names]

    @_flat_weights.setter
    def _flat_weights(self, value: list[Tensor]) -> None:  # of programs that compute the weights
        self.__dict__["_given_weights"] = list(value)

    def __setattr__(self, name: str, value: Any) -> None:
        given = self.__dict__.get("_given_weights")
        if given is not None and name in self._flat_weights_names:
            given[self._flat_weights_names.index(name)] = value
        super().__setattr__(name, value)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:  # the given ones are left behind, as in PyTorch
        self.__dict__.pop("_given_weights", None)
        return super()._apply(fn, recurse)

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters, a list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Does nothing: the parameters need not lie side by side here."""

    def reset_parameters(self) -> None:
        """Redraws all parameters."""
        bound = 1.0 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        for derived in ("_flat_weights", "_flat_weights_names", "_flat_weight_refs"):  # of PyTorch's pickles
            state.pop(derived, None)
        super().__setstate__(state)
        self.__dict__.setdefault("proj_size", 0)

    def extra_repr(self) -> str:
        """Returns the constructor's arguments, without those at their defaults."""
        text = f"{self.input_size}, {self.hidden_size}"
        defaults = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0,
            "bidirectional": False,
        }
        for name, default in defaults.items():
            if getattr(self, name) != default:
                text += f", {name}={getattr(self, name)}"
        return text

    # ---- a call ----

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raises unless ``input`` has the layer's dtype and input size."""
        weight = getattr(self, self._all_weights[0][0])
        if input.dtype != weight.dtype and not vesta.is_autocast_enabled(input.device.type):
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). "
                f"Convert input: input.to({weight.dtype}), or convert model: model.to({input.dtype})"
            )
        expected = 2 if batch_sizes is not None else 3
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def _expected_state(self, input: Tensor, batch_sizes: Tensor | None, size: int) -> tuple[int, int, int]:
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.size(0 if self.batch_first else 1)
        return self.num_layers * (2 if self.bidirectional else 1), batch, size

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """Returns the shape of the hidden state: (layers * directions, N, output size)."""
        return self._expected_state(input, batch_sizes, self.proj_size or self.hidden_size)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """Returns the shape of the LSTM's cell state: (layers * directions, N, hidden_size)."""
        return self._expected_state(input, batch_sizes, self.hidden_size)

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: tuple[int, int, int], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Raises unless a state has the expected shape."""
        expect(type(self).__name__, "hx", hx, Tensor, "Tensor")
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raises unless input and states fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """Returns the states of a batch in another order."""
        return hx if permutation is None else hx.index_select(1, permutation)

    def _zeros(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        """Returns the states to begin with."""
        shape = self.get_expected_hidden_size(input, batch_sizes)
        return vesta.zeros(shape, dtype=input.dtype, device=input.device)

    def _with_batch(self, hx: Any) -> Any:
        """Adds the batch's dimension to the states of a single sequence."""
        expect(type(self).__name__, "hx", hx, Tensor, "Tensor or None")
        if hx.dim() != 2:
            raise RuntimeError(f"For unbatched 2-D input, hx should also be 2-D but got {hx.dim()}-D tensor")
        return hx.unsqueeze(1)

    def _without_batch(self, hx: Any) -> Any:
        return hx.squeeze(1)

    def _check_batched(self, hx: Any) -> None:
        if isinstance(hx, Tensor) and hx.dim() != 3:
            raise RuntimeError(f"For batched 3-D input, hx should also be 3-D but got {hx.dim()}-D tensor")

    def _run(self, head: tuple[Any, ...], hx: Any, tail: tuple[Any, ...]) -> tuple[Tensor, Any]:
        """Runs the op between the arguments that packed and padded sequences differ in."""
        op = getattr(ops, _MODES[self.mode][1])
        options = (self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        return op(*head, hx, self._flat_weights, *options, *tail)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Returns the outputs of all steps and the states after the last one."""
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        name = type(self).__name__
        expect(name, "input", input, Tensor, "Tensor or PackedSequence")
        if input.dim() not in (2, 3):
            raise ValueError(f"{name}: Expected input to be 2D or 3D, got {input.dim()}D instead")
        batched, place = input.dim() == 3, 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(place)
            hx = None if hx is None else self._with_batch(hx)
        elif hx is not None:
            self._check_batched(hx)
        if hx is None:
            hx = self._zeros(input, None)
        self.check_forward_args(input, hx, None)
        output, hidden = self._run((input,), hx, (self.batch_first,))
        if batched:
            return output, hidden
        return output.squeeze(place), self._without_batch(hidden)

    def _forward_packed(self, input: PackedSequence, hx: Any) -> tuple[PackedSequence, Any]:
        data, batch_sizes, order, back = input
        hx = self._zeros(data, batch_sizes) if hx is None else self.permute_hidden(hx, order)
        self.check_forward_args(data, hx, batch_sizes)
        output, hidden = self._run((data, batch_sizes), hx, ())
        return PackedSequence(output, batch_sizes, order, back), self.permute_hidden(hidden, back)


class RNN(RNNBase):
    """A recurrent layer: h = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu in place of tanh.

    Elman, "Finding structure in time", 1990. Arguments and parameters as for ``RNNBase``, and

    Args:
        nonlinearity: ``"tanh"`` or ``"relu"``.

    Shapes: input [L, N, input_size], [L, input_size] or a packed sequence; state and last state
    [layers * directions, N, hidden_size]; output [L, N, directions * hidden_size].

    Example::

        >>> import vesta
        >>> output, state = vesta.nn.RNN(10, 20, 2)(vesta.zeros(5, 3, 10))
        >>> output.shape, state.shape
        (vesta.Size([5, 3, 20]), vesta.Size([2, 3, 20]))
    """

    if TYPE_CHECKING:

        @overload
        def __call__(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]: ...
        @overload
        def __call__(self, input: PackedSequence, hx: Tensor | None = None) -> tuple[PackedSequence, Tensor]: ...
        def __call__(self, input: Any, hx: Any = None) -> Any: ...

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Device | None = None,
        dtype: DType | None = None,
        **more: Any,
    ) -> None:
        _refuse_projection(more)
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        mode = f"RNN_{nonlinearity.upper()}"
        super().__init__(
            mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype
        )
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """A recurrent layer with gates and a cell: c = f * c + i * g, h = o * tanh(c).

    i, f, o = sigmoid and g = tanh of W_ih x + b_ih + W_hh h + b_hh, in the order i, f, g, o (Hochreiter and
    Schmidhuber,
    "Long short-term memory", 1997; Gers et al., 2000). With ``proj_size``, h is W_hr h (Sak et al., 2014).

    Args:
        input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size: as for ``RNNBase``.

    Shapes: input [L, N, input_size], [L, input_size] or a packed sequence; output [L, N, directions * H] with
    H = proj_size or hidden_size; states (h [layers * directions, N, H], c [layers * directions, N, hidden_size]).

    Example::

        >>> import vesta
        >>> output, (h, c) = vesta.nn.LSTM(10, 20, 2)(vesta.zeros(5, 3, 10))
        >>> output.shape, h.shape, c.shape
        (vesta.Size([5, 3, 20]), vesta.Size([2, 3, 20]), vesta.Size([2, 3, 20]))
    """

    if TYPE_CHECKING:

        @overload
        def __call__(
            self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
        ) -> tuple[Tensor, tuple[Tensor, Tensor]]: ...
        @overload
        def __call__(
            self, input: PackedSequence, hx: tuple[Tensor, Tensor] | None = None
        ) -> tuple[PackedSequence, tuple[Tensor, Tensor]]: ...
        def __call__(self, input: Any, hx: Any = None) -> Any: ...

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(
            "LSTM",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            proj_size,
            device,
            dtype,
        )

    @staticmethod
    def _pair(hx: Any) -> tuple[Any, Any]:
        if not isinstance(hx, (tuple, list)) or len(hx) != 2:
            raise RuntimeError(f"LSTM: expected hx to be a tuple of two tensors (h, c), got {type(hx).__name__} (hx).")
        return hx[0], hx[1]

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raises unless input and states fit."""
        self.check_input(input, batch_sizes)
        h, c = self._pair(hidden)
        wrong = "Expected hidden[{}] size {{}}, got {{}}"
        self.check_hidden_size(h, self.get_expected_hidden_size(input, batch_sizes), wrong.format(0))
        self.check_hidden_size(c, self.get_expected_cell_size(input, batch_sizes), wrong.format(1))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """Returns the states of a batch in another order."""
        h, c = self._pair(hx)
        return super().permute_hidden(h, permutation), super().permute_hidden(c, permutation)

    def _zeros(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        shape = self.get_expected_cell_size(input, batch_sizes)
        return super()._zeros(input, batch_sizes), vesta.zeros(shape, dtype=input.dtype, device=input.device)

    def _with_batch(self, hx: Any) -> Any:
        h, c = self._pair(hx)
        return super()._with_batch(h), super()._with_batch(c)

    def _without_batch(self, hx: Any) -> Any:
        return hx[0].squeeze(1), hx[1].squeeze(1)

    def _check_batched(self, hx: Any) -> None:
        for state in self._pair(hx):
            super()._check_batched(state)

    def _run(self, head: tuple[Any, ...], hx: Any, tail: tuple[Any, ...]) -> tuple[Tensor, Any]:
        output, h, c = super()._run(head, tuple(hx), tail)  # type: ignore[misc]
        return output, (h, c)


class GRU(RNNBase):
    """A recurrent layer with two gates: h = (1 - z) * n + z * h.

    r, z = sigmoid(W_ih x + b_ih + W_hh h + b_hh), n = tanh(W_in x + b_in + r * (W_hn h + b_hn)), in the order r, z, n
    (Cho et al., "Learning phrase representations using RNN encoder-decoder", 2014).

    Args:
        input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional: as for ``RNNBase``.

    Shapes: as for ``RNN``.

    Example::

        >>> import vesta
        >>> output, state = vesta.nn.GRU(10, 20, 2)(vesta.zeros(5, 3, 10))
        >>> output.shape, state.shape
        (vesta.Size([5, 3, 20]), vesta.Size([2, 3, 20]))
    """

    if TYPE_CHECKING:

        @overload
        def __call__(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]: ...
        @overload
        def __call__(self, input: PackedSequence, hx: Tensor | None = None) -> tuple[PackedSequence, Tensor]: ...
        def __call__(self, input: Any, hx: Any = None) -> Any: ...

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Device | None = None,
        dtype: DType | None = None,
        **more: Any,
    ) -> None:
        _refuse_projection(more)
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype
        )


def _refuse_projection(more: dict[str, Any]) -> None:
    """Raises on arguments that only the LSTM has, or that nobody has."""
    if "proj_size" in more:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
    for name in more:
        raise TypeError(f"__init__() got an unexpected keyword argument {name!r}")


# ---- single steps ----


class RNNCellBase(Module):
    """The common part of cells: parameters and shapes.

    Args:
        input_size, hidden_size: sizes of an input and of a state.
        bias: whether there are biases.
        num_chunks: the number of gates.

    Parameters: ``weight_ih`` [num_chunks * hidden_size, input_size], ``weight_hh`` [num_chunks * hidden_size,
    hidden_size], ``bias_ih`` and ``bias_hh`` [num_chunks * hidden_size]; uniform in [-k, k], k = 1 / sqrt(hidden_size).
    """

    bias_ih: Parameter | Any  # None without them
    bias_hh: Parameter | Any

    if TYPE_CHECKING:
        __getattr__: None  # a slip in an attribute's name is an error

    @checked
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        where = {"device": device, "dtype": dtype}
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(vesta.empty((rows, input_size), **where))
        self.weight_hh = Parameter(vesta.empty((rows, hidden_size), **where))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(vesta.empty((rows,), **where)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Redraws all parameters."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        """Returns the constructor's arguments, without those at their defaults."""
        text = f"{self.input_size}, {self.hidden_size}"
        if not self.bias:
            text += f", bias={self.bias}"
        nonlinearity = self.__dict__.get("nonlinearity", "tanh")
        return text if nonlinearity == "tanh" else f"{text}, nonlinearity={nonlinearity}"

    def _states(self, input: Tensor, hx: Any, number: int) -> Iterator[Tensor]:
        """Yields the input and the states [N, size], zeros for missing ones."""
        name = type(self).__name__
        expect(name, "input", input, Tensor, "Tensor")
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        batched = input.dim() == 2
        yield input if batched else input.unsqueeze(0)
        if hx is None:
            batch = input.size(0) if batched else 1
            zeros = vesta.zeros(batch, self.hidden_size, dtype=input.dtype, device=input.device)
            yield from (zeros,) * number
            return
        states = (hx,) if number == 1 else hx
        if not isinstance(states, (tuple, list)) or len(states) != number:
            raise TypeError(f"{name}: expected {number} states, got {type(hx).__name__} (hx).")
        for i, state in enumerate(states):
            expect(name, "hx", state, Tensor, "Tensor")
            if state.dim() not in (1, 2):
                which = "hidden" if number == 1 else f"hx[{i}]"
                raise ValueError(f"{name}: Expected {which} to be 1D or 2D, got {state.dim()}D instead")
            yield state if batched else state.unsqueeze(0)

    def _weights(self) -> tuple[Any, ...]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh


class RNNCell(RNNCellBase):
    """One step of ``RNN``: h = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu in place of tanh.

    Args:
        input_size, hidden_size, bias: as for ``RNNCellBase``.
        nonlinearity: ``"tanh"`` or ``"relu"``.

    Shapes: input [N, input_size] or [input_size], state and new state [N, hidden_size] or [hidden_size].

    Example::

        >>> import vesta
        >>> vesta.nn.RNNCell(10, 20)(vesta.zeros(3, 10)).shape
        vesta.Size([3, 20])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Returns the next state."""
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        x, h = self._states(input, hx, 1)
        op = ops.rnn_tanh_cell if self.nonlinearity == "tanh" else ops.rnn_relu_cell
        result = op(x, h, *self._weights())
        return result if input.dim() == 2 else result.squeeze(0)


class LSTMCell(RNNCellBase):
    """One step of ``LSTM``.

    Args:
        input_size, hidden_size, bias: as for ``RNNCellBase``.

    Shapes: input [N, input_size] or [input_size]; states and new states (h, c), [N, hidden_size] or [hidden_size].

    Example::

        >>> import vesta
        >>> h, c = vesta.nn.LSTMCell(10, 20)(vesta.zeros(3, 10))
        >>> h.shape, c.shape
        (vesta.Size([3, 20]), vesta.Size([3, 20]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Returns the next states (h, c)."""
        x, h, c = self._states(input, hx, 2)
        h, c = ops.lstm_cell(x, (h, c), *self._weights())
        return (h, c) if input.dim() == 2 else (h.squeeze(0), c.squeeze(0))


class GRUCell(RNNCellBase):
    """One step of ``GRU``.

    Args:
        input_size, hidden_size, bias: as for ``RNNCellBase``.

    Shapes: input [N, input_size] or [input_size], state and new state [N, hidden_size] or [hidden_size].

    Example::

        >>> import vesta
        >>> vesta.nn.GRUCell(10, 20)(vesta.zeros(3, 10)).shape
        vesta.Size([3, 20])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Returns the next state."""
        x, h = self._states(input, hx, 1)
        result = ops.gru_cell(x, h, *self._weights())
        return result if input.dim() == 2 else result.squeeze(0)
