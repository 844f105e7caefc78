"""The base of layers that are a function with options: activations, pooling, padding, losses.

Such a layer is its constructor's signature, one line of ``forward`` and the text of its options:

    class ELU(FunctionLayer):
        _text = "alpha={alpha}{inplace_text}"
        alpha: float
        inplace: bool

        @stored
        def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None: ...

        def forward(self, input: Tensor) -> Tensor:
            return F.elu(input, self.alpha, self.inplace)

``stored`` keeps every argument as an attribute of its name, as PyTorch's layers do; the class declares their types for
type checkers. The constructor's body is left for what is to be checked or converted.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from vesta._arguments import arguments_of, checked, class_of
from vesta.nn.modules.module import Module

__all__ = ["FunctionLayer", "stored"]

F = TypeVar("F", bound=Callable[..., None])


def stored(init: F) -> F:
    """Makes a constructor that checks its arguments by their annotations and keeps them as attributes.

    ``Module.__init__`` has run when the body does. What the body sets itself is not set again.
    """
    arguments, run = arguments_of(init), checked(init)

    @functools.wraps(init)
    def call(self: FunctionLayer, *args: Any, **kwargs: Any) -> None:
        try:
            given = arguments(self, *args, **kwargs)
        except TypeError as error:
            raise TypeError(str(error).replace(init.__qualname__, f"{class_of(self)}.__init__", 1)) from None
        del given[next(iter(given))]
        Module.__init__(self)
        run(self, **given)
        self._store({name: value for name, value in given.items() if name not in self.__dict__})

    return cast(F, call)


class FunctionLayer(Module):
    """A layer that is a function of ``vesta.nn.functional`` with options."""

    #: The text of the options, with their attributes in braces; ``inplace_text`` is there only where it is True.
    _text = ""

    if TYPE_CHECKING:
        __getattr__: None  # a slip in an attribute's name is an error

    def _store(self, arguments: dict[str, Any]) -> None:
        """Keeps the constructor's arguments as attributes."""
        for name, value in arguments.items():
            setattr(self, name, value)

    def extra_repr(self) -> str:
        """Returns the options as PyTorch prints them."""
        inplace = ", inplace=True" if self.__dict__.get("inplace") else ""
        return self._text.format(**self.__dict__, inplace_text=inplace).removeprefix(", ")
