"""Convolutions, poolings and losses of integers, as PyTorch computes them on the CPU."""

import numpy as np
import pytest
import vesta

F = vesta.nn.functional


def integers(*shape, low=-9, high=9):
    return vesta.from_numpy(np.random.default_rng(len(shape) + sum(shape)).integers(low, high, shape))


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("options", [{}, {"stride": 2, "padding": 1, "dilation": 2}, {"groups": 2, "padding": 1}])
def test_convolutions(dims, options):
    convolve = getattr(F, f"conv{dims}d")
    x, bias = integers(2, 4, *range(6, 6 + dims)), integers(6)
    weight = integers(6, 4 // options.get("groups", 1), *[2, 3, 2][:dims])
    got = convolve(x, weight, bias, **options)
    want = convolve(x.double(), weight.double(), bias.double(), **options)
    assert got.dtype == vesta.int64 and got.shape == want.shape
    assert bool((got.double() == want).all())
    assert bool((convolve(x[0], weight, bias, **options) == got[0]).all())


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize(
    "options", [{}, {"stride": 2, "padding": 1, "output_padding": 1, "dilation": 2}, {"groups": 2, "stride": 3}]
)
def test_transposed_convolutions(dims, options):
    convolve = getattr(F, f"conv_transpose{dims}d")
    x, weight = integers(2, 4, *range(3, 3 + dims)), integers(4, 3, *[3, 2, 2][:dims])
    bias = integers(3 * options.get("groups", 1))
    got = convolve(x, weight, bias, **options)
    want = convolve(x.double(), weight.double(), bias.double(), **options)
    assert got.dtype == vesta.int64 and bool((got.double() == want).all())


def test_numbers_beyond_float64_stay_exact():
    x = vesta.tensor([[[2**60 + 1, 3]]])
    assert F.conv1d(x, vesta.tensor([[[1, 0]]])).tolist() == [[[2**60 + 1]]]


@pytest.mark.parametrize("options", [{}, {"padding": 1}, {"padding": 1, "count_include_pad": False}])
def test_average_pooling_cuts_off_the_fraction(options):
    x = integers(1, 2, 6, 5)
    sums = F.avg_pool2d(x.double(), 3, 2, **options)
    assert F.avg_pool2d(x, 3, 2, **options).tolist() == np.trunc(sums.numpy() + 1e-9 * np.sign(sums.numpy())).tolist()
    assert F.avg_pool2d(x, 2, divisor_override=3).dtype == vesta.int64


def test_patches_of_integers_and_flags():
    x = integers(1, 2, 4, 5)
    want = F.unfold(x.double(), 2, padding=1, stride=2)
    assert F.unfold(x, 2, padding=1, stride=2).tolist() == want.long().tolist()
    assert F.unfold(x > 0, 2, padding=1).dtype == vesta.bool


def test_losses():
    a, b, c, sign = integers(4, 3), integers(4, 3, low=0), integers(4, 3, low=-5), vesta.tensor([1, -1, 1, -1])
    pairs = [
        (F.margin_ranking_loss, (a[:, 0], b[:, 0], sign), {"margin": 0.5}),
        (F.cosine_embedding_loss, (a, c, sign), {}),
        (F.triplet_margin_loss, (a, b, c), {}),
        (F.poisson_nll_loss, (b, c), {}),
        (F.pairwise_distance, (a, b), {}),
    ]
    for loss, args, more in pairs:
        got, want = loss(*args, **more), loss(*(t.float() for t in args), **more)
        vesta.testing.assert_close(got, want)


def test_batches_of_nothing():
    x, weight = integers(0, 4, 5), integers(2, 4, 3)
    assert F.conv1d(x, weight).shape == (0, 2, 3)
    assert F.conv_transpose1d(x, integers(4, 2, 3)).shape == (0, 2, 7)


def test_flags_are_refused():
    with pytest.raises(NotImplementedError, match="conv1d"):
        F.conv1d(vesta.ones(1, 1, 3) > 0, vesta.ones(1, 1, 2) > 0)
