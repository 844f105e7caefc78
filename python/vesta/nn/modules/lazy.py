"""Layers that learn the sizes of their parameters from the first input."""

from __future__ import annotations

from typing import Any

import vesta
from vesta.nn.parameter import is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """The part of a layer that makes parameters without a shape and gives them one in the first call.

    A subclass derives from this and from a layer, makes its parameters ``UninitializedParameter``, and implements
    ``initialize_parameters``, which gets the arguments of the first call. Afterwards the object is of class
    ``cls_to_become``. Loading a ``state_dict`` gives the shapes, too. An optimizer can only be made afterwards.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.LazyLinear(3)
        >>> layer
        LazyLinear(in_features=0, out_features=3, bias=True)
        >>> _ = layer(vesta.zeros(2, 5))
        >>> layer
        Linear(in_features=5, out_features=3, bias=True)
    """

    cls_to_become: type[Any] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        register: Any = self
        self._load_hook = register._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = register.register_forward_pre_hook(type(self)._infer_parameters, with_kwargs=True)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Gives the parameters their shapes, from the arguments of a call; every subclass implements it."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Returns whether a parameter or buffer has no shape yet."""
        module: Any = self
        return any(is_lazy(value) for table in (module._parameters, module._buffers) for value in table.values())

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        for name, value in self._persistent_state().items():  # type: ignore[attr-defined]
            destination[prefix + name] = value if keep_vars or is_lazy(value) else value.detach()

    def _lazy_load_hook(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Gives parameters the shapes of the values that are about to be loaded."""
        module: Any = self
        for table in (module._parameters, module._buffers):
            for name, value in table.items():
                given = state_dict.get(prefix + name)
                if is_lazy(value) and given is not None and not is_lazy(given):
                    with vesta.no_grad():
                        value.materialize(given.shape)

    def _infer_parameters(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        """Runs before the first call: initializes the parameters, and turns the layer into an ordinary one."""
        self.initialize_parameters(*args, **(kwargs or {}))
        if self.has_uninitialized_params():
            raise RuntimeError(
                f"module {type(self).__name__} has not been fully initialized: initialize_parameters must materialize "
                "every parameter and buffer."
            )
        self._initialize_hook.remove()
        self._load_hook.remove()
        del self._initialize_hook, self._load_hook
        if self.cls_to_become is not None:
            self.__class__ = self.cls_to_become  # type: ignore[assignment]

    def _replicate_for_data_parallel(self) -> Any:
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy forward pass to "
            "correctly initialize the modules"
        )
