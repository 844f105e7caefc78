"""Indexing, broadcasting and reductions against NumPy on random programs, and the errors of bad indices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import op_db_check as check
import pytest
import vesta
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from vesta.nn import functional as F

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)
FILLED = hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=5)


def numbered(shape: tuple) -> np.ndarray:
    """Returns an array in which every element encodes its position."""
    return np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)


def tensor_of(array: np.ndarray):
    return check.tensor_of(array, array.dtype.name)


def forward_steps(index):
    """Reverses negative steps: a tensor has no negative strides."""
    if isinstance(index, tuple):
        return tuple(forward_steps(part) for part in index)
    if isinstance(index, slice) and (index.step or 1) < 0:
        return slice(index.start, index.stop, -index.step)
    return index


def as_tensors(index):
    """Replaces the arrays of an index by tensors."""
    if isinstance(index, tuple):
        return tuple(as_tensors(part) for part in index)
    return tensor_of(index) if isinstance(index, np.ndarray) else index


@st.composite
def basic(draw):
    shape = draw(SHAPES)
    return shape, forward_steps(draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True)))


@st.composite
def advanced(draw):
    """Draws an index of integer arrays for some leading or trailing dimensions, full slices or None between them."""
    shape = draw(FILLED)
    count = draw(st.integers(1, len(shape)))
    result = draw(hnp.broadcastable_shapes((2, 3), max_dims=2, max_side=3))
    arrays = []
    for _ in range(count):
        arrays.append(draw(st.sampled_from([result, result[-1:], (1,)])))
    dims = sorted(draw(st.permutations(range(len(shape))))[:count])
    index = [slice(None)] * (dims[-1] + 1)
    for dim, size in zip(dims, arrays):
        index[dim] = draw(hnp.arrays(np.int64, size, elements=st.integers(-shape[dim], shape[dim] - 1)))
    if draw(st.booleans()):
        index.insert(draw(st.integers(0, len(index))), None)
    return shape, tuple(index)


@st.composite
def masks(draw):
    shape = draw(SHAPES.filter(len))
    start = draw(st.integers(0, len(shape) - 1))
    stop = draw(st.integers(start + 1, len(shape)))
    return shape, (slice(None),) * start + (draw(hnp.arrays(bool, shape[start:stop])),)


@given(basic())
def test_basic_get(case) -> None:
    """Numbers, slices, None and Ellipsis select what NumPy selects, as views."""
    shape, index = case
    array = numbered(shape)
    tensor = tensor_of(array)
    got, want = tensor[index], np.asarray(array[index])
    assert tuple(got.shape) == want.shape
    np.testing.assert_array_equal(got.numpy(), want)
    if got.numel():
        place = np.asarray(want).reshape(-1)[0]
        assert got.data_ptr() == tensor.data_ptr() + 8 * int(place)


@given(basic(), st.booleans())
def test_basic_set(case, broadcast: bool) -> None:
    """Assignment writes where NumPy writes, numbers and broadcast values alike."""
    shape, index = case
    array = numbered(shape)
    tensor = tensor_of(array)
    if broadcast:
        value = np.asarray(-numbered(np.shape(array[index])[-1:]) - 1)
        array[index], tensor[index] = value, tensor_of(value)
    else:
        array[index] = tensor[index] = -7
    np.testing.assert_array_equal(tensor.numpy(), array)


@given(advanced())
def test_advanced_get(case) -> None:
    shape, index = case
    array = numbered(shape)
    got, want = tensor_of(array)[as_tensors(index)], array[index]
    assert tuple(got.shape) == want.shape
    np.testing.assert_array_equal(got.numpy(), want)


@given(advanced())
def test_advanced_get_of_a_strided_tensor(case) -> None:
    """Gathering respects strides."""
    shape, index = case
    array = numbered(shape)
    tensor = (
        check.layout_transposed(array, "int64", "cpu") if len(shape) > 1 else check.layout_sliced(array, "int64", "cpu")
    )
    np.testing.assert_array_equal(tensor[as_tensors(index)].numpy(), array[index])


@given(advanced())
def test_advanced_set(case) -> None:
    """A number is written to every position; a tensor broadcasts (repeated positions get the same value here)."""
    shape, index = case
    array = numbered(shape)
    tensor = tensor_of(array)
    array[index] = tensor[as_tensors(index)] = -3
    np.testing.assert_array_equal(tensor.numpy(), array)


@given(advanced())
def test_index_put_accumulates(case) -> None:
    """Repeated positions are added each time."""
    shape, index = case
    arrays = tuple(
        np.asarray(part % size) for part, size in zip((p for p in index if isinstance(p, np.ndarray)), shape)
    )
    array = numbered(shape)
    tensor = tensor_of(array)
    np.add.at(array, arrays, 5)
    tensor.index_put_(as_tensors(arrays), vesta.tensor(5), accumulate=True)
    np.testing.assert_array_equal(tensor.numpy(), array)


@given(masks())
def test_mask_get_and_set(case) -> None:
    shape, index = case
    array = numbered(shape)
    tensor = tensor_of(array)
    np.testing.assert_array_equal(tensor[as_tensors(index)].numpy(), array[index])
    array[index] = tensor[as_tensors(index)] = -1
    np.testing.assert_array_equal(tensor.numpy(), array)


@given(advanced())
def test_gradient_of_advanced_get(case) -> None:
    """Each position gets the sum of the gradients of its copies."""
    shape, index = case
    tensor = vesta.zeros(shape, dtype=vesta.float64, requires_grad=True)
    picked = tensor[as_tensors(index)]
    weights = numbered(tuple(picked.shape)).astype(np.float64)
    (picked * tensor_of(weights)).sum().backward()
    want = np.zeros(shape)
    places = np.arange(want.size).reshape(shape)[index]  # add.at itself refuses some 0-d indices
    np.add.at(want.reshape(-1), places.reshape(-1), weights.reshape(-1))
    np.testing.assert_array_equal(tensor.grad.numpy(), want)


@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, min_side=0, max_side=4))
def test_broadcasting(shapes) -> None:
    """Values, gradients and the shape of the result are NumPy's for any two shapes that broadcast."""
    a, b = (np.asarray(numbered(shape), dtype=np.float64) + 1 for shape in shapes.input_shapes)
    x, y = tensor_of(a).requires_grad_(), tensor_of(b).requires_grad_()
    z = x * y
    assert tuple(z.shape) == shapes.result_shape
    np.testing.assert_array_equal(z.detach().numpy(), a * b)
    z.sum().backward()
    for leaf, other in ((x, b), (y, a)):
        full = np.broadcast_to(other, shapes.result_shape)
        extra = full.ndim - leaf.dim()
        dims = tuple(i for i in range(full.ndim) if i < extra or leaf.shape[i - extra] != full.shape[i])
        np.testing.assert_allclose(leaf.grad.numpy(), full.sum(axis=dims).reshape(leaf.shape))


@given(FILLED, st.data())
def test_sum_over_any_dims(shape, data) -> None:
    dims = tuple(data.draw(st.permutations(range(len(shape))))[: data.draw(st.integers(1, len(shape)))])
    dims = tuple(d - len(shape) if data.draw(st.booleans()) else d for d in dims)
    keepdim = data.draw(st.booleans())
    order = tuple(data.draw(st.permutations(range(len(shape)))))
    array = numbered(shape).transpose(order)
    tensor = tensor_of(numbered(shape)).permute(order)
    np.testing.assert_array_equal(tensor.sum(dims, keepdim).numpy(), array.sum(axis=dims, keepdims=keepdim))
    np.testing.assert_array_equal(tensor.amax(dims, keepdim).numpy(), array.max(axis=dims, keepdims=keepdim))


@given(SHAPES, st.data())
def test_reshape_of_any_strides(shape, data) -> None:
    """permute then reshape gives NumPy's order, and view works exactly when no copy is needed."""
    order = tuple(data.draw(st.permutations(range(len(shape)))))
    array = numbered(shape).transpose(order)
    tensor = tensor_of(numbered(shape)).permute(order)
    flat = tensor.reshape(-1) if array.size else tensor.reshape(0)
    np.testing.assert_array_equal(flat.numpy(), array.reshape(-1))
    target = data.draw(st.sampled_from([array.shape, (array.size,), (1, array.size), (*array.shape, 1)]))
    np.testing.assert_array_equal(tensor.reshape(target).numpy(), array.reshape(target))
    try:
        seen = tensor.view(target)
    except RuntimeError:
        assert tensor.reshape(target).data_ptr() != tensor.data_ptr()
    else:
        np.testing.assert_array_equal(seen.numpy(), array.reshape(target))


PROGRAM = st.lists(st.tuples(st.sampled_from(["view", "write", "op"]), st.integers(0, 10**6)), min_size=3, max_size=12)


@settings(max_examples=60)
@given(PROGRAM)
def test_view_programs(program) -> None:
    """Random views of views with writes between them stay equal to NumPy's, as do the version counters."""
    arrays = [numbered((4, 3, 2)).astype(np.float64)]
    tensors = [tensor_of(arrays[0])]
    for kind, seed in program:
        pick = seed % len(arrays)
        array, tensor = arrays[pick], tensors[pick]
        if kind == "view":
            seen = _look(array, tensor, seed // 7)
            arrays.append(seen[0])
            tensors.append(seen[1])
        elif kind == "write":
            version = tensors[0]._version
            array += seed % 5
            tensor.add_(seed % 5)
            assert all(t._version == version + 1 for t in tensors)
        else:
            array[...] = array * 2 - array.sum()
            tensor.copy_(tensor * 2 - tensor.sum())
        for a, t in zip(arrays, tensors):
            np.testing.assert_array_equal(t.numpy(), a)


def _look(array: np.ndarray, tensor, seed: int):
    """Takes the same view of both; the seed selects which."""
    kind = seed % 5
    if array.ndim == 0:
        return array[None], tensor[None]
    dim = seed // 5 % array.ndim
    size = array.shape[dim]
    if kind == 0:
        return np.swapaxes(array, 0, dim), tensor.transpose(0, dim)
    if kind == 1 and size > 1:
        pick = (slice(None),) * dim + (slice(1, None),)
        return array[pick], tensor.narrow(dim, 1, size - 1)
    if kind == 2:
        pick = (slice(None),) * dim + (slice(None, None, 2),)
        return array[pick], tensor[pick]
    if kind == 3 and array.ndim > 1 and size:
        pick = (slice(None),) * dim + (0,)
        return array[pick], tensor.select(dim, 0)
    return np.expand_dims(array, dim), tensor.unsqueeze(dim)


# ---- what Python users write ----


def test_index_types() -> None:
    """Lists, ranges, NumPy numbers and arrays, 0-d tensors, bools: each has PyTorch's meaning."""
    x = vesta.arange(24).view(2, 3, 4)
    assert x[[0, 1]].shape == (2, 3, 4) and x[[]].shape == (0, 3, 4) and x[()].shape == (2, 3, 4)
    assert x[[True, False]].shape == (1, 3, 4)
    rows, columns = vesta.tensor([0, 1]), vesta.tensor([1, 2])
    for several in ([rows, columns], [[0, 1], [1, 2]], [(0, 1), columns], [slice(None), 0], [None, 0], [..., 0]):
        assert x[several].tolist() == x[tuple(several)].tolist(), "a list with more than numbers is a tuple, as there"
    assert x[range(2)].shape == (2, 3, 4) and x[np.int64(1)].shape == (3, 4) and x[np.array([0, 1])].shape == (2, 3, 4)
    assert x[vesta.tensor(1)].shape == (3, 4) and x[True].shape == (1, 2, 3, 4) and x[False].shape == (0, 2, 3, 4)
    assert x[vesta.tensor([0], dtype=vesta.int32)].shape == (1, 3, 4)
    assert x[vesta.tensor([[0], [1]]), :, vesta.tensor([0, 1, 2])].shape == (2, 3, 3)
    assert x[0, :, vesta.tensor([0, 1])].shape == (3, 2), "a number selects first, as in PyTorch and unlike NumPy"
    assert vesta.tensor(1)[None].shape == (1,) and vesta.tensor(1)[...].shape == ()
    assert x[x > 100].shape == (0,) and x[x >= 0].shape == (24,)


@pytest.mark.parametrize(
    "index, error",
    [
        (2, IndexError),
        (-3, IndexError),
        ((0, 0, 0, 0), IndexError),
        (1.5, (IndexError, TypeError)),
        ("a", (IndexError, TypeError)),
        ({}, (IndexError, TypeError)),
        (slice("a", None), TypeError),
        (slice(None, None, 0), ValueError),
        (slice(None, None, -1), ValueError),
        (10**30, (IndexError, ValueError, OverflowError)),
        (lambda: vesta.tensor([2]), IndexError),
        (lambda: vesta.tensor([-3]), IndexError),
        (lambda: vesta.tensor([0.5]), IndexError),
        (lambda: vesta.tensor([True]), IndexError),
        (lambda: vesta.ones(2, 4, dtype=vesta.bool), IndexError),
        (lambda: (vesta.tensor([0, 1]), vesta.tensor([0, 1, 2])), IndexError),
        (lambda: (0, 0, 0, vesta.tensor([0])), IndexError),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_bad_indices(index, error) -> None:
    """Reading and writing by a bad index raise the same class, and nothing is written."""
    x = vesta.arange(24).view(2, 3, 4)
    index = index() if callable(index) else index
    with pytest.raises(error):
        x[index]
    with pytest.raises(error):
        x[index] = 1
    assert x.tolist() == vesta.arange(24).view(2, 3, 4).tolist() and x._version == 0


def test_bad_values() -> None:
    x = vesta.arange(24).view(2, 3, 4)
    for value in ("a", None, object(), [[1] * 4] * 3, (1, 2, 3, 4), [1], np.ones(4), b"text"):
        for index in (0, (0, 1), vesta.tensor([0])):
            with pytest.raises(TypeError):
                x[index] = value
    for index, value in (
        (0, vesta.ones(5)),
        (x > 5, vesta.tensor([1, 2])),
        (vesta.tensor([0, 1]), vesta.ones(2).long()),
    ):
        with pytest.raises(RuntimeError):
            x[index] = value
    with pytest.raises((RuntimeError, TypeError)):
        x[0] = 1j
    with pytest.raises(TypeError):
        del x[0]
    assert x.tolist() == vesta.arange(24).view(2, 3, 4).tolist()


def test_boolean_mask_is_a_copy_and_a_slice_is_not() -> None:
    x = vesta.arange(6)
    x[x > 2].zero_()
    assert x.tolist() == [0, 1, 2, 3, 4, 5]
    x[3:].zero_()
    assert x.tolist() == [0, 1, 2, 0, 0, 0]
    x[x == 0] += 7
    assert x.tolist() == [7, 1, 2, 7, 7, 7]


def test_a_filled_place_counts_once() -> None:
    x, value = vesta.rand(4, 3, requires_grad=True), vesta.tensor(2.0, requires_grad=True)
    x.index_fill(0, vesta.tensor([1, 1, -3, 3]), value).sum().backward()
    assert value.grad.item() == 6 and x.grad.sum(1).tolist() == [3.0, 0.0, 3.0, 0.0]


def test_filling_by_an_index_that_is_the_tensor_itself() -> None:
    x = vesta.tensor([2, 0, 1])
    assert x.index_fill_(0, x, 7) is x and x.tolist() == [7, 7, 7]
    with pytest.raises(RuntimeError):
        vesta.zeros(1).expand(3).index_fill_(0, vesta.tensor([0]), 1)


@pytest.mark.parametrize("dtype", [vesta.float32, vesta.float16, vesta.int64, vesta.complex64, vesta.bool])
@pytest.mark.parametrize("shape, dim", [((9, 5), 0), ((9, 5), 1), ((3, 70, 11), 1), ((4, 3, 40), 2), ((4, 3, 40), 0)])
def test_an_index_that_is_the_same_for_all_slices(dtype, shape, dim) -> None:
    """index.view(-1, 1).expand_as(x) moves whole slices; what is written out in full moves elements: equal bits."""
    rng = np.random.default_rng(3)
    n, size = 2 * shape[dim] + 1, list(shape)
    size[dim] = n
    vector = vesta.from_numpy(rng.integers(0, shape[dim], n))
    line = vector.view([n if d == dim else 1 for d in range(len(shape))])
    for cut in (0, 2):  # an index may be smaller than the tensors in the other dimensions
        some = [s if d == dim else s - cut for d, s in enumerate(size)]
        index = line.expand(some)
        full = index.contiguous()
        x = vesta.from_numpy(rng.normal(size=shape) * 4).to(dtype)
        src = vesta.from_numpy(rng.normal(size=size) * 4).to(dtype)
        assert x.gather(dim, index).numpy().tobytes() == x.gather(dim, full).numpy().tobytes()
        for write in ("scatter", "scatter_add"):
            made, expected = (getattr(x, write)(dim, i, src) for i in (index, full))
            assert made.numpy().tobytes() == expected.numpy().tobytes(), write
        turned = x.mT.contiguous().mT
        assert turned.scatter_add(dim, index, src).numpy().tobytes() == x.scatter_add(dim, full, src).numpy().tobytes()
    with pytest.raises(RuntimeError, match="out of bounds"):
        x.gather(dim, (line + 1).clamp(min=shape[dim]).expand(some))
    with pytest.raises(RuntimeError, match="out of bounds"):
        x.scatter_add(dim, (line - shape[dim]).expand(some), src)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_scatter_in_every_order_of_memory(dim: int) -> None:
    """Against NumPy, element by element in order, for operands whose dimensions lie in memory in any order."""
    rng = np.random.default_rng(4)
    shape = (7, 40, 13)
    index, src = rng.integers(0, shape[dim], shape), rng.integers(-9, 9, shape)
    put, added = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for at in np.ndindex(shape):
        to = at[:dim] + (index[at],) + at[dim + 1 :]
        put[to] = src[at]
        added[to] += src[at]
    for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2), (0, 2, 1)):
        back = np.argsort(order)
        i, s, x = (
            vesta.from_numpy(np.ascontiguousarray(a.transpose(order))).permute(*back)
            for a in (index, src, np.zeros(shape, np.int64))
        )
        assert np.array_equal(x.scatter(dim, i, s).numpy(), put)
        assert np.array_equal(x.scatter_add(dim, i, s).numpy(), added)
        assert np.array_equal(x.scatter_reduce(dim, i, s, "sum").numpy(), added)


def test_a_vector_of_one_element_goes_to_a_number() -> None:
    """As in PyTorch, index_copy takes one for the other; index_reduce and index_add do not."""
    x, at = vesta.tensor(5.0), vesta.tensor([0])
    for source in (vesta.ones(1), vesta.tensor(1.0)):
        for index in (at, at[0]):
            assert x.index_copy(0, index, source).item() == 1 and x.clone().index_copy_(0, index, source).shape == ()
    assert vesta.zeros(3).index_copy(0, at, vesta.tensor(1.0)).tolist() == [1, 0, 0]
    for call in (
        lambda: x.index_copy(0, at, vesta.ones(1, 1)),
        lambda: x.index_copy(0, at, vesta.ones(2)),
        lambda: vesta.zeros(3).index_copy(0, at, vesta.ones(1, 1)),
        lambda: x.index_reduce(0, at, vesta.ones(1), "amax"),
        lambda: vesta.zeros(3).index_reduce(0, at, vesta.tensor(1.0), "amax"),
        lambda: x.index_add(0, at, vesta.ones(1)),
    ):
        with pytest.raises((RuntimeError, IndexError)):
            call()


@pytest.mark.parametrize("dtype, count", [(vesta.uint8, 256), (vesta.int8, 256), (vesta.int8, 128)])
def test_counts_that_wrap(dtype: vesta.dtype, count: int) -> None:
    """A mean of integers divides by a count of their dtype, of which 0 is 1, as in PyTorch."""
    y = vesta.zeros(2, dtype=dtype)
    y[1] = 9
    y.scatter_reduce_(
        0, vesta.zeros(count, dtype=vesta.int64), vesta.ones(count, dtype=dtype), "mean", include_self=False
    )
    assert y.tolist() == [0 if count == 256 else 1, 9]
    x = vesta.zeros(3, dtype=vesta.bool)
    with pytest.raises(TypeError, match="scatter_reduce_: expected numbers for a mean, got bool"):
        x.scatter_reduce_(0, vesta.tensor([0]), vesta.tensor([True]), "mean")
    assert not x.any()


def test_put_of_nothing_checks_where_it_would_write() -> None:
    nothing = vesta.tensor([], dtype=vesta.int64), vesta.ones(0)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        vesta.zeros(3, requires_grad=True).put_(*nothing)
    assert vesta.zeros(0).put_(*nothing).shape == (0,) and vesta.zeros(3).put_(*nothing).tolist() == [0] * 3


def _reduced(name: str, x: Any, reduce: str, keep: bool) -> tuple[Any, ...]:
    at = vesta.tensor([2, 0, 2], device=x.device)
    if name == "index":
        return ("index_reduce", 0, at, x.detach()[:3] + 1, reduce), {"include_self": keep}
    index = at[:, None].expand(3, x.shape[1] - 1)
    return ("scatter_reduce", 0, index, x.detach()[:3] * 2, reduce), {"include_self": keep}


@pytest.mark.parametrize(
    "name, reduce",
    [
        (n, r)
        for n in ("index", "scatter")
        for r in ("sum", "prod", "mean", "amax", "amin")
        if (n, r) != ("index", "sum")
    ],
)
@pytest.mark.parametrize("keep", [True, False])
def test_reductions_at_places_write_in_place(name: str, reduce: str, keep: bool) -> None:
    """They give what the functions do, gradients included, also onto a view or with what is read in it."""
    for dtype in (vesta.float32, vesta.int64):
        for view in (lambda t: t, lambda t: t.t(), lambda t: t[:, ::2]):
            x = view(vesta.arange(1, 37).reshape(6, 6).to(dtype))
            (function, *rest), options = _reduced(name, x, reduce, keep)
            want = getattr(x, function)(*rest, **options)
            got = x.clone() if x.is_contiguous() else view(vesta.arange(1, 37).reshape(6, 6).to(dtype))
            at = got.data_ptr()
            assert getattr(got, function + "_")(*rest, **options) is got and got.data_ptr() == at
            assert vesta.equal(got, want), (reduce, keep)
    x = vesta.rand(4, 3, dtype=vesta.float64, requires_grad=True)
    src = vesta.rand(3, 3 if name == "index" else 2, dtype=vesta.float64, requires_grad=True)
    (function, dim, index, _, *rest), options = _reduced(name, x, reduce, keep)
    grads = []
    for call in (
        lambda t: getattr(t, function)(dim, index, src, *rest, **options),
        lambda t: getattr(t * 1, function + "_")(dim, index, src, *rest, **options),
    ):
        grads.append(vesta.autograd.grad((call(x) * vesta.arange(12.0).reshape(4, 3)).sum(), [x, src]))
    for a, b in zip(*grads):
        vesta.testing.assert_close(a, b)
    y = vesta.arange(4)  # source and index are what is written
    want = y.scatter_reduce(0, y.clone(), y.clone(), reduce, include_self=keep)
    assert vesta.equal(y.scatter_reduce_(0, y, y, reduce, include_self=keep), want)
    y = vesta.arange(4)
    with pytest.raises((RuntimeError, IndexError)):
        y.scatter_reduce_(0, vesta.tensor([0, 9]), vesta.tensor([7, 7]), reduce, include_self=keep)
    with pytest.raises(RuntimeError):
        y.scatter_reduce_(0, vesta.tensor([0, 1]), vesta.tensor([7]), reduce, include_self=keep)
    assert y.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("accumulate", [False, True])
def test_put_writes_in_place(accumulate: bool) -> None:
    for view in (lambda t: t, lambda t: t.t(), lambda t: t[:, ::2], lambda t: t[1, 2], lambda t: t.transpose(0, 1)[1:]):
        for places in ([1, -1, 1], [[0, 5], [-2, 3]]):
            memory, other = vesta.arange(30.0).reshape(5, 6), vesta.arange(30.0).reshape(5, 6)
            x = view(memory)
            index = vesta.tensor(places).clamp(-x.numel(), x.numel() - 1)
            source = vesta.arange(1.0, index.numel() + 1)
            want = x.put(index, source, accumulate)
            flat = x.flatten().clone()
            for i, v in zip(index.flatten().tolist(), source.tolist()):
                flat[i] = flat[i] + v if accumulate else v
            assert vesta.equal(want.flatten(), flat)
            assert x.put_(index, source, accumulate) is x and vesta.equal(x, want)
            view(other).copy_(want)
            assert vesta.equal(memory, other)
            for bad in (x.numel(), -x.numel() - 1):
                with pytest.raises(IndexError):
                    x.put_(vesta.tensor([bad]), vesta.ones(1))
    w = vesta.rand(3, 4, requires_grad=True)
    source = vesta.rand(2, requires_grad=True)
    y = (w * 1).t()
    y.put_(vesta.tensor([1, 11]), source, accumulate)
    y.sum().backward()
    assert source.grad.tolist() == [1, 1] and w.grad.sum() == (12 if accumulate else 10)
    x = vesta.tensor([2, 0, 1])
    assert x.put_(x, x + 5).tolist() == [5, 6, 7]


def test_masked_scatter_writes_in_place() -> None:
    memory = vesta.arange(12.0).reshape(3, 4)
    x = memory.t()
    x.masked_scatter_(vesta.tensor([True, False, True]), -vesta.arange(1.0, 9.0))
    assert memory.tolist() == [[-1, -3, -5, -7], [4, 5, 6, 7], [-2, -4, -6, -8]]
    with pytest.raises(RuntimeError, match="masked_scatter_: "):
        vesta.zeros(3).masked_scatter_(vesta.ones(2, 3, dtype=vesta.bool), vesta.ones(6))
    with pytest.raises(RuntimeError, match="masked_scatter_: "):
        memory.masked_scatter_(memory < 0, vesta.ones(3))
    assert vesta.tensor(1.0).masked_scatter_(vesta.tensor(True), vesta.tensor([3.0])).item() == 3


# ---- segments ----


def test_segments_by_offsets_leave_out_the_rest() -> None:
    x = vesta.arange(6.0, requires_grad=True)
    y = vesta.segment_reduce(x, "sum", offsets=vesta.tensor([1, 2, 5]))
    y.sum().backward()
    assert y.tolist() == [1.0, 9.0] and x.grad.tolist() == [0.0, 1.0, 1.0, 1.0, 1.0, 0.0]


@pytest.mark.parametrize(
    "reduce, first, none",
    [("sum", 3, 0), ("mean", 1, math.nan), ("max", 2, -math.inf), ("min", 0, math.inf), ("prod", 0, 1)],
)
def test_a_segment_without_elements(reduce: str, first: float, none: float) -> None:
    x, lengths = vesta.tensor([1.0, 0.0, 2.0]), vesta.tensor([3, 0])
    y = vesta.segment_reduce(x, reduce, lengths=lengths)
    assert y[0] == first and (y[1] == none or math.isnan(none) and y[1].isnan())
    assert vesta.segment_reduce(x, reduce, lengths=lengths, initial=5)[1] == 5


def test_equal_extrema_of_a_segment_share_its_gradient_and_initial_has_none() -> None:
    for initial in (None, 2.0):
        x = vesta.tensor([2.0, 1.0, 2.0, 1.0], requires_grad=True)
        vesta.segment_reduce(x, "max", lengths=vesta.tensor([3, 1]), initial=initial).sum().backward()
        assert x.grad.tolist() == [0.5, 0.0, 0.5, 1.0 if initial is None else 0.0]


def test_segments_of_16_bit_floats_are_summed_as_float32() -> None:
    x = vesta.ones(4096, dtype=vesta.bfloat16)
    assert vesta.segment_reduce(x, "sum", lengths=vesta.tensor([4096])).item() == 4096


@pytest.mark.parametrize(
    "said, kwargs",
    [
        ("Either lengths or offsets must be defined", {}),
        ("indices based reduction is not supported", {"indices": [0]}),
        ("sum to data.size", {"lengths": [3, 4]}),
        ("sum to data.size", {"lengths": []}),
        ("sum to data.size", {"lengths": [2**62, 2**62, 2**62, 2**62 + 8]}),
        ("lengths contains negative value", {"lengths": [9, -1]}),
        ("offsets that do not fall", {"offsets": [0, 9]}),
        ("offsets that do not fall", {"offsets": [3, 1]}),
        ("offsets that do not fall", {"offsets": [-1, 1]}),
        ("offsets of at least one", {"offsets": []}),
        ("last dimension of lengths", {"lengths": [[8]]}),
        ("last dimension of lengths", {"lengths": 8}),
        ("reduce argument must be", {"lengths": [8], "reduce": "any"}),
        ("real number", {"lengths": [8], "initial": 1j}),
    ],
)
def test_segments_that_are_refused(said: str, kwargs: dict) -> None:
    marks = ("lengths", "offsets", "indices")
    given = {k: vesta.tensor(v, dtype=vesta.int64) if k in marks else v for k, v in kwargs.items()}
    with pytest.raises(RuntimeError, match=said):
        vesta.segment_reduce(vesta.ones(8), given.pop("reduce", "sum"), **given)


def test_segments_of_wrong_sizes_and_dtypes_are_refused() -> None:
    x = vesta.ones(2, 4)
    with pytest.raises(RuntimeError, match="data's sizes before axis"):
        vesta.segment_reduce(x, "sum", lengths=vesta.tensor([[4]] * 3), axis=1)
    with pytest.raises(TypeError, match="floating-point"):
        vesta.segment_reduce(x.long(), "sum", lengths=vesta.tensor([2]))
    with pytest.raises(TypeError, match="int64 or int32"):
        vesta.segment_reduce(x, "sum", lengths=vesta.tensor([2.0]))
    for wrong in ([2**40, 1], [-5, 3]):  # nobody checks, and nothing ends the process
        assert vesta.segment_reduce(x, "sum", lengths=vesta.tensor(wrong), unsafe=True).shape == (2, 4)


# ---- what an error names ----


def test_index_copy_wants_slices_of_the_input() -> None:
    """A source of one number was written over a whole row."""
    for x in (vesta.zeros(2, 3), vesta.zeros(1, 1), vesta.zeros(3, 1)):
        for name in ("index_copy", "index_copy_"):
            with pytest.raises(RuntimeError, match=f"{name}: expected source to have input's shape"):
                getattr(x, name)(0, vesta.tensor([0]), vesta.tensor(1.0))
    assert vesta.zeros(2).index_copy(0, vesta.tensor([1]), vesta.tensor(1.0)).tolist() == [0.0, 1.0]
    assert vesta.tensor(0.0).index_copy(0, vesta.tensor([0]), vesta.ones(1)).item() == 1.0


def test_put_names_the_place_that_was_given() -> None:
    """That of a transposed tensor named a subscript of its rows."""
    for x in (vesta.zeros(3, 4), vesta.zeros(4, 3).t()):
        for wrong in (13, -13):
            with pytest.raises(IndexError, match=f"put_: index {wrong} is out of bounds for dimension 0 with size 12"):
                x.put_(vesta.tensor([0, wrong]), vesta.ones(2))
        assert not x.any()


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.put_(vesta.tensor([0]), vesta.ones(1)),
        lambda x: x.index_copy_(0, vesta.tensor([0]), vesta.ones(1)),
        lambda x: x.masked_scatter_(vesta.tensor(True), vesta.ones(1)),
    ],
)
def test_a_leaf_is_called_a_leaf(write: object) -> None:
    """These write into a view of it, of which the message spoke."""
    with pytest.raises(RuntimeError, match="_: a leaf Variable that requires grad"):
        write(vesta.tensor(1.0, requires_grad=True))
    with vesta.no_grad():
        assert write(vesta.tensor(0.0, requires_grad=True)).item() == 1.0


@pytest.mark.parametrize("name", ["map_", "apply_"])
def test_a_python_function_writes_no_tensor_that_requires_grad(name: str) -> None:
    x = vesta.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=f"{name}: can't be called on a tensor that requires grad"):
        x.apply_(lambda a: a + 1) if name == "apply_" else x.map_(vesta.ones(2), lambda a, b: a + b)
    assert x.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (IndexError, lambda x, i, s: x.index_fill(1, i, 5.0)),
        (IndexError, lambda x, i, s: x.index_fill_(1, i.short(), 5.0)),
        (RuntimeError, lambda x, i, s: x.index_copy(1, i, s)),
        (RuntimeError, lambda x, i, s: x.index_copy_(1, i, s)),
        (RuntimeError, lambda x, i, s: vesta.take_along_dim(x, i[None], 1)),
        (RuntimeError, lambda x, i, s: vesta.take(x, i)),
        (RuntimeError, lambda x, i, s: x.put_(i, s[0])),
        (RuntimeError, lambda x, i, s: vesta.tensor_split(x, i[1:], 1)),
        (RuntimeError, lambda x, i, s: F.max_unpool1d(s[:1], 2 * i[None], 2)),
        (RuntimeError, lambda x, i, s: vesta.linalg.lu_solve(vesta.eye(2), i.long() + 1, s)),
        (RuntimeError, lambda x, i, s: F.one_hot(i)),
    ],
)
def test_indices_of_int32_that_pytorch_refuses(error: type[Exception], call: Any) -> None:
    x, i = vesta.arange(6.0).reshape(2, 3), vesta.tensor([0, 1], dtype=vesta.int32)
    with pytest.raises(error):
        call(x, i, x[:, :2].clone())
    assert x.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def test_indices_of_int32_that_pytorch_takes() -> None:
    x, i = vesta.arange(6.0).reshape(2, 3), vesta.tensor([0, 1], dtype=vesta.int32)
    s = x[:, :2].clone()
    for call in (
        lambda k: x.index_select(1, k),
        lambda k: x.index_add(1, k, s),
        lambda k: x.index_reduce(1, k, s, "prod"),
        lambda k: x.repeat_interleave(k + 1, 0),
        lambda k: F.embedding(k, x),
        lambda k: F.embedding_bag(k, x, k[:1]),
        lambda k: x[k],
        lambda k: vesta.stack(vesta.unravel_index(k, (2, 3))),
    ):
        assert vesta.equal(call(i), call(i.long()))


@pytest.mark.parametrize("dtype", [vesta.float32, vesta.float64, vesta.bfloat16])
def test_gradients_of_embeddings_are_divided_by_how_often_rows_are_read(dtype):
    rows = vesta.tensor([[0, 2, 2], [2, 0, 1]])
    gradient = vesta.arange(1, 7, dtype=dtype).reshape(2, 3, 1)
    expected = vesta.tensor([(1 + 5) / 2, 6, (2 + 3 + 4) / 3], dtype=dtype)
    weight = vesta.zeros(3, 1, dtype=dtype, requires_grad=True)
    for sparse in (False, True):
        weight.grad = None
        found = F.embedding(rows, weight, scale_grad_by_freq=True, sparse=sparse)
        found.backward(gradient)
        grad = weight.grad.to_dense() if sparse else weight.grad
        assert vesta.allclose(grad[:, 0], expected, rtol=1e-2 if dtype == vesta.bfloat16 else 1e-6)
    weight.grad = None
    F.embedding_bag(rows, weight, scale_grad_by_freq=True, mode="sum").backward(vesta.ones(2, 1, dtype=dtype))
    assert vesta.allclose(weight.grad[:, 0], vesta.ones(3, dtype=dtype))
    second = vesta.autograd.grad(
        F.embedding(rows, weight * weight, scale_grad_by_freq=True).sum(), weight, create_graph=True
    )[0]
    assert second.requires_grad
