"""Recurrent layers run all steps in one call: the numbers of single steps, whatever threads, batch, strides."""

import signal
import time

import pytest
import vesta
from vesta.nn.utils.rnn import PackedSequence

KINDS = ("LSTM", "GRU", "RNN_TANH", "RNN_RELU")


def make(kind, *sizes, **options):
    vesta.manual_seed(5)
    if kind.startswith("RNN"):
        return vesta.nn.RNN(*sizes, nonlinearity=kind[4:].lower(), **options)
    return getattr(vesta.nn, kind)(*sizes, **options)


def by_steps(layer, kind, x, lengths, state):
    """Runs one layer, both directions if it has them, sequence by sequence and step by step, with the cells' ops."""
    op = {"LSTM": "lstm_cell", "GRU": "gru_cell", "RNN_TANH": "rnn_tanh_cell", "RNN_RELU": "rnn_relu_cell"}[kind]
    op = getattr(vesta, op)
    outputs, last = [], []
    for d in range(2 if layer.bidirectional else 1):
        suffix = "_l0_reverse" if d else "_l0"
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh") if layer.bias else ("weight_ih", "weight_hh")
        weights = [getattr(layer, name + suffix) for name in names]
        rows, ends = [], []
        for n, length in enumerate(lengths):
            s = tuple(h[d, n : n + 1] for h in state)
            made = [None] * length
            for t in reversed(range(length)) if d else range(length):
                r = op(x[t, n : n + 1], s if kind == "LSTM" else s[0], *weights)
                s = tuple(r) if kind == "LSTM" else (r,)
                made[t] = s[0]
            pad = [vesta.zeros_like(made[0])] * (x.shape[0] - length)
            rows.append(vesta.cat(made + pad))
            ends.append(s)
        outputs.append(vesta.stack(rows, 1))
        last.append([vesta.cat(parts) for parts in zip(*ends, strict=True)])
    return vesta.cat(outputs, -1), [vesta.stack(parts) for parts in zip(*last, strict=True)]


def call(layer, kind, x, state):
    y, last = layer(x, state if kind == "LSTM" else state[0])
    return y, list(last) if kind == "LSTM" else [last]


def operands(kind, batch, steps, inputs, width, directions, dtype):
    vesta.manual_seed(9)
    x = vesta.randn(steps, batch, inputs, dtype=dtype).requires_grad_()
    count = 2 if kind == "LSTM" else 1
    return x, tuple(vesta.randn(directions, batch, width, dtype=dtype).requires_grad_() for _ in range(count))


def loss_of(y, last, which):
    """Weighs the results so that every element's gradient is different."""
    total = 0
    for i, t in enumerate([y] * ("y" in which) + list(last) * ("h" in which)):
        total = total + (t * vesta.arange(1, t.numel() + 1, dtype=t.dtype).reshape(t.shape).sin() * (i + 1)).sum()
    return total


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "batch, steps, inputs, width, both, bias, lengths, which",
    [
        (3, 4, 5, 7, False, True, None, "yh"),
        (1, 6, 3, 33, True, True, None, "y"),
        (5, 3, 2, 16, True, False, [3, 3, 2, 1, 1], "yh"),
        (4, 5, 3, 20, False, True, [5, 4, 4, 2], "h"),
        (70, 2, 3, 65, False, True, None, "yh"),  # several tasks of rows, and of units
        (2, 2, 4, 300, True, True, [2, 1], "yh"),  # several blocks of a product
    ],
)
def test_a_layer_gives_what_steps_give(kind, batch, steps, inputs, width, both, bias, lengths, which):
    layer = make(kind, inputs, width, bidirectional=both, bias=bias, dtype=vesta.float64)
    x, state = operands(kind, batch, steps, inputs, width, 1 + both, vesta.float64)
    if lengths:
        packed = vesta.nn.utils.rnn.pack_padded_sequence(x, vesta.tensor(lengths))
        y, last = call(layer, kind, packed, state)
        assert isinstance(y, PackedSequence)
        y = vesta.nn.utils.rnn.pad_packed_sequence(y, total_length=steps)[0]
    else:
        y, last = call(layer, kind, x, state)
    expected, ends = by_steps(layer, kind, x, lengths or [steps] * batch, state)
    vesta.testing.assert_close(y, expected, rtol=1e-12, atol=1e-12)
    for a, b in zip(last, ends, strict=True):
        vesta.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)
    leaves = [x, *state, *layer.parameters()]
    ours = vesta.autograd.grad(loss_of(y, last, which), leaves, allow_unused=True)
    theirs = vesta.autograd.grad(loss_of(expected, ends, which), leaves, allow_unused=True)
    for a, b in zip(ours, theirs, strict=True):
        vesta.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_second_derivatives(kind):
    layer = make(kind, 2, 3, bidirectional=True, dtype=vesta.float64)
    x, state = operands(kind, 3, 3, 2, 3, 2, vesta.float64)
    packed = vesta.nn.utils.rnn.pack_padded_sequence

    def run(x, *state):
        y, last = call(layer, kind, packed(x, vesta.tensor([3, 2, 2])), state)
        return (y.data, *last)

    assert vesta.autograd.gradcheck(run, (x, *state))
    assert vesta.autograd.gradgradcheck(run, (x, *state))


@pytest.mark.parametrize("kind", KINDS)
def test_bits_depend_on_no_thread_batch_or_stride(kind):
    layer = make(kind, 6, 97)
    x, state = operands(kind, 70, 4, 6, 97, 1, vesta.float32)
    leaves = [x, *state, *layer.parameters()]

    def run(threads):
        before = vesta.get_num_threads()
        vesta.set_num_threads(threads)
        try:
            y, last = call(layer, kind, x, state)
            return [y, *last, *vesta.autograd.grad(loss_of(y, last, "yh"), leaves)]
        finally:
            vesta.set_num_threads(before)

    one, two = run(1), run(2)
    assert all(vesta.equal(a, b) for a, b in zip(one, two, strict=True))
    alone, ends = call(layer, kind, x[:, 66:67], tuple(s[:, 66:67] for s in state))
    assert vesta.equal(alone, one[0][:, 66:67])
    assert all(vesta.equal(a, b[:, 66:67]) for a, b in zip(ends, one[1:], strict=False))
    with vesta.no_grad():
        for w in layer.parameters():
            if w.dim() == 2:
                w.data = w.t().contiguous().t()
    strided = x.transpose(0, 2).contiguous().transpose(0, 2)
    assert vesta.equal(call(layer, kind, strided, state)[0], one[0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [9, 400])
def test_bits_of_packed_sequences_depend_on_no_thread(kind, width):
    """Groups of sequences that threads take through all steps (9 wide), and steps that threads share (400 wide)."""
    layer = make(kind, 5, width, bidirectional=True)
    x, state = operands(kind, 41, 5, 5, width, 2, vesta.float32)
    lengths = vesta.tensor([5] * 7 + [4] * 10 + [2] * 20 + [1] * 4)
    leaves = [x, *state, *layer.parameters()]

    def run(threads):
        before = vesta.get_num_threads()
        vesta.set_num_threads(threads)
        try:
            y, last = call(layer, kind, vesta.nn.utils.rnn.pack_padded_sequence(x, lengths), state)
            return [y.data, *last, *vesta.autograd.grad(loss_of(y.data, last, "yh"), leaves)]
        finally:
            vesta.set_num_threads(before)

    assert all(vesta.equal(a, b) for threads in (2, 3) for a, b in zip(run(1), run(threads), strict=True))


def test_a_value_that_is_not_a_number_stays_with_its_sequence():
    layer = make("LSTM", 3, 40)
    x, state = operands("LSTM", 4, 3, 3, 40, 1, vesta.float32)
    clean = layer(x, state)[0]
    x = x.detach().clone()
    x[1, 2, 0] = vesta.nan
    y = layer(x, state)[0]
    assert y[1:, 2].isnan().all() and not y[0].isnan().any()
    assert vesta.equal(y[:, [0, 1, 3]], clean[:, [0, 1, 3]])


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_on_the_meta_device(kind):
    layer = make(kind, 3, 8, num_layers=2, bidirectional=True).to("meta")
    y, last = layer(vesta.randn(5, 2, 3, device="meta", requires_grad=True))
    assert y.shape == (5, 2, 16) and (last[0] if kind == "LSTM" else last).shape == (4, 2, 8)
    y.sum().backward()
    assert layer.weight_hh_l0.grad.shape == layer.weight_hh_l0.shape


def test_an_unused_state_gets_no_gradient():
    layer = make("LSTM", 3, 4)
    x, (h, c) = operands("LSTM", 2, 3, 3, 4, 1, vesta.float32)
    layer(x, (h, c.detach()))[0].sum().backward()
    assert h.grad is not None and c.grad is None
    layer.weight_hh_l0.requires_grad_(False)
    layer.zero_grad()
    layer(x)[1][1].sum().backward()
    assert layer.weight_hh_l0.grad is None and layer.weight_ih_l0.grad is not None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("packed", [False, True])
def test_outputs_may_be_written_in_place(kind, packed):
    layer = make(kind, 3, 4)
    x = vesta.randn(5, 2, 3, requires_grad=True)
    given = vesta.nn.utils.rnn.pack_padded_sequence(x, vesta.tensor([5, 3])) if packed else x

    def run(change):
        y = layer(given)[0]
        y = y.data if packed else y
        return vesta.autograd.grad(change(y).sum(), [x, *layer.parameters()])

    for a, b in zip(run(lambda y: y.mul_(2)), run(lambda y: y * 2), strict=True):
        vesta.testing.assert_close(a, b)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_that_are_recorded_under_autocast(kind):
    layer = make(kind, 3, 8)
    x = vesta.randn(2, 5, 3, requires_grad=True)
    y = layer(x)[0]
    expected = vesta.autograd.grad(y.sum(), x, retain_graph=True)[0]
    with vesta.autocast("cpu", dtype=vesta.bfloat16):
        ours = vesta.autograd.grad(y.sum(), x, create_graph=True)[0]
    assert ours.dtype == vesta.float32
    vesta.testing.assert_close(ours, expected, rtol=2e-2, atol=2e-2)  # the inputs' product is one of bfloat16


def test_gradients_of_relu_are_the_same_when_they_are_recorded():
    layer = make("RNN_RELU", 1, 1)
    with vesta.no_grad():
        for w in layer.parameters():
            w.fill_(1)
    for value, g, expected in ((-5.0, vesta.inf, 0), (vesta.nan, 1.0, 1)):
        x = vesta.full((1, 1, 1), value, requires_grad=True)
        for record in (False, True):
            ours = vesta.autograd.grad(layer(x)[0], x, vesta.full((1, 1, 1), g), create_graph=record)[0]
            assert ours.item() == expected


@pytest.mark.parametrize("kind", KINDS)
def test_no_sequences(kind):
    layer = make(kind, 3, 4)
    y = layer(vesta.zeros(2, 0, 3))[0]
    y.sum().backward()
    assert y.shape == (2, 0, 4) and not layer.weight_hh_l0.grad.any()


@pytest.mark.parametrize("kind", KINDS)
def test_without_gradients_the_bits_are_the_same(kind):
    layer = make(kind, 3, 20)
    x, state = operands(kind, 3, 4, 3, 20, 1, vesta.float32)
    y, last = call(layer, kind, x, state)
    with vesta.no_grad():
        again, ends = call(layer, kind, x, state)
    assert all(vesta.equal(a, b) for a, b in zip([y, *last], [again, *ends], strict=True))


def test_a_bias_of_the_wrong_size_is_named_as_any_other():
    w_ih, w_hh, b_ih = vesta.zeros(12, 3), vesta.zeros(12, 4), vesta.zeros(12)
    with pytest.raises(RuntimeError, match=r"gru: .*expected a bias \[12\], got \[3\]"):
        vesta.gru(
            vesta.zeros(2, 5, 3),
            vesta.zeros(1, 5, 4),
            [w_ih, w_hh, b_ih, vesta.zeros(3)],
            True,
            1,
            0.0,
            False,
            False,
            False,
        )


def written_between(layer, parameter, x):
    y, _ = layer(x)
    with vesta.no_grad():
        parameter.add_(1)
    return y


def test_biases_may_be_written_between_forward_and_backward():
    """As behind PyTorch's GRU and RNN, which keep no bias for their gradient."""
    for kind in KINDS:
        layer, x = make(kind, 3, 4), vesta.randn(5, 2, 3)
        want = vesta.autograd.grad(layer(x)[0].sum(), list(layer.parameters()))
        for name in ("bias_ih_l0", "bias_hh_l0"):
            before = getattr(layer, name).detach().clone()
            y = written_between(layer, getattr(layer, name), x)
            got = vesta.autograd.grad(y.sum(), list(layer.parameters()))
            assert all(vesta.equal(a, b) for a, b in zip(want, got)), (kind, name)
            with vesta.no_grad():
                getattr(layer, name).copy_(before)


@pytest.mark.parametrize("kind", KINDS)
def test_errors_name_the_network(kind):
    layer = make(kind, 3, 4)
    y = written_between(layer, layer.weight_hh_l0, vesta.randn(5, 2, 3))
    with pytest.raises(RuntimeError, match=f"operation: {kind.lower()} saved its input"):
        y.sum().backward()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("batch", [1, 16])  # 16: groups of sequences go through all steps by themselves
def test_control_c_ends_a_layer_between_its_steps(threads, batch):
    layer = make("LSTM", 1, 160)
    before = vesta.get_num_threads()
    vesta.set_num_threads(threads)

    def seconds(steps):
        start = time.monotonic()
        with vesta.no_grad():
            layer(vesta.zeros(1, 1, 1).expand(steps, batch, 1))
        return time.monotonic() - start

    seconds(20)
    steps = 200
    while seconds(steps) < 0.3:
        steps *= 2
    whole = seconds(steps)
    standard = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, whole / 8)
    start = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            seconds(steps)
        assert time.monotonic() - start < whole * 0.7
        seconds(20)  # and the next one is whole
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, standard)
        vesta.set_num_threads(before)


def test_weights_may_be_given_as_a_list():
    """Programs that compute the weights of a layer put them in its ``_flat_weights``."""
    layer = vesta.nn.LSTM(2, 3)
    computed = [w.detach() * 2 for w in layer._flat_weights]
    for w in computed:
        w.requires_grad_()
    twice = vesta.nn.LSTM(2, 3)
    twice.load_state_dict(dict(zip(layer._flat_weights_names, computed)))
    layer._flat_weights = computed
    x = vesta.ones(4, 1, 2)
    result = layer(x)[0]
    assert vesta.equal(result, twice(x)[0])
    result.sum().backward()
    assert layer.weight_ih_l0.grad is None and computed[0].grad is not None
    layer.weight_ih_l0 = vesta.nn.Parameter(vesta.zeros(12, 2))
    assert layer._flat_weights[0] is layer.weight_ih_l0 and layer._flat_weights[1] is computed[1]
    assert layer.double()._flat_weights[1] is layer.weight_hh_l0
