"""Containers as trees: their leaves as a list, and back. ``torch.utils._pytree``'s names, which many libraries import.

Nodes are lists, tuples, named tuples, dicts, OrderedDicts, defaultdicts and deques, and classes that a program
registers; anything else is a leaf.
"""

from __future__ import annotations

import json
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from vesta._C import _return_types

__all__ = [
    "Context",
    "LeafSpec",
    "NodeDef",
    "PyTree",
    "SUPPORTED_NODES",
    "TreeSpec",
    "is_namedtuple",
    "is_namedtuple_instance",
    "is_structseq_instance",
    "keystr",
    "register_pytree_node",
    "tree_all",
    "tree_any",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "treespec_dumps",
    "treespec_loads",
]

PyTree = Any
Context = Any


class NodeDef(NamedTuple):
    """How a class is taken apart: into (children, context), and put together again from them."""

    type: type
    flatten_fn: Callable[[Any], tuple[list[Any], Any]]
    unflatten_fn: Callable[[Iterable[Any], Any], Any]


class _Dumped(NamedTuple):
    """How a class is written as text: its name, and its context."""

    name: str
    to_text: Callable[[Any], Any]
    of_text: Callable[[Any], Any]


SUPPORTED_NODES: dict[type, NodeDef] = {}
_dumped: dict[type, _Dumped] = {}
_keyed: dict[type, Callable[[Any], tuple[list[tuple[Any, Any]], Any]]] = {}


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[list[Any], Any]],
    unflatten_fn: Callable[[Iterable[Any], Any], Any],
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Any], Any] | None = None,
    from_dumpable_context: Callable[[Any], Any] | None = None,
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None = None,
    **others: Any,
) -> None:
    """Makes a class a node.

    Args:
        flatten_fn: returns the list of children of an object, and a context that compares with ``==``.
        unflatten_fn: makes an object of children and context.
        serialized_type_name: the class's name in ``treespec_dumps``.
        to_dumpable_context, from_dumpable_context: make of a context what JSON can hold, and back.
        flatten_with_keys_fn: returns (key, child) pairs and the context; without it keys are the children's numbers.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn)
    if flatten_with_keys_fn is not None:
        _keyed[cls] = flatten_with_keys_fn
    if serialized_type_name is not None:
        to, back = to_dumpable_context or json.dumps, from_dumpable_context or json.loads
        _dumped[cls] = _Dumped(serialized_type_name, to, back)


_register_pytree_node = register_pytree_node


def _is_namedtuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(type(value), "_fields")


class _NamedTuples:
    """The key of all named tuples in ``SUPPORTED_NODES``."""


def _get_node_type(tree: Any) -> Any:
    kind = type(tree)
    if kind in SUPPORTED_NODES:
        return kind
    return _NamedTuples if _is_namedtuple(tree) else getattr(kind, "_seen_as", kind)


for _kind, _flatten, _unflatten in (
    (list, lambda x: (x, None), lambda x, _: list(x)),
    (tuple, lambda x: (list(x), None), lambda x, _: tuple(x)),
    (dict, lambda x: (list(x.values()), list(x)), lambda x, keys: dict(zip(keys, x))),
    (OrderedDict, lambda x: (list(x.values()), list(x)), lambda x, keys: OrderedDict(zip(keys, x))),
    (
        defaultdict,
        lambda x: (list(x.values()), [x.default_factory, list(x)]),
        lambda x, context: defaultdict(context[0], zip(context[1], x)),
    ),
    (deque, lambda x: (list(x), x.maxlen), lambda x, length: deque(x, maxlen=length)),
    (_NamedTuples, lambda x: (list(x), type(x)), lambda x, kind: kind(*x)),
):
    register_pytree_node(_kind, _flatten, _unflatten)  # type: ignore[arg-type]
del _kind, _flatten, _unflatten

_results: set[type] = set()
for _kind in vars(_return_types).values():  # results of ops, which take their fields as one sequence
    if isinstance(_kind, type) and issubclass(_kind, tuple):
        _results.add(_kind)
        register_pytree_node(
            _kind,
            lambda x: (list(x), None),
            lambda x, _, kind=_kind: kind(x),  # type: ignore[misc]
            serialized_type_name=f"{_kind.__module__}.{_kind.__name__}",
        )
del _kind


def _defaultdict_to_text(context: list[Any]) -> dict[str, Any]:
    factory, keys = context
    home, name = getattr(factory, "__module__", None), getattr(factory, "__qualname__", None)
    return {"default_factory_module": home, "default_factory_name": name, "dict_context": keys}


def _defaultdict_of_text(saved: dict[str, Any]) -> list[Any]:
    home, name = saved["default_factory_module"], saved["default_factory_name"]
    factory = None if name is None else getattr(sys.modules.get(home), name, None)
    if name is not None and factory is None:
        raise NotImplementedError(f"treespec_loads: expected {home}.{name} in an imported module, found none.")
    return [factory, saved["dict_context"]]


for _kind in (list, tuple, dict, OrderedDict, deque):
    _dumped[_kind] = _Dumped(f"{_kind.__module__}.{_kind.__name__}", json.dumps, json.loads)
_dumped[defaultdict] = _Dumped("collections.defaultdict", _defaultdict_to_text, _defaultdict_of_text)
del _kind


class TreeSpec:
    """The structure of a tree: everything but its leaves."""

    def __init__(self, type: Any, context: Any, children_specs: list[TreeSpec]) -> None:
        self.type, self.context, self.children_specs = type, context, children_specs
        self.num_leaves = sum(spec.num_leaves for spec in children_specs)
        self.num_nodes = 1 + sum(spec.num_nodes for spec in children_specs)
        self.num_children = len(children_specs)

    def is_leaf(self) -> bool:
        """Returns whether it is the structure of a leaf."""
        return False

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Makes the tree of its leaves."""
        return tree_unflatten(leaves, self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec) or self.is_leaf() != other.is_leaf():
            return False
        mine, its = (self.type, self.context, self.children_specs), (other.type, other.context, other.children_specs)
        return mine == its

    def __hash__(self) -> int:
        return hash((self.type, self.num_leaves, self.num_nodes))

    def __repr__(self) -> str:
        if self.is_leaf():
            return "*"
        name = getattr(self.context if self.type is _NamedTuples else self.type, "__name__", str(self.type))
        return f"TreeSpec({name}, {self.context}, {self.children_specs})"


class LeafSpec(TreeSpec):
    """The structure of a leaf."""

    def __init__(self) -> None:
        super().__init__(None, None, [])
        self.num_leaves = 1

    def is_leaf(self) -> bool:
        """Returns True."""
        return True


def _walk(tree: Any, leaves: list[Any], is_leaf: Callable[[Any], bool] | None) -> TreeSpec:
    kind = _get_node_type(tree)
    if kind not in SUPPORTED_NODES or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return LeafSpec()
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_walk(child, leaves, is_leaf) for child in children])


def tree_flatten(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeSpec]:
    """Returns the leaves of a tree, and its structure.

    Args:
        is_leaf: returns True for a node that counts as a leaf.

    Example::

        >>> from vesta.utils._pytree import tree_flatten, tree_unflatten
        >>> leaves, spec = tree_flatten({"a": 1, "b": [2, 3]})
        >>> leaves, tree_unflatten([x * 2 for x in leaves], spec)
        ([1, 2, 3], {'a': 2, 'b': [4, 6]})
    """
    leaves: list[Any] = []
    spec = _walk(tree, leaves, is_leaf)
    return leaves, spec


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """Makes a tree of a structure and leaves. ValueError: their number is another."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"tree_unflatten: expected a TreeSpec, got {type(treespec).__name__} (treespec).")
    parts = list(leaves)
    if len(parts) != treespec.num_leaves:
        raise ValueError(f"tree_unflatten: expected {treespec.num_leaves} leaves, got {len(parts)} (leaves).")
    return _build(treespec, iter(parts))


def _build(spec: TreeSpec, leaves: Iterator[Any]) -> Any:
    if spec.is_leaf():
        return next(leaves)
    children = [_build(child, leaves) for child in spec.children_specs]
    return SUPPORTED_NODES[spec.type].unflatten_fn(children, spec.context)


def tree_leaves(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """Returns the leaves of a tree."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Returns an iterator over the leaves of a tree."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """Returns the structure of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: Callable[[Any], bool] | None = None
) -> PyTree:
    """Returns the tree of what ``func`` makes of the leaves; with ``rests``, of leaves in the same places.

    Raises:
        ValueError: the trees are of different structures.
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    others = []
    for rest in rests:
        found, other = tree_flatten(rest, is_leaf)
        if other != spec:
            raise ValueError(f"tree_map: expected trees of one structure, got {spec} and {other}.")
        others.append(found)
    return tree_unflatten(map(func, leaves, *others), spec)


def tree_map_(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: Callable[[Any], bool] | None = None
) -> PyTree:
    """Calls ``func`` for the leaves, and returns the tree itself."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def _only(type_or_types: Any, func: Callable[[Any], Any]) -> Callable[[Any], Any]:
    chosen = type_or_types
    if not isinstance(chosen, (type, tuple)) and callable(chosen):
        return lambda x: func(x) if chosen(x) else x
    return lambda x: func(x) if isinstance(x, chosen) else x


def tree_map_only(
    type_or_types_or_pred: Any,
    func: Callable[[Any], Any],
    tree: PyTree,
    is_leaf: Callable[[Any], bool] | None = None,
) -> PyTree:
    """``tree_map`` for leaves of some types, or for which a function returns True; the others stay."""
    return tree_map(_only(type_or_types_or_pred, func), tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Any,
    func: Callable[[Any], Any],
    tree: PyTree,
    is_leaf: Callable[[Any], bool] | None = None,
) -> PyTree:
    """Calls ``func`` for leaves of some types, and returns the tree itself."""
    return tree_map_(_only(type_or_types_or_pred, func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Returns whether ``pred`` holds for all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Returns whether ``pred`` holds for a leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


class SequenceKey(NamedTuple):
    """A step of a path into a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """Returns what lies there."""
        return sequence[self.idx]


class MappingKey(NamedTuple):
    """A step of a path into a mapping."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """Returns what lies there."""
        return mapping[self.key]


class GetAttrKey(NamedTuple):
    """A step of a path to an attribute, such as a field of a named tuple."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """Returns what lies there."""
        return getattr(obj, self.name)


def _list_flatten(d: list[Any]) -> tuple[list[Any], None]:
    return d, None


def _list_unflatten(values: Iterable[Any], context: Any) -> list[Any]:
    return list(values)


def _list_flatten_with_keys(d: list[Any]) -> tuple[list[tuple[SequenceKey, Any]], None]:
    return [(SequenceKey(i), value) for i, value in enumerate(d)], None


def _tuple_flatten(d: tuple[Any, ...]) -> tuple[list[Any], None]:
    return list(d), None


def _tuple_unflatten(values: Iterable[Any], context: Any) -> tuple[Any, ...]:
    return tuple(values)


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], list[Any]]:
    return list(d.values()), list(d)


def _dict_unflatten(values: Iterable[Any], context: Iterable[Any]) -> dict[Any, Any]:
    return dict(zip(context, values))


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[tuple[MappingKey, Any]], list[Any]]:
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def tree_is_leaf(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Returns whether an object is a leaf: of no class that is a node, or so by ``is_leaf``."""
    return _get_node_type(tree) not in SUPPORTED_NODES or (is_leaf is not None and is_leaf(tree))


def is_namedtuple(obj: Any) -> bool:
    """Returns whether an object is a named tuple or a class of them."""
    kind = obj if isinstance(obj, type) else type(obj)
    return issubclass(kind, tuple) and isinstance(getattr(kind, "_fields", None), tuple)


def is_namedtuple_instance(obj: Any) -> bool:
    """Returns whether an object is a named tuple."""
    return not isinstance(obj, type) and is_namedtuple(obj)


def is_structseq_instance(obj: Any) -> bool:
    """Returns whether an object is a result of an op with named fields, or such a tuple of Python's (``os.stat``)."""
    kind = type(obj)
    return kind in _results or (issubclass(kind, tuple) and isinstance(getattr(kind, "n_sequence_fields", None), int))


def keystr(kp: Any) -> str:
    """Returns a path as a text: ``['a'][0]``."""
    return "".join(map(str, kp))


def tree_flatten_with_path(
    tree: PyTree, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[tuple[tuple[Any, ...], Any]], TreeSpec]:
    """Returns pairs of the path to a leaf and the leaf, and the structure."""
    found: list[tuple[tuple[Any, ...], Any]] = []

    def walk(node: Any, path: tuple[Any, ...]) -> None:
        kind = _get_node_type(node)
        if kind not in SUPPORTED_NODES or (is_leaf is not None and is_leaf(node)):
            found.append((path, node))
            return
        if kind in _keyed:
            for key, child in _keyed[kind](node)[0]:
                walk(child, (*path, key))
            return
        children, _ = SUPPORTED_NODES[kind].flatten_fn(node)
        keys: list[Any]
        if kind is _NamedTuples:
            keys = list(map(GetAttrKey, node._fields))
        else:
            keys = list(map(MappingKey, node) if isinstance(node, dict) else map(SequenceKey, range(len(children))))
        for key, child in zip(keys, children):
            walk(child, (*path, key))

    walk(tree, ())
    return found, tree_structure(tree, is_leaf)


def tree_map_with_path(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: Callable[[Any], bool] | None = None
) -> PyTree:
    """``tree_map`` with the path to the leaf as the first argument."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    others = [tree_leaves(rest, is_leaf) for rest in rests]
    return tree_unflatten((func(path, leaf, *more) for (path, leaf), *more in zip(pairs, *others)), spec)


def _broadcast_to_and_flatten(
    tree: PyTree, treespec: TreeSpec, is_leaf: Callable[[Any], bool] | None = None
) -> list[Any] | None:
    """Returns a leaf for each of a structure's, where ``tree`` may end earlier: its leaf stands for all below.

    None: ``tree`` is not the beginning of such a structure.
    """
    found: list[Any] = []

    def walk(node: Any, spec: TreeSpec) -> bool:
        kind = _get_node_type(node)
        if kind not in SUPPORTED_NODES or (is_leaf is not None and is_leaf(node)):
            found.extend([node] * spec.num_leaves)
            return True
        children, context = SUPPORTED_NODES[kind].flatten_fn(node)
        if (kind, context, len(children)) != (spec.type, spec.context, spec.num_children):
            return False
        return all(map(walk, children, spec.children_specs))

    return found if walk(tree, treespec) else None


_PROTOCOL = 1  # PyTorch's, so that each reads the other's


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """Returns a structure as a text of JSON, as PyTorch writes it.

    Raises:
        NotImplementedError: a node is of a class that was registered without ``serialized_type_name``.

    Example::

        >>> from vesta.utils._pytree import tree_structure, treespec_dumps, treespec_loads
        >>> treespec_loads(treespec_dumps(tree_structure([1, 2]))) == tree_structure([3, 4])
        True
    """

    def saved(spec: TreeSpec) -> dict[str, Any]:
        if spec.is_leaf():
            return {"type": None, "context": None, "children_spec": []}
        if spec.type not in _dumped:
            raise NotImplementedError(f"No registered serialization name for {spec.type} found.")
        name, to_text, _ = _dumped[spec.type]
        return {"type": name, "context": to_text(spec.context), "children_spec": list(map(saved, spec.children_specs))}

    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"treespec_dumps: expected a TreeSpec, got {type(treespec).__name__} (treespec).")
    if protocol not in (None, _PROTOCOL):
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: {[_PROTOCOL]}")
    return json.dumps([_PROTOCOL, saved(treespec)])


def treespec_loads(serialized: str) -> TreeSpec:
    """Returns the structure that ``treespec_dumps`` wrote. NotImplementedError: it names a class that nobody knows."""
    kinds = {kind.name: cls for cls, kind in _dumped.items()}

    def loaded(saved: dict[str, Any]) -> TreeSpec:
        if saved["type"] is None:
            return LeafSpec()
        if saved["type"] not in kinds:
            raise NotImplementedError(f"Deserializing {saved['type']} in pytree failed: the type is not registered.")
        cls = kinds[saved["type"]]
        return TreeSpec(cls, _dumped[cls].of_text(saved["context"]), list(map(loaded, saved["children_spec"])))

    protocol, schema = json.loads(serialized)
    if protocol != _PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: {[_PROTOCOL]}")
    return loaded(schema)
