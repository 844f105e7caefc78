"""Collectives with gradients, SyncBatchNorm, and the parts of DataParallel."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import pytest
import vesta
from distributed_ranks import run_ranks
from vesta import nn
from vesta.nn.parallel import gather, parallel_apply, replicate, scatter
from vesta.nn.parallel.scatter_gather import scatter_kwargs


def test_gradients_pass_through_collectives():
    """Each result and gradient against the values for the ranks' inputs [r, r + 1] and the losses' factors r + 1."""
    run_ranks(
        2,
        """
        from vesta.distributed.nn import functional as F
        dist.init_process_group()

        def check(call, values, gradient):
            x = vesta.tensor([float(rank), rank + 1.0], requires_grad=True)
            y = call(x)
            if not isinstance(y, vesta.Tensor):
                y = y[0] + 10 * y[1]
            assert y.tolist() == values[rank], (y, values[rank])
            (y.sum() * (rank + 1)).backward()
            assert x.grad.tolist() == gradient[rank], (x.grad, gradient[rank])

        both = lambda a, b: ([a] * 2, [b] * 2)
        check(F.all_reduce, ([1, 3], [1, 3]), both(3, 3))
        check(lambda x: F.all_reduce(x, dist.ReduceOp.AVG), ([0.5, 1.5],) * 2, both(1.5, 1.5))
        check(lambda x: F.broadcast(x, 1), ([1, 2],) * 2, both(0, 3))
        check(lambda x: F.reduce(x, 0), ([1, 3], [1, 2]), both(1, 1))
        check(F.all_gather, ([10, 21],) * 2, both(3, 30))
        check(lambda x: F.gather(x, 1), ([0, 0], [10, 21]), both(2, 20))
        check(lambda x: F.scatter([x, 3 * x], 0), ([0, 1], [0, 3]), both(7, 0))
        check(lambda x: F.reduce_scatter(x, [x, 3 * x]), ([1, 3], [3, 9]), both(7, 7))
        check(lambda x: F.all_to_all([x, x], [x, 3 * x]), ([10, 21], [30, 63]), both(7, 70))
        check(lambda x: F.all_to_all_single(x, x), ([0, 1], [1, 2]), ([1, 2], [1, 2]))

        x = vesta.tensor([2.0 + rank], requires_grad=True)  # a gradient of a gradient
        (g,) = vesta.autograd.grad(F.all_reduce(x ** 3), x, create_graph=True)
        g.backward()
        assert g.item() == 2 * 3 * (2 + rank) ** 2 and x.grad.item() == 2 * 6 * (2 + rank)
        try:
            F.all_reduce(x, dist.ReduceOp.MAX).backward()
        except NotImplementedError as error:
            assert "ReduceOp.MAX has no gradient here" in str(error)
        else:
            raise AssertionError("no error")
        dist.destroy_process_group()
        """,
    )


@pytest.mark.differs
def test_batch_normalization_over_all_ranks():
    """Equal to one process on the whole batch: values, gradients, running statistics; parts of any size, even empty."""
    run_ranks(
        3,
        """
        from vesta import nn
        dist.init_process_group()
        for bounds, momentum in (([0, 2, 6, 9], 0.1), ([0, 4, 4, 9], None)):
            vesta.manual_seed(3)
            whole = vesta.randn(9, 3, 4, 2) * 5 + 100
            model = nn.Sequential(nn.BatchNorm2d(3, momentum=momentum))
            nn.init.uniform_(model[0].weight)
            same = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm2d(3, momentum=momentum)))
            same.load_state_dict(model.state_dict())
            assert type(same[0]) is nn.SyncBatchNorm and same[0].momentum == momentum
            same = nn.parallel.DistributedDataParallel(same)
            mine = slice(bounds[rank], bounds[rank + 1])
            for step in range(2):
                x, part = whole.clone().requires_grad_(), whole[mine].clone().requires_grad_()
                y, z = model(x), same(part)
                model.zero_grad(); same.zero_grad()
                y.pow(3).sum().backward(); z.pow(3).sum().backward()
                assert z.shape == part.shape and vesta.allclose(z, y[mine], atol=1e-4)
                assert vesta.allclose(part.grad, x.grad[mine], atol=1e-3)
                for a, b in zip(same.parameters(), model.parameters()):
                    assert vesta.allclose(a.grad * n, b.grad, rtol=1e-3, atol=1e-2), (a.grad * n, b.grad)
                for a, b in zip(same.buffers(), model.buffers()):
                    assert vesta.allclose(a, b, rtol=1e-5), (a, b)
            model.eval(); same.eval()
            assert vesta.allclose(same(whole), model(whole), atol=1e-4)
        dist.destroy_process_group()
        """,
    )


def test_sync_batch_norm_alone():
    module = nn.SyncBatchNorm.convert_sync_batchnorm(nn.ModuleDict({"a": nn.BatchNorm1d(3), "b": nn.Linear(2, 2)}))
    assert list(module.state_dict())[:2] == ["a.weight", "a.bias"] and type(module["b"]) is nn.Linear
    vesta.manual_seed(0)
    x = vesta.randn(4, 3)
    assert vesta.equal(module["a"](x), nn.BatchNorm1d(3)(x))
    assert not nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(2).eval()).training
    with pytest.raises(ValueError, match="expected at least 2D input"):
        module["a"](vesta.ones(3))


Pair = namedtuple("Pair", "a b")


def test_scatter_and_gather():
    first, second = scatter({"x": vesta.arange(5), "k": "v", "l": [Pair(vesta.arange(4), 1)]}, ["cpu", "cpu"])
    assert first["x"].tolist() == [0, 1, 2] and second["x"].tolist() == [3, 4] and second["k"] == "v"
    assert second["l"][0].a.tolist() == [2, 3] and isinstance(second["l"][0], Pair) and second["l"][0].b == 1
    inputs, kwargs = scatter_kwargs((vesta.arange(4),), {"scale": 2}, [-1, "cpu"])
    assert [part[0].tolist() for part in inputs] == [[0, 1], [2, 3]] and kwargs == ({"scale": 2}, {"scale": 2})
    assert gather([vesta.tensor(1.0), vesta.tensor(2.0)], "cpu").tolist() == [1, 2]
    together = gather([{"a": Pair(vesta.ones(1), None)}, {"a": Pair(vesta.zeros(2), None)}], -1)
    assert together["a"].a.tolist() == [1, 0, 0] and together["a"].b is None
    with pytest.raises(ValueError, match="same number of keys"):
        gather([{"a": vesta.ones(1)}, {}], "cpu")


def test_replicas_send_their_gradients_to_the_module():
    vesta.manual_seed(1)
    shared = nn.Linear(2, 2)
    network = nn.Sequential(shared, nn.Tanh(), shared, nn.BatchNorm1d(2)).eval()
    x = vesta.randn(5, 2)
    copies = replicate(network, ["cpu", "cpu"])
    assert copies[0][0].weight is copies[0][2].weight and not list(copies[0].parameters())
    parallel = gather(parallel_apply(copies, scatter((x,), ["cpu", "cpu"])), "cpu")
    assert vesta.equal(parallel, network(x))
    parallel.square().sum().backward()
    gradient, shared.weight.grad = shared.weight.grad, None
    network(x).square().sum().backward()
    assert vesta.allclose(gradient, shared.weight.grad)
    assert not replicate(network, ["cpu"], detach=True)[0][0].weight.requires_grad
    with pytest.raises(ValueError, match="expected as many inputs as modules, got 2 modules, 1 inputs"):
        parallel_apply(copies, [x])
    with pytest.raises(vesta.ArgumentError, match="linear: expected an input of 2 features"):
        parallel_apply(copies, [x, vesta.ones(1, 7)])


def test_a_module_may_say_what_its_copies_are() -> None:
    class Cached(nn.Linear):
        def __init__(self) -> None:
            super().__init__(2, 2)
            self.cache = {"a": 1}
            self.register_buffer("mean", vesta.ones(2))

        def _replicate_for_data_parallel(self) -> Any:
            replica = super()._replicate_for_data_parallel()
            replica.cache = dict(self.cache)
            return replica

    network = Cached()
    replica = network._replicate_for_data_parallel()
    assert replica.cache == network.cache and replica.cache is not network.cache
    assert list(replica.parameters()) == [] and replica.mean is network.mean and not hasattr(replica, "weight")
    replica.mean = vesta.zeros(2)
    assert network.mean.tolist() == [1.0, 1.0] and len(list(network.parameters())) == 2
    copy = replicate(network, ["cpu"])[0]
    assert copy.cache is not network.cache and copy(vesta.ones(1, 2)).shape == (1, 2)
    with pytest.raises(RuntimeError, match="uninitialized parameters"):
        replicate(nn.LazyLinear(2), ["cpu"])
