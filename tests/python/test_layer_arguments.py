"""Wrong arguments of layers and loaders: the error names the class and the argument, not what failed inside."""

from __future__ import annotations

from typing import Any

import pytest
import vesta
from vesta import nn
from vesta.utils.data import DataLoader

HUGE = 2**70
FLAG = vesta.tensor([True, False])

LAYERS = [
    (nn.Linear, (-1, 3), "in_features"),
    (nn.Linear, (3, -2), "out_features"),
    (nn.Linear, (HUGE, 3), "in_features"),
    (nn.Linear, (3, True), "out_features"),
    (nn.Linear, (2, 3, FLAG), "bias"),
    (nn.Bilinear, (2, -3, 4), "in2_features"),
    (nn.Conv1d, (-1, 3, 3), "in_channels"),
    (nn.Conv2d, (1, 3, (3, -3)), "kernel_size"),
    (nn.Conv2d, (1, 3, HUGE), "kernel_size"),
    (nn.Conv3d, (1, -3, 3), "out_channels"),
    (nn.ConvTranspose2d, (1, -3, 3), "out_channels"),
    (nn.LSTM, (HUGE, 3), "input_size"),
    (nn.GRU, (HUGE, 3), "input_size"),
    (nn.LSTM, (3, 3, 1, True, False, 0.0, FLAG), "bidirectional"),
    (nn.LSTM, (3, 3, 1, True, False, FLAG), "dropout"),
    (nn.LSTMCell, (-1, 3), "input_size"),
    (nn.GRUCell, (3, -1), "hidden_size"),
    (nn.BatchNorm1d, (-1,), "num_features"),
    (nn.BatchNorm2d, (3, 1e-5, 0.1, FLAG), "affine"),
    (nn.BatchNorm3d, (3, 1e-5, 0.1, True, FLAG), "track_running_stats"),
    (nn.Embedding, (-1, 3), "num_embeddings"),
    (nn.Embedding, (3, HUGE), "embedding_dim"),
    (nn.EmbeddingBag, (True, 3), "num_embeddings"),
    (nn.LayerNorm, ("x",), "normalized_shape"),
    (nn.LayerNorm, ([2, -2],), "normalized_shape"),
    (nn.LayerNorm, (2, 1e-5, FLAG), "elementwise_affine"),
    (nn.RMSNorm, (-1,), "normalized_shape"),
    (nn.GroupNorm, (2, -4), "num_channels"),
    (nn.PReLU, (-1,), "num_parameters"),
    (nn.Dropout, (vesta.ones(2),), "p"),
    (nn.MultiheadAttention, (4, 2, 0.0, FLAG), "bias"),
    (nn.TransformerEncoderLayer, (4, 2, -1), "dim_feedforward"),
    (nn.TransformerDecoderLayer, (4, 2, HUGE), "dim_feedforward"),
    (nn.Transformer, (4, 2, 1, 1, -1), "dim_feedforward"),
]


@pytest.mark.parametrize(("layer", "args", "name"), LAYERS, ids=lambda x: getattr(x, "__name__", str(x)[:20]))
def test_a_layer_names_the_argument(layer: Any, args: tuple, name: str) -> None:
    with pytest.raises((TypeError, ValueError, RuntimeError), match=rf"^{layer.__name__}: expected .* \({name}\)\.$"):
        layer(*args)


def test_a_class_of_the_user_is_called_by_its_base() -> None:
    class Mine(nn.Linear):
        def __init__(self, width: int) -> None:
            super().__init__(width, -1)

    with pytest.raises(ValueError, match=r"^Linear: expected a size >= 0, got -1 \(out_features\)\.$"):
        Mine(3)


def test_an_error_of_other_origin_stays() -> None:
    class Broken(nn.Linear):
        def reset_parameters(self) -> None:
            raise ValueError("empty: of my own")

    with pytest.raises(ValueError, match=r"^empty: of my own$"):
        Broken(3, 3)


@pytest.mark.parametrize(("options", "message"), [
    ({"batch_sampler": 5}, r"an iterable of lists of indices, got int \(batch_sampler\)"),
    ({"sampler": "x"}, r"an iterable of indices, got str \(sampler\)"),
    ({"batch_size": HUGE}, r"at most \d+, got \d+ \(batch_size\)"),
    ({"num_workers": HUGE}, r"at most \d+, got \d+ \(num_workers\)"),
    ({"shuffle": FLAG}, r"bool, got a tensor of 2 elements \(shuffle\)"),
    ({"pin_memory": FLAG}, r"bool, got a tensor of 2 elements \(pin_memory\)"),
    ({"drop_last": FLAG}, r"bool, got a tensor of 2 elements \(drop_last\)"),
    ({"timeout": vesta.tensor([1.0, 2.0])}, r"a number of seconds, got a tensor \(timeout\)"),
    ({"timeout": vesta.tensor(0.0)}, r"a number of seconds, got a tensor \(timeout\)"),
])  # fmt: skip
def test_a_loader_names_the_argument(options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^DataLoader: expected {message}"):
        DataLoader([1, 2, 3], **options)


def test_none_is_a_stride_as_large_as_the_windows() -> None:
    """As in PyTorch, of the functions of ``nn.functional`` and of those of the package."""
    F = nn.functional
    x = vesta.arange(64.0).reshape(1, 2, 4, 8)
    for pool in (F.avg_pool2d, F.max_pool2d, vesta.max_pool2d):
        assert pool(x, 2, None).equal(pool(x, 2)) and pool(x, 2, stride=None).equal(pool(x, 2, 2))
    for pool in (F.avg_pool1d, F.max_pool1d, vesta.avg_pool1d, vesta.max_pool1d):
        assert pool(x[0], 2, None).equal(pool(x[0], 2))
    for pool in (F.avg_pool3d, F.max_pool3d, vesta.max_pool3d):
        assert pool(x, 2, None).equal(pool(x, 2))
    assert vesta.roll(x, 1, None).equal(vesta.roll(x, 1))
    with pytest.raises(TypeError, match=r"avg_pool2d\(\): argument 'kernel_size' .* must be tuple of ints, not None"):
        F.avg_pool2d(x, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(4, 6), (2, 3, 1), (1, 2, 1, 1)])
def test_instance_norm_of_one_value_per_channel_is_refused(shape: tuple[int, ...]) -> None:
    x = vesta.ones(shape)
    with pytest.raises(ValueError, match="Expected more than 1 spatial element when training, got input size"):
        nn.functional.instance_norm(x)
    statistics = vesta.zeros(shape[1]), vesta.ones(shape[1])
    assert nn.functional.instance_norm(x, *statistics, use_input_stats=False, eps=0.0).equal(x)


@pytest.mark.parametrize("layer", [nn.RNN, nn.GRU, nn.LSTM])
def test_recurrent_layers_tell_flags_from_numbers(layer: Any) -> None:
    with pytest.raises(TypeError, match=r"^bias should be of type bool, got: int$"):
        layer(3, 5, bias=1)
    with pytest.raises(TypeError, match=r"^batch_first should be of type bool, got: int$"):
        layer(3, 5, batch_first=0)
    with pytest.raises(ValueError, match=r"^input_size must be greater than zero$"):
        layer(0, 5)


@pytest.mark.parametrize("layer", [nn.Softmax, nn.LogSoftmax])
def test_a_flag_is_no_dimension_of_softmax(layer: Any) -> None:
    with pytest.raises(TypeError, match=r"^dim must be an int or None, got <class 'bool'>$"):
        layer(dim=True)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_circular_padding_checks_dimensions(dims: int) -> None:
    layer = getattr(nn, f"CircularPad{dims}d")(1)
    for wrong in (dims, dims + 3):
        message = rf"^expected {dims + 1}D or {dims + 2}D input \(got {wrong}D input\)\n"
        with pytest.raises(ValueError, match=message):
            layer(vesta.ones([2] * wrong))
    assert layer(vesta.ones([2] * (dims + 1))).shape == (2, *[4] * dims)
