"""The steps of a graph."""

from __future__ import annotations

import builtins
import types
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Union

from .immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["Argument", "Node", "Target", "has_side_effect", "map_aggregate", "map_arg"]

Target = Union[Callable[..., Any], str]
Argument = Any

#: Functions that are called for what they do, so that a call without users stays.
_impure: set[Any] = set()
_OPS = ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")


def has_side_effect(fn: Any) -> Any:
    """Notes that calls of a function stay in a graph although nobody takes their result; returns the function."""
    _impure.add(fn)
    return fn


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """Returns an argument with ``fn`` applied to whatever is in its tuples, lists, dicts and slices."""
    if isinstance(a, tuple):
        parts = [map_aggregate(part, fn) for part in a]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    if isinstance(a, list):
        return immutable_list(map_aggregate(part, fn) for part in a)
    if isinstance(a, dict):
        return immutable_dict((key, map_aggregate(value, fn)) for key, value in a.items())
    if isinstance(a, slice):
        return slice(*(map_aggregate(part, fn) for part in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """Returns an argument with ``fn`` applied to the nodes in it."""
    return map_aggregate(a, lambda part: fn(part) if isinstance(part, Node) else part)


def _shown(a: Any) -> str:
    """Returns an argument as a graph prints it: nodes as ``%name``."""
    if isinstance(a, (tuple, list)):
        parts = ", ".join(map(_shown, a))
        comma = "," if isinstance(a, tuple) and len(a) == 1 else ""
        return f"[{parts}]" if isinstance(a, list) else f"({parts}{comma})"
    if isinstance(a, dict):
        return "{" + ", ".join(f"{key}: {_shown(value)}" for key, value in a.items()) + "}"
    return f"%{a}" if isinstance(a, Node) else str(a)


class Node:
    """A step of a graph.

    Attributes:
        op: what kind: placeholder, get_attr, call_function, call_method, call_module or output.
        target: the function, or the name of the method, the module, the attribute or the argument.
        args, kwargs: what it takes; nodes may be inside of tuples, lists, dicts and slices.
        users: the nodes that take its result, as keys.
        meta: whatever passes over the graph note.
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        return_type: Any = None,
    ) -> None:
        if op not in _OPS:
            raise AssertionError(f"op '{op}' is not in _legal_ops")
        if op == "call_function" and not callable(target):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} "
                "but a Callable is expected"
            )
        if op not in ("call_function", "root") and not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} but a str is expected"
            )
        self.graph, self.name, self.op, self.target = graph, name, op, target
        self.type = return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._inputs: dict[Node, None] = {}
        self._prev = self._next = self
        self._erased = False
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}
        self._take(args, kwargs)

    def _take(self, args: Any, kwargs: Any) -> None:
        """Sets what the node takes, and tells it the nodes concerned."""
        for node in self._inputs:
            node.users.pop(self, None)
        self._inputs = {}
        self._args, self._kwargs = map_aggregate((tuple(args), dict(kwargs)), lambda part: part)

        def use(node: Node) -> Node:
            self._inputs.setdefault(node)
            node.users.setdefault(self)
            return node

        map_arg((self._args, self._kwargs), use)

    @property
    def args(self) -> tuple[Any, ...]:
        """The arguments by position."""
        return self._args

    @args.setter
    def args(self, args: tuple[Any, ...]) -> None:
        self._take(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The arguments by name."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Any]) -> None:
        self._take(self._args, kwargs)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes that this one takes, each once."""
        return list(self._inputs)

    @property
    def _input_nodes(self) -> dict[Node, None]:
        return self._inputs

    @property
    def next(self) -> Node:
        """The node after this one."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one."""
        return self._prev

    @property
    def stack_trace(self) -> str | None:
        """Where the program was when the node was made, if a pass has noted it."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def update_arg(self, idx: int, arg: Any) -> None:
        """Replaces the argument at a position."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Inserts an argument before the one at a position."""
        if not 0 <= idx <= len(self._args):
            raise AssertionError(f"insert_args index must be between 0 and len(self.args), got {idx}")
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Sets the argument of a name."""
        self.kwargs = {**self._kwargs, key: arg}

    def _unlink(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def prepend(self, x: Node) -> None:
        """Moves ``x`` to the place before this node."""
        if x is self:
            return
        if x.graph is not self.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        x._unlink()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x: Node) -> None:
        """Moves ``x`` to the place after this node."""
        if x is not self:
            self._next.prepend(x)

    def replace_input_with(self, old_input: Node, new_input: Any) -> None:
        """Takes ``new_input`` wherever this node takes ``old_input``."""
        args, kwargs = map_arg((self._args, self._kwargs), lambda node: new_input if node is old_input else node)
        self._take(args, kwargs)

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Gives ``replace_with`` to all users of this node for which ``delete_user_cb`` holds; returns these."""
        if propagate_meta:
            replace_with.meta = {**self.meta, **replace_with.meta}
        changed = [user for user in list(self.users) if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def is_impure(self, impure_random: bool = True) -> bool:
        """Returns whether the node stays without users: inputs, outputs, steps in place."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            name = getattr(self.target, "__name__", "")
            return self.target in _impure or name in ("setitem", "delitem", "_assert") or _is_in_place(name)
        if self.op == "call_module" and self.graph.owning_module is not None:
            module = self.graph.owning_module.get_submodule(self.target)
            return bool(getattr(module, "_is_impure", False))
        return False

    def _pretty_print_target(self, target: Any) -> str:
        from .code import qualified_name

        if isinstance(target, str):
            return target
        if getattr(target, "__module__", None) == "builtins":
            return f"builtins.{target.__name__}"
        return qualified_name(target)

    def format_node(self, *args: Any, **kwargs: Any) -> str | None:
        """Returns the node as a line of a printed graph; None of an output without a value."""
        kind = "" if self.type is None else f"{_type_name(self.type)} "
        head = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}"
        if self.op == "placeholder":
            default = f"(default={self._args[0]})" if self._args else ""
            return f"{head}[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"{head}[target={self._pretty_print_target(self.target)}]"
        if self.op == "output":
            return f"return {self._args[0]}"
        return (
            f"{head}[target={self._pretty_print_target(self.target)}]"
            f"(args = {_shown(self._args)}, kwargs = {_shown(self._kwargs)})"
        )

    def __repr__(self) -> str:
        return self.name

    def _place(self) -> int:
        return next(i for i, node in enumerate(self.graph.nodes) if node is self)

    def __lt__(self, other: Node) -> bool:
        return self._place() < other._place()

    def __gt__(self, other: Node) -> bool:
        return self._place() > other._place()

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return self is other or self > other


def _is_in_place(name: str) -> bool:
    return name.endswith("_") and not name.endswith("__")


def _type_name(kind: Any) -> str:
    """Returns a type as annotations write it."""
    if kind is type(None):
        return "None"
    if isinstance(kind, type) and not isinstance(kind, types.GenericAlias):
        name = kind.__qualname__
        return name if hasattr(builtins, name) else f"{kind.__module__}.{name}"
    return repr(kind)


def linked(root: Node, reverse: bool = False) -> Iterable[Node]:
    """Yields the nodes of a graph between its ``root`` and itself; the current one may be removed meanwhile."""

    def walk() -> Iterator[Node]:
        node = root._prev if reverse else root._next
        while node is not root:
            if not node._erased:
                yield node
            node = node._prev if reverse else node._next

    return walk()
