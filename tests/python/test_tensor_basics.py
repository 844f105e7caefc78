"""The tensor as a Python object: identity, attributes, subclassing, conversions, operators, and how it prints."""

from __future__ import annotations

import copy
import gc
import math
import operator
import pickle
import sys
import threading
import weakref

import numpy as np
import pytest
import vesta

PREFIX = str(vesta.float32).rsplit(".", 1)[0]


# ---- identity ----


def test_attributes_live_as_long_as_the_tensor() -> None:
    """A tensor that only the library still references is returned as the same object with its attributes."""
    x = vesta.ones(2, requires_grad=True)
    x.sum().backward()
    x.grad.note = {"kept": [1, 2]}
    gc.collect()
    assert x.grad.note == {"kept": [1, 2]} and x.grad is x.grad
    held = x.exp()
    node = held.grad_fn
    x.tag = "leaf"
    number = id(x)
    del x
    gc.collect()
    back = node.next_functions[0][0].variable
    assert back.tag == "leaf" and id(back) == number


def test_subclasses_survive() -> None:
    class Named(vesta.Tensor):
        pass

    parameter = vesta.nn.Parameter(vesta.ones(2))
    assert isinstance(parameter, vesta.Tensor) and type(parameter) is vesta.nn.Parameter
    assert parameter.requires_grad and parameter.is_leaf
    y = (parameter * 2).sum()
    assert type(y) is vesta.Tensor
    variable = y.grad_fn.next_functions[0][0].next_functions[0][0].variable
    assert variable is parameter
    named = vesta.ones(2).as_subclass(Named)
    assert type(named) is Named and named.tolist() == [1.0, 1.0]


def test_weak_references_and_hash() -> None:
    x = vesta.ones(2)
    watch = weakref.ref(x)
    assert watch() is x and hash(x) == hash(x) and x in {x: 1} and len({x, vesta.ones(2)}) == 2
    del x
    assert watch() is None


def test_in_place_operators_keep_the_object() -> None:
    x = vesta.full((3,), 6.0)
    y = x
    x += 1
    x -= 2
    x *= 4
    x /= 2
    x **= 2
    x //= 7
    x %= 5
    assert x is y and x.tolist() == [4.0] * 3
    z = w = vesta.tensor([6, 3])
    z &= 5
    z |= 8
    z ^= 1
    assert z is w and z.tolist() == [13, 8]


# ---- attributes ----


def test_attributes() -> None:
    x = vesta.zeros(2, 3)
    assert x.shape == (2, 3) and x.size() == x.shape and x.size(1) == 3 and x.size(-1) == 3
    assert x.dim() == x.ndim == 2 and x.numel() == x.nelement() == 6 and len(x) == 2
    assert x.element_size() == x.itemsize == 4 and x.nbytes == 24
    assert x.stride() == (3, 1) and x.stride(0) == 3 and x.storage_offset() == 0 and x.is_contiguous()
    assert x.dtype is vesta.float32 and x.device == vesta.device("cpu") and x.device.type == "cpu"
    assert x.is_floating_point() and not x.is_complex() and vesta.is_tensor(x) and not vesta.is_tensor(1)
    assert x.T.shape == (3, 2) and x.mT.shape == (3, 2) and x.layout == vesta.strided
    assert not x.is_cuda and not x.requires_grad and x.grad is None and x.grad_fn is None
    assert isinstance(x.shape, vesta.Size) and isinstance(x.shape, tuple) and x.shape.numel() == 6
    with pytest.raises(IndexError):
        x.size(2)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = x.nonsense
    for name in ("shape", "dtype", "device", "grad_fn", "is_leaf"):
        with pytest.raises(AttributeError):
            setattr(x, name, None)


def test_dtypes() -> None:
    names = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()
    sizes = [1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16]
    for name, size in zip(names, sizes):
        dtype = getattr(vesta, name)
        assert str(dtype) == repr(dtype) == f"{PREFIX}.{name}" and dtype.itemsize == size
        assert dtype.is_floating_point == ("float" in name) and dtype.is_complex == ("complex" in name)
        assert dtype == dtype and hash(dtype) == hash(dtype) and dtype != "float32"
        assert pickle.loads(pickle.dumps(dtype)) is dtype and copy.deepcopy(dtype) is dtype
        assert vesta.zeros(1, dtype=dtype).dtype is dtype
    assert vesta.float is vesta.float32 and vesta.double is vesta.float64 and vesta.half is vesta.float16
    assert vesta.long is vesta.int64 and vesta.int is vesta.int32 and vesta.short is vesta.int16


@pytest.mark.differs
def test_dtypes_carry_the_package_name() -> None:
    assert repr(vesta.float32) == "vesta.float32" and type(vesta.ones(1)).__module__ == "vesta"


def test_devices() -> None:
    cpu = vesta.device("cpu")
    assert str(cpu) == "cpu" and repr(cpu) == "device(type='cpu')" and cpu.index is None
    assert cpu == vesta.device("cpu") and hash(cpu) == hash(vesta.device("cpu")) and cpu != vesta.device("cpu", 0)
    assert pickle.loads(pickle.dumps(cpu)) == cpu
    assert vesta.zeros(1, device="cpu").device == vesta.zeros(1, device=cpu).device
    for bad in ("cpuu", "", "cpu:x", "cpu:-2"):
        with pytest.raises(RuntimeError):
            vesta.device(bad)


def test_devices_without_a_backend_are_compared_and_hold_no_tensor() -> None:
    mps = vesta.device("mps")
    assert (mps.type, mps.index, str(mps), repr(mps)) == ("mps", None, "mps", "device(type='mps')")
    assert mps == vesta.device("mps") and hash(mps) == hash(vesta.device("mps"))
    others = [vesta.device("mps:0"), vesta.device("mps", 1), vesta.device("xpu"), vesta.device("cpu")]
    assert all(mps != other for other in [*others, vesta.zeros(1).device])
    assert vesta.device("xpu", 1) == vesta.device("xpu:1") and vesta.device("xpu:1").index == 1
    assert all(pickle.loads(pickle.dumps(d)) == d for d in [mps, *others])
    for bad in ("mps:x", "mps:-1", "mps:300"):
        with pytest.raises(ValueError, match="expected an index such as mps:0, got '" + bad):
            vesta.device(bad)
    with pytest.raises(RuntimeError, match="expected a type without an index, got mps:0 and an index"):
        vesta.device("mps:0", 1)
    for device in (mps, "mps"):
        with pytest.raises(RuntimeError, match="zeros: expected cpu, cuda or meta, got 'mps'"):
            vesta.zeros(1, device=device)
        with pytest.raises(RuntimeError, match="expected cpu, cuda or meta, got 'mps'"):
            vesta.nn.Linear(1, 1).to(device)


def test_every_number_of_the_cpu_is_the_cpu() -> None:
    one = vesta.device("cpu:1")
    assert (one.index, str(one)) == (1, "cpu:1") and one == vesta.device("cpu", 1) != vesta.device("cpu")
    assert pickle.loads(pickle.dumps(one)) == one
    x = vesta.ones(2)
    cpu = vesta.device("cpu")
    assert x.to(one).device == x.to("cpu:1").device == vesta.zeros(1, device=one).device == cpu
    assert vesta.tensor([1.0], device="cpu:2").device == vesta.nn.Linear(1, 1).to(one).weight.device == cpu
    assert vesta.Generator(one).device == cpu
    for bad in ("cpu:x", "cpu:-1", "cpu:300"):
        with pytest.raises(RuntimeError, match="expected an index such as"):
            vesta.device(bad)


def test_default_dtype() -> None:
    before = vesta.get_default_dtype()
    try:
        vesta.set_default_dtype(vesta.float64)
        assert vesta.zeros(1).dtype is vesta.tensor([1.0]).dtype is (vesta.ones(1, dtype=vesta.int32) / 2).dtype
        assert vesta.zeros(1).dtype is vesta.float64
        with pytest.raises(TypeError):
            vesta.set_default_dtype(vesta.int32)
    finally:
        vesta.set_default_dtype(before)
    assert vesta.zeros(1).dtype is vesta.float32


# ---- from and to Python ----


@pytest.mark.parametrize(
    "data, shape, dtype",
    [
        (1, (), "int64"),
        (1.5, (), "float32"),
        (True, (), "bool"),
        (1j, (), "complex64"),
        ([], (0,), "float32"),
        ([[]], (1, 0), "float32"),
        ([1, 2.5], (2,), "float32"),
        ([True, 2], (2,), "int64"),
        ([[1, 2], [3, 4]], (2, 2), "int64"),
        (((1.0,), (2.0,)), (2, 1), "float32"),
        (range(3), (3,), "int64"),
        ([1, 2j], (2,), "complex64"),
    ],
)
def test_tensor_infers_shape_and_dtype(data, shape: tuple, dtype: str) -> None:
    x = vesta.tensor(data)
    assert x.shape == shape and x.dtype is getattr(vesta, dtype)


def test_tensor_refuses() -> None:
    cases = [
        ([[1, 2], [3]], ValueError),
        ([1, [2]], (TypeError, ValueError)),
        (["a"], (ValueError, TypeError)),
        ([None], (RuntimeError, TypeError)),
        (object(), (RuntimeError, TypeError)),
        ([{}], (RuntimeError, TypeError)),
    ]
    for data, error in cases:
        with pytest.raises(error):
            vesta.tensor(data)
    endless: list = []
    endless.append(endless)
    with pytest.raises((ValueError, RecursionError)):
        vesta.tensor(endless)


def test_tensor_copies_and_takes_options() -> None:
    data = [1.0, 2.0]
    x = vesta.tensor(data, dtype=vesta.float64, requires_grad=True)
    assert x.dtype is vesta.float64 and x.requires_grad and x.is_leaf
    array = np.ones(2)
    y = vesta.tensor(array)
    array[0] = 5
    assert y.tolist() == [1.0, 1.0] and y.dtype is vesta.float64
    assert vesta.tensor(np.float32(2.5)).dtype in (vesta.float32, vesta.float64)
    assert vesta.tensor([vesta.tensor(1.0), vesta.tensor(2.0)]).tolist() == [1.0, 2.0]


def test_conversions_to_numbers() -> None:
    assert int(vesta.tensor(2.7)) == 2 and float(vesta.tensor([[3]])) == 3.0 and bool(vesta.tensor([0])) is False
    assert complex(vesta.tensor(2)) == 2 and operator.index(vesta.tensor(3)) == 3
    assert [10, 20, 30][vesta.tensor(1)] == 20 and list(range(5))[vesta.tensor(1) : vesta.tensor(3)] == [1, 2]
    assert type(vesta.tensor(1).item()) is int and type(vesta.tensor(True).item()) is bool
    assert vesta.tensor([0.5]).item() == 0.5 and vesta.tensor(1j).item() == 1j
    assert vesta.tensor(2**63 - 1).item() == 2**63 - 1
    with pytest.raises(TypeError):
        operator.index(vesta.tensor(3.0))
    for convert in (float, int, bool, lambda x: x.item()):
        for x in (vesta.ones(2), vesta.ones(0)):
            with pytest.raises((RuntimeError, ValueError)):
                convert(x)
    with pytest.raises((RuntimeError, OverflowError, ValueError)):
        int(vesta.tensor(float("nan")))


def test_tolist_len_iter_contains() -> None:
    x = vesta.zeros(2, 3, dtype=vesta.int64)
    x[0], x[1] = vesta.arange(3), vesta.arange(3, 6)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]] and vesta.tensor(5).tolist() == 5 and vesta.ones(0, 2).tolist() == []
    assert [row.tolist() for row in x] == x.tolist() and len(vesta.ones(0, 3)) == 0
    a, b = x
    assert a.tolist() == [0, 1, 2] and b.tolist() == [3, 4, 5]
    assert 4 in x and 9 not in x
    for broken in (len, iter, list):
        with pytest.raises(TypeError, match="0-d"):
            broken(vesta.tensor(1))


# ---- operators ----


def test_operators_with_foreign_objects() -> None:
    """As in Python's protocol, an unknown operand is asked first, then TypeError is raised; == is False."""

    class Foreign:
        def __radd__(self, other):
            return "asked"

    x = vesta.ones(2)
    assert x + Foreign() == "asked"
    for apply in (operator.add, operator.sub, operator.mul, operator.truediv, operator.lt, operator.matmul):
        with pytest.raises(TypeError):
            apply(x, "text")
        with pytest.raises(TypeError):
            apply(x, None)
    assert (x == None) is False and (x != None) is True and (x == "a") is False  # noqa: E711


def test_reflected_and_unary_operators() -> None:
    x = vesta.tensor([1.0, 4.0])
    assert (1 - x).tolist() == [0.0, -3.0] and (8 / x).tolist() == [8.0, 2.0] and (2**x).tolist() == [2.0, 16.0]
    assert (9 // x).tolist() == [9.0, 2.0] and (9 % x).tolist() == [0.0, 1.0] and (-x).tolist() == [-1.0, -4.0]
    assert abs(-x).tolist() == [1.0, 4.0] and (+x).tolist() == x.tolist()
    assert (~vesta.tensor([True, False])).tolist() == [False, True] and (~vesta.tensor([5])).tolist() == [-6]
    assert (6 & vesta.tensor([3])).tolist() == [2] and operator.lt(1, x).tolist() == [False, True]
    with pytest.raises(TypeError):
        operator.invert(x)


def test_numpy_operands() -> None:
    """A NumPy array on either side of an operator does not split the tensor into its elements."""
    x = vesta.tensor([1.0, 2.0], dtype=vesta.float64)
    assert float((x * np.float64(2)).sum()) == 6.0
    assert isinstance(x * np.float32(2), vesta.Tensor) and (x * np.int64(2)).dtype is vesta.float64


# ---- copies ----


def test_copy_deepcopy_pickle() -> None:
    x = vesta.arange(6, dtype=vesta.float32).view(2, 3).t()
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert other.tolist() == x.tolist() and other.stride() == x.stride() and other.data_ptr() != x.data_ptr()
    shallow = copy.copy(x)
    assert shallow is not x and shallow.data_ptr() == x.data_ptr()
    leaf = vesta.ones(2, requires_grad=True)
    leaf.sum().backward()
    twin = copy.deepcopy(leaf)
    assert twin.requires_grad and twin.is_leaf and twin.grad.tolist() == [1.0, 1.0] and twin.grad is not leaf.grad
    with pytest.raises(RuntimeError, match="leaf|graph"):
        copy.deepcopy(leaf * 2)
    pair = [leaf, leaf]
    twins = copy.deepcopy(pair)
    assert twins[0] is twins[1]
    base = vesta.zeros(4)
    first, second = copy.deepcopy([base, base[1:3]])
    second.fill_(7)
    assert first.tolist() == [0.0, 7.0, 7.0, 0.0], "aliases stay aliases"


def test_a_shallow_copy_is_a_leaf() -> None:
    x = vesta.ones(3, requires_grad=True)
    y = x * 2
    for t in (x, y, y.detach(), vesta.nn.Parameter(vesta.ones(2))):
        t.label = "a"
        twin = copy.copy(t)
        assert twin is not t and type(twin) is type(t) and twin.data_ptr() == t.data_ptr() and twin.label == "a"
        assert twin.is_leaf and twin.grad_fn is None and twin.grad is None and twin.requires_grad == t.requires_grad
    twin = copy.copy(y)
    twin.sum().backward()
    assert twin.grad.tolist() == [1, 1, 1] and x.grad is None
    sparse = (vesta.eye(2, requires_grad=True) * 2).to_sparse()
    assert copy.copy(sparse).is_leaf and copy.copy(sparse).requires_grad


def test_parameter_pickles() -> None:
    parameter = vesta.nn.Parameter(vesta.ones(2))
    other = pickle.loads(pickle.dumps(parameter))
    assert type(other) is vesta.nn.Parameter and other.requires_grad and other.tolist() == [1.0, 1.0]


def test_equal_and_allclose() -> None:
    x = vesta.tensor([1.0, 2.0])
    assert vesta.equal(x, x.clone()) and not vesta.equal(x, x[:1]) and not vesta.equal(x, x + 1)
    nan = vesta.tensor([math.nan])
    assert vesta.allclose(x, x + 1e-9) and not vesta.allclose(x, x + 1) and not vesta.allclose(nan, nan)
    assert vesta.allclose(nan, nan, equal_nan=True)


def test_to_and_type_shorthands() -> None:
    x = vesta.ones(2)
    assert x.to(vesta.float32) is x and x.to("cpu") is x and x.to(x) is x and x.float() is x and x.cpu() is x
    assert x.to(vesta.float32, copy=True) is not x
    for name, dtype in (
        ("double", "float64"),
        ("half", "float16"),
        ("bfloat16", "bfloat16"),
        ("long", "int64"),
        ("int", "int32"),
        ("short", "int16"),
        ("bool", "bool"),
    ):
        assert getattr(x, name)().dtype is getattr(vesta, dtype) is x.to(getattr(vesta, dtype)).dtype
    assert x.to("cpu", vesta.int8).dtype is x.to(device="cpu", dtype=vesta.int8).dtype is x.type(vesta.int8).dtype
    for bad in ("float33", object(), [vesta.float32]):
        with pytest.raises((TypeError, RuntimeError)):
            x.to(bad)


# ---- printing ----

PRINTED = [
    (lambda v: v.zeros(2, 3), "tensor([[0., 0., 0.],\n        [0., 0., 0.]])"),
    (lambda v: v.tensor(3), "tensor(3)"),
    (lambda v: v.tensor(3.5), "tensor(3.5000)"),
    (lambda v: v.tensor(1e-10), "tensor(1.0000e-10)"),
    (lambda v: v.tensor(math.nan), "tensor(nan)"),
    (lambda v: v.tensor(True), "tensor(True)"),
    (lambda v: v.tensor(1 + 2j), "tensor(1.+2.j)"),
    (lambda v: v.tensor([]), "tensor([])"),
    (lambda v: v.zeros(0, 3), "tensor([], size=(0, 3))"),
    (lambda v: v.zeros(0, dtype=v.int32), "tensor([], dtype=P.int32)"),
    (lambda v: v.tensor([1, 2, 300]), "tensor([  1,   2, 300])"),
    (lambda v: v.tensor([1, -20]), "tensor([  1, -20])"),
    (lambda v: v.tensor([1.0, 2.5, math.nan]), "tensor([1.0000, 2.5000,    nan])"),
    (lambda v: v.tensor([1e10, 1.0]), "tensor([1.0000e+10, 1.0000e+00])"),
    (lambda v: v.tensor([1e-5, 1.0]), "tensor([1.0000e-05, 1.0000e+00])"),
    (lambda v: v.tensor([0.00001234, 0.00005]), "tensor([1.2340e-05, 5.0000e-05])"),
    (lambda v: v.tensor([100000.0, 1.0]), "tensor([1.0000e+05, 1.0000e+00])"),
    (lambda v: v.tensor([1e8, 1.5]), "tensor([1.0000e+08, 1.5000e+00])"),
    (lambda v: v.full((3,), 1e20), "tensor([1.0000e+20, 1.0000e+20, 1.0000e+20])"),
    (lambda v: v.tensor([0.1, 0.25, 123456.789]), "tensor([1.0000e-01, 2.5000e-01, 1.2346e+05])"),
    (lambda v: v.tensor([math.inf, -1.0]), "tensor([inf, -1.])"),
    (lambda v: v.tensor([math.nan, math.inf]), "tensor([nan, inf])"),
    (lambda v: v.tensor([True, False]), "tensor([ True, False])"),
    (lambda v: v.tensor([1 + 2j, 3.5 - 1j]), "tensor([1.0000+2.j, 3.5000-1.j])"),
    (lambda v: v.tensor([1, 2], dtype=v.uint8), "tensor([1, 2], dtype=P.uint8)"),
    (lambda v: v.zeros(2, dtype=v.float64), "tensor([0., 0.], dtype=P.float64)"),
    (lambda v: v.zeros(2, dtype=v.bfloat16), "tensor([0., 0.], dtype=P.bfloat16)"),
    (lambda v: v.tensor([[1.0, -2.0], [3.25, 4.0]]), "tensor([[ 1.0000, -2.0000],\n        [ 3.2500,  4.0000]])"),
    (
        lambda v: v.arange(8).view(2, 2, 2),
        "tensor([[[0, 1],\n         [2, 3]],\n\n        [[4, 5],\n         [6, 7]]])",
    ),
    (
        lambda v: v.arange(30),
        "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
        "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])",
    ),
    (lambda v: v.arange(2000), "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])"),
    (
        lambda v: v.zeros(40, 40),
        "tensor([[0., 0., 0.,  ..., 0., 0., 0.],\n        [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "        [0., 0., 0.,  ..., 0., 0., 0.],\n        ...,\n        [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "        [0., 0., 0.,  ..., 0., 0., 0.],\n        [0., 0., 0.,  ..., 0., 0., 0.]])",
    ),
    (lambda v: v.ones(2, requires_grad=True), "tensor([1., 1.], requires_grad=True)"),
    (lambda v: v.ones(2, requires_grad=True) * 2, "tensor([2., 2.], grad_fn=<MulBackward0>)"),
    (lambda v: v.nn.Parameter(v.ones(2)), "Parameter containing:\ntensor([1., 1.], requires_grad=True)"),
]


@pytest.mark.parametrize("make, text", [pytest.param(*case, id=str(i)) for i, case in enumerate(PRINTED)])
def test_repr_is_what_pytorch_prints(make, text: str) -> None:
    x = make(vesta)
    assert repr(x) == text.replace("P.", f"{PREFIX}.") and str(x) == repr(x)


def test_format() -> None:
    assert f"{vesta.tensor(2.5):.2f}" == "2.50" and f"{vesta.tensor(3):>3}" == "  3"
    assert f"{vesta.ones(2)}" == "tensor([1., 1.])"
    with pytest.raises(TypeError):
        f"{vesta.ones(2):.2f}"
    assert repr(vesta.ones(2, 3).shape) == f"{PREFIX}.Size([2, 3])"


def test_clone_takes_a_memory_format() -> None:
    x = vesta.ones(2, 3).t()
    assert x.clone(memory_format=vesta.contiguous_format).stride() == (2, 1)
    assert x.clone(memory_format=vesta.preserve_format).stride() == x.clone().stride() == (1, 3)
    assert x.clone(memory_format=None).stride() == (1, 3)


@pytest.mark.parametrize("copied", [None, True])
def test_asarray_keeps_what_is_recorded(copied):
    x = vesta.tensor([1.0, 2.0], requires_grad=True)
    y = vesta.asarray(x * 3, copy=copied)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    assert not vesta.asarray(x, copy=copied, requires_grad=False).requires_grad
    assert vesta.asarray(vesta.ones(2), copy=copied, requires_grad=True).is_leaf
    assert not vesta.asarray([1.0]).requires_grad


def test_typename_of_classes_functions_and_objects():
    assert vesta.typename(vesta.nn.Parameter) == "vesta.nn.parameter.Parameter"
    assert vesta.typename(vesta.nn.ReLU()) == "vesta.nn.modules.activation.ReLU"
    assert [vesta.typename(x) for x in (int, 3, len)] == ["int", "int", "len"]
    assert [vesta.typename(x) for x in (math, int.__add__, None)] == ["math", "int.__add__", "NoneType"]


def test_named_results_of_histograms_print_as_others():
    counted = vesta.histogram(vesta.tensor([1.0, 2.0, 1.0]), bins=2)
    assert (
        repr(counted)
        == "vesta.return_types.histogram(\nhist=tensor([2., 1.]),\nbin_edges=tensor([1.0000, 1.5000, 2.0000]))"
    )
    assert repr(vesta.histogramdd(vesta.zeros(1, 2), bins=1)).startswith("vesta.return_types.histogramdd(\nhist=")


def test_aliases_stay_aliases_where_threads_pickle_at_once() -> None:
    """Each pickle holds the memory under tied tensors once, whoever else pickles them."""
    tied = [vesta.zeros(8) for _ in range(50)]
    pairs = [(x, x[2:]) for x in tied]
    barrier, separate, interval = threading.Barrier(4), [], sys.getswitchinterval()

    def save() -> None:
        for _ in range(20):
            barrier.wait()
            for x, view in pickle.loads(pickle.dumps(pairs)):
                if x.data_ptr() + 8 != view.data_ptr():
                    separate.append(x)

    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=save) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not separate
