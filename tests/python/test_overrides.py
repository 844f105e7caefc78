"""``vesta.overrides``: modes, subclasses and other classes that take operations over."""

from __future__ import annotations

import contextlib
import copy
import gc
import operator
import re
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

import pytest
import vesta
import vesta.nn.functional as F
from signatures.notation import read_table
from vesta.overrides import (
    BaseTorchFunctionMode,
    TorchFunctionMode,
    handle_torch_function,
    has_torch_function,
    is_tensor_like,
    resolve_name,
    wrap_torch_function,
)


class Recorder(TorchFunctionMode):
    """Notes the names of all functions."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


def test_a_mode_sees_every_operation_of_its_block() -> None:
    x = vesta.ones(2, 3)
    with Recorder() as mode:
        y = vesta.zeros(2, 3) + x
        y[0] = 1
        y.mul_(2)
        F.relu(y[1])
        vesta.tensor([1.0])
        2 - y, -y, y == 1
        len(y), 1.0 in y, y.shape
    x + 1
    assert mode.names[:2] == ["zeros", "add"]
    assert mode.names[2:7] == ["__setitem__", "mul_", "__getitem__", "relu", "tensor"]
    assert mode.names[7:] == ["__rsub__", "neg", "__eq__", "__len__", "__contains__", "__get__"]


def test_inner_modes_are_asked_first_and_may_decline() -> None:
    class Half(TorchFunctionMode):
        """Makes what factories make half precision, and declines everything else."""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is vesta.ones:
                return func(*args, **{**(kwargs or {}), "dtype": vesta.float16})
            return NotImplemented

    outer = Recorder()
    with outer, Half():
        made = vesta.ones(2)
        with pytest.raises(TypeError, match="__torch_function__"):
            vesta.zeros(2)
        with pytest.raises(TypeError, match="__torch_function__"):
            _ = made.dtype
    assert made.dtype == vesta.float16
    assert outer.names == ["ones"]
    with Half(), Recorder() as inner:
        made = vesta.ones(2)
    assert made.dtype == vesta.float16
    assert inner.names == ["ones"]


def test_a_mode_is_left_after_an_error_and_belongs_to_one_thread() -> None:
    class Refuses(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise ValueError("not now")

    with pytest.raises(ValueError, match="not now"), Refuses():
        vesta.ones(2)
    assert vesta.ones(2).sum() == 2
    results: list[Any] = []
    with Recorder() as mode:
        thread = threading.Thread(target=lambda: results.append(vesta.ones(2).exp()))
        thread.start()
        thread.join()
    assert len(results) == 1 and mode.names == []
    with pytest.raises(NotImplementedError, match="TorchFunctionMode"), TorchFunctionMode():
        vesta.ones(2)
    with BaseTorchFunctionMode():
        assert vesta.ones(2).sum() == 2


def test_gradients_of_what_a_mode_calls() -> None:
    x = vesta.ones(3, requires_grad=True)
    with Recorder() as mode:
        (x.exp() * 2).sum().backward()
    assert vesta.allclose(x.grad, 2 * x.detach().exp())
    assert mode.names[:3] == ["exp", "mul", "sum"]
    layer = vesta.nn.Linear(3, 2)
    with Recorder() as mode:
        layer(x).sum()
    assert mode.names == ["linear", "sum"]


HANDLED: dict[Any, Callable[..., Any]] = {}


class Diagonal:
    """A matrix with one value on its diagonal; no tensor."""

    def __init__(self, n: int, value: float) -> None:
        self.n, self.value = n, value

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in HANDLED or not all(issubclass(t, (vesta.Tensor, Diagonal)) for t in types):
            return NotImplemented
        return HANDLED[func](*args, **(kwargs or {}))


def test_a_class_that_is_no_tensor_takes_calls_over() -> None:
    HANDLED[vesta.mean] = lambda x: x.value / x.n
    HANDLED[vesta.add] = lambda a, b: ("sum", type(a).__name__, type(b).__name__)
    HANDLED[vesta.cat] = lambda tensors, dim=0: ("cat", len(tensors), dim)
    d = Diagonal(5, 2.0)
    assert vesta.mean(d) == 0.4
    assert vesta.add(d, vesta.ones(5, 5)) == ("sum", "Diagonal", "Tensor")
    assert vesta.add(vesta.ones(5, 5), d) == ("sum", "Tensor", "Diagonal")
    assert vesta.cat([vesta.ones(1), d], dim=1) == ("cat", 2, 1)
    with pytest.raises(TypeError, match="returned NotImplemented"):
        vesta.exp(d)
    assert is_tensor_like(d) and has_torch_function((1, d)) and not has_torch_function((1, vesta.ones(1)))
    assert vesta.mean(vesta.ones(3)) == 1


def test_subclasses_are_asked_before_their_bases() -> None:
    order: list[str] = []

    class A(vesta.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            order.append(cls.__name__)
            return "A's answer"

    class B(A):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            order.append(cls.__name__)
            return NotImplemented

    a, b = vesta.ones(2).as_subclass(A), vesta.ones(2).as_subclass(B)
    order.clear()
    assert vesta.add(a, b) == "A's answer"
    assert order == ["B", "A"]

    @wrap_torch_function(lambda x, y=None: (x, y))
    def twice(x: Any, y: Any = None) -> Any:
        """Doubles."""
        return 2 * x

    order.clear()
    assert twice(a, y=b) == "A's answer"
    assert order == ["B", "A"] and twice.__doc__ == "Doubles."
    assert twice(3) == 6
    one = vesta.ones(1)
    with Recorder() as mode:
        twice(one)
    assert mode.names == ["twice"]
    with pytest.raises(TypeError, match="no implementation found for '.*twice'.*B"):
        handle_torch_function(twice, (b,), b)


def test_names_of_operations() -> None:
    assert resolve_name(vesta.add) == "vesta.add"
    assert resolve_name(vesta.Tensor.add) == "vesta.Tensor.add"
    assert resolve_name(len) is None
    functions = vesta.overrides.get_overridable_functions()
    assert vesta.matmul in functions[vesta] and vesta.Tensor.matmul in functions[vesta.Tensor]
    assert not set(functions[vesta]) & vesta.overrides.get_ignored_functions()
    assert vesta.overrides.is_tensor_method_or_property(vesta.Tensor.grad.__get__)


def test_arguments_of_the_disabled_function_are_checked() -> None:
    for args in ([1, 2], {1}, "ab"):
        with pytest.raises(TypeError, match="args a tuple and kwargs a dict"):
            vesta._C._disabled_torch_function_impl(print, (), args)
    with pytest.raises(TypeError, match="args a tuple and kwargs a dict"):
        vesta._C._disabled_torch_function_impl(print, (), (), 5)


def test_a_list_may_be_emptied_by_whom_it_was_given_to() -> None:
    class First(vesta.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            tensors.clear()
            gc.collect()
            return NotImplemented

    class Second(vesta.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "second"

    tensors = [vesta.ones(2).as_subclass(First), vesta.ones(2).as_subclass(Second)]
    assert vesta.cat(tensors) == "second"


def test_operators_decline_as_python_asks() -> None:
    """An operand of an unknown class is asked itself; == and != fall back to identity."""

    class Kept(vesta.Tensor):
        pass

    class Answers:
        def __radd__(self, other: object) -> str:
            return "radd"

        def __rmatmul__(self, other: object) -> str:
            return "rmatmul"

    class Watching(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    kept, plain = vesta.ones(2).as_subclass(Kept), vesta.ones(2)
    for x in (kept, plain):
        assert (x == None) is False and (x != "a") is True  # noqa: E711
        assert x + Answers() == "radd" and x @ Answers() == "rmatmul"
        with Watching():
            assert (x == None) is False and x + Answers() == "radd"  # noqa: E711
        with pytest.raises(TypeError, match="unsupported operand"):
            x + object()
    assert kept not in [None, "a"]


def test_a_class_that_is_no_tensor_takes_operators_over_at_once() -> None:
    """Not only after a function has failed with it."""

    class Box:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__

    class Own:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return (self, func.__name__, len(args))

    x, box, own = vesta.ones(2), Box(), Own()
    assert (x == box) == "__eq__" and x + box == "add" and box - x == "__rsub__"
    assert x @ box == "matmul" and box @ x == "__rmatmul__"
    assert vesta.exp(own) == (own, "exp", 1)


class Named(vesta.Tensor):
    """Notes the functions it is asked about."""

    asked: list[Any] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.asked.append(func)
        return super().__torch_function__(func, types, args, kwargs)


def test_operators_ask_for_the_methods_that_they_are_in_pytorch() -> None:
    x, y, methods = vesta.ones(2, 2).as_subclass(Named), vesta.ones(2, 2), vesta.Tensor
    for operation, method in (
        (lambda: x + 1, methods.add), (lambda: 1 + x, methods.add), (lambda: y - x, methods.sub),
        (lambda: 2 * x, methods.mul), (lambda: x / y, methods.div), (lambda: x % 2, methods.remainder),
        (lambda: x**2, methods.__pow__), (lambda: +x, methods.positive), (lambda: y @ x, methods.matmul),
        (lambda: -x, methods.neg),
        (lambda: abs(x), methods.abs), (lambda: x < y, methods.lt), (lambda: x != y, methods.ne),
        (lambda: x.__iadd__(1), methods.add_), (lambda: x.__imul__(y), methods.mul_),
        (lambda: x == y, methods.__eq__), (lambda: 1 - x, methods.__rsub__), (lambda: x // 2, methods.__floordiv__),
        (lambda: (x > 0) & (x > 0), methods.__and__),
    ):  # fmt: skip
        Named.asked.clear()
        assert type(operation()) is Named and Named.asked[-1] is method


def test_an_operand_that_no_method_knows_is_asked_itself() -> None:
    class Other:
        def __radd__(self, other: Any) -> str:
            return "added"

    x = vesta.ones(2).as_subclass(Named)
    assert x + Other() == "added"
    with pytest.raises(TypeError):
        x + "text"


def test_data_and_print_of_a_subclass_are_its_own() -> None:
    x = vesta.ones(2, requires_grad=True).as_subclass(Named)
    assert type(x.data) is Named and not x.data.requires_grad and x.data.data_ptr() == x.data_ptr()
    assert repr(vesta.tensor([[1.0, 2.0], [3.0, 4.0]]).as_subclass(Named)) == "Named([[1., 2.],\n       [3., 4.]])"
    assert repr(vesta.nn.Parameter(vesta.ones(1))) == "Parameter containing:\ntensor([1.], requires_grad=True)"
    assert type(vesta.nn.Parameter(vesta.ones(1)).data) is vesta.Tensor

    class Weight(vesta.nn.Parameter):
        pass

    assert repr(Weight(vesta.ones(1))) == "Parameter containing:\nParameter(Weight([1.], requires_grad=True))"


class Stops(vesta.Tensor):
    """Notes the first function that it is asked for, and ends the call there."""

    asked: list[Any] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.asked.append(func)
        raise StopIteration


#: Names of what takes no tensor's part: settings, and functions that PyTorch asks for as what they call.
NOT_TAKEN_OVER = {f"nn.functional.{name}" for name in ("sigmoid", "tanh")}
NOT_TAKEN_OVER |= {f"nn.functional.upsample{kind}" for kind in ("", "_bilinear", "_nearest")}
NOT_TAKEN_OVER |= {"set_autocast_cpu_dtype", "set_autocast_gpu_dtype", "set_default_tensor_type", "typename"}
NOT_TAKEN_OVER |= {"set_warn_always", "use_deterministic_algorithms"}  # their flag is: bool(x)


def argument_of(kind: str, x: Any) -> Any:
    """Returns an argument for a parameter of a recorded type."""
    if kind.startswith("Tensor[]"):
        return [x, x]
    for prefix, value in (("int[", (0,)), ("int", 1), ("float", 1.0), ("Scalar", 1.0), ("bool", True)):
        if kind.startswith(prefix):
            return value
    return {"str": "ij->i", "dtype": vesta.float32}.get(kind.rstrip("?"), x)


@pytest.mark.filterwarnings("ignore")
def test_every_recorded_function_is_handed_over_itself() -> None:
    """What the protocol gets is the function that was called, also where that is written in Python."""
    x = vesta.ones(2, 2).as_subclass(Stops)
    others, count = set(), 0
    spaces = ("", "fft", "linalg", "nn.functional", "special")
    for name, forms in read_table().items():
        if name.rpartition(".")[0] not in spaces:
            continue
        function: Any = vesta
        for part in name.split("."):
            function = getattr(function, part, None)
        first = []
        for form in forms.function if callable(function) and not isinstance(function, type) else ():
            needed = [p for p in form.parameters if p.default is None and not p.name.startswith("**")]
            args = [argument_of(p.type, x) for p in needed if not p.keyword_only]
            kwargs = {p.name: argument_of(p.type, x) for p in needed if p.keyword_only and not p.variadic}
            Stops.asked.clear()
            if not form.deprecated and any(a is x or isinstance(a, list) for a in args):
                with contextlib.suppress(Exception):
                    function(*args, **kwargs)
            first += Stops.asked[:1]
        count += function in first
        others |= {name} if first and function not in first else set()
    assert others == NOT_TAKEN_OVER
    assert count > 750


def test_functions_of_python_stay_what_they_are() -> None:
    """Before and after they look for overrides: the same object with its signature, docstring, name and source."""
    code = """
import inspect, vesta, vesta.nn.functional as F
relu, before = F.relu, (F.relu.__code__, str(inspect.signature(F.relu)), inspect.getsource(F.relu))
class Own(vesta.Tensor): pass
assert F.relu is relu and F.relu.__code__ is not before[0]
assert (str(inspect.signature(relu)), inspect.getsource(relu)) == before[1:]
assert relu.__name__ == "relu" and relu.__module__ == "vesta.nn.functional" and "Example" in relu.__doc__
x = vesta.tensor([-1.0, 2.0])
assert relu(x).tolist() == [0, 2] and relu(input=x, inplace=True) is x
assert type(relu(x.as_subclass(Own))) is Own and type(vesta.unique(x.as_subclass(Own))) is Own
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_einsum_hands_its_operands_over_one_by_one() -> None:
    class Seen:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func, args

    seen, x = Seen(), vesta.ones(2, 2)
    for args in (("ij,jk->ik", seen, x), ("ij,jk->ik", [seen, x]), ("ij,jk->ik", (seen, x))):
        func, given = vesta.einsum(*args)  # type: ignore[misc]
        assert func is vesta.einsum and given[0] == "ij,jk->ik" and given[1] is seen and given[2] is x


def test_transposes_of_a_subclass_are_of_its_class() -> None:
    class Seen(vesta.Tensor):
        names: list[str] = []

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            cls.names.append(func.__self__.__name__ if func.__name__ == "__get__" else func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

    x = vesta.ones(2, 3).as_subclass(Seen)
    for name in ("T", "mT", "H", "mH"):
        Seen.names.clear()
        assert type(getattr(x, name)) is Seen and Seen.names == [name]
        assert getattr(x, name).shape == (3, 2) and type(getattr(vesta.ones(2, 3), name)) is vesta.Tensor


def test_length_and_membership_are_asked_of_a_class() -> None:
    class Endless(vesta.Tensor):
        """Has 7 rows, and everything in it."""

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is vesta.Tensor.__len__:
                return 7
            if func is vesta.Tensor.__contains__:
                return True
            return super().__torch_function__(func, types, args, kwargs or {})

    x = vesta.ones(2).as_subclass(Endless)
    assert len(x) == 7 and 3 in x and "text" in x
    assert len(vesta.ones(2)) == 2 and 3 not in vesta.ones(2)
    with pytest.raises(TypeError, match="len\\(\\) of a 0-d tensor"):
        len(vesta.tensor(1.0))


PROPERTIES = (
    *("shape", "dtype", "device", "layout", "ndim", "itemsize", "nbytes", "_version", "is_cuda", "is_cpu", "is_meta"),
    *("is_sparse", "is_quantized", "requires_grad", "grad", "grad_fn", "is_leaf", "output_nr", "retains_grad"),
    *("data", "_base", "T", "mT", "H", "mH", "real", "is_mps", "is_nested", "is_xpu"),
)


@pytest.mark.parametrize("name", PROPERTIES)
def test_properties_are_asked_of_a_class_and_of_a_mode(name: str) -> None:
    """``func`` is the property's ``__get__``, as in PyTorch; the default runs it, and keeps the class of a gradient."""
    asked: list[Any] = []

    class Seen(vesta.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            asked.append((func, types, args))
            return super().__torch_function__(func, types, args, kwargs or {})

    plain = vesta.ones(2, 3)
    seen = plain.as_subclass(Seen)
    want, got = getattr(plain, name), getattr(seen, name)
    get = getattr(vesta.Tensor, name).__get__
    assert asked == [(get, (Seen,), (seen,))]
    assert isinstance(got, Seen if name in ("data", "T", "mT", "H", "mH", "real") else type(want)) or name == "_base"
    with Recorder() as mode:
        getattr(plain, name)
    assert mode.names == ["__get__"]
    assert resolve_name(get) == f"vesta.Tensor.{name}.__get__"
    assert getattr(plain, name) is not None or want is None


def test_properties_that_are_set_are_handed_over() -> None:
    asked: list[Any] = []

    class Seen(vesta.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            asked.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    seen, grad = vesta.ones(2).as_subclass(Seen), vesta.ones(2)
    seen.requires_grad = True
    seen.grad = grad
    assert seen.grad is grad and seen.requires_grad
    seen.data = vesta.zeros(2)
    names = ("requires_grad", "grad", "grad", "requires_grad", "data")
    kinds = ("__set__", "__set__", "__get__", "__get__", "__set__")
    assert asked == [getattr(getattr(vesta.Tensor, name), kind) for name, kind in zip(names, kinds)]
    assert seen.as_subclass(vesta.Tensor).tolist() == [0.0, 0.0]
    with pytest.raises(TypeError, match="requires_grad must be a bool"):
        seen.requires_grad = 1
    asked.clear()
    del seen.grad
    assert asked == [vesta.Tensor.grad.__delete__] and seen.grad is None
    with pytest.raises(RuntimeError, match="data cannot be deleted"):
        del seen.data


def test_conversions_are_asked_of_a_class_and_of_a_mode() -> None:
    x = vesta.tensor(2)
    for convert, method in (
        (bool, "__bool__"), (int, "__int__"), (float, "__float__"), (operator.index, "__index__"),
        (complex, "__complex__"), (lambda t: format(t, "d"), "__format__"), (copy.deepcopy, "__deepcopy__"),
    ):  # fmt: skip
        Named.asked.clear()
        assert convert(x.as_subclass(Named)) == convert(x) and Named.asked[0] is getattr(vesta.Tensor, method)
        with Recorder() as mode:
            convert(x)
        assert mode.names[0] == method

    class Odd(vesta.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return "text"

    for convert in (bool, int, float, operator.index):
        with pytest.raises(TypeError):
            convert(x.as_subclass(Odd))


def test_who_declines_everything_gets_a_type_error_that_names_the_operation() -> None:
    class Nothing(vesta.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

    def delete(x: Any) -> None:
        del x.grad

    x = vesta.ones(1).as_subclass(Nothing)
    for name, use in (
        ("Tensor.shape.__get__", lambda: x.shape), ("Tensor.grad.__delete__", lambda: delete(x)),
        ("Tensor.grad.__set__", lambda: setattr(x, "grad", None)), ("positive", lambda: +x),
        ("__bool__", lambda: bool(x)), ("add", lambda: vesta.add(x, 1)), ("unique", lambda: vesta.unique(x)),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=f"{re.escape(name)}.*Nothing.* returned NotImplemented"):
            use()


def test_frames_of_functions_that_are_taken_over_have_the_functions_place() -> None:
    """Tracebacks show where the function stands, and its qualified name."""
    with Recorder(), pytest.raises(IndexError) as raised:
        vesta.unique(vesta.ones(2), dim=5)
    *entries, body = [f for f in traceback.extract_tb(raised.value.__traceback__) if f.name == "unique"]
    assert entries and all(f.line.startswith("def unique(") for f in entries) and body.lineno > entries[0].lineno
    entry, code = vesta.unique.__code__, vesta.unique.__wrapped__.__code__
    assert entry.co_firstlineno == code.co_firstlineno
    assert getattr(entry, "co_qualname", None) == getattr(code, "co_qualname", None)


def test_frames_of_functions_that_may_be_taken_over_can_be_looked_at() -> None:
    """As debuggers and reports of errors do: their variables are read."""
    with Recorder():
        for call in (lambda: vesta.gradient(vesta.ones(1)), lambda: vesta.unique(3), lambda: F.relu("a")):
            with pytest.raises((RuntimeError, TypeError)) as raised:
                call()
            trace = raised.value.__traceback__
            while trace:
                assert isinstance(dict(trace.tb_frame.f_locals), dict)
                trace = trace.tb_next


def test_errors_name_properties_written_in_python() -> None:
    class Declining(vesta.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

    x = vesta.ones(1).as_subclass(Declining)
    for name in ("real", "is_mps", "shape"):
        with pytest.raises(TypeError, match=rf"^Tensor.{name}.__get__: .*returned NotImplemented"):
            getattr(x, name)
    for call, name in ((lambda: x.__reduce_ex__(2), "__reduce_ex__"), (lambda: dir(x), "__dir__")):
        with pytest.raises(TypeError, match=f"{name}.*returned NotImplemented"):
            call()
    for call in (vesta.Tensor.is_conj, vesta.Tensor.type):
        assert vesta.overrides.resolve_name(call) == f"vesta.Tensor.{call.__name__}"
