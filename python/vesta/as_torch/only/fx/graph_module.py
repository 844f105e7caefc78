"""Modules that run a graph."""

from __future__ import annotations

import copy
import itertools
import linecache
from typing import Any

from vesta import Tensor, nn

from .graph import Graph

__all__ = ["GraphModule", "reduce_graph_module"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_numbers = itertools.count()


class _CodeOnlyModule(nn.Module):
    """A module with the attributes of another, and a ``forward`` of its own."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        state = {key: value for key, value in body.items() if key not in ("_parameters", "_buffers", "_modules")}
        self.__dict__.update(state)
        for table in ("_parameters", "_buffers", "_modules"):
            setattr(self, table, dict(body.get(table, {})))


def _compiled(src: str, names: dict[str, Any]) -> Any:
    """Returns the function ``forward`` of a text, whose lines tracebacks show."""
    key = f"<eval_with_key>.{next(_numbers)}"
    linecache.cache[key] = (len(src), None, src.splitlines(True), key)
    names = dict(names)
    exec(compile(src, key, "exec", dont_inherit=True), names)
    return names["forward"]


def _copy_attr(from_module: nn.Module, to_module: nn.Module, target: str) -> None:
    """Gives a module what another has at a dotted name; empty modules are made for what is above it."""
    *above, field = target.split(".")
    source, goal = from_module, to_module
    for part in above:
        source, below = getattr(source, part), getattr(goal, part, None)
        if source is below:
            return  # shared already
        if below is None:
            below = nn.Module()
            setattr(goal, part, below)
        goal = below
    value = getattr(source, field)
    if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
        if field in goal._buffers or field not in goal.__dict__:
            goal.register_buffer(field, value, persistent=field not in source._non_persistent_buffers_set)
    else:
        setattr(goal, field, value)


def _assign(value: Any, module: nn.Module, target: str) -> None:
    """Sets what a module has at a dotted name, and empty modules above it."""
    *above, field = target.split(".")
    for part in above:
        if getattr(module, part, None) is None:
            setattr(module, part, nn.Module())
        module = getattr(module, part)
    if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
        module.register_buffer(field, value)
    else:
        setattr(module, field, value)


class GraphModule(nn.Module):
    """A module that runs a graph, as Python code that is written from it.

    Args:
        root: what has the parameters and submodules that the graph names: a module, or a dict by their names.
        graph: the graph.
        class_name: the name that it shows.

    After a change of ``graph`` call ``recompile()``.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        for base in cls.__mro__:  # each module has a class of its own, whose forward is its code
            if base.__qualname__.rpartition(".")[2] != "GraphModuleImpl":
                cls = base
                break

        class GraphModuleImpl(cls):  # type: ignore[valid-type,misc]
            pass

        return super().__new__(GraphModuleImpl)

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        self.__class__.__name__ = class_name
        node_of = {str(node.target): node for node in graph.nodes if node.op in ("get_attr", "call_module")}
        targets = list(node_of)
        if isinstance(root, nn.Module):
            if hasattr(root, "training"):
                self.training = root.training
            for target in targets:
                if root is not self:
                    _copy_attr(root, self, target)
        elif isinstance(root, dict):
            for target in sorted(targets, key=lambda path: path.count(".")):
                if target not in root:
                    raise RuntimeError(
                        f"Node {node_of[target]} referenced target {target} but that target was not provided in "
                        "``root``!"
                    )
                _assign(root[target], self, target)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self.graph = graph
        self._tracer_cls = None
        if graph._tracer_cls is not None and "<locals>" not in graph._tracer_cls.__qualname__:
            self._tracer_cls = graph._tracer_cls
        self._tracer_extras = graph._tracer_extras
        self.meta: dict[str, Any] = {}

    @property
    def graph(self) -> Graph:
        """The graph; setting it compiles its code."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self.__dict__["_graph"] = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The code of ``forward``."""
        if "_code" not in self.__dict__:
            raise RuntimeError("Code has not been generated! Please report a bug to PyTorch")
        return str(self.__dict__["_code"])

    def recompile(self) -> Any:
        """Writes ``forward`` from the graph again; returns the code."""
        code = self._graph.python_code("self")
        self.__dict__["_code"] = code.src
        type(self).forward = _compiled(code.src, code.globals)
        return code

    # ---- submodules ----

    def add_submodule(self, target: str, m: nn.Module) -> bool:
        """Adds a submodule at a dotted name; returns False where something else is in the way."""
        *above, field = target.split(".")
        module: nn.Module = self
        for part in above:
            below = getattr(module, part, None)
            if below is None:
                below = nn.Module()
                setattr(module, part, below)
            if not isinstance(below, nn.Module):
                return False
            module = below
        module.add_module(field, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Removes the submodule of a dotted name; returns whether there was one."""
        *above, field = target.split(".")
        module: Any = self
        for part in above:
            module = getattr(module, part, None)
            if not isinstance(module, nn.Module):
                return False
        if not isinstance(getattr(module, field, None), nn.Module):
            return False
        delattr(module, field)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Removes the submodules that the graph does not name."""
        used = set()
        for node in self.graph.nodes:
            if node.op in ("get_attr", "call_module"):
                parts = str(node.target).split(".")
                used.update(".".join(parts[: i + 1]) for i in range(len(parts)))
                if node.op == "call_module" and self.get_submodule(str(node.target)) is not None:
                    used.update(f"{node.target}.{name}" for name, _ in self.get_submodule(node.target).named_modules())
        for name, _ in list(self.named_modules()):
            if name and name not in used:
                self.delete_submodule(name)

    # ---- copies, files, texts ----

    def _deepcopy_init(self) -> Any:
        return GraphModule.__init__

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        state = {key: value for key, value in self.__dict__.items() if key != "_graph"}
        source = _CodeOnlyModule(copy.deepcopy(state, memo))
        source.__dict__["_graph"] = copy.deepcopy(self._graph, memo)
        self._deepcopy_init()(made, source, source.__dict__["_graph"])
        for name, value in source.__dict__.items():
            if name in ("_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks"):
                made.__dict__[name] = value
        made.meta = copy.copy(getattr(self, "meta", {}))
        return made

    def __copy__(self) -> GraphModule:
        made = GraphModule(self, copy.deepcopy(self.graph))
        made.meta = getattr(self, "meta", {})
        return made

    def __reduce__(self) -> Any:
        state = self.__dict__.copy()
        del state["_graph"]
        code = self._graph.python_code("self")
        names = {key: value for key, value in code.globals.items() if key not in _GIVEN}
        return reduce_graph_module, (state, code.src, names, type(self).__name__)

    def print_readable(self, print_output: bool = True, **kwargs: Any) -> str:
        """Returns the code as a class, and prints it."""
        body = "".join(f"    {line}\n" if line.strip() else "\n" for line in self.code.strip("\n").splitlines())
        text = f"class {type(self).__name__}(torch.nn.Module):\n{body.rstrip()}\n"
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        return "\n".join(
            [super().__str__(), self.code, "# To see more debug info, please use `graph_module.print_readable()`"]
        )


_GIVEN = ("inf", "nan", "NoneType", "torch", "device")


def reduce_graph_module(body: dict[str, Any], src: str, names: dict[str, Any], class_name: str) -> GraphModule:
    """Makes a module of what a pickle holds: the code is traced once more, every submodule as a step."""
    from ._symbolic_trace import Tracer

    class KeepModules(Tracer):
        def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
            return True

    given = Graph().python_code("self").globals
    forward = _compiled(src, {**given, **names})

    class Read(_CodeOnlyModule):
        pass

    Read.forward = forward
    source = Read(body)
    graph = KeepModules().trace(source)
    graph._tracer_cls = body.get("_tracer_cls")
    made = GraphModule(source, graph, class_name)
    for name, value in body.items():
        if not hasattr(made, name):
            setattr(made, name, value)
    return made
