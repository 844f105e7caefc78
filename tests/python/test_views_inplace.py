"""Views alias, in-place writes increment versions, and the tape follows both; overlaps behave as if copied first."""

from __future__ import annotations

import itertools

import numpy as np
import op_db_check as check
import pytest
import vesta
from op_db import OPS
from op_db_cases import describe, single
from op_db_row import DTYPES, Maker, Row
from vesta import autograd


def leaf(*values: float):
    return vesta.tensor(list(values), dtype=vesta.float64, requires_grad=True)


def values(tensor) -> list:
    return tensor.detach().tolist()


# ---- aliasing ----


#: Views of another dtype; their rows in ``aliasing.py`` say what they share.
OF_ANOTHER_DTYPE = ("view_as_real", "view_as_complex")


@pytest.mark.parametrize("row", single(row for row in OPS if row.view and row.name not in OF_ANOTHER_DTYPE))
def test_views_alias_their_base(row: Row) -> None:
    """For every view row a write to the base is visible in the view; storage and version counter are shared."""
    function = check.function_of(row)
    for sample in row.samples(Maker(DTYPES["float32"], row.name)):
        args, kwargs = check.materialize(sample, "float32")
        base = args[0]
        for view in check.results(function(*args, **kwargs)):
            start, version = base.data_ptr(), base._version
            inside = start <= view.data_ptr() <= start + 4 * max(base.numel(), 1)
            assert inside or not view.numel(), describe(sample)
            base.fill_(5.0)
            assert bool((view == 5.0).all())
            assert view._version == base._version == version + 1
            view.fill_(-1.0)
            assert base._version == view._version == version + 2
            if view.numel():
                assert bool((base == -1.0).any())


def test_view_attributes() -> None:
    base = vesta.zeros(4, 3)
    view = base[1:3].t()
    assert view._base is base and view._is_view() and not base._is_view() and base._base is None
    assert view.stride() == (1, 3) and view.storage_offset() == 3 and not view.is_contiguous()
    assert view.contiguous().is_contiguous() and view.contiguous()._base is None
    assert base.contiguous() is base
    assert view.detach()._version == base._version


def test_as_strided_stays_inside_its_storage() -> None:
    base = vesta.arange(10)
    view = base[5:]
    assert view.as_strided((2,), (1,), 0).tolist() == [0, 1], "the storage offset is absolute"
    assert view.as_strided((2,), (1,)).tolist() == [5, 6]
    for size, stride, offset in (((11,), (1,), 0), ((2,), (9,), 2), ((2, 2), (2**62, 1), 0), ((1,), (1,), 10)):
        with pytest.raises(RuntimeError) as caught:
            base.as_strided(size, stride, offset)
        check.check_message(caught.value, "as_strided")


def test_reshape_copies_only_when_it_must() -> None:
    x = vesta.arange(6).view(2, 3)
    assert x.reshape(3, 2).data_ptr() == x.data_ptr()
    copied = x.t().reshape(6)
    assert copied.data_ptr() != x.data_ptr() and copied.tolist() == [0, 3, 1, 4, 2, 5]
    assert x.t().reshape(3, 2, 1).data_ptr() == x.data_ptr()


# ---- versions ----


def test_every_write_counts() -> None:
    """In-place ops, out=, indexed writes, copy_, fill_, zero_, random fills: each adds one to the version."""
    x = vesta.ones(4)
    writes = [
        lambda: x.add_(1),
        lambda: x.mul_(x),
        lambda: vesta.exp(vesta.ones(4), out=x),
        lambda: x.__setitem__(0, 1.0),
        lambda: x.__setitem__(vesta.tensor([0, 2]), 1.0),
        lambda: x.copy_(vesta.ones(4)),
        lambda: x.fill_(2),
        lambda: x.zero_(),
        lambda: x.uniform_(),
        lambda: x.normal_(),
        lambda: x[1:].add_(1),
        lambda: x.detach().add_(1),
        lambda: x.masked_fill_(x > 100, 0.0),
    ]
    for number, write in enumerate(writes):
        before = x._version
        write()
        assert x._version == before + 1, f"write {number}"
    before = x._version
    x.add(1), x.view(2, 2), x.clone(), x.sum(), x[0]
    assert x._version == before, "reading and viewing count nothing"


def test_writes_through_data_do_not_count() -> None:
    """Backward after ``w.data.clamp_()`` runs, with the values that are there, as PyTorch's does; detach() counts."""
    w = leaf(2.0, 3.0)
    y = (w * w).sum()
    before = w._version
    w.data.clamp_(0, 1)
    assert w._version == before and values(w) == [1.0, 1.0]
    y.backward()
    assert values(w.grad) == [2.0, 2.0], "what is lost: the gradient is that of the new values"
    y = (w * w).sum()
    w.detach().mul_(2)
    with pytest.raises(RuntimeError, match="modified by an in-?place"):
        y.backward()


def test_data_has_versions_of_its_own() -> None:
    """``x.data`` and its views share one version counter; each ``x.data`` has another one, starting at 0."""
    x, w = leaf(1.0, 2.0, 3.0), leaf(1.0, 1.0, 1.0)
    x.detach().add_(1)
    data = x.data
    assert (x._version, data._version, x.data._version) == (1, 0, 0)
    data[1:].mul_(2)
    data.view(3).detach().mul_(2)
    assert (x._version, data._version, data[0]._version, x.data._version) == (1, 2, 2, 0)
    y = (w * data).sum()
    data.add_(1)
    with pytest.raises(RuntimeError, match="mul saved its input .* add_ wrote to it"):
        y.backward()
    y = (w * data).sum()
    x.data.zero_()
    y.backward()
    assert values(w.grad) == [0.0, 0.0, 0.0]
    y = (w * x).sum()
    vesta.exp(vesta.zeros(3, dtype=vesta.float64), out=x.data)
    y.backward()
    assert values(w.grad) == [1.0, 1.0, 1.0]


def test_assigned_data_keeps_the_version() -> None:
    """``x.data = y`` is no write to x: what was saved of x is read as it is now; x and y count for themselves."""
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    other = vesta.tensor([5.0, 6.0], dtype=vesta.float64)
    x.data = other
    assert x._version == 0
    y.backward()
    assert values(x.grad) == [10.0, 12.0]
    with vesta.no_grad():
        x.add_(1)
    assert (x._version, other._version, values(other)) == (1, 0, [6.0, 7.0])
    other.add_(1)
    assert (x._version, other._version, values(x)) == (1, 1, [7.0, 8.0])


def test_overlaps_through_data_are_seen() -> None:
    """Tensors of other counters share memory as all do: an op from one onto the other works as from a copy."""
    x = vesta.arange(6.0)
    x[1:].copy_(x.data[:-1])
    assert values(x) == [0.0, 0.0, 1.0, 2.0, 3.0, 4.0]


def test_caches_see_writes_through_data() -> None:
    """A cast that autocast keeps is made again after a write through ``.data``."""
    w = vesta.ones(2, 2, requires_grad=True)
    with vesta.autocast("cpu"):
        first = (vesta.ones(2, 2) @ w).tolist()
        w.data.mul_(3)
        assert (vesta.ones(2, 2) @ w).tolist() == [[3 * v for v in row] for row in first]


def test_saved_tensors_are_version_checked() -> None:
    """Writing to a saved tensor raises and names the op that saved it and the op that wrote; a clone avoids it."""
    for write in (
        lambda t: t.mul_(2),
        lambda t: t[0:1].zero_(),
        lambda t: t.detach().fill_(0),
        lambda t: t.__setitem__(0, 9.0),
    ):
        x = leaf(1.0, 2.0)
        y = x * 1
        z = y.exp().sum() + (y * y).sum()
        write(y)
        with pytest.raises(RuntimeError, match="modified by an in-?place") as caught:
            z.backward()
        assert "version" in str(caught.value)
    x = leaf(1.0, 2.0)
    y = x.exp()
    z = y.sum()
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an in-?place") as caught:
        z.backward()
    check.check_message(caught.value, "exp", "mul_")
    y = (x * 1).add(1)
    z = y.sum()  # sum saves nothing of its input
    y.mul_(2)
    z.backward()


def test_a_quotient_may_be_written() -> None:
    """Division saves its operands, not its result: writing to a quotient in place is common, and PyTorch allows it."""
    for make, expected in (
        (lambda x: 1 / x, [-1.0, -0.25]),
        (lambda x: vesta.ones(2, dtype=vesta.float64) / x, [-1.0, -0.25]),
        (lambda x: x / (x + 1), [0.25, 1 / 9]),
        (lambda x: (x * 1).div_(x * x), [-1.0, -0.25]),
    ):
        x = leaf(1.0, 2.0)
        y = make(x)
        y += 1
        y.sum().backward()
        assert np.allclose(values(x.grad), expected, rtol=1e-14)


# ---- in-place and the tape ----


def test_leaf_that_requires_grad_is_not_written() -> None:
    x = leaf(1.0, 2.0)
    for write in (lambda: x.add_(1), lambda: x.zero_(), lambda: x.__setitem__(0, 1.0), lambda: x.copy_(vesta.ones(2))):
        with pytest.raises(RuntimeError, match="leaf"):
            write()
    for write in (lambda: x[0:1].add_(1), lambda: x.view(2, 1).zero_()):
        with pytest.raises(RuntimeError, match="leaf"):
            write()
    assert values(x) == [1.0, 2.0] and x._version == 0


def test_in_place_on_an_intermediate() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    first = y.grad_fn
    same = y.mul_(3)
    assert same is y and y.grad_fn is not first and "Mul" in y.grad_fn.name()
    y.sum().backward()
    assert values(x.grad) == [6.0, 6.0]


def test_in_place_on_a_tensor_that_did_not_record() -> None:
    """Writing a recorded value into a plain tensor makes it part of the graph."""
    x = leaf(2.0)
    y = vesta.ones(1, dtype=vesta.float64)
    y.mul_(x)
    assert y.requires_grad and not y.is_leaf
    y.sum().backward()
    assert values(x.grad) == [1.0]
    buffer = vesta.zeros(3, dtype=vesta.float64)
    buffer[1] = x[0] * 4
    assert buffer.requires_grad
    x.grad = None
    (buffer * vesta.tensor([1.0, 10.0, 100.0], dtype=vesta.float64)).sum().backward()
    assert values(x.grad) == [40.0]


def test_in_place_on_a_view_rebases_the_base() -> None:
    """The base's history includes the write to its view; the view is rebuilt from the base."""
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    view = y[1:]
    view.mul_(10)
    assert values(y) == [1.0, 20.0, 30.0]
    assert "CopySlices" in y.grad_fn.name() or y.grad_fn is not None
    y.sum().backward()
    assert values(x.grad) == [1.0, 10.0, 10.0]


def test_views_of_views_and_several_views() -> None:
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = x * 1
    whole, row = y.view(2, 2), y.view(2, 2)[1]
    row.mul_(3)
    whole[0].mul_(5)
    (y * y).sum().backward()
    want = [2 * v * s * s for v, s in zip((1, 2, 3, 4), (5, 5, 3, 3))]
    assert values(x.grad) == [float(w) for w in want]
    assert values(row) == [9.0, 12.0] and row.requires_grad


def test_view_follows_a_write_to_its_base() -> None:
    """A view taken before its base is written has the gradient of the new value."""
    x = leaf(1.0, 2.0)
    y = x * 1
    view = y[0:1]
    y.mul_(7)
    assert values(view) == [7.0]
    view.sum().backward()
    assert values(x.grad) == [7.0, 0.0]


def test_copy_into_a_view_cuts_the_old_history() -> None:
    x, source = leaf(1.0, 2.0, 3.0), leaf(5.0)
    y = x * 1
    y[1:2].copy_(source)
    (y * vesta.tensor([1.0, 10.0, 100.0], dtype=vesta.float64)).sum().backward()
    assert values(x.grad) == [1.0, 0.0, 100.0] and values(source.grad) == [10.0]


def test_every_view_under_an_in_place_write() -> None:
    """For each kind of view: after y = view(x * 1), y.mul_(2) the base's gradient is 2 where the view is."""
    looks = {
        "view": lambda t: t.view(6),
        "reshape": lambda t: t.reshape(3, 2),
        "slice": lambda t: t[:, 1:],
        "step": lambda t: t[:, ::2],
        "select": lambda t: t[1],
        "transpose": lambda t: t.transpose(0, 1),
        "permute": lambda t: t.permute(1, 0),
        "t": lambda t: t.t(),
        "diagonal": lambda t: t.diagonal(),
        "unsqueeze": lambda t: t.unsqueeze(1),
        "narrow": lambda t: t.narrow(1, 0, 2),
        "flatten": lambda t: t.flatten(),
        "squeeze": lambda t: t.unsqueeze(0).squeeze(),
        "as_strided": lambda t: t.as_strided((2, 2), (3, 1), 1),
        "chain": lambda t: t[1:].t()[1:].view(2, 1)[0],
    }
    for name, look in looks.items():
        x = vesta.ones(2, 3, dtype=vesta.float64, requires_grad=True)
        base = x * 1
        look(base).mul_(2)
        mask = vesta.ones(2, 3, dtype=vesta.float64)
        look(mask).fill_(2)
        base.sum().backward()
        check.assert_same_bits(x.grad, mask, name)


@pytest.mark.differs
def test_views_from_multi_output_ops() -> None:
    """unbind, split and chunk return separate views: each may be written in place (PyTorch must refuse)."""
    x = leaf(1.0, 2.0, 3.0, 4.0)
    for cut in (lambda t: t.unbind(), lambda t: t.split(2), lambda t: t.chunk(2)):
        whole = x * 1
        pieces = cut(whole)
        x.grad = None
        pieces[1].sum().backward(retain_graph=True)
        assert sum(values(x.grad)) == float(pieces[1].numel())
        pieces[0].mul_(3)
        x.grad = None
        (whole.sum() + pieces[0].sum()).backward()
        n = pieces[0].numel()
        assert values(x.grad) == [6.0] * n + [1.0] * (4 - n)


def test_views_made_in_no_grad() -> None:
    """A view made without recording is read-only for the tape: writing it while recording raises."""
    x = leaf(1.0, 2.0)
    y = x * 1
    with vesta.no_grad():
        view = y.view(2, 1)
        view.mul_(2)
    assert values(y) == [2.0, 4.0]
    with pytest.raises(RuntimeError, match="no_grad"):
        view.mul_(x.view(2, 1))


def test_detach_shares_memory_and_versions() -> None:
    x = leaf(1.0, 2.0)
    y = x.exp()
    plain = y.detach()
    assert plain.data_ptr() == y.data_ptr() and not plain.requires_grad
    plain.zero_()
    with pytest.raises(RuntimeError, match="modified by an in-?place"):
        y.sum().backward()
    z = x * 1
    assert z.detach_() is z and z.is_leaf and not z.requires_grad
    with pytest.raises(RuntimeError):
        (x * 1)[0:1].detach_()


def test_in_place_gradcheck() -> None:
    """Finite differences agree through views and in-place writes, twice."""

    def history(x, w):
        y = x.clone()
        y[0].mul_(w[0])
        y.t()[1].add_(w[1])
        y[1:, 1:].copy_((w * w)[:1].view(1, 1))
        y.view(-1)[2:4].exp_()
        z = y * 1
        z.diagonal().mul_(y[0])
        return z

    x = vesta.tensor([[0.5, 1.0], [1.5, 2.0]], dtype=vesta.float64, requires_grad=True)
    w = leaf(0.7, 1.3)
    assert autograd.gradcheck(history, (x, w)) and autograd.gradgradcheck(history, (x, w))


def test_clamp_in_place_between_two_bounds() -> None:
    """clamp_ overwrites the values that its gradient needs; a refused call leaves its operand unchanged."""
    for bounds in ((-0.5, 0.5), (leaf(-0.5), vesta.tensor(0.5, dtype=vesta.float64))):
        x = leaf(-1.0, 0.2, 3.0)
        y = x * 2
        y[:].clamp_(*bounds)
        (y * y).sum().backward()
        assert values(y) == [-0.5, 0.4, 0.5] and np.allclose(values(x.grad), [0.0, 1.6, 0.0])
    whole = vesta.arange(4)
    with pytest.raises(RuntimeError, match="clamp_"):
        whole.clamp_(1, 2.5)
    assert whole.tolist() == [0, 1, 2, 3] and vesta.arange(4).clamp_(1, 2).tolist() == [1, 1, 2, 2]


# ---- setitem ----


def test_setitem_gradients() -> None:
    for index in (0, slice(1, 3), (vesta.tensor([0, 2]),), vesta.tensor([True, False, True, False])):
        x, source = leaf(1.0, 2.0, 3.0, 4.0), leaf(10.0)
        y = x * 2
        y[index] = source
        mask = np.full(4, 2.0)
        mask[
            tuple(i.numpy() for i in index)
            if isinstance(index, tuple)
            else getattr(index, "numpy", lambda i=index: i)()
        ] = 0
        y.sum().backward()
        assert values(x.grad) == mask.tolist() and values(source.grad) == [float((mask == 0).sum())]


# ---- overlap ----


@pytest.mark.differs
def test_in_place_with_an_operand_that_overlaps() -> None:
    """a -= a[:, :1] uses the values from before the write, for every broadcast view of the operand."""
    for op in ("add_", "sub_", "mul_", "div_", "copy_"):
        for look in (lambda t: t[:, :1], lambda t: t[:1], lambda t: t[1:2, 1:2], lambda t: t[0, 0], lambda t: t.t()):
            source = vesta.arange(1, 10, dtype=vesta.float64).view(3, 3)
            target = source.clone()
            getattr(target, op)(look(target))
            want = source.clone()
            getattr(want, op)(look(source).clone())
            check.assert_same_bits(target, want, op)


@pytest.mark.differs
def test_copy_between_overlapping_slices() -> None:
    """x[1:] = x[:-1] in either direction and along either axis equals NumPy's answer."""
    for shape, (to, source) in itertools.product(
        ((9,), (4, 5)), ((slice(1, None), slice(None, -1)), (slice(None, -1), slice(1, None)))
    ):
        for axis in range(len(shape)):
            array = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
            tensor = vesta.from_numpy(array.copy())
            pick = lambda s, axis=axis: (slice(None),) * axis + (s,)
            array[pick(to)] = array[pick(source)].copy()
            tensor[pick(to)] = tensor[pick(source)]
            np.testing.assert_array_equal(tensor.numpy(), array)


@pytest.mark.differs
def test_every_small_overlap() -> None:
    """All pairs of strided views of one storage of 12 elements: each write equals the write from a copy."""
    looks = [
        (size, stride, offset)
        for size in itertools.product((1, 2, 3), repeat=2)
        for stride in itertools.product((1, 2, 3), repeat=2)
        for offset in (0, 1)
        if len({i * stride[0] + j * stride[1] for i in range(size[0]) for j in range(size[1])}) == size[0] * size[1]
        and sum((n - 1) * s for n, s in zip(size, stride)) + offset < 12
    ]
    count = 0
    for target, source in itertools.product(looks, looks):
        if target[0] != source[0]:
            continue
        start = vesta.arange(12, dtype=vesta.float64)
        written, reference = start.clone(), start.clone()
        written.as_strided(*target).add_(written.as_strided(*source))
        reference.as_strided(*target).add_(start.as_strided(*source))
        check.assert_same_bits(written, reference, f"{target} += {source}")
        count += 1
    assert count > 500


@pytest.mark.differs
def test_writing_where_elements_share_memory_raises() -> None:
    """A target that contains one element several times has no defined result: it raises."""
    x = vesta.zeros(3)
    for target in (x.expand(2, 3), x.as_strided((2, 2), (1, 1), 0)):
        for write in (
            lambda t: t.add_(1.0),
            lambda t: t.copy_(vesta.ones(t.shape)),
            lambda t: vesta.exp(vesta.ones(t.shape), out=t),
        ):
            with pytest.raises(RuntimeError, match="(?i)overlap|memory|expand"):
                write(target)
    assert values(x) == [0.0] * 3
