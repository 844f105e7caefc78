"""The meta device: models, files, optimizers and copies without memory."""

from __future__ import annotations

import copy
import io
import pickle
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vesta
from layers_table import LAYERS, Row
from meta_device import facts, on_meta
from vesta import nn
from vesta.utils import _pytree as pytree

HUGE = 10**6  # a matrix of so many rows and columns has 10**12 elements


def meta(*sizes: int, **options: Any) -> vesta.Tensor:
    return vesta.empty(sizes, device="meta", **options)


# ---- tensors ----


def test_a_tensor_has_a_shape_and_no_memory() -> None:
    x = meta(3, 4)
    assert (x.shape, x.stride(), x.dtype) == ((3, 4), (4, 1), vesta.float32)
    assert x.device == vesta.device("meta") and x.is_meta and not x.is_cpu and not x.is_cuda
    assert x.device.index is None and x.get_device() == -1
    assert x.data_ptr() == 0 and x[1:].data_ptr() == 0
    assert x.untyped_storage().nbytes() == 48 and x.untyped_storage().data_ptr() == 0
    assert x.nbytes == 48 and not vesta.ones(1).is_meta


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: meta(3, 4), "tensor(..., device='meta', size=(3, 4))"),
        (lambda: meta(), "tensor(..., device='meta', size=())"),
        (lambda: meta(0), "tensor(..., device='meta', size=(0,))"),
        (lambda: meta(3, dtype=vesta.int64), "tensor(..., device='meta', size=(3,), dtype=vesta.int64)"),
        (lambda: meta(2, requires_grad=True), "tensor(..., device='meta', size=(2,), requires_grad=True)"),
        (lambda: meta(2, requires_grad=True) * 2, "tensor(..., device='meta', size=(2,), grad_fn=<MulBackward0>)"),
        (
            lambda: nn.Parameter(meta(1)),
            "Parameter containing:\ntensor(..., device='meta', size=(1,), requires_grad=True)",
        ),
    ],
)
def test_printing(make: Any, text: str) -> None:
    assert repr(make()) == text


@pytest.mark.parametrize(
    "call, error, fragment",
    [
        (lambda x: x.sum().item(), RuntimeError, "cannot be called on meta tensors"),
        (lambda x: bool(x.sum()), RuntimeError, "cannot be called on meta tensors"),
        (lambda x: float(x.sum()), RuntimeError, "cannot be called on meta tensors"),
        (lambda x: vesta.equal(x, x), RuntimeError, "cannot be called on meta tensors"),
        (lambda x: vesta.allclose(x, x), RuntimeError, "cannot be called on meta tensors"),
        (lambda x: x.numpy(), TypeError, "can't convert meta device type tensor to numpy"),
        (lambda x: np.asarray(x), TypeError, "can't convert meta device type tensor to numpy"),
        (lambda x: x.tolist(), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
        (lambda x: x.cpu(), NotImplementedError, "Cannot copy out of meta tensor; no data! Make memory by empty_like"),
        (lambda x: x.to("cpu"), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
        (lambda x: vesta.ones(3, 4).copy_(x), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
        (lambda x: meta(0).cpu(), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
        (lambda x: x.nonzero(), NotImplementedError, "the size of the result depends on values"),
        (lambda x: x[x > 0], NotImplementedError, "the size of the result depends on values"),
        (lambda x: x.masked_select(x > 0), NotImplementedError, "the size of the result depends on values"),
        (lambda x: x.unique(), (NotImplementedError, RuntimeError), "meta tensor"),
        (lambda x: vesta.bincount(x[0].long()), RuntimeError, "cannot be called on meta tensors"),
        (lambda x: vesta.repeat_interleave(x, x[0].long(), 1), RuntimeError, "without output_size"),
        (lambda x: x + vesta.ones(3, 4), RuntimeError, "expected all tensors on one device"),
        (lambda x: x @ vesta.ones(4, 3), RuntimeError, "expected all tensors on one device"),
        (lambda x: x.add_(meta(5)), RuntimeError, "[5]"),
        (lambda x: x.copy_(vesta.ones(5)), RuntimeError, "[5]"),
        (lambda x: x.__dlpack__(), BufferError, "meta"),
    ],
)
def test_what_needs_values_says_so(call: Any, error: Any, fragment: str) -> None:
    with pytest.raises(error) as caught:
        call(meta(3, 4))
    assert fragment in str(caught.value)


@pytest.mark.differs
def test_there_is_one_meta_device() -> None:
    assert meta(1).device == vesta.device("meta") and vesta.empty(1, device="meta:0").device.type == "meta"
    with pytest.raises(RuntimeError, match="meta:1"):
        vesta.device("meta:1")


def test_copies_to_meta_keep_the_shape() -> None:
    x = vesta.ones(4, 3).t()
    assert x.to("meta").stride() == x.stride() and x.to("meta", vesta.float16).dtype == vesta.float16
    assert vesta.tensor([[1, 2]], device="meta").shape == (1, 2)
    target = meta(3, 4)
    assert target.copy_(x) is target and target.copy_(vesta.ones(4)).is_meta


def test_numbers_and_0d_cpu_tensors_join() -> None:
    x = meta(3, dtype=vesta.int64)
    assert (x + 1).dtype == vesta.int64 and (x * 0.5).dtype == vesta.float32
    assert (x + vesta.tensor(2.0)).shape == (3,) and (2 / x).is_meta and (x > 1).dtype == vesta.bool


def test_formatting_shows_no_values() -> None:
    assert f"{meta(2).sum()}" == "tensor(..., device='meta', size=())"
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{meta(2).sum():.2f}"


def test_sparse_tensors_have_shapes() -> None:
    x = vesta.sparse_coo_tensor(meta(2, 5, dtype=vesta.int64), meta(5), (3, 4))
    assert x.is_sparse and x.is_meta and x.shape == (3, 4)
    assert (x @ meta(4, 2)).shape == (3, 2) and x.to_dense().shape == (3, 4)


def test_writes_are_counted_and_checked() -> None:
    x = meta(3, 4)
    for write in (
        lambda: x.add_(1),
        lambda: x.normal_(),
        lambda: x.uniform_(),
        lambda: x.zero_(),
        lambda: x[0].fill_(2),
        lambda: x.copy_(vesta.ones(4)),
        lambda: x.index_add_(0, meta(2, dtype=vesta.int64), meta(2, 4)),
        lambda: x.__setitem__(x > 0, 1.0),
    ):
        before = x._version
        write()
        assert x._version > before
    with pytest.raises(RuntimeError, match="from=1"):
        x.uniform_(1, 0)


def test_views_share_their_storage() -> None:
    x = meta(3, 4)
    view = x.t()[1:]
    assert view.storage_offset() == 1 and view._base is x and view.untyped_storage().nbytes() == 48
    view.zero_()
    assert x._version == 1


def test_random_ops_take_no_numbers() -> None:
    state = vesta.get_rng_state()
    vesta.randn(3, device="meta")
    vesta.randperm(5, device="meta")
    nn.functional.dropout(meta(3))
    assert vesta.equal(state, vesta.get_rng_state())


def test_memory_does_not_grow() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    x = vesta.zeros(HUGE, HUGE, device="meta", requires_grad=True)
    y = nn.functional.softmax(x @ x.t(), -1).sort(-1)[0].cumsum(0)
    loss = nn.functional.interpolate(y[None, None], scale_factor=2).std()
    loss.backward()
    assert x.grad is not None and x.grad.shape == x.shape and x.grad.untyped_storage().nbytes() == 4 * HUGE**2
    assert time.process_time() - started < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KiB


# ---- autograd ----


def test_backward_gives_meta_gradients() -> None:
    x, w = meta(5, 3, requires_grad=True), meta(2, 3, requires_grad=True)
    y = nn.functional.linear(x, w).relu()
    assert y.grad_fn is not None
    y.sum().backward()
    assert x.grad is not None and x.grad.is_meta and x.grad.shape == (5, 3)
    (gg,) = vesta.autograd.grad((x**3).sum(), x, create_graph=True)
    (second,) = vesta.autograd.grad(gg.sum(), x)
    assert second.shape == (5, 3)


def test_a_changed_operand_is_noticed() -> None:
    x = meta(3, requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


# ---- models ----


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 64, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: vesta.Tensor) -> vesta.Tensor:
        h = self.norm(x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return x + self.down(nn.functional.gelu(self.up(x)))


def test_a_model_of_70_billion_parameters() -> None:
    started = time.process_time()
    with vesta.device("meta"):
        model = nn.Sequential(nn.Embedding(32_000, 8192), *(Block(8192) for _ in range(80)), nn.Linear(8192, 32_000))
        tokens = vesta.zeros(4, 4096, dtype=vesta.int64)
    assert sum(p.numel() for p in model.parameters()) > 64 * 10**9
    out = model(tokens)
    assert out.shape == (4, 4096, 32_000) and out.is_meta
    nn.functional.cross_entropy(out.flatten(0, 1), tokens.flatten()).backward()
    assert all(p.grad is not None and p.grad.shape == p.shape for p in model.parameters())
    assert time.process_time() - started < 5  # it is 0.3 s on an idle machine


#: Layers whose forward depends on values: which cluster a class belongs to.
BY_VALUES = ("AdaptiveLogSoftmaxWithLoss",)


@pytest.mark.parametrize("row", [row for row in LAYERS if row.inputs and row.name not in BY_VALUES], ids=str)
def test_layers_have_the_shapes_of_the_cpu(row: Row) -> None:
    def run(layer: nn.Module, inputs: list[Any]) -> list[Any]:
        output = layer(*inputs)
        results = [t for t in pytree.tree_leaves(output) if isinstance(t, vesta.Tensor)]
        recorded = [t for t in results if t.requires_grad]
        if recorded:
            vesta.autograd.backward(recorded, [vesta.ones_like(t) for t in recorded])
        grads = [None if p.grad is None else p.grad.shape for p in layer.parameters()]
        return [*map(facts, results), *grads, *(facts(b) for b in layer.buffers())]

    given = [_made(make) for make in row.inputs]
    with vesta.device("meta"):
        on_no_memory = row.build(nn)
    assert all(t.is_meta for t in on_no_memory.state_dict().values())
    meta_inputs = [_on_meta(v) for v in given]
    assert run(on_no_memory, meta_inputs) == run(row.build(nn), given)


def _made(value: Any) -> Any:
    """Calls the functions of a row's inputs, which make tensors."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(_made, value))
    return value() if callable(value) else value


def _on_meta(value: Any) -> Any:
    """Moves tensors to the meta device; an operation makes a copy that may be written of what is no leaf."""
    if isinstance(value, vesta.Tensor):
        return on_meta(value) if value.is_leaf else on_meta(value) * 1
    return type(value)(map(_on_meta, value)) if isinstance(value, (tuple, list)) else value


def test_ways_to_make_a_model_on_meta() -> None:
    assert nn.Linear(2, 3, device="meta").weight.is_meta
    model = nn.Linear(2, 3).to("meta")
    assert model.weight.is_meta and isinstance(model.weight, nn.Parameter)
    vesta.set_default_device("meta")
    try:
        assert nn.Linear(2, 3).bias.is_meta and vesta.get_default_device() == vesta.device("meta")
    finally:
        vesta.set_default_device(None)
    assert not nn.Linear(2, 3).bias.is_meta


def test_a_model_gets_memory() -> None:
    model = nn.Sequential(nn.Linear(2, 3, device="meta"), nn.BatchNorm1d(3, device="meta"))
    with pytest.raises(NotImplementedError, match=r"no data!.*to_empty\(\)"):
        model.to("cpu")
    assert model.to_empty(device="cpu") is model
    assert all(not t.is_meta for t in model.state_dict().values())
    model[0].reset_parameters()
    model[1].reset_parameters()
    assert model(vesta.ones(4, 2)).shape == (4, 3)


def test_loading_a_checkpoint_into_a_meta_model() -> None:
    source, target = nn.Linear(2, 3), nn.Linear(2, 3, device="meta")
    with pytest.warns(UserWarning, match="copying from a non-meta parameter .* no-op"):
        target.load_state_dict(source.state_dict())
    assert target.weight.is_meta
    target.load_state_dict(source.state_dict(), assign=True)
    assert isinstance(target.weight, nn.Parameter) and target.weight.requires_grad
    assert vesta.equal(target(vesta.ones(1, 2)), source(vesta.ones(1, 2)))
    with pytest.raises(RuntimeError, match="Cannot copy out of meta tensor"):
        source.load_state_dict(nn.Linear(2, 3, device="meta").state_dict())


def test_init_works_on_meta() -> None:
    x = meta(4, 5)
    for fill in (nn.init.xavier_uniform_, nn.init.kaiming_normal_, nn.init.zeros_, nn.init.trunc_normal_):
        before = x._version
        assert fill(x) is x and x._version > before
    assert nn.init.orthogonal_(meta(4, 4)).is_meta and nn.init.eye_(meta(3, 3)).is_meta


@pytest.mark.parametrize("name", "SGD Adam AdamW RMSprop Adagrad Adadelta Adamax NAdam RAdam ASGD Rprop".split())
def test_an_optimizer_steps(name: str) -> None:
    model = nn.Linear(2, 3, device="meta")
    options = {"momentum": 0.9} if name in ("SGD", "RMSprop") else {}
    optimizer = getattr(vesta.optim, name)(model.parameters(), lr=0.1, **options)
    for _ in range(2):
        optimizer.zero_grad()
        model(meta(4, 2)).sum().backward()
        before = model.weight._version
        optimizer.step()
        assert model.weight._version > before
    state = optimizer.state[model.weight]
    assert all(v.is_meta for v in state.values() if isinstance(v, vesta.Tensor) and v.dim())


def test_clipping_and_norms() -> None:
    model = nn.Linear(2, 3, device="meta")
    model(meta(4, 2)).sum().backward()
    assert nn.utils.clip_grad_norm_(model.parameters(), 1.0).is_meta


def test_copies_keep_sharing() -> None:
    model = nn.Sequential(nn.Linear(3, 3, device="meta"), nn.Linear(3, 3, device="meta"))
    model[1].weight = model[0].weight
    twin = copy.deepcopy(model)
    assert twin[0].weight is twin[1].weight and twin[0].weight is not model[0].weight
    assert len({vesta._C._storage_key(p) for p in [*twin.parameters(), *model.parameters()]}) == 6


# ---- files ----


def test_save_and_load() -> None:
    model = nn.Linear(2, 3, device="meta")
    for through in (_saved, lambda value: pickle.loads(pickle.dumps(value))):
        loaded = through({"w": model.weight, "view": meta(4, 3).t()})
        assert loaded["w"].is_meta and loaded["w"].shape == (3, 2) and loaded["w"].requires_grad
        assert loaded["view"].stride() == (1, 3)


def _saved(value: Any, **options: Any) -> Any:
    file = io.BytesIO()
    vesta.save(value, file)
    file.seek(0)
    return vesta.load(file, **options)


def test_map_location_meta(tmp_path: Path) -> None:
    state = nn.Linear(2, 3).state_dict()
    for location in ("meta", vesta.device("meta")):
        loaded = _saved(state, map_location=location)
        assert all(t.is_meta for t in loaded.values()) and loaded["weight"].shape == (3, 2)
    with vesta.device("meta"):
        model = nn.Linear(2, 3)
    model.load_state_dict(loaded, assign=True)
    vesta.save(state, tmp_path / "x.pt")
    assert vesta.load(tmp_path / "x.pt", map_location="meta")["bias"].is_meta


def test_a_summary_needs_no_memory() -> None:
    with vesta.device("meta"):
        model = nn.Sequential(nn.Linear(HUGE, HUGE), nn.ReLU())
    text = str(vesta.summary(model, meta(2, HUGE)))
    assert "1,000,001,000,000" in text and "Activations: 15.3 MiB" in text


def test_a_custom_operator_runs_its_fake_function() -> None:
    @vesta.library.custom_op("meta_tests::twice", mutates_args=())
    def twice(x: vesta.Tensor) -> vesta.Tensor:
        return vesta.from_numpy(x.numpy() * 2)

    @twice.register_fake
    def _(x: vesta.Tensor) -> vesta.Tensor:
        return vesta.empty_like(x)

    assert twice(meta(3)).is_meta


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adagrad", "NAdam", "ASGD"])
def test_a_default_device_does_not_stop_a_step(name: str) -> None:
    """The numbers of an optimizer's state lie on the CPU, whatever the default device is."""
    p = nn.Parameter(vesta.ones(3))
    p.grad = vesta.ones(3)
    vesta.set_default_device("meta")
    try:
        getattr(vesta.optim, name)([p], lr=0.1).step()
    finally:
        vesta.set_default_device(None)
    assert p.lt(1).all()


def test_steps_want_all_of_a_parameter_on_meta() -> None:
    p = nn.Parameter(vesta.ones(3, device="meta"))
    step = vesta.zeros(())
    with pytest.raises(RuntimeError, match="one device"):
        vesta._C._fused_adagrad_([p.detach()], [vesta.ones(3)], [vesta.zeros(3)], [step], 0.1, 0.0, 0.0, 1e-8, False)
    with pytest.raises(RuntimeError, match="meta"):
        vesta._C._fused_sgd_([p.detach()], [vesta.ones(3)], [], 0.0, 0.0, 0.5, 0.0, False, False, True)


def test_indices_and_values_without_elements_do_not_touch_others() -> None:
    x, places, value = vesta.zeros(4, 3), vesta.zeros(2, dtype=vesta.int64, device="meta"), vesta.ones(3, device="meta")
    with pytest.raises(RuntimeError, match="got a meta tensor"):
        x[places]
    with pytest.raises(RuntimeError, match="got a meta tensor"):
        x[places] = 5.0
    with pytest.raises(RuntimeError, match="meta"):
        x[vesta.tensor([1])] = value
    assert x.eq(0).all() and x._version == 0
    meta = vesta.zeros(4, 3, device="meta")
    assert meta[vesta.tensor([1, 2])].shape == (2, 3)  # indices may lie on the CPU, as in PyTorch
    with pytest.raises(RuntimeError, match="values on the meta device"):
        meta[places] = vesta.ones(2, 3)


def test_bags_of_meta_offsets_are_no_bags_of_others() -> None:
    rows, weight = vesta.tensor([0, 1, 1]), vesta.rand(3, 2)
    with pytest.raises(RuntimeError, match="offsets on meta"):
        nn.functional.embedding_bag(rows, weight, vesta.tensor([0, 1], device="meta"))


def test_functions_that_know_their_shape() -> None:
    x = vesta.ones(3, 4, device="meta")
    assert vesta.nonzero_static(x, size=3).shape == (3, 2)
    assert [t.shape for t in vesta.unravel_index(vesta.ones(5, dtype=vesta.int64, device="meta"), (3, 4))] == [(5,)] * 2
    rows = vesta.ones(2, 2, dtype=vesta.int64, device="meta")
    assert nn.functional.embedding(rows, x, max_norm=1.0).shape == (2, 2, 4)
    assert not x.is_shared()
    with pytest.raises(NotImplementedError, match="share_memory_"):
        x.share_memory_()
    with pytest.raises(RuntimeError, match="one meta device"):
        vesta.device("meta", 5)


def test_the_error_of_two_devices_names_the_arguments() -> None:
    x, m = vesta.ones(2), vesta.ones(2, device="meta")
    for call, words in (
        (lambda: x + m, r"add: .* got cpu \(input\) and meta \(other\)"),
        (lambda: vesta.where(x > 0, x, m), r"where: .* got cpu \(condition\) and meta \(other\)"),
        (lambda: vesta.addcmul(x, x, m), r"addcmul: .* got cpu \(input\) and meta \(tensor2\)"),
    ):
        with pytest.raises(RuntimeError, match=words):
            call()
