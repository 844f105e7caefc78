"""Running a graph step by step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .graph import Graph
from .graph_module import GraphModule
from .node import Node, map_arg
from .proxy import Proxy, TracerBase

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a module's graph step by step; a subclass changes what a step does.

    Args:
        module: a ``GraphModule``, or a module for ``graph``.
        garbage_collect_values: whether results are freed after their last use.
        graph: a graph instead of the module's own.
    """

    def __init__(self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module, self.graph = module, graph if graph is not None else module.graph
        self.submodules = dict(module.named_modules()) if hasattr(module, "named_modules") else {}
        self.env: dict[Node, Any] = {}
        self.args_iter: Iterator[Any] = iter(())
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        seen: set[Node] = set()
        for node in reversed(self.graph.nodes):
            for taken in node.all_input_nodes:
                if taken not in seen:
                    seen.add(taken)
                    self.user_to_last_uses.setdefault(node, []).append(taken)

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """Runs the graph with inputs, and returns its output."""
        self.env = dict(initial_env or {})
        self.args_iter = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                text = f"{error.args[0]}\n\n" if error.args else ""
                error.args = (f"{text}While executing {node.format_node()}", *error.args[1:])
                if isinstance(error, KeyError):
                    raise RuntimeError(*error.args) from error
                raise
            if self.garbage_collect_values:
                for taken in self.user_to_last_uses.get(node, ()):
                    del self.env[taken]
            if node.op == "output":
                return self.env[node]
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """Runs the graph with inputs from a list, which is empty afterwards."""
        args = tuple(args_list)
        args_list.clear()
        return self.run(*args)

    def run_node(self, n: Node) -> Any:
        """Runs a step, and returns its result."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Returns the next input, or its default."""
        if target.startswith("*"):
            return list(self.args_iter)
        for value in self.args_iter:
            return value
        if args:
            return args[0]
        raise RuntimeError(f"Expected positional argument for parameter {target}, but one was not passed in!")

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Returns an attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls a function."""
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls a method of the first argument."""
        first, *rest = args
        return getattr(first, target)(*rest, **kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls a submodule."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Returns the output."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """Returns what the module has at a dotted name."""
        found = self.module
        for i, part in enumerate(target.split(".")):
            if not hasattr(found, part):
                path = ".".join(target.split(".")[: i + 1])
                raise RuntimeError(f"Node referenced nonexistent target {path}")
            found = getattr(found, part)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> Any:
        """Returns the values that a step takes."""
        return self.map_nodes_to_values((n.args, n.kwargs), n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """Returns an argument with values in place of nodes."""

        def value(taken: Node) -> Any:
            if taken not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {taken}! Run Graph.lint() to diagnose such issues"
                )
            return self.env[taken]

        return map_arg(args, value)


class _Appending(TracerBase):
    """A tracer that appends to the new graph of a transformer, of arguments as they are."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph

    def create_arg(self, a: Any) -> Any:
        return a.node if isinstance(a, Proxy) else super().create_arg(a)


class Transformer(Interpreter):
    """An interpreter that makes a new graph: a subclass returns other steps for those that it is asked to run."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph(tracer_cls=module._tracer_cls)
        self.tracer = _Appending(self.new_graph)
        self.tracer.root = module  # type: ignore[attr-defined]

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Makes an input."""
        return Proxy(self.new_graph.placeholder(target, default_value=args[0] if args else ...), self.tracer)

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Makes a step that takes an attribute."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Makes a call of a submodule."""
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Makes a call of a function."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """Returns the module with the new graph."""
        result = super().run()
        if result is not None:
            self.new_graph.output(self.tracer.create_arg(result))
        return GraphModule(self.module, self.new_graph)
