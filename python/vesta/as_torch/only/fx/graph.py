"""Graphs of steps, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .code import Namespace, PythonCode, name_of_target, write
from .node import Node, Target, linked, map_arg

__all__ = ["Graph", "PythonCode"]


class _NodeList:
    """The nodes of a graph in their order, or backwards."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        return iter(linked(self.graph._root, reverse=self.direction == "_prev"))

    def __reversed__(self) -> _NodeList:
        return _NodeList(self.graph, "_next" if self.direction == "_prev" else "_prev")


class _Place:
    """Where a graph makes nodes, from now on or until the end of a ``with``."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self.graph, self.before = graph, graph._insert
        graph._insert = insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        self.graph._insert = self.before


class Graph:
    """Steps in the order in which they run.

    Example::

        >>> import vesta.as_torch
        >>> vesta.as_torch.install()
        >>> import torch
        >>> graph = torch.fx.Graph()
        >>> x = graph.placeholder("x")
        >>> graph.output(graph.call_function(torch.relu, (x,)))
        output
        >>> torch.fx.GraphModule(torch.nn.Module(), graph)(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """

    def __init__(self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: Any = None) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._len = 0
        self._insert: Callable[[Node], None] = self._root.prepend
        self._graph_namespace = Namespace()
        self._owning_module, self._tracer_cls, self._tracer_extras = owning_module, tracer_cls, tracer_extras
        self._codegen: Any = None

    @property
    def owning_module(self) -> Any:
        """The module that runs the graph, if there is one."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, module: Any) -> None:
        self._owning_module = module

    @property
    def nodes(self) -> Any:
        """The nodes in their order."""
        return _NodeList(self)

    def output_node(self) -> Node:
        """Returns the node of the output."""
        for node in reversed(self.nodes):
            if node.op == "output":
                return node
        raise AssertionError("Expected output node, got none")

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """Returns the nodes of a kind, and of a target if one is given."""
        return [node for node in self.nodes if node.op == op and (target is None or node.target == target)]

    # ---- making nodes ----

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Makes a node at the place of insertion, which is the end unless ``inserting_before`` or ``_after`` is on."""
        own = self._graph_namespace.create_name(name if name is not None else name_of_target(target))
        node = Node(self, own, op, target, args or (), kwargs or {}, type_expr)
        self._graph_namespace._of[id(node)] = (node, own)
        self._insert(node)
        self._len += 1
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Makes an input."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, name=name.lstrip("*"), type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Makes a step that takes an attribute of the module, such as a parameter."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None) -> Node:
        """Makes a call of a submodule, which the module of the graph has if there is one."""
        if self.owning_module is not None:
            self.owning_module.get_submodule(module_name)
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None) -> Node:
        """Makes a call of a method; the object is the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: Any = None,
        kwargs: Any = None,
        type_expr: Any = None,
        name: Any = None,
    ) -> Node:
        """Makes a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """Makes the output; nodes may be inside of it."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    # ---- changing ----

    def _check_place(self, n: Node | None, where: str) -> None:
        if n is not None and n.graph is not self:
            raise AssertionError(f"Node to insert {where} is not in graph.")

    def inserting_before(self, n: Node | None = None) -> Any:
        """Makes nodes before ``n`` from now on, in a ``with`` until its end; default: at the beginning."""
        self._check_place(n, "before")
        return _Place(self, self._root.append if n is None else n.prepend)

    def inserting_after(self, n: Node | None = None) -> Any:
        """Makes nodes right after ``n``, before those made earlier, as ``inserting_before``; default: at the end."""
        self._check_place(n, "after")
        return _Place(self, self._root.prepend if n is None else n.append)

    def erase_node(self, to_erase: Node) -> None:
        """Removes a node that has no users."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        to_erase._unlink()
        to_erase._erased = True
        self._len -= 1
        to_erase._take((), {})

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None, **kwargs: Any) -> bool:
        """Removes the nodes that nobody uses and that do nothing else; returns whether there were any."""
        impure = is_impure_node or Node.is_impure
        changed = False
        for node in reversed(self.nodes):
            if not node.users and not impure(node):
                self.erase_node(node)
                changed = True
        return changed

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda node: node) -> Node:
        """Makes a copy of a node of another graph; ``arg_transform`` gives this graph's node for each of its own."""
        args, kwargs = map_arg((node.args, node.kwargs), arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = dict(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Copies all nodes of ``g`` but the output; returns what its output is here, None without one."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda taken: val_map[taken])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda taken: val_map[taken])
        return None

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        memo = {} if memo is None else memo
        made = Graph(tracer_cls=self._tracer_cls)
        table: dict[Node, Node] = {}
        output = made.graph_copy(self, table, return_output_node=True)
        memo.update({id(old): new for old, new in table.items()})
        if output is not None:
            node = made.output(output[0], output[1].type)
            node.meta = dict(output[1].meta)
            memo[id(output[1])] = node
        return made

    # ---- reading ----

    def python_code(self, root_module: str, **kwargs: Any) -> PythonCode:
        """Returns the code of the graph, in which the module is called ``root_module``."""
        return write(self, root_module)

    def lint(self) -> None:
        """Raises RuntimeError where a node takes one that comes later, two have one name, or the module lacks one."""
        names: set[str] = set()
        before: set[Node] = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for taken in node.all_input_nodes:
                if taken.graph is not self:
                    raise RuntimeError(
                        f"Argument '{taken}' of Node '{node}' does not belong to this Graph, but was used as an "
                        "argument! If you are copying nodes from another graph, make sure to use ``arg_transform`` on "
                        "node_copy() to remap values"
                    )
                if taken not in before:
                    raise RuntimeError(
                        f"Argument '{taken}' of Node '{node}' was used before it has been defined! Please check that "
                        "Nodes in the graph are topologically ordered"
                    )
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
            before.add(node)
            if node.op in ("get_attr", "call_module") and self.owning_module is not None:
                self._look_up(node)

    def _look_up(self, node: Node) -> None:
        found = self.owning_module
        for part in str(node.target).split("."):
            if not hasattr(found, part):
                raise RuntimeError(f"Node {node} target {node.target} references nonexistent attribute {part}")
            found = getattr(found, part)

    def print_tabular(self) -> None:
        """Prints the nodes as a table; it needs the package ``tabulate``."""
        from tabulate import tabulate

        rows = [[node.op, node.name, node.target, node.args, node.kwargs] for node in self.nodes]
        print(tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"]))

    def __str__(self) -> str:
        return "graph():" + "".join(f"\n    {node.format_node()}" for node in self.nodes)
