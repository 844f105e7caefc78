"""Linear layers with their activation, and convolutions with what follows, as one call of a library: stand-ins that
compute on the emulated device."""

from __future__ import annotations

import cuda_fakes
import pytest
import vesta
from cuda_fakes import FAKES, PRELUDE, needs_device, needs_fakes
from recorded import recorded
from vesta import nn

ACTIVATIONS = """
allow = vesta.backends.cuda.matmul
assert allow.allow_relu_epilogue is False
def step(net, x, grad):
    x = x.detach().requires_grad_(grad)
    with vesta.set_grad_enabled(grad):
        y = net(x)
    if not grad: return [y]
    return [y.detach(), *vesta.autograd.grad(y.float().square().sum(), [x, *net.parameters()])]
for allowed in (False, True):
    allow.allow_relu_epilogue = allowed
    for dtype, rtol in (("float32", 1e-4), ("float16", 1e-2), ("bfloat16", 5e-2), ("float64", 1e-12)):
        for layer in (nn.ReLU(), nn.ReLU(inplace=True), nn.GELU("tanh"), nn.GELU()):
            for bias, outputs, shape in ((True, 8, (5, 12)), (False, 16, (2, 3, 12)), (True, 5, (12,))):
                vesta.manual_seed(0)
                net = nn.Sequential(nn.Linear(12, outputs, bias=bias), layer).to(getattr(vesta, dtype))
                x = made(*shape, dtype=dtype)
                for grad in (False, True):
                    want = step(net.cpu(), x, grad)
                    net.cuda()
                    before = fake.fake_activations(), launches()
                    got = step(net, x.cuda(), grad)
                    gelu = isinstance(layer, nn.GELU)
                    by_library = (layer.approximate == "tanh" and dtype in ("float16", "bfloat16")
                                  and not (grad and outputs % 8)) if gelu else allowed and dtype != "float64"
                    assert fake.fake_activations() - before[0] == (by_library and EXPECTED), (dtype, layer, grad)
                    if by_library and EXPECTED and not grad: assert launches() - before[1] == 1
                    assert len(got) == len(want)
                    for a, b in zip(got, want): same(a, b, rtol)
"""


@needs_fakes
def test_activations_are_the_products_epilogues() -> None:
    cuda_fakes.check(PRELUDE + "EXPECTED = True" + ACTIVATIONS, FAKES)
    cuda_fakes.check(PRELUDE + "EXPECTED = True" + ACTIVATIONS, FAKES, VESTA_EMULATION_SCHEDULE="random")
    cuda_fakes.check(PRELUDE + "EXPECTED = False" + ACTIVATIONS, FAKES, FAKE_CUBLAS_LT="plain")  # refused: two ops


@pytest.mark.differs
def test_one_gelu_on_every_device() -> None:
    b, x, w = vesta.randn(4), vesta.randn(3, 5), vesta.randn(5, 4)
    want = nn.functional.gelu(vesta.addmm(b, x, w), approximate="tanh")
    for where in ("cpu", "cuda") if vesta.cuda.is_available() else ("cpu",):
        for y in (
            vesta._addmm_activation(b.to(where), x.to(where), w.to(where), use_gelu=True),
            b.to(where)._addmm_activation(x.to(where), w.to(where), beta=1, alpha=1, use_gelu=True),
        ):
            assert vesta.allclose(y.cpu(), want, rtol=1e-5, atol=1e-6)
    assert vesta.equal(vesta._addmm_activation(b, x, w, alpha=-2), vesta.addmm(b, x, w, alpha=-2).relu())


@pytest.mark.differs
@needs_fakes
def test_nan_stays_nan_unless_relu_may_be_the_librarys() -> None:
    cuda_fakes.check(
        PRELUDE
        + """
x, w = made(3, 8), made(4, 8)
x[1, 2] = float("nan")
for use_gelu in (False, True):
    for device in ("cpu", "cuda"):
        y = vesta._C._private._linear_activation(x.to(device).half(), w.to(device).half(), None, use_gelu)
        assert y.isnan().tolist() == [[False] * 4, [True] * 4, [False] * 4], (device, use_gelu)
vesta.backends.cuda.matmul.allow_relu_epilogue = True
assert not vesta.relu(x.cuda() @ w.t().cuda()).nan_to_num(-1).eq(0).all()
assert not vesta._C._private._linear_activation(x.cuda(), w.cuda(), None, False).isnan().any()
""",
        FAKES,
    )


@needs_fakes
def test_the_gradient_of_the_gradient_computes_the_layer_again() -> None:
    cuda_fakes.check(
        PRELUDE
        + """
sides = []
for device in ("cpu", "cuda"):
    x, w, b = (made(*s).to(device).requires_grad_() for s in ((3, 8), (8, 8), (8,)))
    with vesta.autocast(device, dtype=vesta.bfloat16):
        y = vesta._C._private._linear_activation(x, w, b, True)
    assert y.dtype == vesta.bfloat16
    first = vesta.autograd.grad(y.float().pow(3).sum(), (x, w, b), create_graph=True)
    second = vesta.autograd.grad(sum(g.square().sum() for g in first), (x, w, b))
    sides.append([y, *first, *second])
assert fake.fake_activations() == 1
for want, got in zip(*sides):
    assert got.dtype == want.dtype
    limit = 0.05 * want.detach().abs().max().item()
    assert (got.detach().cpu().float() - want.detach().float()).abs().max().item() < limit
""",
        FAKES,
    )


def chain(**more: object) -> nn.Sequential:
    vesta.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(**more), nn.Linear(8, 8), nn.GELU("tanh"), nn.Linear(8, 3)).cuda()


def joined(net: nn.Module, x: vesta.Tensor) -> int:
    """Counts the layers that ran with their activation as one op."""
    return recorded(lambda: net(x), "_fused_linear")[1]


@pytest.mark.differs
@needs_device
@pytest.mark.parametrize("grad", [False, True])
def test_a_chain_computes_the_same_joined_or_not(grad: bool) -> None:
    net, x = chain(), vesta.randn(4, 6).cuda()
    apart, results = chain(), []
    for module in apart:
        module.register_forward_hook(lambda *_: None)
    for each in (net, apart):
        with vesta.set_grad_enabled(grad):
            y = each(x)
        results.append([y, *vesta.autograd.grad(y.sum(), list(each.parameters()))] if grad else [y])
    for a, b in zip(*results):
        assert vesta.equal(a, b)
    assert joined(net, x) == 2 and joined(apart, x) == 0


@pytest.mark.differs
@needs_device
def test_what_sees_the_middle_keeps_layers_apart() -> None:
    x = vesta.randn(4, 6).cuda()

    class Mine(nn.Linear):
        pass

    net = chain()
    seen: list[object] = []
    handle = net[0].register_forward_hook(lambda *args: seen.append(args))
    assert joined(net, x) == 1 and len(seen) == 1
    handle.remove()
    net(x)  # finds out that the hook is gone
    assert joined(net, x) == 2
    handle = net[1].register_forward_pre_hook(lambda *args: seen.append(args))
    assert joined(net, x) == 1
    handle.remove()
    handle = nn.modules.module.register_module_forward_hook(lambda *args: None)
    assert joined(net, x) == 0
    handle.remove()
    net[0] = Mine(6, 8).cuda()
    assert joined(net, x) == 1
    net = chain()
    net[1].forward = lambda t: t * 2
    assert joined(net, x) == 1 and not (net[:2](x) < 0).logical_not().all()
    net = chain()
    nn.utils.parametrizations.weight_norm(net[0])
    assert joined(net, x) == 1
    with vesta.autograd.detect_anomaly(check_nan=False):
        assert joined(chain(), x) == 0

    class Mode(vesta.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with Mode():
        net = chain()
        seen.clear()
        net(x)
    assert nn.functional.linear in seen
    assert joined(chain(), vesta.randn(2, 3, 6).cuda()) == 2
    with pytest.raises(ValueError, match="features") as caught:
        chain()(vesta.randn(4, 5).cuda())
    assert "Linear(in_features=6" in "".join([str(caught.value), *getattr(caught.value, "__notes__", [])])


def test_the_cpu_keeps_layers_apart() -> None:
    vesta.manual_seed(1)
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU())
    assert joined(net, vesta.randn(4, 6)) == 0


CONVOLUTIONS = """
def layouts():
    return dict(vesta._C_cuda.counters())["layouts_made"]
for dtype, rtol in (("float32", 1e-4), ("bfloat16", 5e-2), ("float16", 1e-2), ("float64", 1e-10)):
    for memory_format in (vesta.contiguous_format, vesta.channels_last):
        x, w, b, z = (made(*s, dtype=dtype) for s in ((2, 4, 7, 6), (8, 4, 3, 3), (8,), (2, 8, 7, 6)))
        on = [t.cuda().contiguous(memory_format=memory_format) if t.dim() == 4 else t.cuda() for t in (x, w, b, z)]
        how = ([1, 1], [1, 1], [1, 1], 1)
        calls = (
            lambda x, w, b, z: F.conv2d(x, w, b, padding=1),
            lambda x, w, b, z: F.conv2d(x, w, b[1:7].repeat(2)[2:10], padding=1),
            lambda x, w, b, z: vesta.cudnn_convolution_relu(x, w, b, *how),
            lambda x, w, b, z: vesta.cudnn_convolution_relu(x, w, None, *how),
            lambda x, w, b, z: vesta.cudnn_convolution_add_relu(x, w, z, None, b, *how),
            lambda x, w, b, z: vesta.cudnn_convolution_add_relu(x, w, z, 1, None, *how),
            lambda x, w, b, z: vesta.cudnn_convolution_add_relu(x, w, z[:1], 1.0, b, *how),  # broadcast: apart
        )
        for i, call in enumerate(calls):
            want = call(x, w, b, z)
            before = fake.fake_joined(), fake.fake_convolutions(), layouts()
            got = call(*on)
            one = EXPECTED and dtype != "float64" and i not in (3, 5)  # without a bias
            assert fake.fake_joined() - before[0] == one, (dtype, i)
            assert fake.fake_convolutions() - before[1] == (not one), (dtype, i)
            if memory_format is vesta.channels_last and dtype != "float64": assert layouts() == before[2]
            if dtype != "float64": assert got.is_contiguous(memory_format=memory_format)  # which has rows only
            same(got, want, rtol)
        got = vesta.cudnn_convolution_add_relu(on[0], on[1], on[3], 2, on[2], *how)  # another alpha: a bias is left
        same(got, vesta.cudnn_convolution_add_relu(x, w, z, 2, b, *how), rtol)
"""


@needs_fakes
def test_what_follows_a_convolution_is_in_its_graph() -> None:
    for schedule in ("eager", "random"):
        cuda_fakes.check(PRELUDE + "EXPECTED = True" + CONVOLUTIONS, FAKES / "cudnn", VESTA_EMULATION_SCHEDULE=schedule)
    cuda_fakes.check(PRELUDE + "EXPECTED = False" + CONVOLUTIONS, FAKES / "cudnn", FAKE_CUDNN="convolutions")


CONVOLUTION_CHAINS = """
class Own(nn.ReLU): pass
def chain(activation=nn.ReLU, **how):
    vesta.manual_seed(1)
    return nn.Sequential(nn.Conv2d(4, 8, 3, **how), activation(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(inplace=True))
x = made(2, 4, 7, 6)
def run(net, x=x, autocast=False, **cast):
    want = net.cpu().to(vesta.float32)(x)
    net.cuda().to(memory_format=vesta.channels_last, **cast)
    there = x.cuda().to(**cast) if cast else x.cuda()
    for _ in range(2):  # casts of weights are kept
        before = launches()
        with vesta.autocast("cuda", vesta.bfloat16, enabled=autocast):
            got = net(there)
        spent = launches() - before
    same(got, want, 1e-3 if not cast and not autocast else 5e-2)
    return spent
last = x.contiguous(memory_format=vesta.channels_last)
with vesta.no_grad():
    hooked = chain()
    seen = []
    hooked[0].register_forward_hook(lambda *_: seen.append(0))
    assert run(hooked, last) == 3 and len(seen) == 3
    assert run(chain(), last) == 2  # one launch each
    assert run(chain(), last, dtype=vesta.bfloat16) == 2
    assert run(chain(stride=2, dilation=(1, 2), padding=(2, 1), groups=2), last) == 2
    rows = run(chain())
    assert rows == run(hooked) - 1 and run(chain(), autocast=True) == run(hooked, autocast=True) - 1
    for net in (chain(Own), chain(bias=False), chain(padding="same"), chain(padding=1, padding_mode="reflect")):
        assert run(net, last) >= 3, net
    own = chain()
    own[0]._conv_forward = lambda *given: nn.Conv2d._conv_forward(own[0], *given)
    assert run(own, last) == 3
    try: chain().cuda()(vesta.zeros(2, 5, 7, 6, device="cuda"))
    except RuntimeError as error: assert "channels" in str(error), error
    else: raise AssertionError
assert run(chain(), last) > 3  # recorded
assert run(chain().requires_grad_(False), last) == 2
"""


@needs_fakes
def test_a_chain_of_convolutions_and_relu_is_a_launch_each_without_gradients() -> None:
    cuda_fakes.check(PRELUDE + CONVOLUTION_CHAINS, FAKES / "cudnn")


@needs_fakes
def test_gradients_of_a_convolution_with_relu_and_nan() -> None:
    cuda_fakes.check(
        PRELUDE
        + """
sides = []
for device in ("cpu", "cuda"):
    leaves = [made(*s).to(device).requires_grad_() for s in ((2, 4, 7, 6), (8, 4, 3, 3), (2, 8, 7, 6), (8,))]
    x, w, z, b = leaves
    y = vesta.cudnn_convolution_add_relu(x, w, z, 1, b, [1, 1], [1, 1], [1, 1], 1)
    sides.append([y, *vesta.autograd.grad(y.square().sum(), leaves)])
for want, got in zip(*sides): same(got, want, 1e-3)
x, w = made(1, 4, 7, 6).cuda(), made(8, 4, 3, 3).cuda()
x[0, 0, 0, 0] = float("nan")
before = fake.fake_joined()
y = vesta.cudnn_convolution_relu(x, w, made(8).cuda(), [1, 1], [1, 1], [1, 1], 1)
assert fake.fake_joined() == before + 1 and y.isnan().sum().item() == 8 * 4
assert (y.nan_to_num(0) >= 0).all() and (y == 0).any()
""",
        FAKES / "cudnn",
    )


ENGINES = """
x, w = made(2, 4, 7, 6).cuda().requires_grad_(), made(8, 4, 3, 3).cuda().requires_grad_()
def step():
    before = fake.fake_undetermined()
    F.conv2d(x, w, padding=1).sum().backward()
    return fake.fake_undetermined() - before
assert step() == 0                                   # the engine that is proposed first is passed over
with vesta.backends.cuda.flags(allow_nondeterministic=True):
    assert step() == 2                               # in both gradients; forward needs none
    vesta.use_deterministic_algorithms(True)
    assert step() == 0
    vesta.use_deterministic_algorithms(False)
assert step() == 0
"""


@needs_fakes
def test_engines_are_deterministic_unless_others_are_allowed() -> None:
    cuda_fakes.check(PRELUDE + ENGINES, FAKES / "cudnn", FAKE_CUDNN="undetermined")


@needs_device
@pytest.mark.parametrize("where", ["cpu", "cuda"])
@pytest.mark.parametrize("dtype", [vesta.float32, vesta.bfloat16], ids=str)
def test_the_bias_may_be_written_before_the_gradient_of_the_gradient(dtype: vesta.dtype, where: str) -> None:
    """As behind a linear layer and a gelu, which keep no bias."""
    vesta.manual_seed(4)
    x, w, b = (vesta.randn(s).to(dtype).to(where).requires_grad_() for s in ((3, 8), (8, 8), (8,)))

    def second(call: object, written: float) -> list[vesta.Tensor]:
        y = call(x, w, b)
        with vesta.no_grad():
            b.add_(written)
        first = vesta.autograd.grad(y.float().pow(3).sum(), (x, w, b), create_graph=True)
        found = vesta.autograd.grad(sum(g.float().square().sum() for g in first), (x, w, b))
        with vesta.no_grad():
            b.sub_(written)
        return [*first, *found]

    apart = lambda x, w, b: vesta.nn.functional.gelu(vesta.nn.functional.linear(x, w, b), approximate="tanh")
    fused = lambda x, w, b: vesta._C._private._linear_activation(x, w, b, True)
    for got, want in zip(second(fused, 4.0), second(apart, 4.0)):
        limit = 8 * vesta.finfo(dtype).eps * want.detach().float().abs().max().item()
        assert (got.detach().float() - want.detach().float()).abs().max().item() <= limit


@needs_device
def test_errors_name_the_linear_layer() -> None:
    x, w, b = (vesta.randn(s).cuda().requires_grad_() for s in ((3, 8), (8, 8), (8,)))
    y = vesta._C._private._linear_activation(x, w, b, True)
    with vesta.no_grad():
        w.add_(1)
    with pytest.raises(RuntimeError, match=r"operation: linear saved its input \[8, 8\]"):
        y.sum().backward()
