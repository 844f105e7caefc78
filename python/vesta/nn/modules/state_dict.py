"""Saving and loading a module's values: ``state_dict`` and ``load_state_dict``, in PyTorch's layout."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import vesta
from vesta import Tensor
from vesta._arguments import convert_hint
from vesta.nn.parameter import Parameter, is_lazy
from vesta.utils.hooks import RemovableHandle

__all__ = ["EXTRA_STATE_KEY", "IncompatibleKeys", "StateDictMixin"]

EXTRA_STATE_KEY = "_extra_state"
_PENDING = "_pending_copies"  # key of local_metadata under which a load collects what it will copy


class IncompatibleKeys(NamedTuple):
    """The keys that ``load_state_dict`` did not find, and those it did not know; printed with the nearest names."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys!r}, unexpected_keys={self.unexpected_keys!r})"

    def __str__(self) -> str:
        return "\n".join([repr(self), *("  " + line for line in self.report())])

    def report(self) -> list[str]:
        """Returns a line for each key that did not match, with the nearest name of the other side.

        Example::

            >>> import vesta
            >>> layer, saved = vesta.nn.Linear(2, 2), {"wieght": vesta.zeros(2, 2), "bias": vesta.zeros(2)}
            >>> print("\\n".join(layer.load_state_dict(saved, strict=False).report()))
            missing "weight": the nearest name in the checkpoint is "wieght"
            unexpected "wieght": the nearest name in the module is "weight"
        """
        sides = (
            ("missing", self.missing_keys, self.unexpected_keys, "checkpoint"),
            ("unexpected", self.unexpected_keys, self.missing_keys, "module"),
        )
        lines = []
        for what, keys, others, where in sides:
            for key in keys:
                near = _nearest(key, others)
                lines.append(f'{what} "{key}"' + (f': the nearest name in the {where} is "{near}"' if near else ""))
        return lines


def _nearest(name: str, others: list[str]) -> str | None:
    """Returns the most similar name; those that end alike (the same kind of value) come first."""
    import difflib

    last = name.rpartition(".")[2]
    alike = [other for other in others if other.rpartition(".")[2] == last]
    for candidates in (alike, others):
        found = difflib.get_close_matches(name, candidates, n=1, cutoff=0.6)
        if found:
            return found[0]
    return None


class _Copy(NamedTuple):
    """One value of a checkpoint on its way into a module."""

    module: Any
    name: str
    key: str
    target: Tensor
    source: Tensor
    assign: bool

    def commit(self, errors: list[str]) -> None:
        """Copies or assigns the value; a failure becomes a message in ``errors``."""
        try:
            with vesta.no_grad():
                if not self.assign:
                    self._warn_of_meta()
                    self.target.copy_(self.source)
                elif not isinstance(self.target, Parameter):
                    setattr(self.module, self.name, self.source)
                elif isinstance(self.source, Parameter):
                    self.source.requires_grad_(self.target.requires_grad)
                    setattr(self.module, self.name, self.source)
                else:
                    setattr(self.module, self.name, Parameter(self.source, self.target.requires_grad))
        except Exception as error:
            action = "assigning" if self.assign else "copying"
            errors.append(
                f'While {action} the parameter named "{self.key}", whose dimensions in the model are '
                f"{self.target.size()} and whose dimensions in the checkpoint are {self.source.size()}, "
                f"an exception occurred : {error.args}."
            )

    def _warn_of_meta(self) -> None:
        if self.target.is_meta and not self.source.is_meta:
            warnings.warn(
                f"for {self.key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the "
                "current model, which is a no-op. (Did you mean to pass `assign=True` to assign items in the state "
                "dictionary to their corresponding key in the module instead of copying them in place?)",
                stacklevel=2,
            )


class StateDictMixin:
    """The part of ``Module`` that saves and loads."""

    _version: int = 1
    _load_defers: bool = True  # set this beside a _load_from_state_dict that does not read the values it has loaded
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]

    def get_extra_state(self) -> Any:
        """Returns what the module adds to its ``state_dict`` besides tensors; override with ``set_extra_state``."""
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called. "
            "Override it together with set_extra_state()."
        )

    def set_extra_state(self, state: Any) -> None:
        """Restores what ``get_extra_state`` returned."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called. "
            "Override it together with get_extra_state()."
        )

    def register_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Registers ``hook(module, prefix, keep_vars)`` to run before ``state_dict`` collects."""
        return _store(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Registers ``hook(module, state_dict, prefix, local_metadata)``, which may change ``state_dict`` in place."""
        hook._from_public_api = True  # type: ignore[attr-defined]
        return _store(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Registers a hook as above, which may also return another ``state_dict``."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via "
                "register_state_dict_post_hook"
            )
        return _store(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Registers ``hook(module, state_dict, prefix, local_metadata, strict, missing, unexpected, errors)``.

        It runs before the module loads and may change the arguments in place.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., None], with_module: bool = False
    ) -> RemovableHandle:
        return _store(self._load_state_dict_pre_hooks, (hook, with_module))

    def register_load_state_dict_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Registers ``hook(module, incompatible_keys)``, which may change both lists of keys in place."""
        return _store(self._load_state_dict_post_hooks, hook)

    def _persistent_state(self) -> dict[str, Any]:
        """Names and values of this module alone (parameters, then persistent buffers) that are not ``None``."""
        buffers = {k: v for k, v in self._buffers.items() if k not in self._non_persistent_buffers_set}
        return {k: v for k, v in {**self._parameters, **buffers}.items() if v is not None}

    def _has_extra_state(self) -> bool:
        return type(self).get_extra_state is not StateDictMixin.get_extra_state

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Puts this module's own values into ``destination``, without its children's."""
        for name, value in self._persistent_state().items():
            destination[prefix + name] = value if keep_vars else value.detach()
        if self._has_extra_state():
            destination[prefix + EXTRA_STATE_KEY] = self.get_extra_state()

    def state_dict(self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> dict[str, Any]:
        """Returns every parameter and persistent buffer by its qualified name; the values share memory with the module.

        Args:
            destination: a dict to fill; default: a new one.
            prefix: put before every name.
            keep_vars: give the parameters themselves instead of detached views.

        Example::

            >>> import vesta
            >>> list(vesta.nn.Linear(2, 3).state_dict())
            ['weight', 'bias']
        """
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, local_metadata)
            if result is None:
                continue
            if getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict post-hook must return None")
            destination = result
        return destination

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Loads this module's own values, without its children's; problems go into the three lists."""
        for hook, with_module in self._load_state_dict_pre_hooks.values():
            head = (self,) if with_module else ()
            hook(*head, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        own = self._persistent_state()
        pending = local_metadata.get(_PENDING)
        for name, target in own.items():
            if prefix + name not in state_dict:
                if strict:
                    missing_keys.append(prefix + name)
                continue
            assign = local_metadata.get("assign_to_params_buffers", False)
            copy = self._checked_copy(name, prefix + name, target, state_dict[prefix + name], assign, error_msgs)
            if copy is not None and pending is not None:
                pending.append(copy)
            elif copy is not None:
                copy.commit(error_msgs)
        self._load_extra_state(state_dict, prefix + EXTRA_STATE_KEY, strict, missing_keys, unexpected_keys)
        if strict:
            unexpected_keys.extend(self._unknown_keys(state_dict, prefix, own))

    def _checked_copy(
        self, name: str, key: str, target: Tensor, source: Any, assign: bool, error_msgs: list[str]
    ) -> _Copy | None:
        if not isinstance(source, Tensor):
            error_msgs.append(
                f'While copying the parameter named "{key}", expected vesta.Tensor or Tensor-like object from '
                f"checkpoint but received {type(source)}.{convert_hint(source)}"
            )
            return None
        if is_lazy(source):
            if not is_lazy(target):
                error_msgs.append(
                    f'While copying the parameter named "{key}", expected a tensor with a shape, got an uninitialized '
                    "one. Call the lazy module once before saving it."
                )
            return None
        if target.dim() == 0 and source.dim() == 1 and source.numel() == 1:
            source = source[0]  # checkpoints written before 0-d tensors existed
        if source.shape != target.shape:
            error_msgs.append(
                f"size mismatch for {key}: copying a param with shape {source.shape} from checkpoint, the shape in "
                f"current model is {target.shape}.{self._told(key)}"
            )
            return None
        return _Copy(self, name, key, target, source, assign)

    def _told(self, key: str) -> str:
        """Returns which layer a key belongs to, as messages say it."""
        arguments: str = self.extra_repr()  # type: ignore[attr-defined]
        if self._modules or not arguments or "\n" in arguments:
            return ""
        path = key.rpartition(".")[0] or "The module"
        return (
            f" {path} is {type(self).__name__}({arguments}): make it with the checkpoint's sizes, or leave the key out."
        )

    def _load_extra_state(
        self, state_dict: dict[str, Any], key: str, strict: bool, missing: list[str], unexpected: list[str]
    ) -> None:
        if type(self).set_extra_state is not StateDictMixin.set_extra_state:
            if key in state_dict:
                self.set_extra_state(state_dict[key])
            elif strict:
                missing.append(key)
        elif strict and key in state_dict:
            unexpected.append(key)

    def _unknown_keys(self, state_dict: dict[str, Any], prefix: str, own: dict[str, Any]) -> list[str]:
        unknown = []
        for key in state_dict:
            if key.startswith(prefix) and key != prefix + EXTRA_STATE_KEY:
                head, dot, _ = key[len(prefix) :].partition(".")
                if head not in (self._modules if dot else own):
                    unknown.append(key)
        return unknown

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copies the values of ``state_dict`` into the module; either all of them, or on an error none.

        Args:
            state_dict: tensors by qualified name, each of the shape the module has.
            strict: whether a missing or an unknown name is an error.
            assign: put the given tensors, with their dtype and device, in place of the module's instead of copying.

        Raises:
            RuntimeError: names or shapes do not match; the message lists all of them.
            TypeError: ``state_dict`` is not a mapping.

        Example::

            >>> import vesta
            >>> a, b = vesta.nn.Linear(2, 2), vesta.nn.Linear(2, 2)
            >>> a.load_state_dict(b.state_dict())
            <All keys matched successfully>
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)
        load = _Load(metadata, strict, assign)
        load.visit(self, state_dict, "")
        only_names = strict and not load.errors  # then strict=False would help
        if strict:
            load.errors[:0] = [
                f"{what} key(s) in state_dict: {', '.join(map(_quoted, keys))}. "
                for what, keys in (("Missing", load.keys.missing_keys), ("Unexpected", load.keys.unexpected_keys))
                if keys
            ]
        if not load.errors:
            load.commit()
        if load.errors:
            messages = "\n\t".join([*load.errors, *_advice(load.keys, only_names)])
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{messages}")
        return load.keys


class _Load:
    """One ``load_state_dict``: walks the modules, collects copies and problems, copies at the end."""

    def __init__(self, metadata: Any, strict: bool, assign: bool) -> None:
        self.metadata, self.strict, self.assign = metadata or {}, strict, assign
        self.keys = IncompatibleKeys([], [])
        self.errors: list[str] = []
        self.pending: list[_Copy] = []

    def visit(self, module: Any, state_dict: dict[str, Any], prefix: str) -> None:
        """Loads ``module`` and what is below it from the part of ``state_dict`` that starts with ``prefix``."""
        local_metadata = dict(self.metadata.get(prefix[:-1], {}))
        if self.assign:
            local_metadata["assign_to_params_buffers"] = True
        # A class with its own _load_from_state_dict may read its values afterwards, so they are loaded at once.
        definer = next(cls for cls in type(module).__mro__ if "_load_from_state_dict" in vars(cls))
        if vars(definer).get("_load_defers"):
            local_metadata[_PENDING] = self.pending
        module._load_from_state_dict(
            state_dict, prefix, local_metadata, True, self.keys.missing_keys, self.keys.unexpected_keys, self.errors
        )
        for name, child in module._modules.items():
            if child is not None:
                below = f"{prefix}{name}."
                self.visit(child, {k: v for k, v in state_dict.items() if k.startswith(below)}, below)
        for hook in module._load_state_dict_post_hooks.values():
            if not self.errors:
                self.commit()  # a hook may read the values
            if hook(module, self.keys) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                    "values, if incompatible_keys need to be modified, it should be done inplace."
                )

    def commit(self) -> None:
        """Makes the collected copies."""
        for copy in self.pending:
            copy.commit(self.errors)
        self.pending.clear()


def _quoted(key: str) -> str:
    """Quotes a name as PyTorch's messages do."""
    return f'"{key}"'


def _advice(keys: IncompatibleKeys, only_names: bool) -> list[str]:
    """Returns advice on the most frequent mistakes, given the names that did not match, and whether they are all that
    is wrong."""
    missing, unexpected = set(keys.missing_keys), keys.unexpected_keys
    for prefix in ("module.", "_orig_mod.", "model."):
        stripped = {key[len(prefix) :] for key in unexpected if key.startswith(prefix)}
        if stripped and stripped & missing:
            return [
                f'The names in the checkpoint start with "{prefix}", the module\'s do not. '
                f"Load {{k.removeprefix({prefix!r}): v for k, v in state_dict.items()}}."
            ]
    pairs = [(key, _nearest(key, unexpected)) for key in keys.missing_keys]
    advice = [f'"{key}" may be "{other}" of the checkpoint.' for key, other in pairs if other][:5]
    if only_names:
        advice.append("Pass strict=False to load what has a match and leave the rest as it is.")
    return advice


def _store(table: OrderedDict[int, Any], hook: Any) -> RemovableHandle:
    handle = RemovableHandle(table)
    table[handle.id] = hook
    return handle
