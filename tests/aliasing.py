"""The table of what shares memory when: a row per function that may return its operand, a view of it or a copy.

The answers are PyTorch's; ``python/test_aliasing.py`` holds Vesta against them. A row has the call and, per layout of
the operand, a letter: ``=`` the operand itself, ``v`` another tensor over its memory, ``c`` a copy, ``!`` an error.
Rows of functions that do not exist here are tested as soon as they do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

#: The layouts, by the letter's place in a row's answers.
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda m: m.arange(12.0).view(3, 4),
    "transposed": lambda m: m.arange(12.0).view(4, 3).t(),
    "part": lambda m: m.arange(24.0).view(3, 8)[:, 2:6],
    "expanded": lambda m: m.arange(3.0).view(3, 1).expand(3, 4),
    "column": lambda m: m.arange(12.0).view(3, 4)[:, 1],
    "line": lambda m: m.arange(4.0),
    "one": lambda m: m.arange(4.0)[2:3].view(1, 1),
    "number": lambda m: m.arange(4.0)[2],
    "complex": lambda m: (m.arange(4.0) + 0j).view(2, 2),
}


@dataclass(frozen=True)
class Aliasing:
    """One function: its name in the op list, the call, and the answers in the order of LAYOUTS."""

    name: str
    call: Callable[[Any, Any], Any]
    answers: str
    needs: str = ""  # the attribute of Tensor or of the module by which to tell whether it exists; "": the name
    here: str = ""  # Vesta's answers where they differ on purpose (docs/differences.md)


row = Aliasing


# A table: the answers stand below each other.
# fmt: off
ROWS: list[Aliasing] = [
    # ---- shapes ----
    row("view", lambda m, x: x.view(-1), "v!!!vvvvv"),
    row("view_as", lambda m, x: x.view_as(x), "vvvvvvvvv"),
    row("reshape", lambda m, x: x.reshape(-1), "vcccvvvvv"),
    row("reshape to itself", lambda m, x: x.reshape(x.shape), "vvvvvvvvv", "reshape"),
    row("reshape_as", lambda m, x: x.reshape_as(x), "vvvvvvvvv"),
    row("ravel", lambda m, x: x.ravel(), "vccccvvvv"),
    row("flatten", lambda m, x: x.flatten(), "vccc==vvv"),
    row("flatten no dimension", lambda m, x: x.flatten(0, 0), "=======v=", "flatten"),
    row("nn.Flatten", lambda m, x: m.nn.Flatten()(x), "====!!=!=", "nn"),
    row("unflatten", lambda m, x: x.unflatten(0, (1, -1)), "vvvvvvv!v"),
    row("squeeze", lambda m, x: x.squeeze(), "vvvvvvvvv"),
    row("squeeze a dimension", lambda m, x: x.squeeze(0), "vvvvvvvvv", "squeeze"),
    row("unsqueeze", lambda m, x: x.unsqueeze(0), "vvvvvvvvv"),
    row("transpose", lambda m, x: x.transpose(0, 0), "vvvvvvvvv"),
    row("swapaxes", lambda m, x: x.swapaxes(0, -1), "vvvvvvvvv"),
    row("swapdims", lambda m, x: x.swapdims(0, -1), "vvvvvvvvv"),
    row("permute", lambda m, x: x.permute(tuple(range(x.dim()))), "vvvvvvvvv"),
    row("t", lambda m, x: x.t(), "vvvvvvvvv"),
    row("mT", lambda m, x: x.mT, "vvvv!!v=v", here="vvvv!!v!v"),
    row("T", lambda m, x: x.T, "vvvvvvvvv"),
    row("H", lambda m, x: x.H, "vvvv!!v=v", here="vvvv!!v=c"),
    row("mH", lambda m, x: x.mH, "vvvv!!v=v", here="vvvv!!v!c"),
    row("adjoint", lambda m, x: x.adjoint(), "vvvv!!v=v", here="vvvv!!v=c"),
    row("movedim", lambda m, x: x.movedim(0, -1), "vvvvvvvvv"),
    row("moveaxis", lambda m, x: x.moveaxis(0, -1), "vvvvvvvvv"),
    row("atleast_1d", lambda m, x: m.atleast_1d(x), "=======v="),
    row("atleast_2d", lambda m, x: m.atleast_2d(x), "====vv=v="),
    row("atleast_3d", lambda m, x: m.atleast_3d(x), "vvvvvvvvv"),
    row("expand", lambda m, x: x.expand(x.shape), "vvvvvvvvv"),
    row("expand_as", lambda m, x: x.expand_as(x), "vvvvvvvvv"),
    row("broadcast_to", lambda m, x: x.broadcast_to(x.shape), "vvvvvvvvv"),
    row("broadcast_tensors", lambda m, x: m.broadcast_tensors(x, x)[0], "========="),
    row("sum_to_size", lambda m, x: x.sum_to_size(x.shape), "=======c="),
    row("tile", lambda m, x: x.tile((1,)), "ccccccccc"),
    row("repeat", lambda m, x: x.repeat((1,) * x.dim()), "ccccccccc"),
    row("flip", lambda m, x: x.flip(()), "ccccccccc"),
    row("roll", lambda m, x: x.roll(0), "ccccccccc"),
    row("rot90", lambda m, x: x.rot90(0), "cccc!!c!c"),
    # ---- parts ----
    row("getitem ...", lambda m, x: x[...], "vvvvvvvvv", "__getitem__"),
    row("getitem ()", lambda m, x: x[()], "vvvvvvvvv", "__getitem__"),
    row("getitem None", lambda m, x: x[None], "vvvvvvvvv", "__getitem__"),
    row("getitem :", lambda m, x: x[:], "vvvvvvv!v", "__getitem__"),
    row("getitem 0", lambda m, x: x[0], "vvvvvvv!v", "__getitem__"),
    row("getitem True", lambda m, x: x[True], "ccccccccc", "__getitem__"),
    row("getitem list", lambda m, x: x[[0]], "ccccccc!c", "__getitem__"),
    row("select", lambda m, x: x.select(0, 0), "vvvvvvv!v"),
    row("slice", lambda m, x: x[0:1], "vvvvvvv!v", "__getitem__"),
    row("narrow", lambda m, x: x.narrow(0, 0, 1), "vvvvvvv!v"),
    row("narrow of all", lambda m, x: x.narrow(0, 0, len(x)), "vvvvvvv!v", "narrow"),
    row("narrow_copy", lambda m, x: x.narrow_copy(0, 0, 1), "ccccccc!c"),
    row("unbind", lambda m, x: x.unbind()[0], "vvvvvvv!v"),
    row("split", lambda m, x: x.split(99)[0], "vvvvvvv!v"),
    row("split_with_sizes", lambda m, x: x.split_with_sizes([len(x)])[0], "vvvvvvv!v"),
    row("chunk", lambda m, x: x.chunk(1)[0], "vvvvvvv!v"),
    row("tensor_split", lambda m, x: x.tensor_split(1)[0], "vvvvvvv!v"),
    row("hsplit", lambda m, x: x.hsplit(1)[0], "vvvvvvv!v"),
    row("vsplit", lambda m, x: x.vsplit(1)[0], "vvvv!!v!v"),
    row("dsplit", lambda m, x: x[None, None].dsplit(1)[0], "vvvvvvv!v"),
    row("diagonal", lambda m, x: x.diagonal(), "vvvv!!v!v"),
    row("diag", lambda m, x: x.diag(), "ccccccc!c"),
    row("unfold", lambda m, x: x.unfold(0, 1, 1), "vvvvvvvvv"),
    row("as_strided", lambda m, x: x.as_strided(x.shape, x.stride()), "vvvvvvvvv"),
    row("index_select", lambda m, x: x.index_select(0, m.tensor([0])), "ccccccccc"),
    row("masked_select", lambda m, x: x.masked_select(x == x), "ccccccccc"),
    row("gather", lambda m, x: x.gather(0, m.zeros(x.shape, dtype=m.int64)), "ccccccccc"),
    row("take", lambda m, x: x.take(m.tensor([0])), "ccccccccc"),
    row("cat", lambda m, x: m.cat([x]), "ccccccc!c"),
    row("stack", lambda m, x: m.stack([x]), "ccccccccc"),
    row("hstack", lambda m, x: m.hstack([x]), "ccccccccc"),
    row("vstack", lambda m, x: m.vstack([x]), "ccccccccc"),
    row("meshgrid", lambda m, x: m.meshgrid(x, indexing="ij")[0], "!!!!vv!v!"),
    # ---- the same values in another form ----
    row("contiguous", lambda m, x: x.contiguous(), "=cccc===="),
    row("to nothing", lambda m, x: x.to(x.dtype), "=========", "to"),
    row("to its device", lambda m, x: x.to("cpu"), "=========", "to"),
    row("to, copy", lambda m, x: x.to(x.dtype, copy=True), "ccccccccc", "to"),
    row("to another dtype", lambda m, x: x.to(m.complex128), "ccccccccc", "to"),
    row("to another tensor", lambda m, x: x.to(x.clone()), "=========", "to"),
    row("type", lambda m, x: x.type(x.dtype), "========="),
    row("type_as", lambda m, x: x.type_as(x), "========="),
    row("float", lambda m, x: x.float(), "========c", "float"),
    row("double", lambda m, x: x.double(), "ccccccccc", "double"),
    row("cpu", lambda m, x: x.cpu(), "=========", "cpu"),
    row("conj", lambda m, x: x.conj(), "========v", here="========c"),
    row("resolve_conj", lambda m, x: x.resolve_conj(), "========="),
    row("resolve_neg", lambda m, x: x.resolve_neg(), "========="),
    row("conj_physical", lambda m, x: x.conj_physical(), "========c", here="ccccccccc"),
    row("real", lambda m, x: x.real, "========v"),
    row("imag", lambda m, x: x.imag, "!!!!!!!!v"),
    row("view_as_real", lambda m, x: m.view_as_real(x), "!!!!!!!!v"),
    row("view_as_complex", lambda m, x: m.view_as_complex(x), "!!!!!!!!!"),
    row("positive", lambda m, x: x.positive(), "========="),
    row("+x", lambda m, x: +x, "=========", "__pos__"),
    row("clone", lambda m, x: x.clone(), "ccccccccc"),
    row("detach", lambda m, x: x.detach(), "vvvvvvvvv"),
    row("data", lambda m, x: x.data, "vvvvvvvvv", "data"),
    row("dropout without training", lambda m, x: m.nn.functional.dropout(x, 0.5, training=False), "=========", "nn"),
    row("dropout of nothing", lambda m, x: m.nn.functional.dropout(x, 0.0), "=========", "nn"),
    row("nn.Identity", lambda m, x: m.nn.Identity()(x), "=========", "nn"),
    row("nn.Dropout.eval", lambda m, x: m.nn.Dropout().eval()(x), "=========", "nn"),
    row("broadcasting add", lambda m, x: x.add(0), "ccccccccc", "add"),
    row("clamp", lambda m, x: x.clamp(min=-1), "cccccccc!", "clamp"),
    row("relu", lambda m, x: x.relu(), "cccccccc!", "relu"),
    row("abs", lambda m, x: x.abs(), "ccccccccc"),
    row("where", lambda m, x: m.where(x == x, x, x), "ccccccccc"),
    row("sum of no dimension", lambda m, x: x.sum(dim=()), "ccccccccc", "sum"),
    row("sum of a number", lambda m, x: x[0:1].sum(), "ccccccc!c", "sum"),
    row("mean", lambda m, x: x.mean(), "ccccccccc"),
    row("amax", lambda m, x: x.amax(), "cccccccc!"),
    row("max", lambda m, x: x.max(), "cccccccc!"),
    row("sort", lambda m, x: x.sort()[0], "cccccccc!"),
    row("cumsum", lambda m, x: x.cumsum(0), "ccccccccc"),
    row("triu", lambda m, x: x.triu(), "cccc!!c!c"),
    row("matmul", lambda m, x: m.eye(3, dtype=x.dtype).matmul(x), "ccccc!!!!"),
    # ---- factories ----
    row("tensor", lambda m, x: m.tensor(x.tolist()), "ccccccccc"),
    row("as_tensor", lambda m, x: m.as_tensor(x), "========="),
    row("asarray", lambda m, x: m.asarray(x), "========="),
    row("asarray, copy", lambda m, x: m.asarray(x, copy=True), "ccccccccc", "asarray"),
    row("from_numpy", lambda m, x: m.from_numpy(x.numpy()), "vvvvvvvvv"),
    row("from_dlpack", lambda m, x: m.from_dlpack(x), "vvvvvvvvv"),
    row("nn.Parameter", lambda m, x: m.nn.Parameter(x), "vvvvvvvvv", "nn"),
    row("zeros_like", lambda m, x: m.zeros_like(x), "ccccccccc"),
    row("copy.deepcopy", lambda m, x: __import__("copy").deepcopy(x), "ccccccccc", "__deepcopy__"),
]
# fmt: on


def exists(module: Any, entry: Aliasing) -> bool:
    """Returns whether the library has the function of a row."""
    name = entry.needs or entry.name
    return hasattr(module.Tensor, name) or hasattr(module, name)


def answer(module: Any, entry: Aliasing, layout: str) -> str:
    """Returns the letter for one call."""
    x = LAYOUTS[layout](module)
    try:
        result = entry.call(module, x)
    except (RuntimeError, TypeError, IndexError, ValueError, AttributeError):
        return "!"
    if result is x:
        return "="
    return "v" if shares(result, x) else "c"


def shares(a: Any, b: Any) -> bool:
    """Returns whether the first element of ``a`` lies within the memory of ``b``."""
    last = sum((size - 1) * stride for size, stride in zip(b.shape, b.stride()))
    return b.data_ptr() <= a.data_ptr() <= b.data_ptr() + last * b.element_size()
