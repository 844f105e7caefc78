"""``vesta.summary``: what the layers of a model make of an input, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .table import Row, Summary

__all__ = ["Row", "Summary", "summary"]


def summary(
    model: Any, input: Any = (), *, counts: Mapping[type, Callable[..., int]] | None = None, **named: Any
) -> Summary:
    """Runs ``model`` once in evaluation mode and returns a table of its layers.

    Args:
        model: a ``vesta.nn.Module`` without uninitialized (lazy) parameters.
        input: what the model is called with: a tensor; a tuple or list of positional arguments; or a dict of keyword
            arguments. A model whose only argument is a tuple, list or dict ``x`` takes ``(x,)``. Tensors are copied.
        named: keyword arguments of the model: ``summary(model, src=x, tgt=y)``.
        counts: multiply-adds of further layers, by class: ``function(module, inputs, output)`` returns an int, where
            ``inputs`` is a dict of the arguments of ``forward`` by name. A subclass counts as its base does.

    Returns:
        A :class:`Summary`: ``print`` shows the table, a notebook too; ``rows`` are its lines as data, one for each
        call of each layer in the order of the calls, with shapes, parameters, multiply-adds and bytes; ``parameters``,
        ``multiply_adds``, ``activation_bytes`` and others are its totals; ``not_called`` are layers that were not
        reached.

    One multiply-add is one product and one sum; a bias, an activation, a softmax, a pooling, a dropout and an embedding
    count nothing. With B the batch, and the sizes named as in the layers' arguments:

    ======================== ==========================================================================
    layer                    multiply-adds
    ======================== ==========================================================================
    Linear                   elements of the output * in_features
    Bilinear                 elements of the output * in1_features * (in2_features + 1)
    Conv1d, 2d, 3d           elements of the output * in_channels / groups * elements of the kernel
    ConvTranspose1d, 2d, 3d  elements of the input * out_channels / groups * elements of the kernel
    BatchNorm                1 for each element; 3 where it has no running statistics
    Instance-, Group-,       3 for each element: mean, variance, scale
    LayerNorm
    RMSNorm                  2 for each element: mean square, scale
    RNN, GRU, LSTM           B * steps * gates * hidden_size * (inputs + outputs) for each layer and direction, with 1,
                             3 and 4 gates; ``proj_size`` adds B * steps * hidden_size * proj_size. Of a packed
                             sequence, its elements are B * steps.
    RNNCell, GRUCell,        B * gates * hidden_size * (input_size + hidden_size)
    LSTMCell
    MultiheadAttention       B * (2 * L * E * E + S * E * (kdim + vdim) + 2 * L * S' * E) with L queries, S keys and
                             S' = S, one more for ``add_bias_kv`` and for ``add_zero_attn`` each
    PReLU                    1 for each element
    ======================== ==========================================================================

    A layer with layers in it counts what is in it. What a ``forward`` computes by functions or operators of its own
    counts nothing; ``uncounted`` names the classes that have parameters of their own and no formula. Activations are
    the outputs of the layers without layers in them, less those that share memory with an input.

    The model is left as it was: modes, hooks, attributes, buffers, gradients and random states (Python's, NumPy's and
    Vesta's) are those of before, also where the model raises. Only what a ``forward`` writes into a parameter, or into
    an object that a module holds, stays. The model's own hooks run.

    Raises:
        TypeError: ``model`` is no module, or ``counts`` no mapping of classes to functions.
        ValueError: a parameter is not initialized yet.

    Example::

        >>> import vesta
        >>> model = vesta.nn.Sequential(vesta.nn.Linear(4, 3), vesta.nn.ReLU())
        >>> s = vesta.summary(model, vesta.zeros(2, 4))
        >>> print(s)
        Layer       Kind    Output  Parameters  Multiply-adds  Activations
        Sequential          [2, 3]          15             24         48 B
          0         Linear  [2, 3]          15             24         24 B
          1         ReLU    [2, 3]                                    24 B
        Parameters: 15 (60 B), all trained. Multiply-adds: 24. Activations: 48 B. Input: 32 B.
        >>> s.rows[1].name, s.rows[1].outputs, s.multiply_adds
        ('0', [2, 3], 24)
    """
    from .walk import run

    return run(model, input, named, counts or {})
