"""1 x 1 x 1 convolutions find the positions of an image where dimensions of size 1 have any stride."""

import itertools

import pytest
import vesta
from vesta.nn import functional as F

SIZES = [(3, 1, 1), (3, 1, 4), (1, 3, 1), (3, 2, 1), (2, 2, 4), (1, 1, 1)]


@pytest.mark.parametrize("dtype", [vesta.float32, vesta.float64, vesta.bfloat16, vesta.float16])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("last", [False, True])
def test_results_are_those_of_a_product_over_channels(dtype, size, last):
    layout = vesta.channels_last_3d if last else vesta.contiguous_format
    for batch, steps in itertools.product((1, 2), ((1, 1, 1), (2, 2, 5), (1, 2, 1), (1, 1, 3))):
        vesta.manual_seed(3)
        whole = [(n - 1) * s + 1 for n, s in zip(size, steps, strict=True)]
        x = vesta.randint(-4, 5, (batch, 2, *whole)).to(dtype).contiguous(memory_format=layout)
        w = vesta.randint(-4, 5, (3, 2, 1, 1, 1)).to(dtype).contiguous(memory_format=layout)
        seen = x[:, :, :: steps[0], :: steps[1], :: steps[2]]
        for image, stride in ((x, steps), (seen, 1)):  # the convolution's steps, and those of a view
            b = w.clone().requires_grad_()
            a = image if stride == 1 else x.clone().requires_grad_()
            y = F.conv3d(a, b, stride=stride)
            expected = vesta.einsum("oc,ncdhw->nodhw", w.flatten(1).double(), seen.double())
            assert vesta.equal(y.double(), expected)
            g = vesta.randint(-4, 5, y.shape).to(dtype)
            of_w = vesta.autograd.grad(y, b, g, retain_graph=True)[0]
            assert vesta.equal(of_w.flatten(1).double(), vesta.einsum("nodhw,ncdhw->oc", g.double(), seen.double()))
            if stride != 1:
                of_x = vesta.autograd.grad(y, a, g)[0]
                wanted = vesta.einsum("oc,nodhw->ncdhw", w.flatten(1).double(), g.double())
                assert vesta.equal(of_x[:, :, :: steps[0], :: steps[1], :: steps[2]].double(), wanted)
