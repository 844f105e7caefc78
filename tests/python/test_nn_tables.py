"""Programs that handle a module's ``__dict__`` and tables of parameters themselves, as they do with PyTorch's."""

import pickle

import vesta
from vesta import nn


class Net(nn.Module):
    """A parameter, a buffer and a child, and a ``__setstate__`` that does not call Module's."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.weight = nn.Parameter(vesta.ones(1))
        self.register_buffer("mean", vesta.ones(1))

    def __setstate__(self, state):
        self.__dict__.update(state)

    def forward(self, x):
        return self.layer(x) * self.weight + self.mean


class Assigned(Net):
    def __setstate__(self, state):
        self.__dict__ = state


def replica(net):
    other = Net.__new__(Net)
    other.__dict__ = net.__dict__.copy()
    return other


def test_a_class_with_a_setstate_of_its_own_registers_members_after_it_was_pickled():
    for kind in (Net, Assigned):
        net = kind()
        other = pickle.loads(pickle.dumps(net))
        other.register_buffer("deviation", vesta.ones(2))
        other.scale = nn.Parameter(vesta.zeros(1))
        other.activation = nn.ReLU()
        assert other.deviation.tolist() == [1, 1] and other.scale.item() == 0
        assert isinstance(other.activation, nn.ReLU) and len(list(other.parameters())) == 4
        assert vesta.equal(other(vesta.ones(1, 2)), net(vesta.ones(1, 2)))
        # A file of PyTorch has the members in the tables only.
        state = {k: v for k, v in net.__dict__.items() if k not in ("weight", "mean", "layer")}
        for table in ("_parameters", "_buffers", "_modules"):
            state[table] = dict(state[table])
        other = kind.__new__(kind)
        other.__setstate__(state)
        assert vesta.equal(other(vesta.ones(1, 2)), net(vesta.ones(1, 2)))


def test_tables_of_a_replica_are_replaced_without_a_change_of_the_original():
    net = Net()
    other = replica(net)
    other._parameters, other._buffers, other._modules = {}, {}, {}
    assert list(other.state_dict()) == [] and not hasattr(other, "weight")
    assert list(net.state_dict()) == ["weight", "mean", "layer.weight", "layer.bias"] and net.weight.item() == 1
    other = replica(net)
    other._parameters = other._parameters.copy()
    other._parameters["weight"] = vesta.full((1,), 3.0)
    assert (net.weight.item(), other.weight.item()) == (1, 3)
    other = replica(net)
    other.weight = nn.Parameter(vesta.zeros(1))
    del other.layer
    other.double()
    assert net.weight.item() == 1 and net.mean.dtype == vesta.float32 and "layer" in net._modules
    other = Net.__new__(Net)
    other.__dict__.update(net.__dict__)
    other.mean = vesta.zeros(1)
    assert net.mean.item() == 1 and net._buffers["mean"].item() == 1 and other._buffers["mean"].item() == 0


def test_a_table_that_is_put_back_has_its_entries():
    net = Net()
    saved = net._parameters
    net._parameters = {"weight": vesta.full((1,), 2.0)}
    assert net.weight.item() == 2 and saved["weight"].item() == 1
    net._parameters = saved
    assert net.weight.item() == 1 and len(list(net.parameters())) == 3 and net._parameters is saved
    saved["weight"] = nn.Parameter(vesta.zeros(1))
    assert net.weight.item() == 0
