"""Operators of users: schemas, kernels, gradients, namespaces, checks; as PyTorch 2.15 has them."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable
from typing import Any, List, Optional, Sequence, Tuple, Union  # noqa: UP035

import pytest
import vesta
from vesta import Tensor
from vesta.library import Library, custom_op, infer_schema, opcheck

_numbers = itertools.count()


@pytest.fixture
def name() -> str:
    """The name of an operator that does not exist yet."""
    return f"tests::op{next(_numbers)}"


def typed(function: Callable[..., Any], **annotations: Any) -> Callable[..., Any]:
    """Gives a function annotations, which strings of this module would not do for local names."""
    function.__annotations__ = annotations
    return function


@pytest.mark.parametrize(
    ("annotations", "wanted"),
    [
        ({"x": Tensor, "return": Tensor}, "(Tensor x) -> Tensor"),
        ({"x": Optional[Tensor], "return": None}, "(Tensor? x) -> ()"),
        ({"x": list[Tensor], "return": list[Tensor]}, "(Tensor[] x) -> Tensor[]"),
        ({"x": List[Tensor], "return": Tuple[Tensor, Tensor]}, "(Tensor[] x) -> (Tensor, Tensor)"),  # noqa: UP006
        ({"x": Sequence[int], "return": tuple[Tensor, Tensor]}, "(SymInt[] x) -> (Tensor, Tensor)"),
        ({"x": Optional[Sequence[float]], "return": Tensor}, "(float[]? x) -> Tensor"),
        ({"x": Union[int, float, bool], "return": Tensor}, "(Scalar x) -> Tensor"),
        ({"x": vesta.dtype, "return": Tensor}, "(ScalarType x) -> Tensor"),
        ({"x": Sequence[Optional[Tensor]], "return": float}, "(Tensor?[] x) -> float"),
    ],
)
def test_schemas_from_annotations(annotations: dict[str, Any], wanted: str) -> None:
    assert infer_schema(typed(lambda x: None, **annotations), mutates_args=()) == wanted


def test_schemas_with_defaults_and_writes() -> None:
    def f(x: Tensor, y: Tensor, *, n: int = 2, mode: str = "mean") -> Tensor: ...

    assert (
        infer_schema(f, mutates_args={"y"}, op_name="f")
        == 'f(Tensor x, Tensor(a!) y, *, SymInt n=2, str mode="mean") -> Tensor'
    )


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: x, "must have a type annotation"),
        (typed(lambda x: x, x=dict), "unsupported type"),
        (typed(lambda x: x, x=Tensor), "must have a return annotation"),
        (typed(lambda *x: x, x=Tensor), "must have a name of its own"),
    ],
)
def test_functions_without_a_schema(function: Callable[..., Any], words: str, name: str) -> None:
    with pytest.raises(ValueError, match=words):
        custom_op(name, function, mutates_args=())


def test_numbers_come_as_what_the_schema_says(name: str) -> None:
    np = pytest.importorskip("numpy")
    seen = []

    @custom_op(name, mutates_args=())
    def f(x: Tensor, n: int, by: float, sizes: Sequence[int], flag: bool = False) -> Tensor:
        seen.append((n, by, sizes, flag))
        return x * 1

    ones = (1, True, np.int32(1), np.bool_(True), np.array(1), vesta.tensor(1), vesta.tensor([1.0]))
    for one in ones:
        for by in (*ones, 1.0, np.float32(1), np.float64(1)):
            f(vesta.ones(1), one, by, (one, 1), one)
    assert len(seen) == 70
    for n, by, sizes, flag in seen:
        assert (type(n), type(by), type(sizes), type(sizes[0]), type(flag)) == (int, float, list, int, bool)
        assert (n, by, sizes, flag) == (1, 1.0, [1, 1], True)


def test_an_operator_without_results_runs_where_gradients_are_recorded(name: str) -> None:
    @custom_op(name, mutates_args=("x",))
    def add(x: Tensor, y: Tensor) -> None:
        x.add_(y)

    x, y = vesta.zeros(2), vesta.ones(2, requires_grad=True)
    assert add(x, y) is None
    assert x.tolist() == [1.0, 1.0]
    assert not x.requires_grad
    middle = y * 2
    add(middle, vesta.ones(2))
    middle.sum().backward()
    assert middle.tolist() == [3.0, 3.0]
    assert y.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("grad", [False, True])
def test_results_share_no_memory_with_each_other(name: str, grad: bool) -> None:
    @custom_op(name, mutates_args=())
    def twice(x: Tensor, view: bool) -> tuple[Tensor, Tensor]:
        y = x + 1
        return y, y.view(-1) if view else y

    for view in (False, True):
        with pytest.raises(RuntimeError, match=rf"^{name}: expected results with memory of their own, got two that"):
            twice(vesta.ones(2, requires_grad=grad), view)


def test_a_name_that_is_defined_again_is_replaced(name: str) -> None:
    def make(factor: int):
        @custom_op(name, mutates_args=())
        def scaled(x: Tensor) -> Tensor:
            return x * factor

        scaled.register_autograd(lambda ctx, grad: grad * factor)
        return scaled

    first = make(2)
    second = make(3)
    namespace, short = name.split("::")
    for scaled in (first, second, getattr(getattr(vesta.ops, namespace), short)):
        x = vesta.ones(1, requires_grad=True)
        y = scaled(x)
        y.backward()
        assert y.tolist() == x.grad.tolist() == [3.0]
    with pytest.raises(RuntimeError, match="which is an operator already"):
        vesta.library.define(name, "(Tensor x) -> Tensor")


def test_a_call_checks_its_arguments(name: str) -> None:
    @custom_op(name, mutates_args=())
    def f(x: Tensor, n: int = 2, *, by: float = 1.0) -> Tensor:
        return x * n * by

    x = vesta.ones(2)
    assert f(x, 3, by=2).tolist() == [6, 6]
    for call, words in (
        (lambda: f(), "expected a value of type Tensor, got none"),
        (lambda: f(None), "expected Tensor, got NoneType"),
        (lambda: f(x, 1.5), "expected SymInt, got float"),
        (lambda: f(x, "2"), "expected SymInt, got str"),
        (lambda: f(x, vesta.tensor(1.5)), "expected SymInt, got Tensor"),
        (lambda: f(x, by=vesta.ones(2)), "expected float, got Tensor"),
        (lambda: f(x, 1, 2.0), "at most 2 positional"),
        (lambda: f(x, x=x), "several values"),
        (lambda: f(x, speed=1), "unexpected argument"),
    ):
        with pytest.raises(TypeError, match=words):
            call()


def test_gradients(name: str) -> None:
    @custom_op(name, mutates_args=())
    def scaled(x: Tensor, by: float, y: Tensor) -> Tensor:
        return x * by + y

    x, y = vesta.ones(2, requires_grad=True), vesta.ones(2)
    assert "GeneratedBackwardFor" in str(scaled(x, 2.0, y).grad_fn)
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        scaled(x, 2.0, y).sum().backward()

    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        ctx.by = inputs[1]
        ctx.save_for_backward(output)

    scaled.register_autograd(lambda ctx, grad: (grad * ctx.by, None, grad), setup_context=setup_context)
    scaled(x, 3.0, y).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3, 3]
    assert vesta.autograd.gradcheck(
        lambda a, b: scaled(a, 3.0, b),
        (vesta.randn(3, dtype=vesta.float64, requires_grad=True), vesta.randn(3, dtype=vesta.float64)),
    )
    with vesta.no_grad():
        assert scaled(x, 3.0, y).grad_fn is None


def test_lists_of_tensors_have_gradients(name: str) -> None:
    @custom_op(name, mutates_args=())
    def totals(xs: list[Tensor], by: Tensor | None = None) -> list[Tensor]:
        return [x * 2 for x in xs]

    totals.register_autograd(lambda ctx, grads: ([g * 2 for g in grads], None))
    xs = [vesta.ones(2, requires_grad=True), vesta.ones(3), vesta.ones(1, requires_grad=True)]
    made = totals(xs)
    assert isinstance(made, list)
    (made[0].sum() + made[2].sum() * 3).backward()
    assert xs[0].grad is not None
    assert xs[2].grad is not None
    assert xs[0].grad.tolist() == [2, 2]
    assert xs[2].grad.tolist() == [6]


def test_kernels_by_device_and_several_results(name: str) -> None:
    @custom_op(name, mutates_args=(), device_types="cuda")
    def parts(x: Tensor) -> tuple[Tensor, Tensor]:
        return x + 1, x + 2

    with pytest.raises(NotImplementedError, match="expected a kernel for device type cpu, got kernels for: cuda"):
        parts(vesta.ones(1))
    parts.register_kernel("cpu")(lambda x: (x * 3, x * 4))
    assert [t.item() for t in parts(vesta.ones(1))] == [3, 4]
    with parts.set_kernel_enabled("cpu", False), pytest.raises(NotImplementedError):
        parts(vesta.ones(1))
    assert parts(vesta.ones(1))[0].item() == 3


def test_results_are_no_arguments(name: str) -> None:
    @custom_op(name, mutates_args=())
    def same(x: Tensor) -> Tensor:
        return x.view(-1)

    with pytest.raises(RuntimeError, match="shares its memory"):
        same(vesta.ones(2))


def test_operators_that_write(name: str) -> None:
    @custom_op(name, mutates_args={"x"})
    def add_one_(x: Tensor) -> None:
        x.add_(1)

    x = vesta.zeros(2)
    version = x._version
    assert add_one_(x) is None
    assert x.tolist() == [1, 1]
    assert x._version > version
    with pytest.raises(RuntimeError, match="non-functional operator"):
        add_one_.register_autograd(lambda ctx: None)


def test_autocast(name: str) -> None:
    @custom_op(name, mutates_args=())
    def f(x: Tensor, i: Tensor) -> Tensor:
        assert i.dtype == vesta.int64
        return x * 2

    f.register_autocast("cpu", vesta.bfloat16)
    i = vesta.tensor([1])
    assert f(vesta.ones(2), i).dtype == vesta.float32
    with vesta.autocast("cpu"):
        assert f(vesta.ones(2), i).dtype == vesta.bfloat16


def test_namespaces(name: str) -> None:
    custom_op(name, typed(lambda x: x + 1, x=Tensor, **{"return": Tensor}), mutates_args=())
    short = name.partition("::")[2]
    packet = getattr(vesta.ops.tests, short)
    assert packet(vesta.ones(1)).item() == 2
    assert packet.default(vesta.ones(1)).item() == 2
    assert str(packet.default._schema) == f"{name}(Tensor x) -> Tensor"
    assert packet is getattr(vesta.ops.tests, short)
    assert short in dir(vesta.ops.tests)
    assert not hasattr(vesta.ops.tests, "nothing_of_this_name")
    assert vesta.ops.aten.relu.default(vesta.tensor([-1.0])).item() == 0
    with pytest.raises(RuntimeError, match="is an operator already"):
        vesta.library.define(name, "(Tensor x) -> Tensor")
    with pytest.raises(ValueError, match="such as 'mylib::scaled'"):
        vesta.library.define("scaled", "(Tensor x) -> Tensor")
    with pytest.raises(OSError, match="load_library"):
        vesta.ops.load_library("lib.so")


def test_libraries() -> None:
    lib = Library(f"tests_lib{next(_numbers)}", "DEF")
    assert lib.define('f(Tensor x, int[2] sizes=[1, 2], *, str mode="a,b", float? s=None) -> Tensor') == "f"
    lib.impl("f", lambda x, sizes, *, mode, s: x * sizes[1] + len(mode), "CPU")
    call = getattr(vesta.ops, lib.ns).f
    assert call(vesta.ones(1)).item() == 5
    lib.define("g(Tensor x) -> Tensor")
    vesta.library.impl(lib, "g")(lambda x: x * x)  # made of other operations: their gradients
    x = vesta.full((1,), 3.0, requires_grad=True)
    getattr(vesta.ops, lib.ns).g(x).backward()
    assert x.grad is not None
    assert x.grad.item() == 6
    for wrong in ("h(Thing x) -> Tensor", "h(Tensor x", "h(Tensor) -> Tensor", "h(int n=print()) -> Tensor"):
        with pytest.raises(ValueError, match="define: expected"):
            lib.define(wrong)
    lib.impl("f", lambda x: x, "XLA")  # a device that is not there
    with pytest.raises(RuntimeError, match="expected a dispatch key"):
        lib.impl("f", lambda x: x, "CPUS")
    lib._destroy()
    assert not hasattr(getattr(vesta.ops, lib.ns), "f")
    with pytest.raises(ValueError, match="Unsupported kind"):
        Library("a", "THING")


def test_opcheck(name: str) -> None:
    @custom_op(name, mutates_args=())
    def writes(x: Tensor) -> Tensor:
        return x.add_(1) * 2

    with pytest.raises(RuntimeError, match="not defined as mutable but was mutated"):
        opcheck(writes, (vesta.ones(2),))
    found = opcheck(writes, (vesta.ones(2, requires_grad=True),), raise_exception=False)
    assert "has no gradient" in str(found["test_autograd_registration"])
    writes.register_fake(lambda x: vesta.empty(3))
    assert "expected results of" in str(opcheck(writes, (vesta.ones(2),), raise_exception=False)["test_faketensor"])


def test_under_as_torch() -> None:
    program = (
        "import torch\n"
        "@torch.library.custom_op('prog::sin', mutates_args=())\n"
        "def my_sin(x: torch.Tensor) -> torch.Tensor:\n"
        "    return torch.from_numpy(__import__('numpy').sin(x.numpy()))\n"
        "def setup(ctx, inputs, output):\n"
        "    ctx.save_for_backward(*inputs)\n"
        "my_sin.register_autograd(lambda ctx, g: g * ctx.saved_tensors[0].cos(), setup_context=setup)\n"
        "@my_sin.register_fake\n"
        "def _(x):\n"
        "    return torch.empty_like(x)\n"
        "x = torch.zeros(2, requires_grad=True)\n"
        "torch.ops.prog.sin(x).sum().backward()\n"
        "torch.library.opcheck(torch.ops.prog.sin.default, (x,))\n"
        "print(x.grad.tolist())\n"
    )
    made = subprocess.run(
        [sys.executable, "-m", "vesta.as_torch", "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    assert made.stdout == "[1.0, 1.0]\n"
