"""Builds and calls a row of ``table.py`` with one of the two libraries, and says what came out, in plain data."""

from __future__ import annotations

import math
import random
import warnings
import zlib
from typing import Any

from .table import Data, Part, Row


def values(data: Data) -> list[Any]:
    """Returns the values of a tensor, the same ones in every process."""
    count = math.prod(data.shape)
    if data.kind == "given":
        return list(data.values)
    dice = random.Random(zlib.crc32(repr((data.shape, data.kind, data.high)).encode()))
    draw = {
        "wave": lambda: dice.uniform(-2, 2),
        "part": lambda: dice.uniform(0.02, 0.98),
        "positive": lambda: dice.uniform(0.1, 2),
        "sign": lambda: dice.choice((-1.0, 1.0)),
        "number": lambda: dice.randrange(data.high),
        "mask": lambda: dice.random() < 0.2,
    }
    return [draw[data.kind]() for _ in range(count)]


def tensor(lib: Any, data: Data) -> Any:
    """Makes an argument."""
    if data.kind == "causal":
        return lib.triu(lib.full(data.shape, -math.inf), diagonal=1)
    if data.kind == "logs":
        return tensor(lib, Data(data.shape))  # log_softmax of it is taken when its gradient is requested
    if data.kind == "packed":
        padded = tensor(lib, Data(data.shape))
        return lib.nn.utils.rnn.pack_padded_sequence(padded, list(data.values), enforce_sorted=False)
    if data.kind == "pooled":
        pool = getattr(lib.nn.functional, f"max_pool{data.high}d")
        return pool(tensor(lib, Data(data.shape)), 2, return_indices=True)
    if data.kind in ("wave", "part", "positive", "sign"):
        return lib.tensor(values(data), dtype=lib.float32).reshape(data.shape)
    whole = lib.tensor(values(data)).reshape(data.shape)
    if data.kind == "mask":  # a line that is masked completely has no meaning
        whole[..., 0] = False
    return whole


def argument(lib: Any, value: Any) -> Any:
    """Makes an argument of a constructor or a call."""
    if isinstance(value, Data):
        return tensor(lib, value)
    if isinstance(value, Part):
        return getattr(lib.nn, value.name)(*(argument(lib, arg) for arg in value.args))
    if isinstance(value, tuple) and any(isinstance(entry, Data) for entry in value):
        return tuple(argument(lib, entry) for entry in value)
    return value


def build(lib: Any, row: Row) -> Any:
    """Makes the layer."""
    args = [argument(lib, value) for value in row.args]
    kwargs = {key: argument(lib, value) for key, value in row.kwargs.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(lib.nn, row.name)(*args, **kwargs)


def fill(lib: Any, layer: Any) -> None:
    """Sets every parameter and buffer to values of a formula."""
    with lib.no_grad():
        for i, (name, value) in enumerate(sorted(layer.state_dict().items())):
            if not value.is_floating_point():
                continue
            kind = "positive" if "var" in name or name == "_random_samples" else "wave"
            if name != "_random_samples":
                wanted = tensor(lib, Data((i + 1, *value.shape), kind))[i] * 0.5
                value.copy_(wanted)


def shown(x: Any) -> Any:
    """Returns a number with the digits that are compared."""
    return float(f"{x:.7g}") if isinstance(x, float) else x


def told(value: Any) -> Any:
    """Returns a result as plain data: for a tensor its dtype, shape, some values and two sums over all of them."""
    if isinstance(value, (tuple, list)):
        return [told(entry) for entry in value]
    if value is None or isinstance(value, (int, float, str)):
        return value
    flat = value.detach().reshape(-1).tolist()
    step = max(1, len(flat) // 12)
    result = {
        "dtype": str(value.dtype).partition(".")[2],
        "shape": list(value.shape),
        "values": [shown(x) for x in flat[::step]],
    }
    if step > 1:
        result["sums"] = [shown(sum(flat)), shown(sum(x * (i % 7 - 3) for i, x in enumerate(flat)))]
    return result


def leaves(value: Any, lib: Any) -> list[Any]:
    """Returns the floating tensors of the arguments of a call, or of its result."""
    if isinstance(value, lib.Tensor):
        return [value] if value.is_floating_point() else []
    if isinstance(value, (tuple, list)):
        return [leaf for entry in value for leaf in leaves(entry, lib)]
    return []


def call(lib: Any, layer: Any, row: Row) -> dict[str, Any]:
    """Runs forward and backward once; returns the outputs and all gradients."""
    inputs = [argument(lib, value) for value in row.inputs]
    named = {key: argument(lib, value) for key, value in row.named.items()}
    signs = [isinstance(value, Data) and value.kind == "sign" for value in row.inputs]  # have no gradient
    sources = leaves([x for x, sign in zip(inputs, signs) if not sign], lib)
    for source in sources:
        source.requires_grad_()
    if len(inputs) == 1 and isinstance(inputs[0], tuple) and not isinstance(inputs[0], lib.nn.utils.rnn.PackedSequence):
        inputs = list(inputs[0])  # a pooled pair is two arguments
    for i, value in enumerate(row.inputs):
        if isinstance(value, Data) and value.kind == "logs":
            inputs[i] = lib.nn.functional.log_softmax(inputs[i], -1)
    inplace = getattr(layer, "inplace", False) is True
    inputs = [x * 1 if inplace and isinstance(x, lib.Tensor) else x for x in inputs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        output = layer(*inputs, **named)
    total = None
    for i, leaf in enumerate(leaves(output, lib)):
        if leaf.requires_grad:
            part = (leaf * tensor(lib, Data((i + 1, *leaf.shape)))[i]).sum()
            total = part if total is None else total + part
    parameters = dict(layer.named_parameters())
    if total is not None:
        total.backward()
    result = {
        "output": told(output),
        "input gradients": [told(source.grad) for source in sources],
        "parameter gradients": {name: told(p.grad) for name, p in parameters.items()},
    }
    for parameter in parameters.values():
        parameter.grad = None
    return result


def attributes(layer: Any) -> dict[str, Any]:
    """Returns the plain public attributes of a layer."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in vars(layer).items()
        if not name.startswith("_") and isinstance(value, (int, float, str, bool, type(None), tuple))
    }


def facts(layer: Any) -> dict[str, Any]:
    """Returns what a layer shows: its text, its attributes, names and shapes of its values."""
    state = layer.state_dict()
    return {
        "repr": repr(layer),
        "attributes": attributes(layer),
        "children": [[name, type(child).__name__] for name, child in layer.named_modules()],
        "parameters": [name for name, _ in layer.named_parameters()],
        "state": [[name, str(value.dtype).partition(".")[2], list(value.shape)] for name, value in state.items()],
    }


def initial(lib: Any, row: Row, times: int = 30) -> dict[str, list[float]]:
    """Returns least, mean, deviation and greatest of the initial values, over several layers."""
    collected: dict[str, list[float]] = {}
    lib.manual_seed(1)
    for _ in range(times):
        for name, parameter in build(lib, row).named_parameters():
            collected.setdefault(name, []).extend(parameter.detach().reshape(-1).tolist())
    result = {}
    for name, drawn in collected.items():
        mean = sum(drawn) / len(drawn)
        spread = math.sqrt(sum((x - mean) ** 2 for x in drawn) / len(drawn))
        result[name] = [*map(shown, (min(drawn), mean, spread, max(drawn))), len(drawn)]
    return result


def outcome(lib: Any, row: Row) -> dict[str, Any]:
    """Returns everything about a row, with one of the libraries."""
    layer = build(lib, row)
    result = facts(layer)
    if result["parameters"]:
        result["initial"] = initial(lib, row)
    if row.text_only:
        return result
    fill(lib, layer)
    result["evaluation"] = call(lib, layer.eval(), row)
    if not row.random:
        result["training"] = call(lib, layer.train(), row)
        result["state afterwards"] = {name: told(value) for name, value in layer.state_dict().items()}
        if result["training"] == result["evaluation"]:
            result["training"] = "as in evaluation"
    return result
