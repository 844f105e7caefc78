"""``vesta.autograd.functional`` and ``profiler``: products with derivatives against formulas; times of named parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import vesta
from vesta.autograd import functional, profiler

X = vesta.tensor([0.5, 1.5, 2.5], dtype=vesta.float64)
V = vesta.tensor([1.0, -2.0, 0.5], dtype=vesta.float64)


def test_products_with_the_jacobian() -> None:
    value, product = functional.vjp(lambda x: x.exp(), X, V)
    assert vesta.equal(value, X.exp()) and vesta.allclose(product, V * X.exp()) and not product.requires_grad
    value, product = functional.jvp(lambda x: x.exp(), X, V)
    assert vesta.equal(value, X.exp()) and vesta.allclose(product, V * X.exp())
    (out, total), (a, b) = functional.vjp(lambda x, y: (x * y, x.sum()), (X, 2 * X), (V, vesta.tensor(3.0).double()))
    assert vesta.equal(out, 2 * X * X) and total == X.sum()
    assert vesta.allclose(a, 2 * X * V + 3) and vesta.allclose(b, X * V)
    _, product = functional.jvp(lambda x, y: x * y, (X, 2 * X), (V, V))
    assert vesta.allclose(product, 3 * X * V)


def test_jacobians_have_the_shapes_of_outputs_and_inputs() -> None:
    matrix = vesta.arange(6, dtype=vesta.float64).reshape(2, 3)
    found = functional.jacobian(lambda m: m.sum(1), matrix)
    assert found.shape == (2, 2, 3) and vesta.equal(found[0], vesta.tensor([[1.0] * 3, [0.0] * 3]).double())
    (a, b), (c, d) = functional.jacobian(lambda x, y: (x * y, x.sum()), (X, 2 * X))
    assert vesta.allclose(a, vesta.diag(2 * X)) and vesta.allclose(b, vesta.diag(X))
    assert vesta.equal(c, vesta.ones_like(X)) and vesta.equal(d, vesta.zeros_like(X))
    assert functional.jacobian(lambda x: x[:0], X).shape == (0, 3)


def test_second_derivatives() -> None:
    def cubes(x: Any) -> Any:
        return (x**3).sum()

    assert vesta.allclose(functional.hessian(cubes, X), vesta.diag(6 * X))
    for product in (functional.hvp, functional.vhp):
        value, found = product(cubes, X, V)
        assert value == cubes(X) and vesta.allclose(found, 6 * X * V)
    (aa, ab), (ba, bb) = functional.hessian(lambda x, y: (x * y * y).sum(), (X, V))
    assert vesta.equal(aa, vesta.zeros(3, 3).double()) and vesta.allclose(ab, ba.t())
    assert vesta.allclose(ab, vesta.diag(2 * V)) and vesta.allclose(bb, vesta.diag(2 * X))


def test_results_can_be_differentiated_if_asked_for() -> None:
    x = X.clone().requires_grad_()
    jacobian = functional.jacobian(lambda x: x**3, x, create_graph=True)
    (second,) = vesta.autograd.grad(jacobian.sum(), x)
    assert vesta.allclose(second, 6 * X)
    _, product = functional.jvp(lambda x: x**3, x, V, create_graph=True)
    (second,) = vesta.autograd.grad(product.sum(), x)
    assert vesta.allclose(second, 6 * X * V)


def test_wrong_arguments() -> None:
    for call, error, message in (
        (lambda: functional.vjp(lambda x: x, X), RuntimeError, "can only be None if"),
        (lambda: functional.vjp(lambda x: x, X, V[:2]), RuntimeError, "v has invalid size"),
        (lambda: functional.vjp(lambda x: x, (X, X), V), TypeError, "lambda"),
        (lambda: functional.vjp(lambda x: 1.0, X), TypeError, "outputs of the user-provided function"),
        (lambda: functional.hessian(lambda x: x, X), RuntimeError, "given to hessian should contain a single element"),
        (lambda: functional.hvp(lambda x: x, X, V), RuntimeError, "given to hvp should contain a single element"),
        (lambda: functional.jacobian(lambda x, y: x, (X, X), strict=True), RuntimeError, "independent of input 1"),
        (lambda: functional.jacobian(lambda x: x, X, strategy="sideways"), ValueError, "sideways"),
    ):
        with pytest.raises(error, match=message):
            call()


def test_parts_are_timed_and_nested_time_counts_once(tmp_path: Path) -> None:
    @profiler.record_function("inner")
    def inner() -> None:
        (vesta.ones(50, 50) @ vesta.ones(50, 50)).sum()

    with profiler.profile(use_device=None) as found, profiler.record_function("outer"):
        inner()
        inner()
    events = {event.key: event for event in found.key_averages()}
    assert events["inner"].count == 2 and events["outer"].count == 1
    assert events["outer"].cpu_time_total > events["inner"].cpu_time_total > 0
    own = events["outer"].self_cpu_time_total
    assert own == pytest.approx(events["outer"].cpu_time_total - events["inner"].cpu_time_total)
    assert events["aten::matmul"].count == 2
    table = found.key_averages().table(sort_by="cpu_time_total", row_limit=1)
    assert "outer" in table and "inner" not in table and "Self CPU time total" in table
    found.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    parts = [event["name"] for event in events if event.get("cat") == "user_annotation"]
    assert parts == ["outer", "inner", "inner"]
    with profiler.record_function("alone"):
        pass
    assert sum(event.is_user_annotation for event in found.function_events) == 3
    with profiler.profile(enabled=False) as nothing, profiler.record_function("part"):
        pass
    assert not nothing.function_events


def test_steps_are_recorded_by_a_schedule(tmp_path: Path) -> None:
    from vesta import profiler as steps

    found = []
    plan = steps.schedule(wait=1, warmup=1, active=2, repeat=1, skip_first=1)
    with steps.profile(schedule=plan, on_trace_ready=lambda p: found.append(p.key_averages())) as running:
        for step in range(8):
            with steps.record_function(f"step {step}"):
                pass
            running.step()
    (cycle,) = found
    assert [event.key for event in cycle if event.key.startswith("step")] == ["step 3", "step 4"]
    handler = steps.tensorboard_trace_handler(str(tmp_path / "logs"), "me", use_gzip=True)
    with steps.profile(on_trace_ready=handler), steps.record_function("part"):
        pass
    (path,) = (tmp_path / "logs").iterdir()
    assert path.name.startswith("me.") and path.name.endswith(".pt.trace.json.gz")
    with pytest.raises(AssertionError, match="active > 0"):
        steps.schedule(wait=0, warmup=0, active=0)
