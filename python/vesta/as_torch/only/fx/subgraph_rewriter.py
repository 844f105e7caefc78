"""Replacing what looks like one graph by another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Union

from vesta import Tensor, nn

from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule, _copy_attr
from .node import Node, map_arg

__all__ = ["Match", "replace_pattern", "replace_pattern_with_filters"]

Pattern = Union[Callable[..., Any], Graph, GraphModule]


class Match(NamedTuple):
    """A place that was replaced: the node of the pattern's result, and the nodes of the pattern with theirs."""

    anchor: Node
    nodes_map: dict[Node, Any]


class ReplacedPatterns(NamedTuple):
    """A place that was replaced, and the nodes that are there now."""

    anchor: Node
    nodes_map: dict[Node, Any]
    replacements: list[Node]


class InternalMatch(NamedTuple):
    """A place that looks like the pattern, as filters see it."""

    anchors: list[Node]
    nodes_map: dict[Node, Any]
    placeholder_nodes: list[Any]
    returning_nodes: list[Node]


def _graph_of(pattern: Pattern) -> Graph:
    if isinstance(pattern, Graph):
        return pattern
    return pattern.graph if isinstance(pattern, GraphModule) else symbolic_trace(pattern).graph


def _returned(graph: Graph) -> list[Node]:
    """Returns the nodes that the output takes, in their order."""
    found: list[Node] = []
    map_arg(graph.output_node().args, found.append)
    return found


def _same_attribute(pattern: Node, node: Node) -> bool:
    """Returns whether two nodes take attributes of one kind; their names do not matter for tensors."""
    kinds = []
    for each in (pattern, node):
        value: Any = each.graph.owning_module
        for part in str(each.target).split("."):
            value = getattr(value, part, None)
        kinds.append(Tensor if isinstance(value, Tensor) else type(value))
    return kinds[0] is kinds[1]


class _Matcher:
    """Finds the places of a graph that look like a pattern."""

    def __init__(self, pattern: Graph, ignore_literals: bool) -> None:
        self.pattern, self.ignore_literals = pattern, ignore_literals
        self.returned = _returned(pattern)
        output = pattern.output_node()
        self.anchors = [node for node in dict.fromkeys(self.returned) if list(node.users) == [output]]

    def _args(self, pattern: Any, given: Any, found: dict[Node, Any]) -> bool:
        if isinstance(pattern, Node):
            return self._node(pattern, given, found)
        if isinstance(pattern, (list, tuple)) and isinstance(given, (list, tuple)):
            return len(pattern) == len(given) and all(self._args(p, g, found) for p, g in zip(pattern, given))
        if isinstance(pattern, dict) and isinstance(given, dict):
            return pattern.keys() == given.keys() and all(self._args(pattern[k], given[k], found) for k in pattern)
        if isinstance(pattern, slice) and isinstance(given, slice):
            return all(self._args(getattr(pattern, k), getattr(given, k), found) for k in ("start", "stop", "step"))
        if isinstance(given, Node):
            return False
        return self.ignore_literals or (type(pattern) is type(given) and bool(pattern == given))

    def _node(self, pattern: Node, given: Any, found: dict[Node, Any]) -> bool:
        if pattern in found:
            known = found[pattern]
            return known is given or (not isinstance(known, Node) and not isinstance(given, Node) and known == given)
        if pattern.op == "placeholder":
            found[pattern] = given
            return True
        if not isinstance(given, Node) or given.op != pattern.op or any(given is node for node in found.values()):
            return False
        if pattern.op == "get_attr":
            if not _same_attribute(pattern, given):
                return False
        elif pattern.target != given.target:
            return False
        found[pattern] = given
        return self._args(pattern.args, given.args, found) and self._args(pattern.kwargs, given.kwargs, found)

    def _anchored(self, graph: Graph, anchors: list[Node], found: dict[Node, Any]) -> Iterator[dict[Node, Any]]:
        if not anchors:
            yield found
            return
        for node in graph.nodes:
            trial = dict(found)
            if self._node(anchors[0], node, trial):
                yield from self._anchored(graph, anchors[1:], trial)

    def _is_whole(self, found: dict[Node, Any]) -> bool:
        """Returns whether nobody outside of a place takes what the pattern does not return."""
        inside = {node for pattern, node in found.items() if pattern.op != "placeholder"}
        hidden = (
            node for pattern, node in found.items() if pattern.op != "placeholder" and pattern not in self.returned
        )
        return all(user in inside for node in hidden for user in node.users)

    def find(self, graph: Graph) -> Iterator[InternalMatch]:
        """Yields the places, none of which has a node of another."""
        inputs = [node for node in self.pattern.nodes if node.op == "placeholder"]
        taken: set[Node] = set()
        for found in list(self._anchored(graph, self.anchors, {})):
            inside = {node for pattern, node in found.items() if pattern.op != "placeholder"}
            if not self.anchors or not self._is_whole(found) or inside & taken:
                continue
            missing = [node for node in inputs if node not in found]
            if missing:
                raise RuntimeError(
                    f"replace_pattern: expected a pattern that uses its inputs, got {missing[0]} unused."
                )
            taken |= inside
            yield InternalMatch(
                self.anchors,
                found,
                [found[node] for node in inputs],
                [found[node] for node in self.returned],
            )


def _put(graph: Graph, match: InternalMatch, replacement: Graph, now: dict[Node, Any]) -> list[Node]:
    """Puts a copy of the replacement at a place; returns its nodes. ``now`` has what replaced nodes have become."""
    inputs = [node for node in replacement.nodes if node.op == "placeholder"]
    if len(inputs) != len(match.placeholder_nodes):
        raise RuntimeError(
            f"replace_pattern: expected a replacement with {len(match.placeholder_nodes)} inputs, as the pattern has, "
            f"got {len(inputs)}."
        )
    table = {}
    for node, given in zip(inputs, match.placeholder_nodes):
        table[node] = now.get(given, given) if isinstance(given, Node) else given
    before = set(graph.nodes)
    users = [user for node in match.returning_nodes for user in node.users]
    with graph.inserting_before(min(users) if users else max(match.returning_nodes).next):
        result = graph.graph_copy(replacement, table)
    results = [result] if isinstance(result, Node) else list(result)
    if len(results) != len(match.returning_nodes):
        raise RuntimeError(
            f"replace_pattern: expected a replacement with {len(match.returning_nodes)} results, as the pattern has, "
            f"got {len(results)}."
        )
    for old, new in zip(match.returning_nodes, results):
        old.replace_all_uses_with(new)
        now[old] = new
    return [node for node in graph.nodes if node not in before]


def _replace(
    gm: GraphModule,
    pattern: Pattern,
    replacement: Pattern | None,
    filters: Any = None,
    ignore_literals: bool = False,
    replacement_callback: Any = None,
) -> list[ReplacedPatterns]:
    wanted, graph = _graph_of(pattern), gm.graph
    if replacement is None and replacement_callback is None:
        raise RuntimeError("replace_pattern: expected a replacement or a replacement_callback, got none of them.")
    shared = None if replacement is None else _graph_of(replacement)
    matches = list(_Matcher(wanted, ignore_literals).find(graph))
    matches = [match for match in matches if all(accept(match, graph, wanted) for accept in filters or ())]
    now: dict[Node, Any] = {}
    done = []
    for match in matches:
        put = replacement_callback(match, graph, wanted) if replacement_callback is not None else shared
        made = _put(graph, match, put, now)
        for node in reversed(wanted.nodes):
            if node.op not in ("placeholder", "output"):
                graph.erase_node(match.nodes_map[node])
        done.append(ReplacedPatterns(match.anchors[0], match.nodes_map, made))
    if isinstance(replacement, nn.Module):
        for node in graph.nodes:
            if node.op in ("call_module", "get_attr") and not _has(gm, node.target) and _has(replacement, node.target):
                _copy_attr(replacement, gm, str(node.target))
    gm.recompile()
    return done


def _has(module: Any, target: Any) -> bool:
    for part in str(target).split("."):
        if not hasattr(module, part):
            return False
        module = getattr(module, part)
    return True


def replace_pattern(gm: GraphModule, pattern: Pattern, replacement: Pattern) -> list[Match]:
    """Replaces every place of a module's graph that looks like ``pattern``, none of which has a node of another.

    Args:
        gm: the module; it is changed.
        pattern: a function, a module or a graph; its inputs stand for anything.
        replacement: what comes there, of as many inputs and results.

    Returns:
        The places.

    Example::

        >>> import vesta.as_torch
        >>> vesta.as_torch.install()
        >>> import torch
        >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x + 1))
        >>> len(torch.fx.replace_pattern(traced, lambda x: torch.relu(x), lambda x: torch.sigmoid(x)))
        1
        >>> traced(torch.tensor([-1.0]))
        tensor([0.5000])
    """
    return [Match(match.anchor, match.nodes_map) for match in _replace(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Pattern,
    replacement: Pattern | None = None,
    match_filters: list[Callable[[InternalMatch, Graph, Graph], bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """Replaces as ``replace_pattern`` does, where all filters hold.

    Args:
        gm, pattern, replacement: as of ``replace_pattern``.
        match_filters: take the place, the graph and the pattern, and return whether it is replaced.
        ignore_literals: whether numbers and texts in the pattern stand for any.
        replacement_callback: takes the same and returns the graph that comes there, instead of ``replacement``.
        node_name_match: not supported.
    """
    if node_name_match:
        raise NotImplementedError("replace_pattern_with_filters: node_name_match is not available.")
    return _replace(gm, pattern, replacement, match_filters, ignore_literals, replacement_callback)
