"""Bad input never causes a signal, a hang or a changed argument: mutated calls of every row, and selected cases."""

from __future__ import annotations

import math
import random
import re
import time
import zlib
from typing import Any, Callable

import numpy as np
import op_db_check as check
import pytest
import vesta
from op_db import OPS
from op_db_cases import single
from op_db_row import DTYPES, Maker, Row
from vesta import nn

#: Sizes larger than any memory, and sizes that are wrong; none in between that an allocation could satisfy.
INTEGERS = (0, 1, -1, 2, 7, -7, 63, -(2**31), 2**62, 2**63 - 1, -(2**63), 2**63, 10**30)
NUMBERS = (math.nan, math.inf, -math.inf, -0.0, 1e-320, 1e308, 0.5, -1.5, 1j)
STRANGERS = (
    None,
    "text",
    b"bytes",
    "",
    object(),
    {},
    [],
    (),
    [None],
    [[1], [2, 3]],
    range(3),
    True,
    slice(1),
    ...,
    int,
)


def odd_tensors() -> list[Any]:
    """Returns tensors of a rank, size, dtype or layout that is wrong for almost any argument."""
    return [
        vesta.zeros(0),
        vesta.ones(()),
        vesta.ones(2, 0, 3),
        vesta.ones(5, 4, 3, 2),
        vesta.ones(1, 1, 1, 1, 1, 1),
        vesta.ones(3, dtype=vesta.bool),
        vesta.full((4,), -1, dtype=vesta.int64),
        vesta.full((2, 2), 2**62, dtype=vesta.int64),
        vesta.ones(3, dtype=vesta.complex128),
        vesta.ones(2, dtype=vesta.bfloat16),
        vesta.full((3, 3), math.nan),
        vesta.ones(3, 4).t(),
        vesta.ones(1).expand(4),
        vesta.ones(3, requires_grad=True),
        vesta.ones(2, 3, dtype=vesta.uint8),
    ]


def mutate(dice: random.Random, args: list[Any], kwargs: dict) -> tuple[list[Any], dict]:
    """Replaces, drops, duplicates or adds one to three arguments."""
    args, kwargs = list(args), dict(kwargs)
    for _ in range(dice.randint(1, 3)):
        choice = dice.random()
        pools: list[Any] = [INTEGERS, NUMBERS, STRANGERS, odd_tensors()]
        value = dice.choice(dice.choice(pools))
        if dice.random() < 0.15:
            value = [value] * dice.randint(0, 3)
        if choice < 0.7 and args:
            args[dice.randrange(len(args))] = value
        elif choice < 0.8 and args:
            args.pop(dice.randrange(len(args)))
        elif choice < 0.9:
            args.insert(dice.randint(0, len(args)), value)
        elif kwargs:
            kwargs[dice.choice(sorted(kwargs))] = value
        else:
            kwargs[dice.choice(["dim", "out", "dtype", "keepdim", "nonsense"])] = value
    return args, kwargs


def snapshot(values: Any) -> list[Any]:
    """Returns every tensor's identity, shape, strides, version and contents."""
    found = []
    for value in values:
        if isinstance(value, vesta.Tensor):
            found.append((value, tuple(value.shape), value.stride(), value._version, check.array_of(value).tobytes()))
        elif isinstance(value, (list, tuple)):
            found += snapshot(value)
    return found


@pytest.mark.parametrize("row", single(row for row in OPS))
def test_mutated_calls(row: Row) -> None:
    """60 mutated calls return or raise an ordinary exception within two seconds; a call that raises changes nothing."""
    dtype = "float32" if row.accepts("float32") else "int64"
    samples = list(row.samples(Maker(DTYPES[dtype], row.name)))
    dice = random.Random(zlib.crc32(row.name.encode()))
    function: Callable[..., Any] = check.function_of(row)
    for _ in range(60):
        args, kwargs = check.materialize(dice.choice(samples), dtype)
        args, kwargs = mutate(dice, list(args), kwargs)
        before = snapshot([*args, *kwargs.values()])
        start = time.monotonic()
        try:
            function(*args, **kwargs)
        except (SystemError, AssertionError) as error:
            pytest.fail(f"{row.name}{args} {kwargs}: {error!r} is an internal error")
        except Exception as error:
            assert str(error) or isinstance(error, MemoryError), f"{row.name}: an exception without a message"
            assert "INTERNAL ASSERT" not in str(error)
            if row.fn is None:
                assert snapshot([*args, *kwargs.values()]) == before, f"{row.name}: {error!r} changed an argument"
        assert time.monotonic() - start < 2, f"{row.name}{args} {kwargs} took too long"


METHODS = [name for name in dir(vesta.Tensor) if not name.startswith("_")]
#: Methods that are not called with random arguments: they wait for something, or free what the test still needs.
NOT_CALLED = {"share_memory_", "data_ptr"}


@pytest.mark.parametrize("name", [name for name in METHODS if name not in NOT_CALLED])
def test_every_method_survives_nonsense(name: str) -> None:
    """Every public method and property with unsuitable arguments: an exception or a value, never a signal."""
    dice = random.Random(zlib.crc32(name.encode()))
    for _ in range(8):
        x = dice.choice(odd_tensors())
        try:
            target = getattr(x, name)
            if callable(target):
                args, kwargs = mutate(dice, [], {})
                target(*args, **kwargs)
        except (SystemError, AssertionError) as error:
            pytest.fail(f"{name}: {error!r} is an internal error")
        except Exception as error:
            assert "INTERNAL ASSERT" not in str(error)


F = vesta.nn.functional


@pytest.mark.parametrize("bad", [0, -1, 2**31, 2**62, -(2**63)])
@pytest.mark.parametrize("name", ["stride", "padding", "dilation", "groups"])
def test_hyper_parameters_of_conv2d(name: str, bad: int) -> None:
    """Zero, negative and enormous strides, paddings, dilations and groups raise, except padding 0."""
    if (name, bad) == ("padding", 0):
        assert F.conv2d(vesta.ones(1, 2, 5, 5), vesta.ones(2, 2, 3, 3), padding=0).shape == (1, 2, 3, 3)
        return
    for value in (bad,) if name == "groups" else (bad, (1, bad), (bad, 1)):
        if name == "stride" and bad > 0:
            F.conv2d(vesta.ones(1, 2, 5, 5), vesta.ones(2, 2, 3, 3), stride=value)  # one position is left
            continue
        with pytest.raises((RuntimeError, ValueError, OverflowError, MemoryError)):
            F.conv2d(vesta.ones(1, 2, 5, 5), vesta.ones(2, 2, 3, 3), **{name: value})


@pytest.mark.parametrize(
    "name, bad",
    [
        ("kernel_size", 0),
        ("kernel_size", -1),
        ("stride", 0),
        ("stride", -2),
        ("padding", -1),
        ("dilation", 0),
        ("dilation", -1),
        ("kernel_size", 2**62),
        ("padding", 2**62),
    ],
)
def test_hyper_parameters_of_max_pool2d(name: str, bad: int) -> None:
    with pytest.raises((RuntimeError, ValueError, OverflowError, MemoryError)):
        F.max_pool2d(vesta.ones(1, 1, 5, 5), **{"kernel_size": 2, name: bad})


def test_batch_norm_checks_each_buffer() -> None:
    """Buffers that are too short, too long or of another dtype: each raises, nothing is written."""
    x = vesta.ones(4, 3)
    good = {
        "running_mean": vesta.zeros(3),
        "running_var": vesta.ones(3),
        "weight": vesta.ones(3),
        "bias": vesta.zeros(3),
    }
    for name in good:
        for wrong in (vesta.ones(2), vesta.ones(4), vesta.ones(0), vesta.ones(3, 3), vesta.ones(3, dtype=vesta.int64)):
            with pytest.raises((RuntimeError, ValueError, TypeError)):
                F.batch_norm(x, **{**good, name: wrong}, training=True)
    assert good["running_mean"].tolist() == [0.0] * 3


def test_embedding_and_losses_check_their_indices() -> None:
    weight = vesta.ones(5, 2)
    for index in (5, -1, 2**62, -(2**63)):
        with pytest.raises(IndexError):
            F.embedding(vesta.tensor([0, index]), weight)
        with pytest.raises((IndexError, RuntimeError)):
            F.cross_entropy(vesta.ones(2, 5), vesta.tensor([0, index]))
        for op in (lambda i: weight.index_select(0, i), lambda i: weight[i]):
            if index != -1 or op(vesta.tensor([0])) is None:
                with pytest.raises((IndexError, RuntimeError)):
                    op(vesta.tensor([0, index]))
    assert F.embedding(vesta.zeros(0, dtype=vesta.int64), weight).shape == (0, 2)


def test_sizes_are_checked_arithmetic() -> None:
    """Products of sizes and strides that overflow 64 bits raise; empty tensors with huge sizes do not."""
    assert vesta.empty(0, 2**62).numel() == 0 and vesta.empty(2**31, 0).shape == (2**31, 0)
    one = vesta.ones(1)
    for call in (
        lambda: vesta.empty(2**32, 2**32),
        lambda: one.expand(2**32, 2**32),
        lambda: one.expand(2**62).expand(4, 2**62),
        lambda: vesta.empty(0, 2**62, 4),
        lambda: one.as_strided((2**32, 2**32), (1, 1)),
        lambda: one.as_strided((1,), (1,), 8_170_000_000_000_000_000),
        lambda: vesta.cat([vesta.empty(0, 2**62), vesta.empty(0, 2**62)], 1).view(4, 2**62),
    ):
        with pytest.raises((RuntimeError, ValueError, MemoryError, OverflowError)):
            call()
    huge = one.expand(2**40)
    assert huge.numel() == 2**40 and huge[2**39].item() == 1 and huge[:: 2**38].sum().item() == 4


def test_nan_in_reductions_and_pooling() -> None:
    """NaN wins in max, min, amax, argmax and max_pool2d, at any position."""
    for size in (1, 2, 17, 129, 1000):
        for place in {0, size // 2, size - 1}:
            values = np.arange(size, dtype=np.float32)
            values[place] = np.nan
            x = vesta.from_numpy(values)
            assert math.isnan(x.max().item()) and math.isnan(x.min().item()) and math.isnan(x.amax().item())
            assert x.argmax().item() == place == x.argmin().item()
            assert math.isnan(x.max(0)[0].item()) and x.max(0)[1].item() == place
    image = vesta.zeros(1, 1, 4, 4)
    image[0, 0, 1, 2] = math.nan
    assert vesta.isnan(F.max_pool2d(image, 2)).tolist() == [[[[False, True], [False, False]]]]


def test_all_targets_ignored() -> None:
    """The mean over no target is NaN as in PyTorch, its gradient is 0, and the sum is 0."""
    x = vesta.ones(3, 4, requires_grad=True)
    target = vesta.full((3,), -100, dtype=vesta.int64)
    assert math.isnan(F.cross_entropy(x, target).item())
    F.cross_entropy(x, target, reduction="sum").backward()
    assert not x.grad.any()


def test_rank_limits() -> None:
    """64 dimensions work or raise cleanly; a rank that is absurd raises."""
    for rank in (32, 64, 65, 100, 1000):
        try:
            x = vesta.ones((1,) * rank)
        except (RuntimeError, ValueError):
            assert rank > 32
        else:
            assert (x + x).sum().item() == 2 and x.dim() == rank


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: vesta.allclose(None, None), "allclose.*input.*position 1.*must be Tensor, not NoneType"),
        (lambda: vesta.isclose(vesta.ones(1), 1.0), "isclose.*other.*position 2.*must be Tensor, not float"),
        (lambda: vesta.max(None), "max.*input.*must be Tensor, not NoneType"),
        (lambda: vesta.where(None), "where.*condition.*must be Tensor, not NoneType"),
        (lambda: vesta.nonzero([1], as_tuple=True), "nonzero.*input.*must be Tensor, not list"),
        (lambda: vesta.numel(3), "numel.*must be Tensor, not int"),
        (lambda: vesta.is_complex("x"), "is_complex.*must be Tensor, not str"),
    ],
)
def test_functions_name_the_argument_that_is_no_tensor(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize(
    "call, position",
    [
        (lambda x: x.add("a"), "other' (position 1)"),
        (lambda x: vesta.add(x, "a"), "other' (position 2)"),
        (lambda x: x.add(1, alpha="b"), "alpha' (position 2)"),
        (lambda x: x.add_("a"), "other' (position 1)"),
        (lambda x: x.sum(dim="a"), "dim' (position 1)"),
        (lambda x: vesta.sum(x, dim="a"), "dim' (position 2)"),
        (
            lambda x: x.expand((1, "a")),
            "size' (position 1) must be tuple of ints, but found element of type str at pos 1",
        ),
        (lambda x: vesta.add("a", x), "input' (position 1)"),
    ],
)
def test_positions_do_not_count_self(call: Callable[[Any], Any], position: str) -> None:
    """As in PyTorch: x.add("a") has one argument."""
    with pytest.raises(TypeError, match=re.escape(position)):
        call(vesta.ones(2))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda x: x.add_(x, 2), "add_() takes 1 positional argument but 2 were given"),
        (lambda x: x.exp(1), "exp() takes 0 positional arguments but 1 was given"),
        (lambda x: vesta.exp(x, 1), "exp() takes 1 positional argument but 2 were given"),
        (lambda x: x.add_("a"), "add_(): argument 'other' (position 1)"),
        (lambda x: x.mul_(foo=1), "mul_() got an unexpected keyword argument 'foo'"),
        (lambda x: x.mul_(x, other=x), "mul_() got multiple values for argument 'other'"),
        (lambda x: x.multiply_(), 'multiply_() missing 1 required positional argument: "other"'),
        (lambda x: vesta.multiply(x, "a"), "multiply(): argument 'other' (position 2)"),
        (lambda x: vesta.linalg.det("a"), "det(): argument 'A' (position 1)"),
    ],
)
def test_errors_name_what_was_called(call: Callable[[Any], Any], message: str) -> None:
    """As in PyTorch: an in-place method and an alias by their own names, a method's arguments without the tensor."""
    with pytest.raises(TypeError) as raised:
        call(vesta.ones(2))
    assert message in str(raised.value)


def test_forms_are_listed_as_they_are_called() -> None:
    x = vesta.ones(2)
    with pytest.raises(TypeError) as raised:
        x.mean("a", True, 2)
    assert str(raised.value).splitlines() == [
        "mean() received an invalid combination of arguments - got (str, bool, int), but expected one of:",
        " * mean(tuple of ints dim, bool keepdim = False, *, vesta.dtype dtype = None)",
        " * mean(*, vesta.dtype dtype = None)",
    ]
    with pytest.raises(TypeError) as raised:
        vesta.mean(x, "a", True, 2)
    assert "got (Tensor, str, bool, int)" in str(raised.value) and "mean(Tensor input, *," in str(raised.value)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: nn.Conv2d(3, 4), "Conv2d.__init__() missing 1 required positional argument: 'kernel_size'"),
        (lambda: nn.Conv1d(3, 4, 3, size=1), "Conv1d.__init__() got an unexpected keyword argument 'size'"),
        (lambda: nn.BatchNorm3d(), "BatchNorm3d.__init__() missing 1 required positional argument: 'num_features'"),
        (lambda: nn.MaxPool2d(), "MaxPool2d.__init__() missing 1 required positional argument: 'kernel_size'"),
        (lambda: nn.Dropout(1, 2, 3), "Dropout.__init__() takes from 1 to 3 positional arguments but 4 were given"),
        (lambda: type("Mine", (nn.Conv2d,), {})(1, 2), "Conv2d.__init__() missing"),
    ],
)
def test_constructors_name_the_layer(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match="^" + re.escape(message)):
        call()


def test_integers_beyond_64_bits_say_so() -> None:
    for call in (lambda: vesta.tensor(2**63), lambda: vesta.ones(2) + 2**64, lambda: vesta.ones(2).fill_(10**400)):
        with pytest.raises(ValueError, match="expected a number of 64 bits"):
            call()


def test_flags_that_are_no_bools_are_refused() -> None:
    """A flag whose truth value raises (a tensor of two elements) once left its exception pending behind a result."""
    pair = vesta.ones(2)
    for call in (
        lambda flag: pair.to(vesta.float64, copy=flag),
        lambda flag: pair.to(vesta.float64, non_blocking=flag),
        lambda flag: pair.to("cpu", vesta.float64, False, flag),
        lambda flag: vesta.zeros(2, requires_grad=flag),
        lambda flag: vesta.zeros(2, pin_memory=flag),
    ):
        for flag in (pair, "yes", 1):
            with pytest.raises(TypeError, match="must be bool, not"):
                call(flag)
        call(False)


@pytest.mark.differs
def test_mse_loss_wants_one_shape() -> None:
    x = vesta.ones(3, 1, requires_grad=True)
    for target in (vesta.ones(3), vesta.ones(1, 3), vesta.ones(()), vesta.ones(3, 1, dtype=vesta.int64)):
        with pytest.raises((RuntimeError, TypeError), match="mse_loss: expected"):
            F.mse_loss(x, target)


@pytest.mark.differs
def test_deprecated_forms_are_refused() -> None:
    x = vesta.ones(2, 3)
    for call in (
        lambda: vesta.where(vesta.ones(2, 3, dtype=vesta.uint8), x, x),
        lambda: x[..., ...],
        lambda: x[[0.5]],
        lambda: vesta.ones(()).mT,
    ):
        with pytest.raises((RuntimeError, IndexError)):
            call()


def test_bools_are_no_dimensions() -> None:
    """sum(x, True) is usually meant as keepdim: it raises, as in PyTorch, which takes a bool after an int."""
    x = vesta.ones(2, 3)
    assert vesta.rand(2, True).shape == x.view(2, True, 3)[:, :, 0].shape == vesta.zeros((2, True)).shape == (2, 1)
    assert x.permute(1, False).shape == (3, 2) and x.sum((0, True)).shape == ()
    for call in (lambda: x.sum(True), lambda: x.amax(False), lambda: vesta.zeros(True), lambda: x.any(dim=True)):
        with pytest.raises(TypeError, match="must be tuple of ints, not bool"):
            call()


@pytest.mark.parametrize("eps", [0.0, -1.0, math.nan])
def test_eps_of_batch_norm_is_positive(eps: float) -> None:
    x, mean, var = vesta.ones(4, 3), vesta.zeros(3), vesta.ones(3)
    with pytest.raises(ValueError, match="eps"):
        F.batch_norm(x, mean, var, training=True, eps=eps)
    assert mean.tolist() == [0.0] * 3
    if eps == 0:
        assert F.batch_norm(x, mean, var, eps=eps).tolist() == x.tolist()


def test_a_dtype_that_an_op_does_not_take_is_not_implemented() -> None:
    for call in (lambda: -vesta.ones(2, dtype=vesta.bool), lambda: vesta.softmax(vesta.ones(2, dtype=vesta.int32), 0)):
        with pytest.raises(NotImplementedError) as raised:
            call()
        assert isinstance(raised.value, (RuntimeError, TypeError))


def test_only_a_device_becomes_the_default_device() -> None:
    """What is not a device is refused at once, not by the next factory that is called."""
    with pytest.raises(TypeError, match="expected a device, got float"):
        vesta.device.__enter__(0.5)
    assert vesta.ones(1).device.type == "cpu"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: vesta.autograd.graph.register_multi_grad_hook(math.inf, print),
            r"register_multi_grad_hook: .*tensors",
        ),
        (lambda: vesta.from_file("no such file", False, "text"), r"from_file: expected an int, got str \(size\)"),
        (lambda: vesta.from_file("no such file", False, 1.5), r"from_file: expected an int, got float \(size\)"),
        (lambda: vesta.UntypedStorage.from_file("no such file", False, ()), r"from_file: expected an int, got tuple"),
        (lambda: vesta.linalg.matrix_norm(vesta.ones(3, 2), "fro", [[1], [1, 2]]), r"matrix_norm: .*got list \(dim\)"),
        (lambda: vesta.Tensor.to_sparse_coo(nn.Linear(3, 2)), r"to_sparse"),
    ],
)
def test_python_functions_name_the_argument(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        call()


def test_an_operator_of_a_subclass_raises_the_error_of_its_op() -> None:
    """Looking at a NumPy number beside it does not lose the error."""

    class Mine(vesta.Tensor):
        pass

    x = vesta.ones(2, 3).as_subclass(Mine)
    for number in (np.float32(2), np.int64(2), 2.0):
        with pytest.raises((TypeError, RuntimeError), match="shift"):
            x >> number


def test_a_file_without_a_size_is_empty() -> None:
    assert vesta.from_file("no such file", size=None).numel() == 0


@pytest.mark.parametrize(
    ("message", "call"),
    [
        ("full: value .* float16 without overflow", lambda x: vesta.full((2,), 1e5, dtype=vesta.float16)),
        ("masked_fill: value .* float16 without", lambda x: x.half().masked_fill(x > 0, -1e9)),
        ("fill_: value .* float32 without overflow", lambda x: x.fill_(1e40)),
        ("addmm: expected operands of the same dtype", lambda x: vesta.addmm(x.double(), x, x)),
        ("addmv_: expected operands of the same dtype", lambda x: x[0].double().addmv_(x, x[0])),
        ("masked_fill_: expected all tensors on one", lambda x: x.masked_fill_(x.to("meta") > 0, 0.0)),
        ("clamp: expected out on", lambda x: vesta.clamp(x, x, x, out=x.to("meta"))),
        ("clamp_: output .* keeps its shape", lambda x: x.clamp_(x.expand(3, 2, 2), x)),
        ("lstm_cell: .* batch size 2", lambda x: vesta.lstm_cell(x, (x[:1], x[:1]), x, x)),
        (r"lstm_cell: expected a weight of shape \[8, 2\]", lambda x: vesta.lstm_cell(x, (x, x), x, x)),
        (r"`\+` operator, on a bool tensor", lambda x: +(x > 0)),
        ("__contains__ only supports", lambda x: "a" in x),
    ],
)
def test_errors_of_values_dtypes_and_devices_name_the_call(message: str, call: Callable[[Any], Any]) -> None:
    x = vesta.ones(2, 2)
    with pytest.raises(RuntimeError, match=message):
        call(x)
    assert x.tolist() == [[1.0, 1.0]] * 2


def test_what_is_copied_into_a_smaller_float_is_infinite() -> None:
    """A tensor, or a number for one element of 16 bits, is converted as a copy is; a number that fills must fit."""
    x = vesta.zeros(3, dtype=vesta.float16)
    x[0] = 1e5
    x[1:2] = -1e5
    assert vesta.scalar_tensor(1e5, dtype=vesta.float16).item() == float("inf")
    assert x.tolist() == [float("inf"), -float("inf"), 0.0]
    assert x.fill_(vesta.tensor(1e5)).tolist() == [float("inf")] * 3
    assert vesta.zeros(1).fill_(vesta.tensor(1e39, dtype=vesta.float64)).item() == float("inf")
    for at in (x > 0, [0], slice(None), ...):
        with pytest.raises(RuntimeError, match="float16 without overflow"):
            x[at] = 1e5
    with pytest.raises(RuntimeError, match="float32 without overflow"):
        vesta.zeros(1)[0] = 1e39
    with pytest.raises(TypeError, match="dropout"):
        F.dropout("abc", 0.5, False, True)
    assert vesta.add(vesta.ones(2), 1, alpha=np.bool_(True)).tolist() == [2.0, 2.0]


def test_losses_of_one_target_and_of_the_smallest_beta() -> None:
    x = vesta.tensor([1.0, 2.0, 3.0], requires_grad=True)
    for loss in (F.cross_entropy, F.nll_loss):
        for reduction in ("mean", "sum", "none"):
            got, want = (loss(x, vesta.tensor(t), reduction=reduction) for t in ([1], 1))
            assert got.shape == () and got == want
        with pytest.raises(ValueError, match="a target of one element"):
            loss(x, vesta.tensor([1, 2]))
    for beta in (1e-39, 1e-42, 5e-324):
        (grad,) = vesta.autograd.grad(F.smooth_l1_loss(x, vesta.tensor([1.0, 5.0, 1.0]), beta=beta), x)
        assert vesta.allclose(grad, vesta.tensor([0.0, -1.0, 1.0]) / 3)
