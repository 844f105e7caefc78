"""Functions of PyTorch that are built from Vesta's, by their names ``torch...``; ``extras.find`` looks here last."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable, Iterable
from typing import Any

import vesta
from vesta import Tensor, nn
from vesta.utils import _pytree

from .extras import no

__all__ = ["NAMES"]


class CheckpointPolicy(enum.Enum):
    """What selective checkpointing does with the result of an operation."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False, **options: Any
) -> tuple[Any, Any]:
    """Returns the contexts of a checkpoint's two runs: every result is recomputed, whatever the policy says."""
    return contextlib.nullcontext(), contextlib.nullcontext()


class DebugLevel(enum.Enum):
    """How much the collectives check and say."""

    OFF = 0
    INFO = 1
    DETAIL = 2


def get_debug_level() -> DebugLevel:
    """Returns OFF: collectives check always, and log nothing."""
    return DebugLevel.OFF


def set_debug_level(level: Any) -> None:
    """Does nothing."""


def replace_all_batch_norm_modules_(root: nn.Module) -> nn.Module:
    """Lets the batch norms of a module use the batch's statistics alone, as ``vmap`` needs it."""
    for module in root.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchanges values, gradients, classes and attributes of two leaves; each stays the object that it is.

    Raises:
        RuntimeError: one of them is not a leaf.
    """
    if not (t1.is_leaf and t2.is_leaf):
        raise RuntimeError("swap_tensors: expected leaves, got a tensor of a graph. Use copy_() or detach().")
    state = [(t.data, t.grad, t.requires_grad, t.__class__, dict(t.__dict__)) for t in (t1, t2)]
    for tensor in (t1, t2):
        tensor.grad = None
        tensor.requires_grad_(False)
    for tensor, (data, grad, needs, kind, own) in zip((t2, t1), state):
        tensor.data = data
        if tensor.__class__ is not kind:
            tensor.__class__ = kind
        tensor.__dict__.clear()
        tensor.__dict__.update(own)
        tensor.requires_grad_(needs)
        tensor.grad = grad


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """Returns the leaves of all arguments."""
    return _pytree.tree_leaves((list(args), kwargs))


def tree_leaves_with_path(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[tuple[Any, Any]]:
    """Returns pairs of the path to a leaf and the leaf."""
    return _pytree.tree_flatten_with_path(tree, is_leaf)[0]


def _of(kind: Any) -> Callable[[Any], bool]:
    return (lambda x: isinstance(x, kind)) if isinstance(kind, (type, tuple)) else kind


def tree_all_only(type_or_types: Any, pred: Callable[[Any], bool], tree: Any, is_leaf: Any = None) -> bool:
    """Returns whether something holds for all leaves of a class."""
    chosen = _of(type_or_types)
    return all(pred(leaf) for leaf in _pytree.tree_leaves(tree, is_leaf) if chosen(leaf))


def tree_any_only(type_or_types: Any, pred: Callable[[Any], bool], tree: Any, is_leaf: Any = None) -> bool:
    """Returns whether something holds for a leaf of a class."""
    chosen = _of(type_or_types)
    return any(pred(leaf) for leaf in _pytree.tree_leaves(tree, is_leaf) if chosen(leaf))


def map_only(type_or_types: Any) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Returns a decorator: the function is called for objects of a class, others stay as they are."""
    chosen = _of(type_or_types)
    return lambda function: lambda x: function(x) if chosen(x) else x


def key_get(obj: Any, kp: Iterable[Any]) -> Any:
    """Returns what lies at the end of a path."""
    for key in kp:
        obj = key.get(obj)
    return obj


def register_constant(cls: type) -> None:
    """Makes a class a node without leaves."""
    _pytree.register_pytree_node(cls, lambda x: ([], x), lambda _, x: x)


def register_dataclass(cls: type, *, field_names: Any = None, drop_field_names: Any = None, **options: Any) -> None:
    """Makes a dataclass a node whose leaves are its fields."""
    import dataclasses

    dropped = set(drop_field_names or ())
    names = [f.name for f in dataclasses.fields(cls)] if field_names is None else list(field_names)
    names = [name for name in names if name not in dropped]
    keys = list(map(_pytree.GetAttrKey, names))

    def flatten(x: Any) -> tuple[list[Any], Any]:
        return [getattr(x, name) for name in names], names

    def unflatten(values: Iterable[Any], _: Any) -> Any:
        return cls(**dict(zip(names, values)))

    with_keys = lambda x: (list(zip(keys, flatten(x)[0])), names)
    _pytree.register_pytree_node(cls, flatten, unflatten, flatten_with_keys_fn=with_keys)


class classproperty:
    """A property of a class."""

    def __init__(self, fget: Callable[[Any], Any]) -> None:
        self.fget = fget

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self.fget(owner if owner is not None else type(instance))


def _reorder_tensors_as(tensors: Iterable[Tensor], ordered_tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Returns tensors in the order of others, where those of one type have kept theirs."""
    groups: dict[str, list[Tensor]] = {}
    for tensor in tensors:
        groups.setdefault(tensor.type(), []).append(tensor)
    parts = {kind: iter(group) for kind, group in groups.items()}
    return tuple(next(parts[tensor.type()]) for tensor in ordered_tensors)


def _is_tensor_like(value: Any) -> bool:
    """Returns whether an object is a tensor, or a class's that takes tensors' calls over."""
    return vesta.overrides.is_tensor_like(value)


def _yes() -> bool:
    """Returns True."""
    return True


#: What there is.
NAMES: dict[str, Any] = {
    "torch.utils.checkpoint.CheckpointPolicy": CheckpointPolicy,
    "torch.utils.checkpoint.create_selective_checkpoint_contexts": create_selective_checkpoint_contexts,
    "torch.distributed.DebugLevel": DebugLevel,
    "torch.distributed.get_debug_level": get_debug_level,
    "torch.distributed.set_debug_level": set_debug_level,
    "torch.distributed.set_debug_level_from_env": set_debug_level,
    "torch.func.replace_all_batch_norm_modules_": replace_all_batch_norm_modules_,
    "torch._functorch.batch_norm_replacement.replace_all_batch_norm_modules_": replace_all_batch_norm_modules_,
    "torch.utils.swap_tensors": swap_tensors,
    **{
        f"torch.utils._pytree.{function.__name__}": function
        for function in (
            arg_tree_leaves,
            tree_leaves_with_path,
            tree_all_only,
            tree_any_only,
            map_only,
            key_get,
            register_constant,
            register_dataclass,
        )
    },
    "torch._utils.classproperty": classproperty,
    "torch._utils._reorder_tensors_as": _reorder_tensors_as,
    "torch._utils.is_compiling": no,
    "torch.distributions.utils.is_tensor_like": _is_tensor_like,
    "torch.autograd.is_tensor_like": _is_tensor_like,
    "torch.autograd.is_multithreading_enabled": _yes,
    "torch.backends.cuda.is_flash_attention_available": no,
    "torch.backends.cuda.is_ck_sdpa_available": no,
    "torch.backends.cuda.can_use_flash_attention": no,
    "torch.backends.cuda.can_use_efficient_attention": no,
    "torch.backends.cuda.can_use_cudnn_attention": no,
}
