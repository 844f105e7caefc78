"""Rows of the table of ops for networks: losses, normalisation, recurrent networks, attention."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Callable

import numpy as np
import vesta
from op_db_row import Constant, Fixed, Maker, Row, Sample, call, structured
from scipy import special

Array = np.ndarray
Samples = Callable[[Maker], Iterator[Sample]]
REDUCTIONS = ("mean", "sum", "none")

# ---- References ----


def reduced(losses: Array, reduction: str) -> Array:
    return losses if reduction == "none" else losses.sum() if reduction == "sum" else losses.mean()


def pointwise(f: Callable[..., Array]) -> Callable[..., Array]:
    """Makes the reference of a loss out of its formula; the reduction is given by keyword."""
    return lambda *args, reduction="mean", **kwargs: reduced(f(*args, **kwargs), reduction)


def smooth_l1(x: Array, t: Array, beta: float = 1.0) -> Array:
    d = np.abs(x - t)
    return np.where(d < beta, d**2 / (2 * beta or 1), d - beta / 2)


def huber(x: Array, t: Array, delta: float = 1.0) -> Array:
    d = np.abs(x - t)
    return np.where(d <= delta, d**2 / 2, delta * (d - delta / 2))


def activated(x: Array, use_gelu: bool) -> Array:
    """relu, or gelu by tanh."""
    return x / 2 * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))) if use_gelu else np.maximum(x, 0)


def activated_addmm(c: Array, a: Array, b: Array, beta: float = 1, alpha: float = 1, use_gelu: bool = False) -> Array:
    return activated(beta * c + alpha * np.matmul(a, b), use_gelu)


def addmm_activations(make: Maker) -> Iterator[Sample]:
    draw = lambda *shape: make(*shape, low=-1, high=1)
    for more in ({}, {"use_gelu": True}) if make.dtype.bits else ({},):
        yield call(draw(4), draw(3, 5), draw(5, 4), **more)
        yield call(draw(3, 4), draw(3, 5), draw(5, 4), beta=2, alpha=-1, **more)
        yield call(draw(2), draw(0, 5), draw(5, 2), **more)


def linear_activations(make: Maker) -> Iterator[Sample]:
    draw = lambda *shape: make(*shape, low=-1, high=1)
    for use_gelu in (False, True) if make.dtype.bits else (False,):
        yield call(draw(2, 3), draw(4, 3), draw(4), use_gelu)
        yield call(draw(2, 2, 3), draw(8, 3), draw(8), use_gelu)
        yield call(draw(3), draw(5, 3), use_gelu=use_gelu)
        yield call(draw(0, 3), draw(2, 3), draw(2), use_gelu)


def cross_entropy_of_odds(x: Array, t: Array, weight: Any = None) -> Array:
    low = np.finfo(x.dtype).tiny
    logs = [np.maximum(np.log(np.maximum(p, low)), -100) for p in (x, 1 - x)]
    return -(t * logs[0] + (1 - t) * logs[1]) * (1 if weight is None else weight)


def divergence(x: Array, t: Array, log_target: bool = False) -> Array:
    return np.exp(t) * (t - x) if log_target else special.xlogy(t, t) - t * x


def poisson(x: Array, t: Array, log_input: bool = True, full: bool = False, eps: float = 1e-8) -> Array:
    loss = np.exp(x) - t * x if log_input else x - t * np.log(x + eps)
    s = np.where(t > 1, t, 2)
    return loss + full * np.where(t > 1, s * np.log(s) - s + np.log(2 * np.pi * s) / 2, 0)


def hinge_embedding(x: Array, t: Array, margin: float = 1.0) -> Array:
    return np.where(t == 1, x, np.maximum(0, margin - x))


def cosine(a: Array, b: Array, t: Array, margin: float = 0.0) -> Array:
    cos = (a * b).sum(-1) / np.sqrt(((a**2).sum(-1) + 1e-12) * ((b**2).sum(-1) + 1e-12))
    return np.where(t == 1, 1 - cos, np.maximum(0, cos - margin))


def triplet(a: Array, p: Array, n: Array, margin: float = 1, power: float = 2, swap: bool = False) -> Array:
    distance = lambda u, v: np.linalg.norm(u - v + 1e-6, power, -1)
    far = np.minimum(distance(a, n), distance(p, n)) if swap else distance(a, n)
    return np.maximum(0, distance(a, p) - far + margin)


def multi_margin(x: Array, t: Array, p: float = 1, margin: float = 1.0, weight: Any = None) -> Array:
    rows, classes = np.atleast_2d(x), np.atleast_1d(t)
    terms = np.maximum(0, margin - np.take_along_axis(rows, classes[:, None], 1) + rows) ** p
    np.put_along_axis(terms, classes[:, None], 0, 1)
    loss = terms.sum(1) / rows.shape[1] * (1 if weight is None else weight[classes])
    return loss.reshape(t.shape)


def multilabel_margin(x: Array, t: Array) -> Array:
    losses = []
    for row, labels in zip(np.atleast_2d(x), np.atleast_2d(t)):
        labels = list(itertools.takewhile(lambda k: k >= 0, labels))
        others = [k for k in range(len(row)) if k not in labels]
        losses.append(sum(max(0.0, 1 - row[y] + row[j]) for y in labels for j in others) / len(row))
    return np.array(losses if x.ndim == 2 else losses[0], x.dtype)


def ctc(x: Array, targets: Array, inputs: Any, lengths: Any, reduction: str = "mean") -> Array:
    """Adds up all alignments, one by one."""
    losses, at = [], 0
    for n, (steps, length) in enumerate(zip(inputs, lengths)):
        want = targets[at : at + length] if targets.ndim == 1 else targets[n, :length]
        at += length
        total = -np.inf
        for path in itertools.product(range(x.shape[2]), repeat=steps):
            if [k for k, _ in itertools.groupby(path) if k] == list(want):
                total = np.logaddexp(total, sum(x[t, n, k] for t, k in enumerate(path)))
        losses.append(-total)
    if reduction == "mean":
        losses = [a / max(b, 1) for a, b in zip(losses, lengths)]
    return reduced(np.array(losses), reduction)


def standard(x: Array, axes: tuple[int, ...], eps: float) -> Array:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def column(t: Array, x: Array) -> Array:
    return t.reshape(-1, *(1,) * (x.ndim - 2))


def group_norm(x: Array, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Array:
    y = standard(x.reshape(x.shape[0], groups, -1), (2,), eps).reshape(x.shape) if x.size else x
    y = y if weight is None else y * column(weight, x)
    return y if bias is None else y + column(bias, x)


def instance_norm(x: Array, weight: Any, bias: Any, mean: Any, var: Any, stats: bool, _: float, eps: float) -> Array:
    axes = tuple(range(2, x.ndim))
    y = standard(x, axes, eps) if stats else (x - column(mean, x)) / np.sqrt(column(var, x) + eps)
    y = y if weight is None else y * column(weight, x)
    return y if bias is None else y + column(bias, x)


def rms_norm(x: Array, shape: Any, weight: Any = None, eps: float = 0.0) -> Array:
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    y = x / np.sqrt((x**2).mean(axes, keepdims=True) + eps)
    return y if weight is None else y * weight


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def step(kind: str, x: Array, state: list[Array], ih: Array, hh: Array, b_ih: Any = 0, b_hh: Any = 0) -> list[Array]:
    """Returns the state after one step."""
    b_ih, b_hh = 0 if b_ih is None else b_ih, 0 if b_hh is None else b_hh
    a, b, h = x @ ih.T + b_ih, state[0] @ hh.T + b_hh, state[0]
    if kind == "gru":
        (r, z, n), (rh, zh, nh) = np.split(a, 3, -1), np.split(b, 3, -1)
        z = sigmoid(z + zh)
        return [(1 - z) * np.tanh(n + sigmoid(r + rh) * nh) + z * h]
    if kind == "lstm":
        i, f, g, o = np.split(a + b, 4, -1)
        c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
        return [sigmoid(o) * np.tanh(c), c]
    return [np.tanh(a + b) if kind == "rnn_tanh" else np.maximum(a + b, 0)]


def network(kind: str) -> Callable[..., tuple[Array, ...]]:
    def reference(x: Array, hx: Any, params: Any, biases: bool, layers: int, _p: float, _t: bool, both: bool,
                  batch_first: bool) -> tuple[Array, ...]:  # fmt: skip
        states = hx if kind == "lstm" else [hx]
        x = x.swapaxes(0, 1) if batch_first else x
        ends = []
        for layer in range(layers):
            outputs = []
            for d in range(1 + both):
                k = layer * (1 + both) + d
                state = [s[k] for s in states]
                each = 4 if biases else 2
                weights = params[k * each : (k + 1) * each]
                made = []
                for t in range(len(x))[:: -1 if d else 1]:
                    state = step(kind, x[t], state, *weights)
                    made.append(state[0])
                outputs.append(np.stack(made[::-1] if d else made))
                ends.append(state)
            x = np.concatenate(outputs, -1)
        return (x.swapaxes(0, 1) if batch_first else x, *(np.stack(s) for s in zip(*ends)))

    return reference


def cell(kind: str) -> Callable[..., Any]:
    if kind == "lstm":
        return lambda *args: tuple(step(kind, *args))
    return lambda x, h, *weights: step(kind, x, [h], *weights)[0]


def attention(q: Array, k: Array, v: Array, mask: Any = None, _: float = 0, causal: bool = False, scale: Any = None,
              enable_gqa: bool = False) -> Array:  # fmt: skip
    if enable_gqa:
        k, v = (np.repeat(t, q.shape[-3] // t.shape[-3], -3) for t in (k, v))
    scores = q @ k.swapaxes(-1, -2) * (1 / np.sqrt(q.shape[-1]) if scale is None else scale)
    if causal:
        mask = np.tril(np.ones(scores.shape[-2:], bool))
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    weights = np.exp(scores - np.maximum(scores.max(-1, keepdims=True), -1e30))
    total = weights.sum(-1, keepdims=True)
    return weights / np.where(total == 0, 1, total) @ v


# ---- Samples ----


def pairs(low: float = -2, high: float = 2, target: Any = None, **options: Any) -> Samples:
    """Returns samples (input, target) for every reduction; ``target`` draws the second one."""

    def samples(make: Maker) -> Iterator[Sample]:
        for reduction in REDUCTIONS:
            for shape in ((3, 2), (5,)):
                t = make(*shape, low=low, high=high) if target is None else target(make, shape)
                yield call(make(*shape, low=low, high=high), t, reduction=reduction, **options)

    return samples


def joined(*all_samples: Samples) -> Samples:
    return lambda make: itertools.chain.from_iterable(s(make) for s in all_samples)


def signs(make: Maker, shape: tuple[int, ...]) -> Constant:
    return Constant(make.dtype.round(make.rng.choice([-1.0, 1.0], shape)))


def fractions(make: Maker, shape: tuple[int, ...]) -> Constant:
    return Constant(make(*shape, low=0.1, high=0.9))


def cosines(make: Maker) -> Iterator[Sample]:
    for margin in (0.0, 0.3):
        yield call(make(4, 3), make(4, 3), signs(make, (4,)), margin=margin)
    yield call(make(3), make(3), signs(make, ()), reduction="none")


def triplets(make: Maker) -> Iterator[Sample]:
    yield call(make(4, 3), make(4, 3), make(4, 3))
    yield call(make(2, 3), make(2, 3), make(2, 3), 0.5, 3.0, swap=True, reduction="none")


def rankings(make: Maker) -> Iterator[Sample]:
    yield call(make(5), make(5), signs(make, (5,)), margin=0.25)
    yield call(make(2, 3), make(2, 3), signs(make, (2, 3)), reduction="none")


def class_margins(make: Maker) -> Iterator[Sample]:
    yield call(make(4, 3), Fixed(np.array([2, 0, 1, 1])))
    yield call(make(3, 4), Fixed(np.array([3, 0, 1])), 2, 0.5, Constant(make(4, low=0.5, high=2)), reduction="none")
    yield call(make(4), Fixed(np.array(2)), reduction="sum")


def label_margins(make: Maker) -> Iterator[Sample]:
    yield call(make(2, 4), Fixed(np.array([[3, 0, -1, 1], [2, -1, -1, -1]])))
    yield call(make(2, 3), Fixed(np.array([[0, 1, 2], [-1, 0, 0]])), reduction="none")
    yield call(make(4), Fixed(np.array([1, 2, -1, 0])), reduction="none")


def alignments(make: Maker) -> Iterator[Sample]:
    yield call(make(4, 2, 3), Fixed(np.array([[1, 2], [2, 2]])), [4, 3], [2, 2])
    yield call(make(4, 3, 3), Fixed(np.array([1, 2, 1])), [4, 2, 4], [2, 0, 1], reduction="none")


def groups(make: Maker) -> Iterator[Sample]:
    yield call(make(2, 4, 3), 2, make(4), make(4))
    yield call(make(3, 9), 3)
    yield call(make(1, 4, 2, 3), 4, make(4), None, 1e-2)
    yield call(make(0, 4, 2), 2)


def instances(make: Maker) -> Iterator[Sample]:
    mean, variance = Constant(make(3)), Constant(make(3, low=0.5, high=2))
    yield call(make(2, 3, 4), make(3), make(3), None, None, True, 0.1, 1e-5, True)
    yield call(make(2, 3, 2, 2), None, None, mean, variance, False, 0.1, 1e-5, True)


def rows_of(make: Maker) -> Iterator[Sample]:
    yield call(make(2, 4), (4,), make(4), 1e-5)
    yield call(make(3, 2, 3), (2, 3), None, 1e-3)


def sequences(kind: str, *, cells: bool = False) -> Samples:
    gates = {"lstm": 4, "gru": 3}.get(kind, 1)

    def samples(make: Maker) -> Iterator[Sample]:
        draw = lambda *shape: make(*shape, low=-1, high=1)
        if cells:
            for biases in (True, False):
                h = [draw(2, 3), draw(2, 3)] if kind == "lstm" else draw(2, 3)
                b = (draw(gates * 3), draw(gates * 3)) if biases else ()
                yield call(draw(2, 4), h, draw(gates * 3, 4), draw(gates * 3, 3), *b)
            return
        for layers, both, biases, first in ((1, False, True, False), (2, True, True, True), (2, False, False, False)):
            d, hidden = 1 + both, 2
            params = []
            for layer, _ in itertools.product(range(layers), range(d)):
                params += [draw(gates * hidden, hidden * d if layer else 3), draw(gates * hidden, hidden)]
                params += [draw(gates * hidden), draw(gates * hidden)] if biases else []
            h = draw(layers * d, 2, hidden)
            state = [h, draw(layers * d, 2, hidden)] if kind == "lstm" else h
            yield call(
                draw(*((2, 3, 3) if first else (3, 2, 3))), state, params, biases, layers, 0.0, False, both, first
            )

    return samples


def queries(make: Maker) -> Iterator[Sample]:
    draw = lambda *shape: make(*shape, low=-1, high=1)
    yield call(draw(2, 3, 4), draw(2, 5, 4), draw(2, 5, 2))
    yield call(draw(4, 3), draw(4, 3), draw(4, 3), None, 0.0, True)
    seen = Fixed(np.array([[True, False, True], [False, False, False]]))
    yield call(draw(1, 2, 2), draw(1, 3, 2), draw(1, 3, 2), seen)
    yield call(draw(1, 4, 3, 2), draw(1, 2, 3, 2), draw(1, 2, 3, 2), scale=0.3, enable_gqa=True)


def bilinears(make: Maker) -> Iterator[Sample]:
    draw = lambda *shape: make(*shape, low=-1, high=1)
    yield call(draw(4, 2), draw(4, 3), draw(5, 2, 3), draw(5))
    yield call(draw(2, 2, 3), draw(2, 2, 2), draw(2, 3, 2))


def triplet_of(private: Any) -> Callable[..., Any]:
    """Gives the op the reference's arguments: eps has its default."""
    return lambda a, p, n, margin=1.0, power=2.0, **more: private.triplet_margin_loss(a, p, n, margin, power, **more)


# ---- Rows ----


def rows() -> Iterator[Row]:
    p = vesta._C._private
    inexact: dict[str, Any] = {"method": False, "ulp": 0, "bitwise": False, "dtypes": "hf"}

    def loss(name: str, ref: Callable[..., Array], samples: Samples, **more: Any) -> Row:
        return structured(name, pointwise(ref), samples, **{"fn": getattr(p, name), **inexact, **more})

    yield loss("l1_loss", lambda x, t: np.abs(x - t), pairs(), may="uic", covers=("l1_loss", "_absolute_difference"))
    yield loss("smooth_l1_loss", smooth_l1, joined(pairs(), pairs(beta=0.4)))
    yield loss("huber_loss", huber, joined(pairs(), pairs(delta=0.4)), covers=("huber_loss", "_huber_difference"))
    yield loss("binary_cross_entropy", cross_entropy_of_odds, pairs(0.05, 0.95, fractions),
               covers=("binary_cross_entropy", "_binary_cross_entropy"))  # fmt: skip
    yield loss("kl_div", divergence, joined(pairs(-2, 0, fractions), pairs(-2, 0, log_target=True)), may="uic",
               covers=("kl_div", "_divergence", "_log_divergence"))  # fmt: skip
    yield loss("poisson_nll_loss", poisson, joined(pairs(0.1, 2), pairs(0.1, 3, log_input=False, full=True)), may="ui",
               covers=("poisson_nll_loss", "_exp_difference"))  # fmt: skip
    yield loss("hinge_embedding_loss", hinge_embedding, pairs(-2, 2, signs))
    yield loss("soft_margin_loss", lambda x, t: np.log1p(np.exp(-t * x)), pairs(-2, 2, signs),
               covers=("soft_margin_loss", "_soft_margin"))  # fmt: skip
    yield loss("margin_ranking_loss", lambda a, b, t, margin=0.0: np.maximum(0, margin - t * (a - b)), rankings,
               may="ui", covers=("margin_ranking_loss", "_margin_difference"))  # fmt: skip
    yield loss("cosine_embedding_loss", cosine, cosines, may="bui")
    yield loss("triplet_margin_loss", triplet, triplets, fn=triplet_of(p), may="ui")
    yield loss("multi_margin_loss", multi_margin, class_margins)
    yield loss("multilabel_margin_loss", multilabel_margin, label_margins)
    yield structured(
        "ctc_loss",
        lambda x, *rest, **more: ctc(x - special.logsumexp(x, -1, keepdims=True), *rest, **more),
        alignments,
        fn=lambda x, *rest, **more: p.ctc_loss(x.log_softmax(-1), *rest, **more),
        repeats=False,
        may="buic",
        covers=("ctc_loss", "_ctc_loss", "_ctc_loss_backward"),
        **inexact,
    )
    yield structured(
        "group_norm",
        group_norm,
        groups,
        repeats=False,
        covers=("group_norm", "native_group_norm", "_group_norm_backward"),
        **inexact,
    )
    yield structured("instance_norm", lambda *a: instance_norm(*a[:8]), instances, repeats=False, **inexact)
    yield structured(
        "rms_norm", rms_norm, rows_of, covers=("rms_norm", "_fused_rms_norm", "_rms_norm_backward"), may="c", **inexact
    )
    yield structured(
        "_addmm_activation", activated_addmm, addmm_activations, **{**inexact, "method": True, "may": "uic"}
    )
    yield structured(
        "_linear_activation",
        lambda x, w, b=0, use_gelu=False: activated(np.matmul(x, w.T) + b, use_gelu),
        linear_activations,
        fn=p._linear_activation,
        covers=("_linear_activation", "_fused_linear", "_linear_backward_activation"),
        may="buic",
        **inexact,
    )
    for kind in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
        yield structured(kind, network(kind), sequences(kind), repeats=False, **inexact)
        covers = ("lstm_cell", "_lstm_cell", "_lstm_cell_backward") if kind == "lstm" else (f"{kind}_cell",)
        yield structured(f"{kind}_cell", cell(kind), sequences(kind, cells=True), covers=covers, **inexact)
    yield structured(
        "scaled_dot_product_attention", attention, queries, fn=vesta._C._nn.scaled_dot_product_attention, **inexact
    )
    yield structured(
        "bilinear",
        lambda a, b, w, bias=0: np.einsum("...i,oij,...j->...o", a, w, b) + bias,
        bilinears,
        may="uic",
        **inexact,
    )


OPS = list(rows())
