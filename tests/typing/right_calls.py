"""Calls that type checkers accept and that run: what programs write. See tests/python/test_typing.py."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import vesta
import vesta.nn.functional as F
from vesta import Tensor, nn, optim
from vesta.utils.checkpoint import checkpoint
from vesta.utils.data import DataLoader, Dataset, Subset, TensorDataset, default_collate, random_split

# ---- creation -------------------------------------------------------------------------------------------------------
x: Tensor = vesta.randn(4, 6)
y: Tensor = vesta.randn(4, 6)
v: Tensor = vesta.rand(6)
i: Tensor = vesta.randint(0, 6, (4,))
mask: Tensor = x > 0
square: Tensor = vesta.eye(4) * 2 + 0.1 * vesta.ones(4, 4)
images: Tensor = vesta.rand(2, 3, 8, 8)
z: Tensor = vesta.complex(v, v)
vesta.zeros(2, 3)
vesta.zeros((2, 3), dtype=vesta.float64)
vesta.zeros([2, 3], device="cpu", requires_grad=True)
vesta.ones(3, dtype=vesta.int64)
vesta.full((2, 2), 7.5)
vesta.empty(0)
vesta.arange(5)
vesta.arange(1, 10, 2)
vesta.arange(0.0, 1.0, 0.1)
vesta.linspace(0, 1, steps=5)
vesta.logspace(0, 2, 3)
vesta.tensor([1.0, 2.0])
vesta.tensor([[1, 2], [3, 4]], dtype=vesta.float32)
vesta.tensor(3)
vesta.as_tensor(np.ones(3))
vesta.from_numpy(np.zeros((2, 2)))
vesta.asarray([1, 2, 3])
vesta.zeros_like(x)
vesta.ones_like(x, dtype=vesta.float64)
vesta.full_like(x, 2)
vesta.rand_like(x)
vesta.randperm(5)
vesta.normal(0.0, 1.0, (2, 3))
vesta.bernoulli(vesta.rand(3))
vesta.multinomial(vesta.rand(5), 2)
vesta.manual_seed(0)
vesta.tril(square)
vesta.meshgrid(v, v, indexing="ij")
vesta.complex(v, v)
vesta.heaviside(v, v)

# ---- members of Tensor ----------------------------------------------------------------------------------------------
rows: int = x.shape[0]
dims: int = x.dim()
count: int = x.numel()
size: vesta.Size = x.size()
first: int = x.size(0)
kind: vesta.dtype = x.dtype
place: vesta.device = x.device
number: int | float = x.sum().item()
flag: bool = x.requires_grad
leaf: bool = x.is_leaf
array = x.numpy()
listed: list[float] = v.tolist()
back: Tensor = x.to("cpu").to(vesta.float64).detach().clone().contiguous()
x.to(vesta.device("cpu"), non_blocking=True)
x.to(y)
x.float().double().half().bfloat16().int().long().bool()
x.cpu()
x.type(vesta.float64)
x.type_as(y)
x.view(2, 12)
x.view(-1)
x.reshape(24)
x.reshape((6, 4))
x.permute(1, 0)
x.transpose(0, 1)
x.t()
x.unsqueeze(0).squeeze(0)
x.expand(2, 4, 6)
x.repeat(2, 1)
x.flatten()
x.split(2)
x.split([1, 3], dim=0)
x.chunk(2, 1)
x.unbind()
x.narrow(0, 0, 2)
x.index_select(0, vesta.tensor([0, 1]))
x.gather(1, i.unsqueeze(1))
x.scatter(1, i.unsqueeze(1), 1.0)
x.masked_fill(mask, 0)
x.masked_select(mask)
x.sum(dim=1, keepdim=True)
x.sum((0, 1))
x.mean(0)
x.var(unbiased=False)
x.std(dim=1)
x.max()
values, indices = x.max(dim=1)
best: Tensor = x.max(1).indices
x.argmax(dim=-1)
x.sort(descending=True)
x.topk(2)
x.any()
x.all(dim=0)
x.norm()
x.clamp(min=0)
x.clamp(0, 1)
x.clamp_(max=1.0)
x.add_(1).mul_(0.5).sub_(y).div_(2.0)
x.add(y, alpha=2)
x.fill_(0.5)
x.copy_(y)
x.zero_()
x.uniform_(-1, 1)
x.normal_(0, 1)
x.requires_grad_(False)
x.pow(2).sqrt().exp().log1p().tanh().sigmoid().abs().neg()
x.matmul(y.T)
x.mm(y.t())
x.eq(y)
x.isnan()
x.cumsum(0)
x.element_size()
x.stride()
x.is_contiguous()
x.apply_(lambda a: a * 2)
x.new_zeros(3)
x.new_tensor([1.0])
for row in x:
    row.sum()
len(x)
bool(x.sum() > 0)
float(x.sum())
int(i[0])

# ---- operators and indexing -----------------------------------------------------------------------------------------
x + y
x - 1
2 * x
1 / (x + 10)
x // 2
x % 3
x**2
2**x
-x
x @ y.T
x == y
x != 0
x < y
x >= 0.5
~mask
mask & mask
mask | mask
mask ^ mask
x[0]
x[0, 1]
x[:, 1]
x[..., None]
x[1:3, ::2]
x[mask]
x[i % 4]
x[[0, 1]]
x[0] = 1.0
x[mask] = 0
x[:, 0] = vesta.zeros(4)
x += 1
x *= y

# ---- functions ------------------------------------------------------------------------------------------------------
vesta.add(x, 1)
vesta.mul(x, y)
vesta.matmul(x, y.T)
vesta.cat([x, y], dim=0)
vesta.cat((x, y), 1)
vesta.stack([x, y])
vesta.where(mask, x, y)
vesta.where(mask, x, 0.0)
vesta.where(mask)
vesta.sum(x, 0)
vesta.mean(x, dim=(0, 1))
vesta.max(x, 1)
vesta.maximum(x, y)
vesta.einsum("ij,kj->ik", x, y)
vesta.tensordot(x, y, dims=2)
vesta.outer(v, v)
vesta.bmm(x.unsqueeze(0), y.T.unsqueeze(0))
vesta.exp(x, out=vesta.empty(4, 6))
vesta.allclose(x, x)
vesta.equal(x, y)
vesta.unique(i)
vesta.nonzero(mask)
vesta.sort(x, dim=1)
vesta.topk(x, k=2, dim=1)
vesta.argsort(x)
vesta.cumprod(v, 0)
vesta.flip(x, [0])
vesta.roll(x, 1, 0)
vesta.quantile(v, 0.5)
vesta.bincount(i)
vesta.logsumexp(x, 1)
vesta.norm(x)
vesta.cdist(x, y)
vesta.stft(vesta.rand(64), 16, return_complex=True)
vesta.is_tensor(x)
vesta.broadcast_tensors(x, v)
vesta.finfo(vesta.float32).eps
vesta.iinfo(vesta.int8).max
vesta.linalg.norm(x)
vesta.linalg.inv(square)
vesta.linalg.qr(square).Q
vesta.linalg.svd(square)
vesta.linalg.solve(square, vesta.ones(4))
vesta.fft.fft(v)
vesta.fft.irfft(vesta.fft.rfft(v))
vesta.special.expit(v)
vesta.special.zeta(2.0, v + 1)

# ---- autograd -------------------------------------------------------------------------------------------------------
w = vesta.randn(6, requires_grad=True)
(w * w).sum().backward()
slope: Tensor | None = w.grad
(grad,) = vesta.autograd.grad((w**3).sum(), w, create_graph=True)
with vesta.no_grad():
    w.mul_(0.5)
with vesta.enable_grad(), vesta.inference_mode(False):
    w.sum()


@vesta.no_grad()
def halved(a: Tensor, by: float = 2.0) -> Tensor:
    return a / by


half: Tensor = halved(x, by=4.0)


class Cube(vesta.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor) -> Tensor:
        ctx.save_for_backward(a)
        return a**3

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        a: Tensor = ctx.saved_tensors[0]
        return 3 * a * a * g


Cube.apply(w)
handle = w.register_hook(lambda g: g * 2)
handle.remove()


def energy(a: Tensor) -> Tensor:
    return (a * a).sum()


vesta.func.grad(energy)(v)
vesta.vmap(energy)(x)


# ---- layers ---------------------------------------------------------------------------------------------------------
class Net(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, 2))
        self.scale = nn.Parameter(vesta.ones(1))
        self.register_buffer("steps", vesta.zeros(1))

    def forward(self, a: Tensor) -> Tensor:
        return self.layers(a) * self.scale


net = Net()
out: Tensor = net(x)
net.train()
net.eval()
net.to("cpu")
net.zero_grad(set_to_none=True)
net.load_state_dict(net.state_dict())
parameters: list[nn.Parameter] = list(net.parameters())
named: dict[str, nn.Parameter] = dict(net.named_parameters())
net.apply(lambda m: None)
net.requires_grad_(True)
nn.Linear(6, 2)(x)
nn.Linear(6, 2, bias=False).weight
nn.Conv2d(3, 4, kernel_size=3, padding=1)(images)
nn.Conv2d(3, 4, (3, 3), stride=(1, 2), padding="valid", groups=1)(images)
nn.ConvTranspose2d(3, 4, 2)(images)
nn.BatchNorm2d(3)(images)
nn.LayerNorm(6)(x)
nn.GroupNorm(1, 3)(images)
nn.MaxPool2d(2)(images)
nn.AvgPool2d(2)(images)
nn.AdaptiveAvgPool2d((1, 1))(images)
nn.Flatten()(images)
nn.Embedding(10, 4)(i)
nn.ReLU(inplace=True)(x)
nn.GELU()(x)
nn.Softmax(dim=1)(x)
nn.Dropout(p=0.2)(x)
nn.Upsample(scale_factor=2)(images)
sequence, (hidden, cell) = nn.LSTM(6, 5, num_layers=2, batch_first=True)(x.unsqueeze(0))
gru_out, gru_hidden = nn.GRU(6, 5)(x.unsqueeze(0))
attended, weights = nn.MultiheadAttention(6, 2)(x, x, x)
nn.TransformerEncoderLayer(6, 2, dim_feedforward=8)(x.unsqueeze(1))
nn.ModuleList([nn.Linear(2, 2)])[0]
nn.ModuleDict({"a": nn.ReLU()})["a"]
nn.Sequential(nn.Linear(6, 3), nn.Tanh())[0]
loss: Tensor = nn.CrossEntropyLoss()(x, i)
nn.MSELoss(reduction="sum")(x, y)
nn.BCEWithLogitsLoss()(x, vesta.rand(4, 6))
nn.init.xavier_uniform_(vesta.empty(3, 3))
nn.init.normal_(vesta.empty(3), mean=0.0, std=0.02)
nn.utils.clip_grad_norm_(net.parameters(), 1.0)
nn.utils.parameters_to_vector(net.parameters())
F.relu(x)
F.softmax(x, dim=1)
F.log_softmax(x, -1)
F.cross_entropy(x, i)
F.mse_loss(x, y)
F.conv2d(images, vesta.rand(4, 3, 3, 3), padding=1)
F.max_pool2d(images, 2)
F.interpolate(images, scale_factor=2.0, mode="nearest")
F.pad(x, (1, 1))
F.one_hot(i)
F.dropout(x, 0.5, training=True)
F.linear(x, vesta.rand(2, 6))
F.layer_norm(x, (6,))
F.scaled_dot_product_attention(x.unsqueeze(0), x.unsqueeze(0), x.unsqueeze(0))

# ---- optimizers and data --------------------------------------------------------------------------------------------
sgd = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
adam = optim.Adam(net.parameters(), lr=1e-3, betas=(0.9, 0.99))
optim.AdamW([{"params": [net.scale], "lr": 0.1}], weight_decay=0.01)
sgd.zero_grad()
net(x).sum().backward()
sgd.step()
schedule = optim.lr_scheduler.StepLR(sgd, step_size=2, gamma=0.5)
schedule.step()
rates: list[float] = schedule.get_last_lr()
state = sgd.state_dict()
dataset = TensorDataset(x, i)
loader = DataLoader(dataset, batch_size=2, shuffle=True, num_workers=0)
for inputs, targets in loader:
    F.cross_entropy(inputs, targets)
Subset(dataset, [0, 1])
random_split(dataset, [2, 2])


class Squares(Dataset[int]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        return index * index


def batches() -> Iterator[Tensor]:
    yield from DataLoader(Squares(), batch_size=2)


next(batches()).sum()

# ---- files, devices, settings ---------------------------------------------------------------------------------------
buffer = io.BytesIO()
vesta.save(net.state_dict(), buffer)
buffer.seek(0)
vesta.load(buffer)
with tempfile.TemporaryDirectory() as folder:
    vesta.save({"x": x}, Path(folder) / "x.pt")
    vesta.save_file({"x": x}, f"{folder}/x.safetensors")
vesta.cuda.is_available()
vesta.cuda.device_count()
vesta.set_default_dtype(vesta.float32)
vesta.get_num_threads()
vesta.set_printoptions(precision=4)
vesta.is_grad_enabled()
with vesta.autocast("cpu", dtype=vesta.bfloat16):
    x @ y.T
vesta.device("cuda", 0).index
vesta.Generator().manual_seed(3)
vesta.distributions.Normal(0.0, 1.0).sample()

# ---- attributes of layers, older names, results with names ----------------------------------------------------------
kernel: tuple[int, ...] = nn.Conv2d(3, 4, 3).kernel_size
nn.Conv2d(3, 4, 3).weight.shape
nn.LayerNorm(6).weight.detach()
nn.LayerNorm(6, elementwise_affine=False).weight is None
nn.LSTM(6, 2).weight_ih_l0.shape
nn.Transformer(8, 2, 1, 1, 16).encoder(vesta.rand(2, 1, 8))
steepness: float = nn.LeakyReLU(0.1).negative_slope
nn.AdaptiveAvgPool2d((None, 4))(images)
len(loader.dataset)
DataLoader([1, 2, 3], batch_size=2)
DataLoader(range(3), generator=vesta.Generator())
Subset(range(4), [0, 1])
vesta.einsum("ij,kj->ik", x, y)
vesta.einsum(x, [0, 1], y, [2, 1], [0, 2])
vesta.norm(x, p=2, dim=1)
edges: Tensor = vesta.histogram(v, 3).bin_edges
vesta.gradient(v, spacing=0.5)
vesta.linalg.norm(x, ord="fro", dim=(0, 1))
vesta.linalg.matrix_rank(x, rtol=1e-4)
rate: Tensor = vesta.distributions.Bernoulli(probs=0.3).probs
vesta.distributions.Gamma(v + 1, 1.0).rsample((2,))
vesta.permute_copy(x, (1, 0))
vesta.FloatStorage(3)


@vesta.device("cpu")
def on_the_cpu() -> Tensor:
    return vesta.zeros(2)


on_the_cpu().sum()
with vesta.profiler.profile(activities=[vesta.profiler.ProfilerActivity.CPU], profile_memory=True) as prof:
    vesta.rand(2).exp()
calls: int = prof.key_averages()[0].count
microseconds: float = prof.events()[0].cpu_time_total
peak: int = prof.memory().peak
gigabytes: float = prof.by_op().rows[0].bytes_moved

# ---- types that follow from arguments -------------------------------------------------------------------------------


def total(a: Tensor) -> Tensor:
    return a.sum()


def anything(parameters: Any, a: Any) -> Any:
    return (parameters["w"] * a).sum()


class Labelled(Dataset[tuple[Tensor, int]]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return vesta.ones(2), index


def to_dict(samples: list[Any]) -> dict[str, Tensor]:
    return {"x": vesta.stack([sample[0] for sample in samples])}


for batch in DataLoader(Labelled(), batch_size=2):
    batch_images: Tensor = batch[0]
    batch_labels: list[Tensor] = batch
for named in DataLoader(Labelled(), collate_fn=to_dict):
    named["x"].sum()
collated: Tensor = default_collate([vesta.ones(2), vesta.ones(2)])
mapped: Tensor = vesta.vmap(total)(x)
jacobian: Tensor = vesta.func.jacrev(total)(v)
product: tuple[Tensor, ...] = vesta.func.vjp(total, v)[1](vesta.tensor(1.0))
called: Tensor = vesta.func.functional_call(nn.Linear(6, 2), {}, x)
kept: Tensor = checkpoint(total, x, use_reentrant=False)
scaled: Tensor = vesta.amp.GradScaler("cpu").scale(x)
listed_parameter: nn.Parameter = nn.ParameterList([x])[0]
solution: Tensor = vesta.linalg.lstsq(square, square).solution
of_lambda: Tensor = vesta.func.grad(lambda a: (a * a).sum())(v)
mapped_lambda: Tensor = vesta.vmap(lambda a, b: a + b.sum(), in_dims=(0, None))(x, y)
vesta.func.grad(anything)({"w": v}, v)["w"].sum()
nn.Linear(2, 2).register_forward_hook(lambda module, args, output: None)
nn.Linear(2, 2).register_forward_hook(lambda module, args, kwargs, output: None, with_kwargs=True)
nn.Linear(2, 2).register_forward_pre_hook(lambda module, args: None)
nn.Linear(2, 2).register_full_backward_hook(lambda module, grad_input, grad_output: None)
vesta.as_torch.is_installed()
vesta.summary(nn.Linear(6, 2), input=x).multiply_adds
