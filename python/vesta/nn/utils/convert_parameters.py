"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

import vesta
from vesta import Tensor
from vesta._arguments import checked, expect

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _one_device(op: str, parameters: list[Tensor]) -> None:
    for parameter in parameters:
        expect(op, "parameters", parameter, Tensor, "tensors")
    devices = {str(parameter.device) for parameter in parameters}
    if len(devices) > 1:
        raise TypeError(
            f"Found two parameters on different devices, this is currently not supported: {', '.join(sorted(devices))}."
        )


@checked
def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Returns the elements of all parameters in one vector [total]; gradients flow back.

    Example::

        >>> import vesta
        >>> vesta.nn.utils.parameters_to_vector(vesta.nn.Linear(3, 2).parameters()).shape
        vesta.Size([8])
    """
    parameters = list(parameters)
    _one_device("parameters_to_vector", parameters)
    return vesta.cat([parameter.reshape(-1) for parameter in parameters])


@checked
def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Sets each parameter to its part of ``vec`` [total], in order; shares its memory, as in PyTorch.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.Linear(3, 2)
        >>> vesta.nn.utils.vector_to_parameters(vesta.zeros(8), layer.parameters())
        >>> layer.bias.tolist()
        [0.0, 0.0]
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected vesta.Tensor, but got: {type(vec).__name__}")
    parameters = list(parameters)
    _one_device("vector_to_parameters", parameters)
    start = 0
    for parameter in parameters:
        end = start + parameter.numel()
        parameter.data = vec[start:end].view(parameter.shape)
        start = end
