"""GradScaler: scale, unscale_, step, update, state; with optimizers, clipping and autocast.

Tests without the mark ``differs`` test PyTorch's behaviour; they also pass with ``sys.modules["vesta"] = torch``.
"""

from __future__ import annotations

import copy
import math
import pickle

import pytest
import vesta
from vesta import nn
from vesta.nn import functional as F

INF, NAN = math.inf, math.nan


def make(device="cpu", values=(1.0, 2.0, 3.0), lr=0.5, **options):
    """Returns a scaler, a leaf and its optimizer."""
    weight = vesta.tensor(list(values), device=device, requires_grad=True)
    return vesta.amp.GradScaler(device, **options), weight, vesta.optim.SGD([weight], lr=lr)


def backward(scaler, weight, factor=1.0):
    scaler.scale((weight * factor).sum()).backward()


def test_one_iteration():
    scaler, weight, optimizer = make(init_scale=8.0)
    assert scaler.get_scale() == 8.0 and scaler.is_enabled()
    backward(scaler, weight)
    assert weight.grad.tolist() == [8.0] * 3
    scaler.step(optimizer)
    assert weight.grad.tolist() == [1.0] * 3
    assert weight.tolist() == [0.5, 1.5, 2.5]
    scaler.update()
    assert scaler.get_scale() == 8.0 and scaler._get_growth_tracker() == 1


@pytest.mark.parametrize("bad", [INF, -INF, NAN])
def test_a_step_that_is_not_finite_is_skipped(bad):
    scaler, weight, optimizer = make(init_scale=8.0)
    backward(scaler, weight)
    weight.grad[1] = bad
    assert scaler.step(optimizer) is None
    assert weight.tolist() == [1.0, 2.0, 3.0]
    scaler.update()
    assert scaler.get_scale() == 4.0 and scaler._get_growth_tracker() == 0
    weight.grad = None
    backward(scaler, weight)
    scaler.step(optimizer)
    assert weight.tolist() == [0.5, 1.5, 2.5]


def test_growth():
    scaler, weight, optimizer = make(init_scale=4.0, growth_interval=2, growth_factor=4.0)
    seen = []
    for _ in range(5):
        optimizer.zero_grad()
        backward(scaler, weight)
        scaler.step(optimizer)
        scaler.update()
        seen.append((scaler.get_scale(), scaler._get_growth_tracker()))
    assert seen == [(4.0, 1), (16.0, 0), (16.0, 1), (64.0, 0), (64.0, 1)]


def test_the_scale_never_becomes_infinite():
    scaler, weight, optimizer = make(init_scale=2.0**127, growth_interval=1)
    backward(scaler, weight, 2.0**-20)
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 2.0**127


def test_unscale_then_clip():
    scaler, weight, optimizer = make(init_scale=1024.0, lr=1.0)
    backward(scaler, weight, 2.0)
    scaler.unscale_(optimizer)
    assert weight.grad.tolist() == [2.0] * 3
    norm = nn.utils.clip_grad_norm_([weight], 1.0)
    assert abs(float(norm) - math.sqrt(12)) < 1e-5
    scaler.step(optimizer)
    scaler.update()
    assert vesta.allclose(weight.detach(), vesta.tensor([1.0, 2.0, 3.0]) - 1 / math.sqrt(3), atol=1e-5)


def test_the_order_of_calls():
    scaler, weight, optimizer = make()
    with pytest.raises(AssertionError, match="_scale is None"):
        scaler.step(optimizer)
    with pytest.raises(AssertionError, match="_scale is None"):
        scaler.update()
    backward(scaler, weight)
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="already been called since"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="called after step"):
        scaler.unscale_(optimizer)
    scaler.update()
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.update()
    with pytest.raises(RuntimeError, match="Closure"):
        scaler.step(optimizer, closure=lambda: None)
    optimizer.zero_grad()
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.step(optimizer)


def test_bad_arguments():
    with pytest.raises(AssertionError, match="growth factor"):
        vesta.amp.GradScaler("cpu", growth_factor=1.0)
    with pytest.raises(AssertionError, match="backoff factor"):
        vesta.amp.GradScaler("cpu", backoff_factor=1.0)
    scaler, weight, optimizer = make()
    with pytest.raises(ValueError, match="outputs must be a Tensor"):
        scaler.scale(3.0)
    half = vesta.ones(2, dtype=vesta.float16, requires_grad=True)
    halves = vesta.optim.SGD([half], lr=0.5)
    scaler.scale(half.sum()).backward()
    with pytest.raises(ValueError, match="unscale FP16"):
        scaler.step(halves)


def test_disabled():
    scaler, weight, optimizer = make(enabled=False)
    loss = weight.sum()
    assert scaler.scale(loss) is loss and not scaler.is_enabled() and scaler.get_scale() == 1.0
    loss.backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [0.5, 1.5, 2.5] and scaler.state_dict() == {}
    scaler.load_state_dict({})


def test_scale_of_containers():
    scaler, weight, _ = make(init_scale=2.0)
    one, (two, three) = scaler.scale((weight, [weight * 2, weight * 3]))
    assert (one.tolist(), two.tolist(), three.tolist()) == ([2, 4, 6], [4, 8, 12], [6, 12, 18])
    assert [t.tolist() for t in scaler.scale(t for t in (weight,))] == [[2, 4, 6]]
    assert isinstance(scaler.scale([weight]), list)


def test_scale_keeps_the_dtype_of_losses():
    scaler, _, _ = make()
    assert scaler.scale(vesta.ones(2, dtype=vesta.float16)).dtype == vesta.float16
    assert scaler.scale(vesta.ones((), dtype=vesta.float32)).dtype == vesta.float32


def test_several_optimizers_and_losses():
    scaler, a, first = make(init_scale=4.0)
    b = vesta.ones(2, requires_grad=True)
    unused = vesta.ones(2, requires_grad=True)
    second = vesta.optim.Adam([b, unused], lr=0.1)
    for loss in scaler.scale([a.sum(), b.sum()]):
        loss.backward()
    b.grad[0] = INF
    scaler.step(first)
    scaler.step(second)
    scaler.update()
    assert a.tolist() == [0.5, 1.5, 2.5] and b.tolist() == [1.0, 1.0]  # only an optimizer's own gradients count
    assert scaler.get_scale() == 2.0


def test_gradients_accumulate():
    scaler, weight, optimizer = make(init_scale=16.0)
    for _ in range(3):
        backward(scaler, weight, 0.5)
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [0.25, 1.25, 2.25]


def test_update_to_a_given_scale():
    scaler, weight, _ = make()
    backward(scaler, weight)
    scaler.update(32.0)
    assert scaler.get_scale() == 32.0
    scaler.update(vesta.tensor(64.0))
    assert scaler.get_scale() == 64.0
    with pytest.raises(AssertionError, match="new_scale"):
        scaler.update(vesta.ones(2))


def test_settings():
    scaler, _, _ = make()
    assert (scaler.get_growth_factor(), scaler.get_backoff_factor(), scaler.get_growth_interval()) == (2.0, 0.5, 2000)
    scaler.set_growth_factor(3.0)
    scaler.set_backoff_factor(0.25)
    scaler.set_growth_interval(7)
    assert (scaler.get_growth_factor(), scaler.get_backoff_factor(), scaler.get_growth_interval()) == (3.0, 0.25, 7)


def test_state_goes_round():
    scaler, weight, optimizer = make(init_scale=4.0, growth_interval=5)
    backward(scaler, weight)
    scaler.step(optimizer)
    scaler.update()
    state = scaler.state_dict()
    assert state == {
        "scale": 4.0,
        "growth_factor": 2.0,
        "backoff_factor": 0.5,
        "growth_interval": 5,
        "_growth_tracker": 1,
    }
    fresh = vesta.amp.GradScaler("cpu")
    fresh.load_state_dict(copy.deepcopy(state))
    assert fresh.state_dict() == state
    used, other, _ = make()
    backward(used, other)
    used.load_state_dict(state)
    assert used.state_dict() == state
    with pytest.raises(RuntimeError, match="empty"):
        fresh.load_state_dict({})


def test_pickle():
    scaler, weight, optimizer = make(init_scale=4.0)
    backward(scaler, weight)
    scaler.unscale_(optimizer)
    with pytest.raises(AssertionError, match="pickled"):
        pickle.dumps(scaler)
    scaler.step(optimizer)
    scaler.update()
    assert pickle.loads(pickle.dumps(scaler)).state_dict() == scaler.state_dict()


def test_an_optimizer_that_scales_by_itself():
    class Own(vesta.optim.SGD):
        _step_supports_amp_scaling = True

        def step(self, closure=None):
            seen.append((self.grad_scale.item() if self.grad_scale is not None else None, self.found_inf.item()))

    seen = []
    scaler, weight, _ = make(init_scale=8.0)
    own = Own([weight], lr=0.1)
    backward(scaler, weight)
    scaler.step(own)
    scaler.update()
    scaler.unscale_(own)
    weight.grad[0] = INF
    scaler.step(own)
    scaler.update()
    assert seen == [(8.0, 0.0), (None, 0.0)]
    assert not hasattr(own, "grad_scale") and not hasattr(own, "found_inf")


def test_a_step_returns_what_the_optimizers_step_returns():
    class Own(vesta.optim.SGD):
        def step(self, value, *, more):
            return value + more

    scaler, weight, _ = make()
    backward(scaler, weight)
    assert scaler.step(Own([weight], lr=0.1), 3, more=4) == 7


def train(scale, dtype=None, steps=120):
    """Trains a small MLP; returns the final loss."""
    vesta.manual_seed(3)
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 4))
    optimizer = vesta.optim.Adam(model.parameters(), lr=0.01)
    scaler = vesta.amp.GradScaler("cpu", init_scale=2.0**14, growth_interval=20, enabled=scale)
    inputs = vesta.randn(64, 8)
    target = (inputs[:, :4] + inputs[:, 4:] * 0.5).argmax(1)
    for _ in range(steps):
        optimizer.zero_grad()
        with vesta.autocast("cpu", dtype, enabled=dtype is not None):
            loss = F.cross_entropy(model(inputs), target)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        scaler.step(optimizer)
        scaler.update()
    assert all(p.dtype == vesta.float32 and p.grad.dtype == vesta.float32 for p in model.parameters())
    return loss.item()


@pytest.mark.parametrize("dtype", [vesta.float16, vesta.bfloat16], ids=str)
def test_training_reaches_the_loss_of_float32(dtype):
    full = train(False)
    assert full < 0.3
    assert abs(train(True, dtype) - full) < 0.1 * full + 0.02


# ---- the two ops ----


def cell(value, device="cpu", dtype=vesta.float32):
    return vesta.full((), value, dtype=dtype, device=device)


def devices():
    return ["cpu", "cuda"] if vesta.cuda.is_available() else ["cpu"]


@pytest.mark.differs
class TestOps:
    """``_amp_unscale_`` and ``_amp_update_scale_``, on every available device."""

    @pytest.mark.parametrize("device", devices())
    @pytest.mark.parametrize("dtype", [vesta.float32, vesta.float64, vesta.float16, vesta.bfloat16], ids=str)
    def test_unscale(self, device, dtype):
        for bad in (None, INF, -INF, NAN):
            for place in (0, 1):
                sizes = ((3, 5), (4099,), (), (0,), (70000,), (2, 3, 4))
                base = [((vesta.arange(max(math.prod(s), 1)) % 64 - 32).to(dtype))[: math.prod(s)] for s in sizes]
                grads = [b.reshape(s).to(device) for b, s in zip(base, sizes)]
                grads.append(grads[0].t().clone())  # different strides
                grads.append(vesta.ones(6, 8, dtype=dtype).to(device)[1:5, ::2])  # with gaps
                grads += [vesta.ones(5, dtype=dtype, device=device) for _ in range(100)]  # more than one launch
                if bad is not None:
                    grads[4][(0, -1)[place]] = bad
                found = cell(0.0, device)
                whole = [g.clone() for g in grads]
                vesta._C._amp_unscale_(grads, found, cell(0.25, device))
                assert found.item() == (0.0 if bad is None else 1.0)
                for g, w in zip(grads, whole):
                    assert vesta.allclose(g.cpu(), (w * 0.25).cpu(), rtol=0, atol=0, equal_nan=True)

    @pytest.mark.parametrize("device", devices())
    def test_unscale_finds_the_infinite_before_it_scales(self, device):
        big = vesta.full((3,), 6e4, dtype=vesta.float16).to(device)
        found = cell(0.0, device)
        vesta._C._amp_unscale_([big], found, cell(2.0, device))
        assert found.item() == 0.0 and big[0].item() == INF
        vesta._C._amp_unscale_([big], found, cell(0.0, device))
        assert found.item() == 1.0

    @pytest.mark.parametrize("device", devices())
    def test_found_stays_found(self, device):
        found = cell(1.0, device)
        vesta._C._amp_unscale_([vesta.ones(3).to(device)], found, cell(0.5, device))
        vesta._C._amp_unscale_([], found, cell(0.5, device))
        assert found.item() == 1.0

    @pytest.mark.parametrize("device", devices())
    def test_update(self, device):
        def after(scale, tracker, found, interval=3):
            s, t = cell(scale, device), vesta.full((), tracker, dtype=vesta.int32, device=device)
            vesta._C._amp_update_scale_(s, t, cell(found, device), 2.0, 0.5, interval)
            return s.item(), t.item()

        assert after(8.0, 0, 0.0) == (8.0, 1)
        assert after(8.0, 2, 0.0) == (16.0, 0)
        assert after(8.0, 2, 1.0) == (4.0, 0)
        assert after(8.0, 2, 2.0) == (4.0, 0)  # two devices found a non-finite value
        assert after(2.0**127, 2, 0.0) == (2.0**127, 0)
        assert after(8.0, 7, 0.0, 1) == (16.0, 0)

    def test_versions(self):
        g, found = vesta.ones(3), cell(0.0)
        before = g._version
        vesta._C._amp_unscale_([g], found, cell(0.5))
        assert g._version == before + 1

    def test_refused(self):
        ok, found, inv = vesta.ones(3), cell(0.0), cell(0.5)
        with pytest.raises(TypeError, match="floating-point dtype, got int64"):
            vesta._C._amp_unscale_([vesta.arange(3)], found, inv)
        with pytest.raises(ValueError, match="found_inf"):
            vesta._C._amp_unscale_([ok], vesta.zeros(2), inv)
        with pytest.raises(ValueError, match="inv_scale"):
            vesta._C._amp_unscale_([ok], found, cell(0.5, dtype=vesta.float64))
        with pytest.raises(RuntimeError):
            vesta._C._amp_unscale_([vesta.ones(1).expand(3)], found, inv)
        with pytest.raises(ValueError, match="growth_interval"):
            vesta._C._amp_update_scale_(cell(1.0), cell(0, dtype=vesta.int32), found, 2.0, 0.5, 0)
        with pytest.raises(ValueError, match="growth_tracker"):
            vesta._C._amp_update_scale_(cell(1.0), cell(0.0), found, 2.0, 0.5, 1)
        leaf = vesta.ones(3, requires_grad=True)
        with pytest.raises(RuntimeError):
            vesta._C._amp_unscale_([leaf], found, inv)
        assert ok.tolist() == [1.0] * 3

    def test_devices_are_not_mixed(self):
        if not vesta.cuda.is_available():
            pytest.skip("needs a CUDA device, or the emulated one")
        with pytest.raises(vesta.DeviceError, match=r"grads.*cpu|cpu.*grads"):
            vesta._C._amp_unscale_([vesta.ones(3)], cell(0.0, "cuda"), cell(0.5, "cuda"))
        with pytest.raises(vesta.DeviceError, match="growth_tracker"):
            vesta._C._amp_update_scale_(cell(1.0, "cuda"), cell(0, dtype=vesta.int32), cell(0.0, "cuda"), 2.0, 0.5, 1)


def test_cuda_gradients():
    """One iteration on CUDA with given gradients: it needs only the scaler's own kernels."""
    if not vesta.cuda.is_available():
        with pytest.warns(UserWarning, match="CUDA is not available"):
            assert not vesta.amp.GradScaler().is_enabled()
        return

    class Halve(vesta.optim.SGD):
        def step(self):
            weight.grad.fill_(7.0)

    weight = vesta.ones(3).to("cuda").requires_grad_()
    scaler, optimizer = vesta.amp.GradScaler("cuda", init_scale=4.0, growth_interval=1), Halve([weight], lr=0.1)
    assert scaler.scale(weight.detach()).tolist() == [4.0] * 3
    for bad in (False, True):
        weight.grad = vesta.tensor([4.0, 8.0, INF if bad else 12.0]).to("cuda")
        scaler.unscale_(optimizer)
        assert weight.grad.tolist()[:2] == [1.0, 2.0]
        scaler.step(optimizer)
        assert (weight.grad[0].item() == 7.0) == (not bad)
        scaler.update()
        assert scaler.get_scale() == (2.0 if bad else 8.0)
        if not bad:
            scaler.update(4.0)
