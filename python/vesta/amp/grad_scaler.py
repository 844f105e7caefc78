"""``GradScaler``: scales the loss so that 16-bit gradients do not vanish, and finds the largest scale that works.

Method: Micikevicius et al. 2018, "Mixed Precision Training", with a scale that adapts. The scale, its counter and the
findings are tensors on the device; the host waits for it once per ``step()``, to learn whether to step.
"""

from __future__ import annotations

import inspect
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from enum import Enum
from numbers import Real
from typing import Any, TypeVar

import vesta
from vesta import _C, Tensor
from vesta._arguments import expect

__all__ = ["GradScaler", "OptState"]

T = TypeVar("T")


class OptState(Enum):
    """An optimizer's progress since the last ``update()``."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _fresh_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class _Copies:
    """Copies of a tensor on other devices, one per device, made on first use."""

    def __init__(self, master: Tensor) -> None:
        self._master = master
        self.made: dict[Any, Tensor] = {}

    def on(self, device: Any) -> Tensor:
        if device not in self.made:
            self.made[device] = self._master.to(device=device, non_blocking=True, copy=True)
        return self.made[device]


class GradScaler:
    """A scaler that multiplies losses by a scale, divides gradients by it before the optimizer's step, and adapts it.

    A step whose gradients hold an infinity or NaN is skipped, and the scale falls by ``backoff_factor``; after
    ``growth_interval`` good steps in a row it grows by ``growth_factor``.

    Args:
        device: device type of the losses, "cuda" or "cpu". Without a GPU, "cuda" warns and disables the scaler.
        init_scale: the first scale.
        growth_factor: greater than 1.
        backoff_factor: less than 1.
        growth_interval: steps without infinity or NaN before the scale grows.
        enabled: with ``False``, ``step`` is the optimizer's step and nothing else has an effect.

    Example::

        >>> import vesta
        >>> weight = vesta.ones(3, requires_grad=True)
        >>> optimizer = vesta.optim.SGD([weight], lr=0.5)
        >>> scaler = vesta.amp.GradScaler("cpu", init_scale=1024.0)
        >>> loss = weight.sum()
        >>> scaler.scale(loss).backward()
        >>> _ = scaler.step(optimizer)
        >>> scaler.update()
        >>> weight.tolist()
        [0.5, 0.5, 0.5]
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = str(device)
        self._enabled = enabled
        if enabled and self._device.partition(":")[0] == "cuda" and not vesta.cuda.is_available():
            warnings.warn("vesta.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2)
            self._enabled = False
        if not self._enabled:
            return
        for name in ("init_scale", "growth_factor", "backoff_factor", "growth_interval"):
            expect("GradScaler", name, locals()[name], Real, "float")
        if growth_factor <= 1.0:
            raise AssertionError(f"The growth factor must be > 1.0, got {growth_factor}.")
        if backoff_factor >= 1.0:
            raise AssertionError(f"The backoff factor must be < 1.0, got {backoff_factor}.")
        self._init_scale = init_scale
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._scale: Tensor | None = None  # made when the first loss shows its device
        self._growth_tracker: Tensor | None = None
        self._per_optimizer_states: dict[int, dict[str, Any]] = defaultdict(_fresh_state)

    # ---- the scale ----

    def _scale_for(self, device: Any) -> Tensor:
        """Returns the scale; at first, makes it and its counter on ``device``."""
        if self._scale is None:
            self._scale = vesta.full((), self._init_scale, dtype=vesta.float32, device=device)
            self._growth_tracker = vesta.full((), self._init_growth_tracker, dtype=vesta.int32, device=device)
        return self._scale

    def _made_scale(self, method: str) -> Tensor:
        if self._scale is None:
            raise AssertionError(
                f"Attempted {method} but _scale is None.  This may indicate your script did not use "
                "scaler.scale(loss or outputs) earlier in the iteration."
            )
        return self._scale

    def scale(self, outputs: T) -> T:
        """Multiplies a tensor, or the tensors of a list, tuple or other iterable, by the scale.

        Args:
            outputs: tensors on any devices; an iterator comes back as an iterator.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale_for(outputs.device).to(device=outputs.device, non_blocking=True)
        return self._scaled(outputs, [])

    def _scaled(self, value: Any, copies: list[_Copies]) -> Any:
        """Scales what ``scale`` is given; ``copies`` holds those of the scale, as soon as a device is known."""
        if isinstance(value, Tensor):
            if not copies:
                copies.append(_Copies(self._scale_for(value.device)))
            return value * copies[0].on(value.device)
        if isinstance(value, Iterable):
            entries: Iterator[Any] = (self._scaled(entry, copies) for entry in value)
            if isinstance(value, tuple) and hasattr(value, "_fields"):
                return type(value)(*entries)
            return type(value)(entries) if isinstance(value, (list, tuple)) else entries  # type: ignore[call-arg]
        raise ValueError(f"outputs must be a Tensor or an iterable of Tensors, got {type(value).__name__}")

    # ---- gradients ----

    def _unscale_grads_(
        self, optimizer: Any, inv_scale: Tensor, found_inf: Tensor, allow_fp16: bool
    ) -> dict[Any, Tensor]:
        """Unscales an optimizer's gradients in one pass per device; returns per device whether one was not finite."""
        grads: dict[Any, list[Tensor]] = defaultdict(list)
        for group in optimizer.param_groups:
            for param in group["params"]:
                grad = param.grad
                if grad is None:
                    continue
                if not allow_fp16 and grad.dtype == vesta.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                grads[grad.device].append(grad)
        factors, findings = _Copies(inv_scale), _Copies(found_inf)
        with vesta.no_grad():
            for device, list_ in grads.items():
                _C._amp_unscale_(list_, findings.on(device), factors.on(device))
        return findings.made

    def unscale_(self, optimizer: Any) -> None:
        """Divides an optimizer's gradients by the scale, so that they can be clipped or inspected before ``step``.

        Call it once per optimizer and ``update``, after all gradients have arrived. The host does not wait.
        """
        if not self._enabled:
            return
        scale = self._made_scale("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inv_scale = scale.to(vesta.float64).reciprocal().to(vesta.float32)
        found_inf = vesta.full((), 0.0, dtype=vesta.float32, device=scale.device)
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inv_scale, found_inf, False)
        state["stage"] = OptState.UNSCALED

    def _check_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        """Finds out whether gradients are finite, and does not change them."""
        scale = self._made_scale("_check_inf_per_device")
        one = vesta.full((), 1.0, dtype=vesta.float32, device=scale.device)
        found_inf = vesta.full((), 0.0, dtype=vesta.float32, device=scale.device)
        state = self._per_optimizer_states[id(optimizer)]
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, one, found_inf, True)
        return state["found_inf_per_device"]

    def _found_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]

    # ---- the step ----

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Unscales the gradients unless ``unscale_`` has, and runs ``optimizer.step`` if all of them are finite.

        Args:
            args, kwargs: for ``optimizer.step``; a closure is refused.

        Returns:
            the result of ``optimizer.step``; ``None`` for a skipped step.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._made_scale("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._step_of_scaling_optimizer(optimizer, state, args, kwargs)
            state["stage"] = OptState.STEPPED
            return result
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if not state["found_inf_per_device"]:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = None
        # The one place where the host waits for the device: Python must know whether to step.
        if not sum(found.item() for found in state["found_inf_per_device"].values()):
            result = optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _step_of_scaling_optimizer(
        self, optimizer: Any, state: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Steps an optimizer that unscales by itself, by PyTorch's contract: attributes grad_scale and found_inf."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the near "
                "future GradScaler registers `grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer and "
                "let the optimizer use them directly.",
                FutureWarning,
                stacklevel=3,
            )
            return optimizer.step(*args, **{**kwargs, "grad_scaler": self})
        scale = self._made_scale("step")
        if state["stage"] is OptState.READY:
            self._check_inf_per_device(optimizer)
        optimizer.grad_scale = None if state["stage"] is OptState.UNSCALED else scale
        optimizer.found_inf = self._together(state["found_inf_per_device"].values(), scale)
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf

    @staticmethod
    def _together(findings: Iterable[Tensor], scale: Tensor) -> Tensor:
        """Sums the findings of all devices on the scale's device."""
        here = [found.to(device=scale.device, non_blocking=True) for found in findings]
        if not here:
            raise AssertionError("No inf checks were recorded prior to update.")
        total = here[0]
        for found in here[1:]:
            total = total + found
        return total

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adapts the scale. Call it once at the end of an iteration, after ``step`` of all optimizers.

        Args:
            new_scale: a number or a float tensor of one element that becomes the scale instead.
        """
        if not self._enabled:
            return
        scale = self._made_scale("update")
        if new_scale is not None:
            if isinstance(new_scale, Tensor):
                reason = "new_scale should be a float or a 1-element vesta.float32 Tensor with requires_grad=False."
                if new_scale.dtype != vesta.float32 or new_scale.numel() != 1 or new_scale.requires_grad:
                    raise AssertionError(reason)
                scale.copy_(new_scale.reshape(()))
            else:
                scale.fill_(float(new_scale))
        else:
            states = self._per_optimizer_states.values()
            findings = [found for state in states for found in state["found_inf_per_device"].values()]
            _C._amp_update_scale_(
                scale,
                self._growth_tracker,
                self._together(findings, scale),
                self._growth_factor,
                self._backoff_factor,
                self._growth_interval,
            )
        self._per_optimizer_states = defaultdict(_fresh_state)

    # ---- settings and state ----

    def _get_scale_async(self) -> Tensor | None:
        return self._scale

    def get_scale(self) -> float:
        """Returns the scale, 1.0 if disabled. Waits for the device."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale.item())

    def get_growth_factor(self) -> float:
        """Returns the factor by which the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets the factor by which the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Returns the factor by which the scale falls."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets the factor by which the scale falls."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Returns the number of good steps after which the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets the number of good steps after which the scale grows."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        tracker = self._growth_tracker
        return self._init_growth_tracker if tracker is None else int(tracker.item())

    def is_enabled(self) -> bool:
        """Returns whether the scaler is enabled."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Returns scale, factors, interval and counter as numbers; empty if disabled. Call it after ``update``."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores a state that ``state_dict`` returned."""
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None:
            self._scale.fill_(float(state_dict["scale"]))
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(int(state_dict["_growth_tracker"]))

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                    "scaler.update()."
                )
            # Tensors are not pickled: the scale is made again from the numbers, on the device of the next loss.
            state.update(
                _init_scale=self.get_scale(),
                _init_growth_tracker=self._get_growth_tracker(),
                _scale=None,
                _growth_tracker=None,
            )
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
