"""Calls with wrong arguments, by number: never a signal, a hang, a message not ours, or a tensor left behind."""

from __future__ import annotations

import re
import subprocess
import sys
import time

import pytest
import vesta
from fuzz import calls, complaints, run_calls


def report(found: list[tuple[int, str]]) -> str:
    lines = [f"call {number}: {said[:500]}" for number, said in found[:50]]
    return f"{len(found)} calls (python -m fuzz.run_calls --call NUMBER runs one):\n" + "\n".join(lines)


def test_calls_with_wrong_arguments() -> None:
    found = run_calls.campaign(0, 5000)
    assert not found, report(found)


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(10))
def test_a_million_calls_with_wrong_arguments(part: int) -> None:
    found = run_calls.campaign(part * 100_000, 100_000)
    assert not found, report(found)


# ---- the harness itself ----


def worker_of(function: object, monkeypatch: pytest.MonkeyPatch, *args: object) -> run_calls.Worker:
    """Returns a worker whose every call is this one."""
    worker = run_calls.Worker()
    made = lambda number: calls.Call("f", function, args, {}, True)
    monkeypatch.setattr(worker.caller, "make", made)
    return worker


def test_what_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def writes_and_raises(x: vesta.Tensor) -> None:
        x.add_(1)
        raise ValueError("f: expected something else (x).")

    for function, said in (
        (lambda x: x.no_such_name, "AttributeError"),
        (lambda x: 1 // 0, "ZeroDivisionError"),
        (lambda x: {}["a"], "KeyError"),
        (writes_and_raises, "an argument is another"),
    ):
        assert said in worker_of(function, monkeypatch, vesta.ones(2)).run(0)
    assert worker_of(lambda x: vesta.mm(x, x), monkeypatch, vesta.ones(2)).run(0) == ""


def test_a_signal_names_its_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that dies is reported with the call that it was in, and the calls after it run."""
    ended = iter([(-11, ""), (0, "7\t'f(1): says nothing'\n")])

    def run_worker(first: int, count: int, folder: str, progress: object) -> tuple[int, str]:
        if first == 0:
            progress.write_text("3")
        else:
            assert (first, count) == (4, 6)
        return next(ended)

    monkeypatch.setattr(run_calls, "run_worker", run_worker)
    found = run_calls.campaign(0, 10)
    assert [number for number, _ in found] == [3, 7] and found[0][1].startswith("SIGSEGV: ")


def test_a_call_that_does_not_end_is_ended() -> None:
    def forever() -> None:
        while True:
            pass

    assert complaints.complaint(forever, (), {}, seconds=1)[1] == "TookTooLong: it does not end"


def test_a_call_that_others_hold_up_is_not_ended() -> None:
    """A stopped process, or one on a busy machine, has as many seconds as it needs."""
    assert complaints.complaint(time.sleep, (1.5,), {}, seconds=1) == (False, "")


def test_a_call_that_waits_forever_is_ended() -> None:
    """One that sleeps takes no seconds of the processor."""
    assert complaints.complaint(time.sleep, (60,), {}, waits=0.5) == (True, "TookTooLong: it does not end")


def test_a_call_is_made_from_its_number() -> None:
    caller, other = calls.Caller(), calls.Caller()
    for number in range(200):
        first, second = (re.sub("0x[0-9a-f]+", "", str(of.make(number))) for of in (caller, other))
        assert first == second
    assert len(caller.names) > 500 and len(caller.rows) > 150


# ---- findings ----


def optimizer() -> vesta.optim.Optimizer:
    return vesta.optim.SGD([vesta.ones(2, requires_grad=True)], 0.1)


def ones38() -> vesta.Tensor:
    return vesta.ones(3, 8)


def test_the_older_lstsq_wants_a_matrix() -> None:
    with pytest.raises(RuntimeError, match="lstsq: expected a matrix A"):
        vesta.lstsq(vesta.ones(3), vesta.ones(3))


def test_a_loss_of_linear_logits_wants_a_weight_of_two_dimensions() -> None:
    with pytest.raises(RuntimeError, match="linear_cross_entropy: expected a weight"):
        vesta.nn.functional.linear_cross_entropy(vesta.ones(4, 3), vesta.ones(3), vesta.zeros(4).long())


@pytest.mark.parametrize("name", ["CatTransform", "StackTransform", "ComposeTransform"])
def test_transforms_are_made_of_transforms(name: str) -> None:
    for wrong in (1, [1]):
        with pytest.raises(AssertionError, match="must be"):
            getattr(vesta.distributions, name)(wrong)


def test_constraints_are_made_of_constraints() -> None:
    constraints = vesta.distributions.constraints
    for make in (constraints.cat, constraints.stack):
        with pytest.raises(AssertionError, match="must be a list of Constraints, got int"):
            make(1)
    with pytest.raises(AssertionError, match="lengths must be a list"):
        constraints.cat([constraints.real], 0, 1)


def test_statistics_are_restored_after_an_error() -> None:
    """A batch that raised left the momentum of the normalizations at None, and the model in training."""
    model = vesta.nn.BatchNorm1d(1, momentum=0.25).eval()
    with pytest.raises(TypeError, match="expected batches of tensors, got int"):
        vesta.optim.swa_utils.update_bn([1], model, "cpu")
    assert model.momentum == 0.25 and not model.training


def limited(program: str) -> None:
    """Runs a program that must end soon, with little memory more than it has at its start."""
    text = f"""
import resource, vesta
F = vesta.nn.functional
x = vesta.ones(1, 3, 6, 6)
x.relu()
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() + (1 << 30)
resource.setrlimit(resource.RLIMIT_AS, (size, size))
def raises(call):
    try:
        call()
    except (MemoryError, RuntimeError, ValueError):
        return
    raise AssertionError("it does not raise")
{program}
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"status {done.returncode}: {done.stderr[-2000:]}"


def test_what_no_memory_holds_is_refused_at_once() -> None:
    """Tables of where elements come from were made first: for minutes, or until the process was killed."""
    limited(
        """
far = 2**40
for call in (
    lambda: F.unfold(x, 2, padding=(0, far)),
    lambda: F.unfold(x.int(), 2, padding=(0, far)),
    lambda: F.pad(x, (0, far, 0, 0), "replicate"),
    lambda: F.pad(x, (far, 0, 0, 0), "replicate"),
    lambda: vesta.vander(vesta.ones(4), 2**31),
    lambda: vesta.linalg.vander(vesta.ones(4), N=2**31),
    lambda: vesta.combinations(vesta.ones(100), 50),
    lambda: vesta.combinations(vesta.ones(1000), 4),
):
    raises(call)
"""
    )


def test_sizes_are_multiplied_with_care() -> None:
    """The number of windows overflowed to one that was allowed, and the windows were filled in without end."""
    limited(
        """
raises(lambda: F.fold(vesta.ones(1, 4, 0), (2**32 + 1, 2**32 + 1), 2))
raises(lambda: F.unfold(x, 2, padding=2**40))
raises(lambda: F.unfold(x[:0], 2, padding=2**31 - 1))
raises(lambda: F.max_pool2d(x, 2**63 - 1, 1, 2**62 - 1))
for size in (2**62, 2**62 + 1):
    y, i = F.max_pool2d(x, 2, 2**63 - 1, 1, ceil_mode=True, return_indices=True)
    assert y.tolist() == [[[[1.0]]] * 3] and i.tolist() == [[[[0]]] * 3]
    assert F.avg_pool2d(x, 2, size, 1, ceil_mode=True).tolist() == [[[[0.25]]] * 3]
long = vesta.ones(1).expand(1, 1, 2**62)
raises(lambda: F.adaptive_avg_pool1d(long, 2**40))
"""
    )


def test_results_without_elements_take_no_time() -> None:
    """One size of 0 beside a very large one: the larger one was gone through."""
    limited(
        """
far = 2**40
w = x.clone().requires_grad_()
for call, shape in (
    (lambda: F.adaptive_avg_pool2d(w, (0, far)), (1, 3, 0, far)),
    (lambda: F.adaptive_max_pool2d(w, (0, far)), (1, 3, 0, far)),
    (lambda: F.adaptive_max_pool2d(w, (0, far), return_indices=True)[0], (1, 3, 0, far)),
    (lambda: F.interpolate(w[:0], size=(2, far)), (0, 3, 2, far)),
    (lambda: F.interpolate(w[:0], size=(2, far), mode="bilinear"), (0, 3, 2, far)),
    (lambda: F.pad(w[:0], (0, far, 0, 0), "replicate"), (0, 3, 6, 6 + far)),
    (lambda: F.unfold(w[:0], 2, padding=(0, far)), (0, 12, 5 * (2 * far + 5))),
    (lambda: F.fold(w[:0, :, 0, :1].expand(0, 3, far).repeat(1, 4, 1), (2, far + 1), 2), (0, 3, 2, far + 1)),
    (lambda: F.avg_pool1d(w[:0, :, 0, :1].expand(0, 3, far), 2, 1), (0, 3, far - 1)),
):
    y = call()
    assert tuple(y.shape) == shape, (y.shape, shape)
    w.grad = None
    y.sum().backward()
    assert w.grad.tolist() == vesta.zeros_like(x).tolist()
assert F.adaptive_max_pool2d(x[0], (0, far), return_indices=True)[1].dtype is vesta.int64
"""
    )


def test_a_window_far_larger_than_its_input_ends() -> None:
    """A maximum went through all taps, also the 2**62 of them in the padding."""
    limited(
        """
for far in (2**40, 2**62 - 4):
    y, i = F.max_pool2d(vesta.arange(36.0).view(1, 1, 6, 6), 2 * far, 1, far, return_indices=True)
    assert y.shape == (1, 1, 7, 7) and set(i.unique().tolist()) == {35} and (y == 35).all()
"""
    )


def test_many_powers() -> None:
    """More than a thousand are made in one op."""
    x = vesta.tensor([0.999, -1.001, 0.0], dtype=vesta.float64, requires_grad=True)
    y = vesta.vander(x, 3000, increasing=True)
    k = vesta.arange(3000, dtype=vesta.float64)
    assert vesta.allclose(y, x.detach()[:, None] ** k, rtol=1e-12)
    y.sum().backward()
    slopes = (k[1:] * x.detach()[:, None] ** (k[1:] - 1)).sum(1)
    assert vesta.allclose(x.grad, slopes, rtol=1e-9)


@pytest.mark.parametrize("kernel, stride, padding, dilation, ceil", [(3, 1, 1, 1, 0), (4, 2, 2, 1, 1), (3, 2, 1, 3, 1)])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_windows_at_the_borders(dims: int, kernel: int, stride: int, padding: int, dilation: int, ceil: int) -> None:
    """Max pooling beside the same of an input that is padded with -inf."""
    x = vesta.randn(2, 3, *(9, 8, 10)[:dims])
    pool = getattr(vesta.nn.functional, f"max_pool{dims}d")
    y = pool(x, kernel, stride, padding, dilation, bool(ceil))
    wide = vesta.nn.functional.pad(x, [padding, padding + stride * ceil] * dims, value=float("-inf"))
    want = pool(wide, kernel, stride, 0, dilation)
    assert vesta.equal(y, want[(..., *(slice(n) for n in y.shape[2:]))])


def test_a_truncated_normal_far_from_its_mean_ends() -> None:
    """The density at a distance d falls as exp(-d x / std**2): the mean of x is the bound and std**2 / d."""
    near = vesta.nn.init.trunc_normal_(vesta.empty(10000), mean=-50.0, std=1.0, a=0.0, b=10.0)
    assert near.min().item() >= 0.0 and abs(near.mean().item() - 1 / 50) < 2e-3
    near = vesta.nn.init.trunc_normal_(vesta.empty(10000), mean=50.0, std=1.0, a=0.0, b=10.0)
    assert near.max().item() <= 10.0 and abs(near.mean().item() - (10 - 1 / 40)) < 2e-3
    for dtype in (vesta.float32, vesta.bfloat16):
        assert (vesta.nn.init.trunc_normal_(vesta.empty(4, dtype=dtype), mean=1e39) == 2.0).all()


@pytest.mark.parametrize("name", ["sort", "cummax", "topk", "kthvalue", "median"])
def test_a_refused_out_is_not_written(name: str) -> None:
    """An out of the wrong form (one tensor for two results) was written before it was refused."""
    for value in (9, 9.0):
        out = vesta.full((2, 2), value)
        with pytest.raises(TypeError, match="must be a tuple of 2 Tensors"):
            getattr(vesta, name)(vesta.tensor([[1.0, 2.0], [3.0, 0.0]]), 1, out=out)
        assert (out == value).all()


def test_writes_recorded_by_another_operand_keep_what_they_read() -> None:
    """x.clamp_(w) of a plain x and a w that requires grad: backward raised, and the graph was never freed."""
    w = vesta.tensor([0.5, 0.5, 0.5], requires_grad=True)
    x = vesta.tensor([0.0, 1.0, 2.0])
    x.clamp_(w)
    x.sum().backward()
    assert w.grad.tolist() == [1.0, 0.0, 0.0] and x.tolist() == [0.5, 1.0, 2.0]


@pytest.mark.parametrize(
    "call",
    [
        lambda: vesta.broadcast_shapes((2, "a")),
        lambda: vesta.broadcast_shapes(1.5),
        lambda: vesta.einsum(1.5, vesta.ones(2)),
        lambda: vesta.einsum(vesta.ones(2), 3),
        lambda: vesta.combinations(vesta.ones(3), "a"),
        lambda: vesta.unique_consecutive(vesta.ones(3), dim=[0]),
        lambda: vesta.futures.wait_all([1]),
        lambda: vesta.futures.wait_all(1),
        lambda: vesta.Tensor(2, "a"),
        lambda: vesta.Size(2.5),
        lambda: vesta.device("cpu", "a"),
        lambda: vesta.amp.GradScaler("cpu", growth_factor="a"),
        lambda: vesta.ones(2).__array_wrap__("a"),
        lambda: vesta.Tensor.__torch_function__(vesta.exp, 1),
        lambda: vesta.ones(2).__deepcopy__((1,)),
        lambda: vesta.utils.data.SubsetRandomSampler(iter((1, 2))),
        lambda: vesta.Tensor.__torch_function__(vesta.ones(2), ()),
        lambda: vesta.Tensor.is_shared(1),
        lambda: vesta.optim.Optimizer([vesta.ones(2)], [1, 2]),
        lambda: vesta.optim.lr_scheduler.LambdaLR(optimizer(), lambda epoch: None),
        lambda: vesta.optim.lr_scheduler.MultiStepLR(optimizer(), [1, {}]),
        lambda: vesta.optim.lr_scheduler.CyclicLR(optimizer(), 0.1, 0.5, scale_fn=lambda x: "a", cycle_momentum=False),
        lambda: vesta.optim.Rprop([vesta.ones(2)], etas={1, 2}),
        lambda: vesta.optim.swa_utils.update_bn(b"ab", vesta.nn.BatchNorm1d(1), "cpu"),
        lambda: vesta.nn.TransformerDecoder(vesta.nn.TransformerDecoderLayer(8, 2, 4), 1)(ones38(), ones38(), [1]),
        lambda: vesta.nn.ConvTranspose1d(1, 1, 1)(vesta.ones(1, 3), ("a",)),
        lambda: vesta.nn.functional.max_unpool1d(vesta.ones(1, 1, 1), vesta.zeros(1, 1, 1).long(), 2, None, 0, ("a",)),
        lambda: vesta.nn.Upsample(scale_factor=[None, 1]),
        lambda: vesta.linalg.norm(vesta.ones(2), 1, 0.5),
        lambda: vesta.linalg.matrix_norm(vesta.ones(2, 2), (1,)),
        lambda: vesta.linalg.cond(vesta.ones(2, 2), (1,)),
        lambda: vesta.kaiser_window(3, True, "a"),
        lambda: vesta.signal.windows.gaussian(3, std="a"),
        lambda: vesta.signal.windows.exponential(3, tau="a"),
        lambda: vesta.signal.windows.exponential(3, center="a", sym=False),
        lambda: vesta.signal.windows.general_hamming(3, alpha="a"),
        lambda: vesta.signal.windows.general_cosine(3, a=["a"]),
        lambda: vesta.ones(2).map_((1,), lambda a, b: a),
        lambda: vesta.device("cpu")(1),
        lambda: vesta.utils.checkpoint.checkpoint(1, vesta.ones(2), use_reentrant=False),
        lambda: vesta.utils.checkpoint.checkpoint(vesta.exp, vesta.ones(2), use_reentrant=False, context_fn=lambda: 1),
        lambda: vesta.utils.checkpoint.checkpoint_sequential([1], 1, vesta.ones(2), use_reentrant=False),
        lambda: vesta.utils.checkpoint.checkpoint_sequential(1, 1, vesta.ones(2), use_reentrant=False),
        lambda: vesta.utils.checkpoint.check_backward_validity(1),
        lambda: vesta.utils.checkpoint.set_device_states(1, 2),
        lambda: vesta.utils.dlpack.to_dlpack(1),
        lambda: vesta.quasirandom.SobolEngine("a"),
        lambda: vesta.nn.utils.rnn.PackedSequence(vesta.ones(2), 1),
        lambda: vesta.nn.utils.prune.PruningContainer(1),
        lambda: vesta.nn.utils.parametrize.ParametrizationList(1, vesta.ones(2)),
        lambda: vesta.nn.utils.parametrize.ParametrizationList([None], vesta.ones(2)),
        lambda: vesta.sparse_coo_tensor([[0]], [1.0], 1.5),
        *(
            lambda name=name: getattr(vesta.autograd.functional, name)(1, vesta.ones(2))
            for name in "vjp jvp jacobian hessian vhp hvp".split()
        ),
        *(
            lambda name=name, args=args: getattr(vesta.distributions, name)(*args)
            for name, args in {
                "MultivariateNormal": (1,),
                "Dirichlet": (1,),
                "LKJCholesky": ("a",),
                "Chi2": ("a",),
                "Categorical": (1,),
                "Wishart": ("a", vesta.eye(2)),
                "LowRankMultivariateNormal": (1, 2, 3),
                "OneHotCategorical": (1,),
                "RelaxedOneHotCategorical": (1.0, 2),
                "Multinomial": (1, 2),
                "Independent": (1, 1),
                "IndependentTransform": (1, 1),
                "TransformedDistribution": (1, []),
            }.items()
        ),  # fmt: skip
        *(
            lambda name=name: getattr(vesta.Tensor, name)(vesta.nn.Linear(3, 2))
            for name in "new untyped_storage storage typed_storage __reversed__ dim_order rename stft lstsq".split()
        ),
    ],
)
def test_arguments_are_named(call: object) -> None:
    """The messages that were Python's own."""
    with pytest.raises(TypeError) as caught:
        call()
    assert not complaints.NOT_OURS.search(str(caught.value)), str(caught.value)
