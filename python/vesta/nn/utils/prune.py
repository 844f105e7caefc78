"""Pruning: elements, channels and the like of a parameter set to zero, by a mask that stays.

``weight`` becomes ``weight_orig`` (a parameter), ``weight_mask`` (a buffer) and an attribute ``weight`` that a hook
computes before each forward. Pruning again prunes what is left.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import vesta
from vesta import Tensor
from vesta._arguments import expect
from vesta._names import listing
from vesta.nn.modules.module import Module

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


class BasePruningMethod(ABC):
    """The base of pruning methods: a subclass computes a mask, and says what it prunes.

    Attributes:
        PRUNING_TYPE: ``"unstructured"`` (elements), ``"structured"`` (along a dimension) or ``"global"``.
    """

    PRUNING_TYPE: str
    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Returns the mask of ``t`` on top of an earlier one: 0 where it is pruned."""

    def apply_mask(self, module: Module) -> Tensor:
        """Returns the original parameter times its mask."""
        name = getattr(self, "_tensor_name", None)
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        mask, original = getattr(module, f"{name}_mask"), getattr(module, f"{name}_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prunes the parameter ``name``; ``args`` and ``kwargs`` are those of the method's constructor."""
        op = cls.__name__
        expect(op, "module", module, Module, "Module")
        expect(op, "name", name, str, "str")
        earlier = [
            (key, hook)
            for key, hook in module._forward_pre_hooks.items()
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
        ]
        if len(earlier) > 1:
            raise AssertionError(
                f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. Use a "
                "PruningContainer."
            )
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        if earlier:
            key, old = earlier[0]
            del module._forward_pre_hooks[key]
            container = old if isinstance(old, PruningContainer) else PruningContainer(old)
            container._tensor_name = name
            container.add_pruning_method(method)
            method = container
        original = getattr(module, name, None)
        if not isinstance(original, Tensor):
            raise AttributeError(
                f"{op}: expected the name of a parameter of {type(module).__name__}, got {name!r} (name)."
            )
        if importance_scores is not None:
            expect(op, "importance_scores", importance_scores, Tensor, "Tensor or None")
            if importance_scores.shape != original.shape:
                raise AssertionError(
                    f"importance_scores should have the same shape as parameter {name} of {module}, got "
                    f"{list(importance_scores.shape)} and {list(original.shape)}"
                )
        else:
            importance_scores = original
        if not earlier:
            module.register_parameter(f"{name}_orig", module._parameters[name])
            del module._parameters[name]
            default_mask = vesta.ones_like(original).detach()
        else:
            default_mask = getattr(module, f"{name}_mask").detach().clone()
        try:
            with vesta.no_grad():
                mask = method.compute_mask(importance_scores.detach(), default_mask=default_mask)
            module.register_buffer(f"{name}_mask", mask)
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if not earlier:
                vars(module).pop(name, None)
                restored = module._parameters.pop(f"{name}_orig")
                module.register_parameter(name, restored)
            raise
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """Returns a tensor pruned by this method, without a module.

        Args:
            default_mask: what is pruned already.
            importance_scores: what is compared instead of ``t``; of its shape.
        """
        expect(type(self).__name__, "t", t, Tensor, "Tensor")
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t")
        default_mask = vesta.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=default_mask)

    def remove(self, module: Module) -> None:
        """Makes the pruned tensor an ordinary parameter; the zeros stay."""
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(f"{name}_orig")
        original.data = weight.detach()
        del module._buffers[f"{name}_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several methods of one parameter, one after the other.

    Args:
        args: methods, all of the same parameter.
    """

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if not isinstance(args, Iterable) or len(args) == 1 and not isinstance(args[0], Iterable):
            expect("PruningContainer", "args", args[0], BasePruningMethod, "a pruning method")
            self.add_pruning_method(args[0])
        else:
            for method in args[0] if len(args) == 1 else args:
                self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod | None) -> None:
        """Adds a method of the same parameter."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is None:
            return
        if getattr(self, "_tensor_name", method._tensor_name) != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._tensor_name = method._tensor_name
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Returns the mask of the method added last, which sees only what is left."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        if method.PRUNING_TYPE == "unstructured":
            left: Any = mask == 1
        elif method.PRUNING_TYPE == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError(
                    "Pruning methods of PRUNING_TYPE 'structured' need to have the attribute `dim` defined."
                )
            dim = method.dim % t.dim()
            others = [d for d in range(t.dim()) if d != dim]
            kept = mask.sum(others) != 0
            left = (slice(None),) * dim + (kept,)
        elif method.PRUNING_TYPE == "global":
            left = (slice(None),) * t.dim()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        result = mask.clone()
        result[left] = method.compute_mask(t[left], default_mask=mask[left]).to(mask.dtype)
        return result


class Identity(BasePruningMethod):
    """Prunes nothing, but makes the mask."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Returns the earlier mask."""
        return default_mask


def _check_amount(op: str, amount: Any) -> None:
    """Checks a fraction of [0, 1] or a number of elements."""
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if amount < 0 or (not isinstance(amount, numbers.Integral) and amount > 1.0):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0.0, 1.0] or a non-negative integer ({op})"
        )


def _count(amount: Any, size: int) -> int:
    """Returns how many of ``size`` are pruned."""
    if not isinstance(amount, numbers.Integral):
        return round(amount * size)
    if amount > size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={size}")
    return int(amount)


class _ByAmount(BasePruningMethod):
    """A method that prunes a fraction, or a number, of what there is."""

    def __init__(self, amount: Any) -> None:
        _check_amount(type(self).__name__, amount)
        self.amount = amount


class RandomUnstructured(_ByAmount):
    """Prunes elements at random.

    Args:
        amount: a fraction or a number.
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Returns the mask."""
        mask = default_mask.clone()
        count = _count(self.amount, t.numel())
        if count:
            chosen = vesta.topk(vesta.rand(t.numel(), device=t.device), count).indices
            mask.view(-1)[chosen] = 0
        return mask


class L1Unstructured(_ByAmount):
    """Prunes the elements of the least magnitude.

    Args:
        amount: a fraction or a number.
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Returns the mask."""
        mask = default_mask.clone()
        count = _count(self.amount, t.numel())
        if count:
            mask.view(-1)[vesta.topk(t.abs().reshape(-1), count, largest=False).indices] = 0
        return mask


class _Structured(_ByAmount):
    """A method that prunes whole entries along a dimension."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        super().__init__(amount)
        expect(type(self).__name__, "dim", dim, int, "int")
        self.dim = dim

    def _scores(self, t: Tensor) -> Tensor:
        """Returns a number for each entry; the least are pruned."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Returns the mask."""
        name = type(self).__name__
        if t.dim() <= 1:
            raise ValueError(
                f"Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
                f"{list(t.shape)} "
                f"with {t.dim()} dims"
            )
        if not -t.dim() <= self.dim < t.dim():
            raise IndexError(f"{name}: expected dim in [{-t.dim()}, {t.dim() - 1}], got {self.dim} (dim).")
        dim = self.dim % t.dim()
        size = t.size(dim)
        count = _count(self.amount, size)
        if not count:
            return default_mask
        kept = vesta.ones(size, dtype=default_mask.dtype, device=t.device)
        kept[vesta.topk(self._scores(t), count, largest=False).indices] = 0
        shape = [1] * t.dim()
        shape[dim] = size
        return default_mask * kept.view(shape)


class RandomStructured(_Structured):
    """Prunes whole entries along a dimension, at random.

    Args:
        amount: a fraction or a number.
        dim: the dimension.
    """

    def _scores(self, t: Tensor) -> Tensor:
        return vesta.rand(t.size(self.dim), device=t.device)


class LnStructured(_Structured):
    """Prunes the entries along a dimension whose norm is least.

    Args:
        amount: a fraction or a number.
        n: the norm: a number or ``inf``.
        dim: the dimension.
    """

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _scores(self, t: Tensor) -> Tensor:
        dim = self.dim % t.dim()
        lines = t.transpose(0, dim).reshape(t.size(dim), -1)
        return vesta.norm(lines, self.n, 1)


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask.

    Args:
        mask: of the parameter's shape, 0 where it is pruned.
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        expect("CustomFromMask", "mask", mask, Tensor, "Tensor")
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Returns the mask."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"expected a mask of shape {list(default_mask.shape)}, got {list(self.mask.shape)} (mask)."
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)


# ---- functions ----


def identity(module: Module, name: str) -> Module:
    """Makes the mask of ones for a parameter, without pruning.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.utils.prune.identity(vesta.nn.Linear(2, 3), "bias")
        >>> layer.bias_mask
        tensor([1., 1., 1.])
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: Any) -> Module:
    """Prunes ``amount`` (a fraction or a number) of the elements of a parameter at random.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.utils.prune.random_unstructured(vesta.nn.Linear(2, 3), "weight", amount=1)
        >>> int((layer.weight == 0).sum())
        1
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: Any, importance_scores: Tensor | None = None) -> Module:
    """Prunes the elements of the least magnitude, of ``importance_scores`` if given (Han et al., 2015).

    Example::

        >>> import vesta
        >>> layer = vesta.nn.utils.prune.l1_unstructured(vesta.nn.Linear(2, 3), "weight", amount=0.5)
        >>> sorted(layer.state_dict())
        ['bias', 'weight_mask', 'weight_orig']
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: Any, dim: int) -> Module:
    """Prunes ``amount`` of the entries along ``dim`` at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module, name: str, amount: Any, n: Any, dim: int, importance_scores: Tensor | None = None
) -> Module:
    """Prunes the entries along ``dim`` whose ``n``-norm is least.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.utils.prune.ln_structured(vesta.nn.Conv2d(5, 3, 2), "weight", amount=1, n=2, dim=0)
        >>> int((layer.weight.abs().sum((1, 2, 3)) == 0).sum())
        1
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(
    parameters: Any, pruning_method: type[BasePruningMethod], importance_scores: Any = None, **kwargs: Any
) -> None:
    """Prunes the elements of several parameters together, as if they were one tensor.

    Args:
        parameters: pairs of (module, name).
        pruning_method: an unstructured method; ``kwargs`` are its arguments.
        importance_scores: a dict from such pairs to tensors.

    Example::

        >>> import vesta
        >>> prune, model = vesta.nn.utils.prune, vesta.nn.Sequential(vesta.nn.Linear(4, 4), vesta.nn.Linear(4, 4))
        >>> prune.global_unstructured([(layer, "weight") for layer in model], prune.L1Unstructured, amount=10)
        >>> sum(int((layer.weight == 0).sum()) for layer in model)
        10
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    pairs = list(parameters)
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[0], Module):
            raise TypeError(f"global_unstructured: expected pairs (module, name), got {pair!r} (parameters).")
    if not pairs:
        return
    values = [scores.get(pair, getattr(*pair)) for pair in pairs]
    masks = [getattr(m, f"{name}_mask", vesta.ones_like(getattr(m, name))) for m, name in pairs]
    container = PruningContainer()
    container._tensor_name = "temp"
    if not (isinstance(pruning_method, type) and issubclass(pruning_method, BasePruningMethod)):
        raise TypeError(
            f"global_unstructured: expected a class of pruning methods, got {pruning_method!r} (pruning_method)."
        )
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    container.add_pruning_method(method)
    with vesta.no_grad():
        together = vesta.cat([value.detach().reshape(-1) for value in values])
        mask = container.compute_mask(together, vesta.cat([part.detach().reshape(-1) for part in masks]))
    start = 0
    for module, name in pairs:
        parameter = getattr(module, name)
        end = start + parameter.numel()
        custom_from_mask(module, name, mask[start:end].view(parameter.shape))
        start = end


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prunes a parameter by a mask of its shape, 0 where it is pruned.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.utils.prune.custom_from_mask(vesta.nn.Linear(5, 3), "bias", vesta.tensor([0, 1, 0]))
        >>> layer.bias_mask
        tensor([0., 1., 0.])
    """
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: Module, name: str) -> Module:
    """Makes a pruned tensor an ordinary parameter; the zeros stay."""
    expect("remove", "module", module, Module, "Module")
    for key, hook in list(module._forward_pre_hooks.items()):
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Module) -> bool:
    """Returns whether a tensor of ``module``, or of a module below it, is pruned.

    Example::

        >>> import vesta
        >>> vesta.nn.utils.prune.is_pruned(vesta.nn.Linear(5, 3))
        False
    """
    expect("is_pruned", "module", module, Module, "Module")
    return any(
        isinstance(hook, BasePruningMethod) for below in module.modules() for hook in below._forward_pre_hooks.values()
    )


__dir__ = listing(globals())
