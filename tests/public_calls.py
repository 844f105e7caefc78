"""One valid call of every public function and class of the package that is written in Python, and of some methods.

``python/test_wrong_arguments.py`` replaces each argument of each call by things of the wrong kind. Calls of ops come
from ``op_db.py``. A function or class without a call here is an error of that test.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, Callable

import vesta
from torch_layers import run
from torch_layers.table import ROWS, Data, Part, Row
from vesta import autograd, masked, nn, optim
from vesta.nn import functional as F
from vesta.nn import init
from vesta.nn.utils import prune
from vesta.optim import lr_scheduler as schedules
from vesta.utils import data


@dataclass(frozen=True)
class Call:
    """A function, or a method of a fresh object, with arguments that it takes; functions of this file make one."""

    name: str
    function: Callable[..., Any]
    args: tuple = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


def x() -> vesta.Tensor:
    return vesta.ones(4, 3)


def w() -> vesta.Tensor:
    return vesta.ones(4, 3, requires_grad=True)


def wide() -> vesta.Tensor:
    return vesta.ones(2, dtype=vesta.float64, requires_grad=True)


def target() -> vesta.Tensor:
    return vesta.zeros(4, dtype=vesta.int64)


def line() -> nn.Linear:
    return nn.Linear(3, 2)


def image() -> vesta.Tensor:
    return vesta.ones(2, 3, 6, 6)


def vector(value: float = 1.0) -> Callable[[], vesta.Tensor]:
    return lambda: vesta.full((3,), value)


def parameters() -> list[nn.Parameter]:
    made = [nn.Parameter(vesta.ones(3)), nn.Parameter(vesta.ones(2, 3))]
    for p in made:
        p.grad = vesta.ones(p.shape)
    return made


def optimizer() -> optim.Optimizer:
    return optim.SGD(parameters(), 0.1, momentum=0.9)


def data_set() -> data.TensorDataset:
    return data.TensorDataset(vesta.arange(10), vesta.arange(10.0))


def call(name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Call:
    return Call(name, function, args, kwargs)


def of_row(row: Row) -> list[Call]:
    """Makes the constructor and the call of a row of ``torch_layers``."""

    def later(value: Any) -> Any:
        made = isinstance(value, (Data, Part)) or (isinstance(value, tuple) and any(isinstance(v, Data) for v in value))
        return (lambda: run.argument(vesta, value)) if made else value

    def forward(*given: Any, **named: Any) -> Any:
        if len(given) == 1 and type(given[0]) is tuple:
            given = given[0]  # maxima and their places
        return run.build(vesta, row)(*given, **named)

    kwargs, named = ({key: later(value) for key, value in part.items()} for part in (row.kwargs, row.named))
    return [
        Call(f"nn.{row.name}", getattr(nn, row.name), tuple(map(later, row.args)), kwargs),
        Call(f"nn.{row.name}()", forward, tuple(map(later, row.inputs)), named),
    ]


def of_module(module: nn.Module, *inputs: Any) -> Call:
    """Calls the forward of a layer."""
    return Call(f"nn.{type(module).__name__}()", module, inputs)


FUNCTIONS = [
    call("F.relu", F.relu, x, False),
    call("F.leaky_relu", F.leaky_relu, x, 0.1, False),
    call("F.relu_", F.relu_, x),
    call("F.sigmoid", F.sigmoid, x),
    call("F.tanh", F.tanh, x),
    call("F.softmax", F.softmax, x, 1, _stacklevel=3, dtype=vesta.float32),
    call("F.log_softmax", F.log_softmax, x, 1, _stacklevel=3, dtype=vesta.float32),
    call("F.dropout", F.dropout, x, 0.5, True, False),
    call("F.embedding", F.embedding, target, x, None, None, 2.0, False, False),
    call("F.max_pool2d", F.max_pool2d, image, 2, 2, 0, 1, False, False),
    call("F.batch_norm", F.batch_norm, x, vector(), vector(), vector(), vector(), True, 0.1, 1e-5),
    call("F.cross_entropy", F.cross_entropy, x, target, vector(), None, -100, None, "mean", 0.0),
    call("F.nll_loss", F.nll_loss, x, target, vector(), None, -100, None, "mean"),
    call("F.mse_loss", F.mse_loss, x, x, None, None, "mean"),
    call("F.bce", F.binary_cross_entropy_with_logits, x, x, x, None, None, "mean", vector()),
    call("F.conv2d", F.conv2d, image, lambda: vesta.ones(2, 3, 3, 3), lambda: vesta.ones(2), 1, 0, 1, 1),
    call("F.linear", F.linear, x, lambda: vesta.ones(2, 3), lambda: vesta.ones(2)),
    call("F.layer_norm", F.layer_norm, x, (3,), vector(), vector(), 1e-5),
    call("F.normalize", F.normalize, x, 2.0, 1, 1e-12),
    call("F.gelu", F.gelu, x),
    call("F.softplus", F.softplus, x, 1.0, 20.0),
    call("F.logsigmoid", F.logsigmoid, x),
    call("norm", vesta.norm, x, 2, 1, True),
    call("numel", vesta.numel, x),
    call("is_complex", vesta.is_complex, x),
    call("is_floating_point", vesta.is_floating_point, x),
    call("set_default_tensor_type", vesta.set_default_tensor_type, "vesta.FloatTensor"),
    call("clamp_", vesta.clamp_, x, 0, 1),
    call("asarray", vesta.asarray, [1.0, 2.0], dtype=vesta.float32, device="cpu", copy=None, requires_grad=False),
    call("Tensor.norm", lambda x, *a: vesta.Tensor.norm(x, *a), x, 2, 1, True),
    call("Tensor.type", lambda x, *a: vesta.Tensor.type(x, *a), x, vesta.float64),
    call("Tensor.expand_as", vesta.Tensor.expand_as, x, x),
    call("Tensor.to", vesta.Tensor.to, x, vesta.float64),
    call("Tensor.view_as", vesta.Tensor.view_as, x, x),
    call("Tensor.register_hook", lambda h: w().register_hook(h), lambda: lambda g: g),
    call("autograd.backward", autograd.backward, lambda: w().sum(), lambda: vesta.ones(()), False, False),
    call("autograd.grad", autograd.grad, lambda: w().sum(), w, None, False, False, True, True),
    call("autograd.gradcheck", autograd.gradcheck, lambda: lambda t: t * 2, wide),
    call("autograd.gradgradcheck", autograd.gradgradcheck, lambda: lambda t: t * t, wide),
    call("autograd.set_detect_anomaly", autograd.set_detect_anomaly, False, True),
]  # fmt: skip

INITIAL = [
    call("init.calculate_gain", init.calculate_gain, "leaky_relu", 0.2),
    call("init.constant_", init.constant_, x, 2.0),
    call("init.dirac_", init.dirac_, lambda: vesta.ones(2, 2, 3), 1),
    call("init.eye_", init.eye_, x),
    call("init.kaiming_normal_", init.kaiming_normal_, x, 0.1, "fan_in", "leaky_relu"),
    call("init.kaiming_uniform_", init.kaiming_uniform_, x, 0.1, "fan_in", "leaky_relu"),
    call("init.normal_", init.normal_, x, 0.0, 1.0),
    call("init.ones_", init.ones_, x),
    call("init.sparse_", init.sparse_, x, 0.5, 0.01),
    call("init.trunc_normal_", init.trunc_normal_, x, 0.0, 1.0, -2.0, 2.0),
    call("init.uniform_", init.uniform_, x, 0.0, 1.0),
    call("init.xavier_normal_", init.xavier_normal_, x, 1.0),
    call("init.xavier_uniform_", init.xavier_uniform_, x, 1.0),
    call("init.zeros_", init.zeros_, x),
]

LAYERS = [
    call("nn.BCEWithLogitsLoss", nn.BCEWithLogitsLoss, vector(), None, None, "mean", vector()),
    call("nn.BatchNorm1d", nn.BatchNorm1d, 3, 1e-5, 0.1, True, True),
    call("nn.BatchNorm2d", nn.BatchNorm2d, 3, 1e-5, 0.1, True, True),
    call("nn.BatchNorm3d", nn.BatchNorm3d, 3, 1e-5, 0.1, True, True),
    call("nn.SyncBatchNorm", nn.SyncBatchNorm, 3, 1e-5, 0.1, True, True),
    call("nn.Buffer", nn.Buffer, x, persistent=True),
    call("nn.Conv2d", nn.Conv2d, 3, 4, 3, 1, 0, 1, 1, True, "zeros"),
    call("nn.CrossEntropyLoss", nn.CrossEntropyLoss, vector(), None, -100, None, "mean", 0.0),
    call("nn.Dropout", nn.Dropout, 0.5, False),
    call("nn.Embedding", nn.Embedding, 10, 3, None, None, 2.0, False, False),
    call("nn.Flatten", nn.Flatten, 1, -1),
    call("nn.GELU", nn.GELU, "none"),
    call("nn.Identity", nn.Identity),
    call("nn.LayerNorm", nn.LayerNorm, (3,), 1e-5, True, True),
    call("nn.LeakyReLU", nn.LeakyReLU, 0.1, False),
    call("nn.Linear", nn.Linear, 3, 2, True),
    call("nn.LogSigmoid", nn.LogSigmoid),
    call("nn.LogSoftmax", nn.LogSoftmax, 1),
    call("nn.MSELoss", nn.MSELoss, None, None, "mean"),
    call("nn.MaxPool2d", nn.MaxPool2d, 2, 2, 0, 1, False, False),
    call("nn.Module", nn.Module),
    call("nn.ModuleDict", nn.ModuleDict, lambda: {"a": nn.Tanh()}),
    call("nn.ModuleList", nn.ModuleList, lambda: [nn.Tanh()]),
    call("nn.NLLLoss", nn.NLLLoss, vector(), None, -100, None, "mean"),
    call("nn.Parameter", nn.Parameter, x, True),
    call("nn.ParameterDict", nn.ParameterDict, lambda: {"a": nn.Parameter(x())}),
    call("nn.ParameterList", nn.ParameterList, lambda: [nn.Parameter(x())]),
    call("nn.ReLU", nn.ReLU, False),
    call("nn.Sequential", nn.Sequential, nn.Tanh(), nn.Tanh()),
    call("nn.Sigmoid", nn.Sigmoid),
    call("nn.Softmax", nn.Softmax, 1),
    call("nn.Softplus", nn.Softplus, 1.0, 20.0),
    call("nn.Tanh", nn.Tanh),
    call("nn.Unflatten", nn.Unflatten, 1, (3, 1)),
    of_module(nn.BCEWithLogitsLoss(), x, x),
    of_module(nn.BatchNorm1d(3), x),
    of_module(nn.BatchNorm2d(3), image),
    of_module(nn.Conv2d(3, 2, 3), image),
    of_module(nn.CrossEntropyLoss(), x, target),
    of_module(nn.Dropout(), x),
    of_module(nn.Embedding(5, 2), target),
    of_module(nn.Flatten(), x),
    of_module(nn.GELU(), x),
    of_module(nn.LayerNorm(3), x),
    of_module(nn.LeakyReLU(), x),
    of_module(nn.Linear(3, 2), x),
    of_module(nn.LogSigmoid(), x),
    of_module(nn.LogSoftmax(1), x),
    of_module(nn.MSELoss(), x, x),
    of_module(nn.MaxPool2d(2), image),
    of_module(nn.NLLLoss(), x, target),
    of_module(nn.ReLU(), x),
    of_module(nn.Sequential(nn.Linear(3, 2)), x),
    of_module(nn.Sigmoid(), x),
    of_module(nn.Softmax(1), x),
    of_module(nn.Softplus(), x),
    of_module(nn.Tanh(), x),
    of_module(nn.Unflatten(1, (3, 1)), x),
    call("Module.to", lambda *a: nn.Linear(2, 2).to(*a), vesta.float64),
    call("Module.register_buffer", lambda *a: nn.Module().register_buffer(*a), "name", x, True),
    call("Module.register_parameter", lambda *a: nn.Module().register_parameter(*a), "name", lambda: nn.Parameter(x())),
    call("Module.add_module", lambda *a: nn.Module().add_module(*a), "name", nn.Tanh()),
    call("Module.load_state_dict", lambda *a: line().load_state_dict(*a), lambda: line().state_dict(), True),
    call("Module.apply", lambda *a: nn.Linear(3, 2).apply(*a), lambda: lambda m: None),
    call("Module.get_submodule", lambda *a: nn.Sequential(nn.Tanh()).get_submodule(*a), "0"),
    call("Module.train", lambda *a: nn.Tanh().train(*a), True),
    call("Module.requires_grad_", lambda *a: nn.Linear(3, 2).requires_grad_(*a), True),
    call("nn.utils.clip_grad_norm_", nn.utils.clip_grad_norm_, parameters, 1.0, 2.0, False),
    call("nn.utils.clip_grad_value_", nn.utils.clip_grad_value_, parameters, 1.0),
    call("nn.utils.get_total_norm", nn.utils.get_total_norm, parameters, 2.0, False),
    call("nn.utils.parameters_to_vector", nn.utils.parameters_to_vector, parameters),
    call("nn.utils.vector_to_parameters", nn.utils.vector_to_parameters, lambda: vesta.ones(9), parameters),
]  # fmt: skip

OPTIMIZERS = [
    call("optim.SGD", optim.SGD, parameters, 0.1, 0.9, 0.0, 0.01, False, maximize=False),
    call("optim.Adam", optim.Adam, parameters, 0.1, (0.9, 0.99), 1e-8, 0.01, False, maximize=False),
    call("optim.AdamW", optim.AdamW, parameters, 0.1, (0.9, 0.99), 1e-8, 0.01, False, maximize=False),
    call("optim.RMSprop", optim.RMSprop, parameters, 0.1, 0.9, 1e-8, 0.01, 0.9, False, maximize=False),
    call("Optimizer.step", lambda *a: optimizer().step(*a), lambda: lambda: 1.0),
    call("Optimizer.zero_grad", lambda *a: optimizer().zero_grad(*a), True),
    call("Optimizer.load_state_dict", lambda *a: optimizer().load_state_dict(*a), lambda: optimizer().state_dict()),
    call("Optimizer.add_param_group", lambda *a: optimizer().add_param_group(*a), lambda: {"params": parameters()}),
]


def stepped(make: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a scheduler and runs some steps of it: what a wrong argument does may show only then."""

    def run(*args: Any, **kwargs: Any) -> None:
        made = make(*args, **kwargs)
        for _ in range(3):
            made.optimizer.step()
            made.step(1.0) if isinstance(made, schedules.ReduceLROnPlateau) else made.step()

    return run


def chained(*args: Any) -> Any:
    return schedules.ChainedScheduler(*args)


def two_steps() -> Any:
    return lambda o: [schedules.StepLR(o, 1), schedules.StepLR(o, 1)]


def in_sequence(make: Any, *rest: Any) -> None:
    """Makes the schedulers of one optimizer if they are given as a function."""
    of = optimizer()
    made = make(of) if callable(make) and not isinstance(make, type) else make
    stepped(schedules.SequentialLR)(of, made, *rest)


SCHEDULES = [
    call("StepLR", stepped(schedules.StepLR), optimizer, 2, 0.1, -1),
    call("MultiStepLR", stepped(schedules.MultiStepLR), optimizer, [1, 2], 0.1, -1),
    call("ConstantLR", stepped(schedules.ConstantLR), optimizer, 0.5, 2, -1),
    call("LinearLR", stepped(schedules.LinearLR), optimizer, 0.5, 1.0, 2, -1),
    call("ExponentialLR", stepped(schedules.ExponentialLR), optimizer, 0.9, -1),
    call("PolynomialLR", stepped(schedules.PolynomialLR), optimizer, 5, 1.0, -1),
    call("CosineAnnealingLR", stepped(schedules.CosineAnnealingLR), optimizer, 5, 0.0, -1),
    call("CosineAnnealingWarmRestarts", stepped(schedules.CosineAnnealingWarmRestarts), optimizer, 2, 1, 0.0, -1),
    call("LambdaLR", stepped(schedules.LambdaLR), optimizer, lambda: lambda e: 1.0, -1),
    call("MultiplicativeLR", stepped(schedules.MultiplicativeLR), optimizer, lambda: lambda e: 1.0, -1),
    call("OneCycleLR", stepped(schedules.OneCycleLR), optimizer, 0.1, 9, None, None, 0.3, "cos", True, 0.8, 0.9, 25.0),
    call("ReduceLROnPlateau", stepped(schedules.ReduceLROnPlateau), optimizer, "min", 0.1, 1, 1e-4, "rel", 0, 0.0),
    call("SequentialLR", in_sequence, two_steps, [1], -1),
    call("ChainedScheduler", chained, lambda: [schedules.StepLR(optimizer(), 1)]),
]  # fmt: skip


class Count(data.IterableDataset):
    """A stream of two numbers."""

    def __iter__(self) -> Any:
        return iter((1, 2))


def loaded(*args: Any, **kwargs: Any) -> list:
    return list(data.DataLoader(*args, **kwargs))


DATA = [
    call("TensorDataset", data.TensorDataset, x, x),
    call("StackDataset", lambda *a: len(data.StackDataset(*a)), data_set, data_set),
    call("ConcatDataset", lambda *a: len(data.ConcatDataset(*a)), lambda: [data_set(), data_set()]),
    call("ChainDataset", lambda *a: list(data.ChainDataset(*a)), lambda: [Count()]),
    call("Subset", lambda *a: data.Subset(*a)[0], data_set, [0, 1]),
    call("random_split", data.random_split, data_set, [5, 5]),
    call("DataLoader", loaded, data_set, 2, False, None, None, 0, None, False, False, 0.0),
    call("SequentialSampler", lambda *a: list(data.SequentialSampler(*a)), data_set),
    call("RandomSampler", lambda *a: list(data.RandomSampler(*a)), data_set, True, 5),
    call("SubsetRandomSampler", lambda *a: list(data.SubsetRandomSampler(*a)), [1, 2]),
    call("WeightedRandomSampler", lambda *a: list(data.WeightedRandomSampler(*a)), [0.5, 0.5], 3, True),
    call("BatchSampler", lambda *a: list(data.BatchSampler(*a)), lambda: data.SequentialSampler(data_set()), 2, False),
    call("DistributedSampler", lambda *a: list(data.DistributedSampler(*a)), data_set, 2, 0, True, 0, False),
    call("default_collate", data.default_collate, lambda: [x(), x()]),
    call("default_convert", data.default_convert, [1.0]),
]


def prunable() -> nn.Module:
    return nn.Linear(3, 4)


def normed() -> nn.Module:
    return nn.utils.parametrizations.weight_norm(nn.Linear(3, 4))


def packed() -> nn.utils.rnn.PackedSequence:
    return nn.utils.rnn.pack_sequence([vesta.ones(3, 2), vesta.ones(2, 2)])


def quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """Calls a function that warns of its name."""

    def call(*args: Any, **kwargs: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args, **kwargs)

    return call


def probabilities() -> vesta.Tensor:
    return vesta.full((4, 3), 0.5)


def sequence() -> vesta.Tensor:
    return vesta.ones(2, 3, 6)


def volume() -> vesta.Tensor:
    return vesta.ones(2, 3, 4, 4, 4)


def classes() -> vesta.Tensor:
    return vesta.zeros(4, 3, dtype=vesta.int64)


def flat_grid() -> vesta.Tensor:
    return vesta.zeros(2, 4, 4, 2)


def pair_of_bn() -> tuple[Any, ...]:
    return (line().weight, line().bias, vesta.ones(2), vesta.ones(2), 1e-5, vesta.ones(2), vesta.ones(2))


MORE_FUNCTIONS = [
    *(
        call(f"F.{name}", getattr(F, name), x, False)
        for name in ("relu6", "selu", "silu", "mish", "hardswish", "hardsigmoid")
    ),
    *(call(f"F.{name}", getattr(F, name), x, 1.0, False) for name in ("elu", "celu")),
    call("F.rrelu", F.rrelu, x, 0.1, 0.3, False, False),
    call("F.hardtanh", F.hardtanh, x, -1.0, 1.0, False),
    call("F.threshold", F.threshold, x, 0.5, 1.0, False),
    call("F.softmin", F.softmin, x, 1, _stacklevel=3, dtype=vesta.float32),
    call("F.gumbel_softmax", F.gumbel_softmax, x, 1.0, False, 1e-10, -1),
    *(
        call(f"F.{name}", getattr(F, name), sequence, 0.5, True, False)
        for name in ("dropout1d", "alpha_dropout", "feature_alpha_dropout")
    ),
    call("F.dropout2d", F.dropout2d, image, 0.5, True, False),
    call("F.dropout3d", F.dropout3d, volume, 0.5, True, False),
    *(
        call(f"F.max_pool{d}d", getattr(F, f"max_pool{d}d"), of, 2, 2, 0, 1, False, False)
        for d, of in ((1, sequence), (3, volume))
    ),
    *(
        call(f"F.max_pool{d}d_with_indices", getattr(F, f"max_pool{d}d_with_indices"), of, 2, 2, 0, 1, False, True)
        for d, of in ((1, sequence), (2, image), (3, volume))
    ),
    *(
        call(f"F.lp_pool{d}d", getattr(F, f"lp_pool{d}d"), of, 2.0, 2, 2, False)
        for d, of in ((1, sequence), (2, image), (3, volume))
    ),
    *(
        call(f"F.adaptive_avg_pool{d}d", getattr(F, f"adaptive_avg_pool{d}d"), of, 2)
        for d, of in ((2, image), (3, volume))
    ),
    *(
        call(f"F.adaptive_max_pool{d}d", getattr(F, f"adaptive_max_pool{d}d"), of, 2, True)
        for d, of in ((1, sequence), (2, image), (3, volume))
    ),
    *(
        call(f"F.adaptive_max_pool{d}d_with_indices", getattr(F, f"adaptive_max_pool{d}d_with_indices"), of, 2, True)
        for d, of in ((1, sequence), (2, image), (3, volume))
    ),
    *(
        call(f"F.fractional_max_pool{d}d", getattr(F, f"fractional_max_pool{d}d"), of, 2, 2, None, True, None)
        for d, of in ((2, image), (3, volume))
    ),
    *(
        call(
            f"F.fractional_max_pool{d}d_with_indices",
            getattr(F, f"fractional_max_pool{d}d_with_indices"),
            of,
            2,
            2,
            None,
            True,
            None,
        )
        for d, of in ((2, image), (3, volume))
    ),
    *(
        call(
            f"F.max_unpool{d}d",
            getattr(F, f"max_unpool{d}d"),
            of,
            lambda of=of, d=d: getattr(F, f"max_pool{d}d")(of(), 1, return_indices=True)[1],
            1,
            1,
            0,
            None,
        )
        for d, of in ((1, sequence), (2, image), (3, volume))
    ),
    call("F.local_response_norm", F.local_response_norm, image, 2, 1e-4, 0.75, 1.0),
    call("F.interpolate", F.interpolate, image, 4, None, "nearest", None, None, False),
    call("F.upsample", quiet(F.upsample), image, 4, None, "bilinear", False),
    call("F.upsample_nearest", quiet(F.upsample_nearest), image, None, 2),
    call("F.upsample_bilinear", quiet(F.upsample_bilinear), image, None, 2),
    call("F.grid_sample", F.grid_sample, image, flat_grid, "bilinear", "zeros", False),
    call("F.affine_grid", F.affine_grid, lambda: vesta.eye(2, 3).unsqueeze(0), (1, 1, 2, 2), False),
    call("F.unfold", F.unfold, image, 2, 1, 0, 1),
    call(
        "F.grouped_mm",
        F.grouped_mm,
        lambda: vesta.ones(3, 2),
        lambda: vesta.ones(2, 2, 1),
        offs=lambda: vesta.tensor([1, 3], dtype=vesta.int32),
    ),
    call("F.fold", F.fold, lambda: vesta.ones(2, 12, 25), 6, 2, 1, 0, 1),
    *(call(f"F.{name}", getattr(F, name), x, x, None, None, "mean") for name in ("soft_margin_loss",)),
    call("F.linear_cross_entropy", F.linear_cross_entropy, x, x, target),
    call("nn.LinearCrossEntropyOptions", nn.LinearCrossEntropyOptions, False, 2, "auto", "auto", None),
    call("F.l1_loss", F.l1_loss, x, x, None, None, "mean", x),
    call("F.smooth_l1_loss", F.smooth_l1_loss, x, x, None, None, "mean", 1.0),
    call("F.huber_loss", F.huber_loss, x, x, "mean", 1.0, x),
    call("F.binary_cross_entropy", F.binary_cross_entropy, probabilities, probabilities, x, None, None, "mean"),
    call("F.kl_div", F.kl_div, x, x, None, None, "sum", False),
    call("F.poisson_nll_loss", F.poisson_nll_loss, x, x, True, False, None, 1e-8, None, "mean"),
    call("F.gaussian_nll_loss", F.gaussian_nll_loss, x, x, x, False, 1e-6, "mean"),
    call("F.hinge_embedding_loss", F.hinge_embedding_loss, x, x, 1.0, None, None, "mean"),
    call("F.margin_ranking_loss", F.margin_ranking_loss, x, x, x, 0.0, None, None, "mean"),
    call("F.multilabel_margin_loss", F.multilabel_margin_loss, x, classes, None, None, "mean"),
    call("F.multilabel_soft_margin_loss", F.multilabel_soft_margin_loss, x, x, vector(), None, None, "mean"),
    call("F.multi_margin_loss", F.multi_margin_loss, x, target, 1, 1.0, vector(), None, None, "mean"),
    call("F.cosine_embedding_loss", F.cosine_embedding_loss, x, x, lambda: vesta.ones(4), 0.0, None, None, "mean"),
    call("F.triplet_margin_loss", F.triplet_margin_loss, x, x, x, 1.0, 2.0, 1e-6, False, None, None, "mean"),
    call(
        "F.triplet_margin_with_distance_loss",
        F.triplet_margin_with_distance_loss,
        x,
        x,
        x,
        distance_function=None,
        margin=1.0,
        swap=False,
        reduction="mean",
    ),
    call(
        "F.ctc_loss",
        F.ctc_loss,
        lambda: vesta.zeros(4, 2, 3).log_softmax(2),
        lambda: vesta.ones(2, 2, dtype=vesta.int64),
        [4, 4],
        [1, 2],
        0,
        "mean",
        False,
    ),
    call("F.embedding_bag", F.embedding_bag, classes, x, None, None, 2.0, False, "mean", False, None, False, None),
    call(
        "F.multi_head_attention_forward",
        F.multi_head_attention_forward,
        lambda: vesta.ones(2, 1, 4),
        lambda: vesta.ones(3, 1, 4),
        lambda: vesta.ones(3, 1, 4),
        4,
        2,
        lambda: vesta.ones(12, 4),
        None,
        None,
        None,
        False,
        0.0,
        lambda: vesta.eye(4),
        None,
    ),
    *(
        call(f"init.{name}", quiet(getattr(init, name)), x)
        for name in (
            "uniform",
            "normal",
            "eye",
            "orthogonal",
            "xavier_uniform",
            "xavier_normal",
            "kaiming_uniform",
            "kaiming_normal",
            "orthogonal_",
        )
    ),
    call("init.constant", quiet(init.constant), x, 1.0),
    call("init.dirac", quiet(init.dirac), lambda: vesta.ones(2, 2, 3)),
    call("init.sparse", quiet(init.sparse), x, 0.5),
    call("nn.UninitializedParameter", nn.UninitializedParameter, True, "cpu", vesta.float32),
    call("nn.UninitializedBuffer", nn.UninitializedBuffer, False, "cpu", vesta.float32),
    call("nn.NLLLoss2d", quiet(nn.NLLLoss2d), vector(), None, -100, None, "mean"),
    call("nn.RNNBase", nn.RNNBase, "LSTM", 2, 3, 1, True, False, 0.0, False, 0),
    call("nn.RNNCellBase", nn.RNNCellBase, 2, 3, True, 1),
    call("nn.LazyLinear", nn.LazyLinear, 3, True),
    *(
        call(f"nn.LazyConv{t}{d}d", getattr(nn, f"LazyConv{t}{d}d"), 3, 2, 1, 0)
        for t in ("", "Transpose")
        for d in (1, 2, 3)
    ),
    *(
        call(f"nn.Lazy{kind}{d}d", getattr(nn, f"Lazy{kind}{d}d"), 1e-5, 0.1, True, True)
        for kind in ("BatchNorm", "InstanceNorm")
        for d in (1, 2, 3)
    ),
    call("nn.utils.clip_grads_with_norm_", nn.utils.clip_grads_with_norm_, parameters, 1.0, lambda: vesta.tensor(2.0)),
    call(
        "nn.utils.convert_conv2d_weight_memory_format",
        nn.utils.convert_conv2d_weight_memory_format,
        lambda: nn.Conv2d(2, 2, 2),
        vesta.channels_last,
    ),
    call(
        "nn.utils.convert_conv3d_weight_memory_format",
        nn.utils.convert_conv3d_weight_memory_format,
        lambda: nn.Conv3d(2, 2, 2),
        vesta.channels_last_3d,
    ),
    call(
        "nn.utils.fuse_conv_bn_eval",
        nn.utils.fuse_conv_bn_eval,
        lambda: nn.Conv2d(2, 2, 2).eval(),
        lambda: nn.BatchNorm2d(2).eval(),
        False,
    ),
    call(
        "nn.utils.fuse_linear_bn_eval",
        nn.utils.fuse_linear_bn_eval,
        lambda: line().eval(),
        lambda: nn.BatchNorm1d(2).eval(),
    ),
    *(
        call(
            f"nn.utils.fuse_{kind}_bn_weights",
            lambda *a, kind=kind: getattr(nn.utils, f"fuse_{kind}_bn_weights")(*a),
            *pair_of_bn(),
        )
        for kind in ("conv", "linear")
    ),
    call("nn.utils.spectral_norm", nn.utils.spectral_norm, line, "weight", 1, 1e-12, 0),
    call(
        "nn.utils.remove_spectral_norm", nn.utils.remove_spectral_norm, lambda: nn.utils.spectral_norm(line()), "weight"
    ),
    call("nn.utils.weight_norm", quiet(nn.utils.weight_norm), line, "weight", 0),
    call(
        "nn.utils.remove_weight_norm",
        nn.utils.remove_weight_norm,
        lambda: quiet(nn.utils.weight_norm)(line()),
        "weight",
    ),
    call("nn.utils.skip_init", nn.utils.skip_init, nn.Linear, 3, 2),
    call(
        "nn.utils.stateless.functional_call",
        nn.utils.stateless.functional_call,
        line,
        lambda: {"weight": vesta.ones(2, 3)},
        x,
        None,
        tie_weights=True,
        strict=False,
    ),
    call(
        "parametrize.register_parametrization",
        nn.utils.parametrize.register_parametrization,
        line,
        "weight",
        lambda: nn.Identity(),
        unsafe=False,
    ),
    call("parametrize.remove_parametrizations", nn.utils.parametrize.remove_parametrizations, normed, "weight", True),
    call(
        "parametrizations.orthogonal",
        nn.utils.parametrizations.orthogonal,
        line,
        "weight",
        "householder",
        use_trivialization=True,
    ),
    call("parametrizations.spectral_norm", nn.utils.parametrizations.spectral_norm, line, "weight", 1, 1e-12, 0),
    call("parametrizations.weight_norm", nn.utils.parametrizations.weight_norm, line, "weight", 0),
    call("prune.l1_unstructured", prune.l1_unstructured, prunable, "weight", 0.5),
    call("prune.random_unstructured", prune.random_unstructured, prunable, "weight", 2),
    call("prune.ln_structured", prune.ln_structured, prunable, "weight", 0.5, 2, 0),
    call("prune.random_structured", prune.random_structured, prunable, "weight", 1, 0),
    call("prune.custom_from_mask", prune.custom_from_mask, prunable, "bias", lambda: vesta.ones(4)),
    call("prune.identity", prune.identity, prunable, "weight"),
    call(
        "prune.global_unstructured",
        prune.global_unstructured,
        lambda: [(prunable(), "weight")],
        prune.L1Unstructured,
        None,
        amount=0.5,
    ),
    call("prune.remove", prune.remove, lambda: prune.identity(prunable(), "weight"), "weight"),
    call(
        "rnn.pack_padded_sequence", nn.utils.rnn.pack_padded_sequence, lambda: vesta.ones(3, 2, 4), [3, 1], False, True
    ),
    call("rnn.pad_packed_sequence", nn.utils.rnn.pad_packed_sequence, packed, False, 0.0, 4),
    call("rnn.pad_sequence", nn.utils.rnn.pad_sequence, lambda: [vesta.ones(2), vesta.ones(1)], False, 0.0, "right"),
    call(
        "rnn.unpad_sequence", nn.utils.rnn.unpad_sequence, lambda: vesta.ones(3, 2), lambda: vesta.tensor([3, 1]), False
    ),
    call("rnn.pack_sequence", nn.utils.rnn.pack_sequence, lambda: [vesta.ones(2), vesta.ones(1)], True),
    call("rnn.unpack_sequence", nn.utils.rnn.unpack_sequence, packed),
    call("optim.Adadelta", optim.Adadelta, parameters, 1.0, 0.9, 1e-6, 0.1, maximize=False),
    call("optim.Adagrad", optim.Adagrad, parameters, 0.1, 0.1, 0.1, 0.1, 1e-10, maximize=False),
    call("optim.SparseAdam", optim.SparseAdam, parameters, 0.1, (0.9, 0.99), 1e-8, maximize=False),
    call("optim.Adamax", optim.Adamax, parameters, 0.1, (0.9, 0.99), 1e-8, 0.1, maximize=False),
    call("optim.ASGD", optim.ASGD, parameters, 0.1, 1e-4, 0.75, 1e6, 0.1, maximize=False),
    call("optim.NAdam", optim.NAdam, parameters, 0.1, (0.9, 0.99), 1e-8, 0.1, 4e-3, False, maximize=False),
    call("optim.RAdam", optim.RAdam, parameters, 0.1, (0.9, 0.99), 1e-8, 0.1, False, maximize=False),
    call("optim.Rprop", optim.Rprop, parameters, 0.1, (0.5, 1.2), (1e-6, 50), maximize=False),
    call("optim.Adafactor", optim.Adafactor, parameters, 0.1, -0.8, (None, 1e-3), 1.0, 0.1, maximize=False),
    call(
        "optim.Muon", optim.Muon, lambda: parameters()[1:], 0.1, 0.1, 0.95, True, (3.4, -4.8, 2.0), 1e-7, 5, "original"
    ),
    call("optim.LBFGS", optim.LBFGS, parameters, 1.0, 20, 25, 1e-7, 1e-9, 10, "strong_wolfe"),
    call(
        "CyclicLR",
        stepped(schedules.CyclicLR),
        optimizer,
        0.1,
        0.5,
        2,
        3,
        "triangular",
        1.0,
        None,
        "cycle",
        True,
        0.8,
        0.9,
        -1,
    ),
    call("swa_utils.SWALR", stepped(optim.swa_utils.SWALR), optimizer, 0.1, 3, "cos", -1),
    call("swa_utils.AveragedModel", optim.swa_utils.AveragedModel, line, "cpu", None, None, False),
    call("swa_utils.update_bn", optim.swa_utils.update_bn, lambda: [x()], lambda: nn.BatchNorm1d(3)),
    call("swa_utils.get_ema_avg_fn", optim.swa_utils.get_ema_avg_fn, 0.9),
]
_LISTED = {call.name for call in LAYERS}
_FIRST = {row.name: row for row in reversed(ROWS)}
#: One configuration of every layer that is not above.
MORE_LAYERS = [call for row in _FIRST.values() for call in of_row(row) if call.name not in _LISTED]


def ones(*sizes: int) -> Callable[[], vesta.Tensor]:
    return lambda: vesta.ones(*sizes)


#: Functions of ``nn.functional`` that are ops: what their schema lets through, and what its parser refuses.
OP_FUNCTIONS = [
    *(call(f"F.{name}", getattr(F, name), x) for name in ("hardshrink", "softshrink", "pdist", "rrelu_")),
    *(call(f"F.{name}", getattr(F, name), x) for name in ("elu_", "celu_", "selu_", "hardtanh_", "leaky_relu_")),
    call("F.threshold_", F.threshold_, x, 0.5, 1.0),
    call("F.glu", F.glu, ones(2, 4)),
    call("F.prelu", F.prelu, x, ones(1)),
    call("F.one_hot", F.one_hot, classes, 9),
    *(call(f"F.{name}", getattr(F, name), x, x) for name in ("cosine_similarity", "pairwise_distance")),
    *(
        call(f"F.avg_pool{d}d", getattr(F, f"avg_pool{d}d"), of, 2)
        for d, of in ((1, sequence), (2, image), (3, volume))
    ),
    call("F.adaptive_avg_pool1d", F.adaptive_avg_pool1d, sequence, 2),
    *(call(f"F.conv{d}d", getattr(F, f"conv{d}d"), ones(1, 2, *(4,) * d), ones(2, 2, *(2,) * d)) for d in (1, 3)),
    *(
        call(f"F.conv_transpose{d}d", getattr(F, f"conv_transpose{d}d"), ones(1, 2, *(4,) * d), ones(2, 2, *(2,) * d))
        for d in (1, 2, 3)
    ),
    call("F.conv_tbc", F.conv_tbc, ones(4, 1, 2), ones(3, 2, 1), ones(1)),
    call("F.group_norm", F.group_norm, ones(2, 4, 3), 2),
    call("F.instance_norm", F.instance_norm, ones(2, 4, 3)),
    call("F.rms_norm", F.rms_norm, ones(2, 4), (4,)),
    call("F.pad", F.pad, image, (1, 1)),
    call("F.pixel_shuffle", F.pixel_shuffle, ones(1, 4, 2, 2), 2),
    call("F.pixel_unshuffle", F.pixel_unshuffle, ones(1, 1, 4, 4), 2),
    call("F.channel_shuffle", F.channel_shuffle, ones(1, 4, 2, 2), 2),
    call("F.bilinear", F.bilinear, ones(2, 3), ones(2, 4), ones(5, 3, 4)),
    call("F.scaled_dot_product_attention", F.scaled_dot_product_attention, ones(2, 3, 4), ones(2, 5, 4), ones(2, 5, 4)),
    *(call(f"F.{name}", getattr(F, name), x) for name in ("softsign", "tanhshrink")),
]


def mask() -> vesta.Tensor:
    return vesta.tensor([True, False, True])


MASKED = [
    *(
        call(f"masked.{op}", getattr(masked, op), x, 1, keepdim=False, dtype=None, mask=mask)
        for op in ("sum", "prod", "mean", "median", "amax", "amin", "argmax", "argmin", "logsumexp")
    ),
    *(
        call(f"masked.{op}", getattr(masked, op), x, 1, dtype=None, mask=mask)
        for op in ("cumsum", "cumprod", "softmax", "log_softmax", "softmin")
    ),
    *(
        call(f"masked.{op}", getattr(masked, op), x, 1, correction=1, keepdim=False, dtype=None, mask=mask)
        for op in ("var", "std")
    ),
    call("masked.norm", masked.norm, x, 2.0, 1, keepdim=False, dtype=None, mask=mask),
    call("masked.normalize", masked.normalize, x, 2.0, 1, eps=1e-6, dtype=None, mask=mask),
    call("masked.logaddexp", masked.logaddexp, x, x, dtype=None, input_mask=mask, other_mask=mask),
]

ALL = (
    FUNCTIONS + MORE_FUNCTIONS + OP_FUNCTIONS + INITIAL + LAYERS + MORE_LAYERS + OPTIMIZERS + SCHEDULES + DATA + MASKED
)
