"""The steps of random programs: ops, views, writes, hooks, kept gradients, and calls that must raise."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from .functions import CORNERED, CORNERED_WRITES, LOG, ROOT, UNARY, UNARY_WRITES, zero
from .generator import Generator, Maker
from .hyper_dual import Array, Ref, Reference, Rejected
from .program import Program, Step


def literal(value: Array) -> str:
    return f"m.tensor({value.tolist()!r}, dtype=m.float64)"


# ---- ops ----


def constant(g: Generator) -> Step:
    shape = g.dice.choice([(), (3,), (2, 3), (2, 2), (1, 3)])
    value = np.array([round(g.dice.uniform(-2, 2), 3) for _ in range(int(np.prod(shape)))]).reshape(shape)
    return g.defined(literal(value), (), lambda r, _: r.fresh(value))


def unary(g: Generator) -> Step:
    a = g.pick()
    source = g.dice.choice(list(UNARY))
    return g.defined(source.format(a), (a,), lambda r, t: r.unary(UNARY[source], t[0]))


def cornered(g: Generator) -> Step:
    a = g.pick()
    source = g.dice.choice(list(CORNERED))
    return g.defined(source.format(a), (a,), lambda r, t: with_corners(r, CORNERED[source], t[0]))


def with_corners(r: Reference, entry: tuple, a: Ref) -> Ref:
    f, slope, corners = entry
    for corner in corners:
        r.near_corner(a.value - corner)
    return r.unary((f, slope, zero), a)


def divide(r: Reference, a: Ref, b: Ref) -> Ref:
    functions = UNARY["m.reciprocal({0} * {0} + 0.5)"]
    return r.mul(a, r.unary(functions, b))


BINARY: dict[str, Callable[[Reference, Ref, Ref], Ref]] = {
    "{0} + {1}": lambda r, a, b: r.add(a, b),
    "{0} - {1}": lambda r, a, b: r.add(a, b, -1.0),
    "{0} * {1}": lambda r, a, b: r.mul(a, b),
    "m.add({0}, {1}, alpha=0.5)": lambda r, a, b: r.add(a, b, 0.5),
    "{0} / ({1} * {1} + 0.5)": divide,
    "m.maximum({0}, {1})": lambda r, a, b: larger(r, a, b),
    "m.where({0} > {1}, {0}, {1} * 2)": lambda r, a, b: larger(r, a, b, 2.0),
    "m.nn.functional.mse_loss({0}, {1})": lambda r, a, b: mean(r, squared(r, r.add(a, b, -1.0))),
}


def larger(r: Reference, a: Ref, b: Ref, factor: float = 1.0) -> Ref:
    a, b = r.together(a, b)
    r.near_corner(a.value - b.value)
    return r.choose(a.value > b.value, a, b if factor == 1 else r.mul(b, r.number(factor)))


def squared(r: Reference, a: Ref) -> Ref:
    return r.unary(UNARY["{0}.square()"], a)


def mean(r: Reference, a: Ref) -> Ref:
    if not a.value.size:
        raise Rejected("the mean of nothing")
    return r.linear(lambda x, lead: x.mean(axis=tuple(range(lead, x.ndim))), a)


def fits(shape: tuple[int, ...]) -> Callable[[Ref], bool]:
    """Returns a condition: broadcasts with this shape."""

    def accept(t: Ref) -> bool:
        try:
            np.broadcast_shapes(shape, t.shape)
        except ValueError:
            return False
        return True

    return accept


def binary(g: Generator) -> Step:
    a = g.pick()
    source = g.dice.choice(list(BINARY))
    # mse_loss warns about other shapes
    b = g.pick((lambda t: t.shape == g.at(a).shape) if "mse" in source else fits(g.at(a).shape))
    return g.defined(source.format(a, b), (a, b), lambda r, t: BINARY[source](r, t[0], t[1]))


def product(g: Generator) -> Step:
    a = g.pick(lambda t: t.value.ndim in (1, 2))
    x = g.at(a)
    b = g.pick(lambda t: t.value.ndim == 2 and t.shape[0] == x.shape[-1])
    if x.value.ndim == 1:
        return g.defined(f"{a} @ {b}", (a, b), lambda r, t: r.bilinear(vector_product, t[0], t[1]))
    return g.defined(f"{a}.matmul({b})", (a, b), lambda r, t: r.bilinear(np.matmul, t[0], t[1]))


def vector_product(x: Array, y: Array) -> Array:
    return (x[..., None, :] @ y)[..., 0, :]


def reduce(g: Generator) -> Step:
    a = g.pick(lambda t: t.value.size > 0)
    t = g.at(a)
    dim = g.dice.randrange(-t.value.ndim, t.value.ndim) if t.value.ndim and g.dice.random() < 0.7 else None
    along = dim - t.value.ndim if dim is not None and dim >= 0 else dim  # counted from the end
    keep = dim is not None and g.dice.random() < 0.4
    inside = "" if dim is None else f"{dim}, keepdim=True" if keep else f"{dim}"
    kind = g.dice.choice(["sum", "mean", "logsumexp", "norm", "var", "amax", "prod of exp"])

    def total(f: Callable[..., Array]) -> Any:
        def of(x: Array, lead: int) -> Array:
            return f(x, axis=tuple(range(lead, x.ndim)) if along is None else along, keepdims=keep)

        return of

    def spread(r: Reference, b: Ref, like: Ref) -> Ref:
        """Gives a reduced tensor its dimension back, with size 1."""
        if keep or dim is None:
            return b
        return r.linear(lambda x, lead: np.expand_dims(x, along), b)

    def make(r: Reference, operands: list[Ref]) -> Ref:
        (a,) = operands
        if kind == "sum":
            return r.linear(total(np.sum), a)
        if kind == "mean":
            return r.linear(total(np.mean), a)
        if kind == "logsumexp":
            return r.unary(LOG, r.linear(total(np.sum), r.unary(UNARY["{0}.exp()"], a)))
        if kind == "norm":
            return r.unary(ROOT, r.linear(total(np.sum), squared(r, a)))
        if kind == "amax":
            return largest(r, a, dim, keep)
        if kind == "var":
            centre = r.add(a, spread(r, r.linear(total(np.mean), a), a), -1.0)
            n = a.value.size if dim is None else a.shape[dim]
            if n < 2:
                raise Rejected("the variance of one")
            return r.mul(r.linear(total(np.sum), squared(r, centre)), r.number(1.0 / (n - 1)))
        return r.unary(UNARY["{0}.exp()"], r.linear(total(np.sum), a))

    call = f"{a}.logsumexp({inside})" if kind == "logsumexp" and dim is not None else f"{a}.exp().sum({inside}).log()"
    names = {"logsumexp": call, "prod of exp": f"{a}.sum({inside}).exp()"}
    if kind == "norm":
        names["norm"] = f"{a}.norm()" if dim is None else f"{a}.norm(2, {inside})"
    if kind == "amax" and dim is None:
        names["amax"] = f"{a}.amax()"
    return g.defined(names.get(kind, f"{a}.{kind}({inside})"), (a,), make)


def largest(r: Reference, a: Ref, dim: int | None, keep: bool) -> Ref:
    """Returns the maximum along a dimension; a tie is a corner."""
    if dim is None:
        flat = r.linear(lambda x, lead: x.reshape(*x.shape[:lead], -1), a)
        return largest(r, flat, -1, False)
    along = dim if dim < 0 else dim - a.value.ndim
    ordered = np.sort(a.value, axis=along)
    if a.shape[along] > 1:
        r.near_corner(np.diff(np.take(ordered, [-2, -1], axis=along), axis=along))
    index = np.expand_dims(a.value.argmax(axis=along), along)

    def take(x: Array, lead: int) -> Array:
        got = np.take_along_axis(x, index[None] if lead else index, axis=along)
        return got if keep else np.squeeze(got, axis=along)

    made = r.linear(take, a)
    made.memory.read = made.history.tracked
    return made


def softmax(g: Generator) -> Step:
    a = g.pick(lambda t: t.value.ndim > 0 and t.value.size > 0)
    dim = g.dice.randrange(-g.at(a).value.ndim, 0)
    log = g.dice.random() < 0.5

    def make(r: Reference, operands: list[Ref]) -> Ref:
        e = r.unary(UNARY["{0}.exp()"], operands[0])
        s = r.linear(lambda x, lead: x.sum(axis=dim, keepdims=True), e)
        if log:
            made = r.add(operands[0], r.unary(LOG, s), -1.0)
        else:
            made = r.mul(e, r.unary((lambda x: 1 / x, lambda x: -1 / x**2, lambda x: 2 / x**3), s))
        made.memory.read = made.history.tracked
        return made

    return g.defined(f"{a}.{'log_' if log else ''}softmax({dim})", (a,), make)


def joined(g: Generator) -> Step:
    a = g.pick(lambda t: t.value.ndim > 0)
    b = g.pick(lambda t: t.shape == g.at(a).shape)
    dim = g.dice.randrange(-g.at(a).value.ndim, 0)
    kind = g.dice.choice(["cat", "stack"])

    def make(r: Reference, operands: list[Ref]) -> Ref:
        f = np.concatenate if kind == "cat" else np.stack
        return r.stack_of(lambda arrays, lead: f(arrays, axis=dim), operands)

    return g.defined(f"m.{kind}([{a}, {b}], {dim})", (a, b), make)


def gathered(g: Generator) -> Step:
    """Linear ops that return a copy of parts."""
    a = g.pick(lambda t: t.value.ndim > 0 and t.shape[0] > 0)
    t = g.at(a)
    n, nd = t.shape[0], t.value.ndim
    index = [g.dice.randrange(n) for _ in range(g.dice.randint(1, 3))]
    shift = g.dice.randint(-2, 2)
    mask = [bool(g.dice.randrange(2)) for _ in range(n)]
    full = np.broadcast_to(np.array(mask).reshape(n, *(1,) * (nd - 1)), t.shape)
    choices: list[tuple[str, Any]] = [
        (f"{a}[{index}]", lambda x, lead: np.take(x, index, axis=lead)),
        (f"{a}.index_select(0, m.tensor({index}))", lambda x, lead: np.take(x, index, axis=lead)),
        (f"{a}.flip(0)", lambda x, lead: np.flip(x, axis=lead)),
        (f"{a}.roll({shift}, 0)", lambda x, lead: np.roll(x, shift, axis=lead)),
        (f"{a}.cumsum(0)", lambda x, lead: np.cumsum(x, axis=lead)),
        (f"{a}[m.tensor({mask})]", lambda x, lead: np.compress(mask, x, axis=lead)),
        (f"{a}.repeat({', '.join(['2'] * nd)})", lambda x, lead: np.tile(x, (1,) * lead + (2,) * nd)),
        (f"{a}.masked_fill(m.tensor({full.tolist()}), 0.5)", None),
    ]
    if nd == 2:
        choices += [
            (f"{a}.tril()", lambda x, lead: np.tril(x)),
            (f"m.triu({a}, 1)", lambda x, lead: np.triu(x, 1)),
        ]
    source, f = g.dice.choice(choices)
    if f is None:
        if not t.value.size:
            raise Rejected("empty")
        return g.defined(source, (a,), lambda r, o: r.choose(full, r.number(0.5), o[0]))
    return g.defined(source, (a,), lambda r, o: r.linear(f, o[0]))


def sorted_values(g: Generator) -> Step:
    a = g.pick(lambda t: t.value.ndim > 0 and t.value.size > 0)

    def make(r: Reference, operands: list[Ref]) -> Ref:
        (a,) = operands
        order = np.argsort(a.value, axis=-1, kind="stable")
        r.near_corner(np.diff(np.take_along_axis(a.value, order, axis=-1), axis=-1))
        return r.linear(lambda x, lead: np.take_along_axis(x, order[None] if lead else order, axis=-1), a)

    return g.defined(f"{a}.sort(-1)[0]", (a,), make)


# ---- views ----


def view(g: Generator) -> Step:
    a = g.pick()
    t = g.at(a)
    nd, shape = t.value.ndim, t.shape
    choices: list[tuple[str, Any]] = [
        (f"{a}[None]", lambda x, lead: np.expand_dims(x, lead)),
        (f"{a}.unsqueeze(-1)", lambda x, lead: x[..., None]),
        (f"{a}[...]", lambda x, lead: x[...]),
    ]
    if nd:
        d = g.dice.randrange(nd)
        n = shape[d]
        begin, end = sorted((g.dice.randint(0, n), g.dice.randint(0, n)))
        step = g.dice.choice([1, 1, 2])
        where = ":, " * d
        cut = lambda *s: lambda x, lead: x[(*(slice(None),) * (lead + d), *s, ...)]
        choices.append((f"{a}[{where}{begin}:{end}:{step}]", cut(slice(begin, end, step))))
        choices.append((f"{a}.narrow({d}, {begin}, {end - begin})", cut(slice(begin, end))))
        if n:
            i = g.dice.randrange(n)
            choices.append((f"{a}[{where}{i}]", cut(i)))
            choices.append((f"{a}.select({d}, {i - n})", cut(i)))
        e = g.dice.randrange(nd)
        choices.append((f"{a}.transpose({d}, {e})", lambda x, lead: np.swapaxes(x, lead + d, lead + e)))
        order = list(range(nd))
        g.dice.shuffle(order)
        permuted = f"{a}.permute({', '.join(map(str, order))})"
        choices.append((permuted, lambda x, lead: x.transpose(*range(lead), *(lead + i for i in order))))
        if t.value.flags.c_contiguous:
            choices.append((f"{a}.view(-1)", lambda x, lead: in_place_reshape(x, (*x.shape[:lead], -1))))
            if t.value.size:
                new = (*shape[:-2], -1)
                choices.append((f"{a}.view({new})", lambda x, lead: in_place_reshape(x, (*x.shape[:lead], *new))))
        if 1 in shape:
            ones = [i for i in range(nd) if shape[i] == 1]
            choices.append((f"{a}.squeeze()", lambda x, lead: np.squeeze(x, tuple(i + lead for i in ones))))
            wide = tuple(3 if s == 1 else s for s in shape)
            choices.append((f"{a}.expand({wide})", lambda x, lead: np.broadcast_to(x, (*x.shape[:lead], *wide))))
    if nd == 2:
        choices.append((f"{a}.diagonal()", lambda x, lead: np.diagonal(x, 0, lead, lead + 1)))
        choices.append((f"{a}.t()", lambda x, lead: np.swapaxes(x, -1, -2)))
    source, f = g.dice.choice(choices)
    return g.defined(source, (a,), lambda r, o: r.view(lambda x, lead: writable(f(x, lead)), o[0]))


def in_place_reshape(x: Array, shape: tuple[int, ...]) -> Array:
    made = x.reshape(shape)
    if x.size and not np.shares_memory(made, x):
        raise Rejected("no view")
    return made


def writable(x: Array) -> Array:
    """Makes NumPy's read-only views (diagonals) writable; what is written is checked by the reference itself."""
    if x.flags.writeable:
        return x
    return np.lib.stride_tricks.as_strided(x, x.shape, x.strides, writeable=True)


def several(g: Generator) -> Step:
    a = g.pick(lambda t: t.value.ndim > 0 and t.shape[0] > 1)
    n = g.at(a).shape[0]
    first, second = g.new(), g.new()
    kind = g.dice.choice([f"unbind()[{n - 2}:]", f"split({n - 1})", "chunk(2)"])
    half = n - 1 if kind.startswith("split") else (n + 1) // 2

    def parts(x: Array, lead: int) -> list[Array]:
        x = np.moveaxis(x, lead, 0)
        if kind.startswith("unbind"):
            return [x[n - 2, ...], x[n - 1, ...]]
        return [np.moveaxis(x[:half], 0, lead), np.moveaxis(x[half:], 0, lead)]

    def apply(r: Reference) -> None:
        r.names[first], r.names[second] = r.views(parts, r.names[a])

    return Step(f"{first}, {second} = {a}.{kind}", (a,), (first, second), apply)


def detached(g: Generator) -> Step:
    a = g.pick()
    return g.defined(f"{a}.detach()", (a,), lambda r, t: r.detach(t[0]))


# ---- writes ----


def free(g: Generator) -> Callable[[Ref], bool]:
    """Returns a condition: may be written, mostly where nothing recorded has read it."""
    careful = g.dice.random() < 0.8
    kept = [g.at(name).memory for name in g.kept if name in g.reference.names]  # not those of a dropped step

    def accept(t: Ref) -> bool:
        return not (careful and t.memory.read) and not any(t.memory is memory for memory in kept)

    return accept


def write_unary(g: Generator) -> Step:
    a = g.pick(free(g))
    if g.dice.random() < 0.3:
        name = g.dice.choice(list(CORNERED_WRITES))
        return g.written(f"{a}.{name}()", (a,), lambda r, t: with_corners(r, CORNERED_WRITES[name], t[0]))
    name = g.dice.choice(list(UNARY_WRITES))
    return g.written(f"{a}.{name}()", (a,), lambda r, t: r.unary(UNARY_WRITES[name], t[0]))


BINARY_WRITES: dict[str, Callable[[Reference, Ref, Ref], Ref]] = {
    "{0}.add_({1})": lambda r, a, b: r.add(a, b),
    "{0}.sub_({1}, alpha=2)": lambda r, a, b: r.add(a, b, -2.0),
    "{0}.mul_({1})": lambda r, a, b: r.mul(a, b),
    "{0} += {1}": lambda r, a, b: r.add(a, b),
    "{0} *= {1}": lambda r, a, b: r.mul(a, b),
    "{0}.div_({1} * {1} + 0.5)": divide,
    "{0}.copy_({1})": lambda r, a, b: r.expand(b, a.shape),
    "{0}[...] = {1}": lambda r, a, b: r.expand(b, a.shape),
    "{0}.fill_(0.75)": lambda r, a, b: r.expand(r.number(0.75), a.shape),
    "{0}.zero_()": lambda r, a, b: r.expand(r.number(0.0), a.shape),
    "{0}.masked_fill_({0} > {1}, -0.5)": lambda r, a, b: masked(r, a, b),
}


def masked(r: Reference, a: Ref, b: Ref) -> Ref:
    b = r.expand(b, a.shape)
    r.near_corner(a.value - b.value)
    return r.choose(a.value > b.value, r.number(-0.5), a)


def write_binary(g: Generator) -> Step:
    a = g.pick(free(g))
    shape = g.at(a).shape
    b = g.pick(lambda t: len(t.shape) <= len(shape) and fits(shape)(t) and np.broadcast_shapes(shape, t.shape) == shape)
    source = g.dice.choice(list(BINARY_WRITES))
    return g.written(source.format(a, b), (a, b), lambda r, t: BINARY_WRITES[source](r, t[0], t[1]))


def write_part(g: Generator) -> Step:
    a = g.pick(lambda t: t.value.ndim > 0 and t.shape[0] > 0 and free(g)(t))
    n = g.at(a).shape[0]
    i = g.dice.randrange(n)
    j = g.dice.randint(i + 1, n)
    rows = g.dice.sample(range(n), g.dice.randint(1, n))
    parts = [(f"{i}", (i,)), (f"{i}:{j}", (slice(i, j),)), ("..., 0", None), (f"{rows}", (rows,))]
    text, part = g.dice.choice(parts)
    if part is None:
        if not g.at(a).shape[-1]:
            raise Rejected("empty")
        part = (..., 0)
    shape = g.at(a).value[part].shape
    b = g.pick(lambda t: len(t.shape) <= len(shape) and fits(shape)(t) and np.broadcast_shapes(shape, t.shape) == shape)
    return g.written(f"{a}[{text}] = {b}", (a, b), lambda r, t: t[1], part)


# ---- hooks, kept gradients, errors ----


#: Functions whose formula uses an input, so that a hook on the result scales all derivatives alike.
OF_INPUT = ["{0}.sin()", "m.cos({0})", "-{0}", "{0}.square()", "{0}**3", "2.5 * {0}", "Cube.apply({0})", "{0}.clone()"]
#: Those whose formula uses the result: differentiated again, the gradient passes the result's hooks a second time.
OF_RESULT = ["{0}.tanh()", "{0}.sigmoid()", "{0}.exp()"]


def hooked(g: Generator) -> list[Step]:
    """A new tensor whose hook multiplies its gradient."""
    a = g.pick(lambda t: t.history.tracked)
    source = g.dice.choice(OF_INPUT + OF_RESULT)
    first = g.defined(source.format(a), (a,), lambda r, t: r.unary(UNARY[source], t[0]))
    (name,) = first.defines
    factor = g.dice.choice([0.5, -2.0, 0.0])

    def apply(r: Reference) -> None:
        t, x = r.names[name], r.names[a]
        if not t.history.tracked:
            raise Rejected("no gradient")
        t.dual *= factor
        if source in OF_RESULT:
            n = r.count
            t.dual[1 + n :] += (factor**2 - factor) * UNARY[source][2](x.value) * x.dual[0] * x.dual[1 : 1 + n]

    return [first, Step(f"{name}.register_hook(scaled({factor}))", (name, a), (), apply)]


def kept(g: Generator) -> list[Step]:
    """A new tensor that keeps its gradient."""
    a = g.pick(lambda t: t.history.tracked and t.value.size <= 6)
    source = g.dice.choice(list(UNARY))
    first = g.defined(source.format(a), (a,), lambda r, t: r.unary(UNARY[source], t[0]))
    (name,) = first.defines

    def apply(r: Reference) -> None:
        t = r.names[name]
        if not t.history.tracked:
            raise Rejected("no gradient")
        r.kept[name] = r.probe(t)

    g.kept.add(name)
    return [first, Step(f"{name}.retain_grad()", (name,), (), apply)]


def refused(g: Generator) -> Step:
    """A write that must raise and leave everything as it was."""
    tracked = lambda t: t.history.tracked and t.history.leaf
    calls = [
        (lambda: g.pick(lambda t: tracked(t) and t.value.size > 0), "{0}.mul_(2.0)"),
        (lambda: g.pick(lambda t: tracked(t) and t.value.size > 0), "{0}[...] = 1.0"),
        (lambda: g.pick(lambda t: 0 in stretched(t)), "{0}.add_(1.0)"),
        (lambda: g.pick(lambda t: t.value.ndim > 0), "{0}.add_(m.zeros(7, 5, 7))"),
        (lambda: g.pick(lambda t: t.value.ndim > 0), "{0}.view(7, 11, 13)"),
        (lambda: g.pick(lambda t: not t.history.tracked), "{0}.sum().backward()"),
    ]
    pick, source = g.dice.choice(calls)
    a = pick()
    was = (g.at(a).history.tracked, g.at(a).history.leaf)

    def apply(r: Reference) -> None:
        t = r.names[a]
        if (t.history.tracked, t.history.leaf) != was:
            raise Rejected("another state")

    return Step(f"must_raise(lambda: {lambda_of(source.format(a))})", (a,), (), apply)


def lambda_of(source: str) -> str:
    """Writes an assignment as a call."""
    return source.replace("[...] = 1.0", ".__setitem__(..., 1.0)")


def stretched(t: Ref) -> list[int]:
    return [s for s, n in zip(t.value.strides, t.shape) if n > 1] if t.value.size else []


#: What steps there are, and how often.
MAKERS: list[tuple[Maker, int]] = [
    (constant, 2), (unary, 10), (cornered, 3), (binary, 10), (product, 4), (reduce, 5), (softmax, 2), (joined, 3),
    (gathered, 4), (sorted_values, 1), (view, 14), (several, 1), (detached, 2), (write_unary, 5), (write_binary, 7),
    (write_part, 6), (hooked, 2), (kept, 2), (refused, 2),
]  # fmt: skip


def generate(seed: int) -> Program:
    """Makes the program of a seed."""
    return Generator(seed, MAKERS).generate()
