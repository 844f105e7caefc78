"""Lists and dicts that arguments of nodes are made of: a change would pass a node by, which keeps its users."""

from __future__ import annotations

from typing import Any, NoReturn

from vesta.utils._pytree import register_pytree_node

__all__ = ["immutable_dict", "immutable_list"]


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(
        f"{type(self).__name__!r} object does not support mutation. If you are attempting to modify the kwargs or args "
        "of a torch.fx.Node object,\ninstead create a new copy of it and assign the copy to the node:\n"
        "    new_args = ... # copy and mutate args\n    node.args = new_args\n"
    )


class immutable_list(list):  # type: ignore[type-arg]
    """A list that cannot be changed."""

    append = clear = extend = insert = pop = remove = reverse = sort = _refuse
    __delitem__ = __iadd__ = __imul__ = __setitem__ = _refuse  # type: ignore[assignment]

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return immutable_list, (list(self),)

    def __deepcopy__(self, memo: Any) -> immutable_list:
        from copy import deepcopy

        return immutable_list(deepcopy(part, memo) for part in self)


class immutable_dict(dict):  # type: ignore[type-arg]
    """A dict that cannot be changed."""

    clear = pop = popitem = setdefault = update = _refuse
    __delitem__ = __ior__ = __setitem__ = _refuse  # type: ignore[assignment]

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return immutable_dict, (dict(self),)

    def __deepcopy__(self, memo: Any) -> immutable_dict:
        from copy import deepcopy

        return immutable_dict((key, deepcopy(value, memo)) for key, value in self.items())


register_pytree_node(
    immutable_list,
    lambda x: (list(x), None),
    lambda parts, _: immutable_list(parts),
    serialized_type_name="torch.fx.immutable_collections.immutable_list",
)
register_pytree_node(
    immutable_dict,
    lambda x: (list(x.values()), list(x)),
    lambda parts, keys: immutable_dict(zip(keys, parts)),
    serialized_type_name="torch.fx.immutable_collections.immutable_dict",
)
