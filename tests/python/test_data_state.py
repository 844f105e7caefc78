"""Randomness of samples, and passes that continue where they were interrupted."""

from __future__ import annotations

import json
import random
import subprocess
import sys

import pytest
import vesta
from vesta.utils import data
from vesta.utils.data.seeding import Seeds

np = pytest.importorskip("numpy")


class Augmented(data.Dataset):
    """Samples that use every generator: the index and one number of each."""

    def __init__(self, count: int = 23) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> dict:
        noise = vesta.rand(2)
        return {"i": index, "v": noise, "r": random.gauss(0, 1), "n": np.random.randn(), "b": random.random()}


def flat(batches) -> list:
    return [{k: v.tolist() for k, v in batch.items()} for batch in batches]


def states() -> tuple:
    numpy = np.random.get_state()
    return vesta.get_rng_state().tolist(), random.getstate(), numpy[1].tolist(), numpy[2:]


@pytest.mark.parametrize("position", [0, 3, (1 << 62) + 5])
def test_states_written_in_place_are_those_of_setstate(position: int) -> None:
    results = []
    for direct in (True, False):
        seeds = Seeds(direct=direct)
        seeds.begin(12345)
        with seeds.kept():
            random.gauss(0, 1), np.random.randn()  # these keep a second normal number, which must be dropped
            seeds.seed(position)
            drawn = [random.gauss(0, 1), random.random(), random.getrandbits(700), vesta.rand(3).tolist()]
            results.append([*drawn, np.random.randn(), np.random.randint(1000, size=700).tolist()])
    assert results[0] == results[1]


def test_positions_and_seeds_give_unrelated_numbers() -> None:
    seeds = Seeds()
    drawn = set()
    with seeds.kept():
        for base in (0, 1, 2):
            seeds.begin(base)
            for position in range(50):
                seeds.seed(position)
                drawn.update([random.random(), np.random.random(), vesta.rand(()).item()])
    assert len(drawn) == 3 * 3 * 50
    assert abs(sum(drawn) / len(drawn) - 0.5) < 0.06  # six standard deviations of the mean of 450 uniform numbers


@pytest.mark.differs
@pytest.mark.parametrize("direct", [True, False])
def test_the_callers_states_are_put_back(direct: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Seeds, "__init__", lambda self, init=Seeds.__init__: init(self, direct=direct))
    random.gauss(0, 1), np.random.randn()
    batches = iter(data.DataLoader(Augmented(), batch_size=5))
    before = states()
    for _ in batches:
        assert states() == before


def test_a_generator_that_numpy_was_given_meanwhile_is_left_alone() -> None:
    loader = data.DataLoader(Augmented(6), batch_size=2)
    old = np.random.get_bit_generator() if hasattr(np.random, "get_bit_generator") else None
    if old is None:
        pytest.skip("this NumPy cannot be given another generator")
    try:
        np.random.set_bit_generator(np.random.PCG64(3))
        assert len(list(loader)) == 3
    finally:
        np.random.set_bit_generator(old)
    vesta.manual_seed(0)
    first = flat(loader)
    vesta.manual_seed(0)
    assert flat(loader) == first


@pytest.mark.differs
def test_augmentation_follows_seed_epoch_and_position_only() -> None:
    def passes(**options) -> list:
        vesta.manual_seed(1)
        random.seed(), np.random.seed()
        loader = data.DataLoader(Augmented(), **options)
        return [flat(loader), flat(loader)]

    once, again = passes(batch_size=4), passes(batch_size=4)
    assert once == again and once[0] != once[1]
    by_sample = lambda batches: [[row[k][j] for k in "ivrnb"] for row in batches for j in range(len(row["i"]))]
    assert by_sample(passes(batch_size=7)[0]) == by_sample(once[0])
    repeated = passes(sampler=[3, 3, 3], batch_size=3)[0][0]
    assert len(set(repeated["r"])) == 3  # the same index, three augmentations


def test_a_collate_function_may_draw() -> None:
    def mixing(samples: list) -> list:
        return [random.random(), vesta.rand(()).item(), [sample["i"] for sample in samples]]

    vesta.manual_seed(1)
    first = list(data.DataLoader(Augmented(), batch_size=4, collate_fn=mixing))
    vesta.manual_seed(1)
    assert list(data.DataLoader(Augmented(), batch_size=4, collate_fn=mixing)) == first
    assert len({batch[0] for batch in first}) == len(first)


def test_numpy_that_a_sample_imports_is_seeded_for_it() -> None:
    program = """
import sys, vesta
from vesta.utils import data
class Late(data.Dataset):
    def __len__(self): return 4
    def __getitem__(self, i):
        vesta.rand(1)
        import numpy  # not before the first sample
        return numpy.random.random() + vesta.rand(1)[0].item()
assert "numpy" not in sys.modules
def run(workers):
    vesta.manual_seed(0)
    return next(iter(data.DataLoader(Late(), batch_size=4, num_workers=workers))).tolist()
assert run(1) == run(0) == run(0)
assert not [finder for finder in sys.meta_path if "vesta" in type(finder).__module__]
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


ORDERS = {
    "sequential": lambda d: {"batch_size": 3},
    "shuffled": lambda d: {"batch_size": 3, "shuffle": True},
    "own generator": lambda d: {"batch_size": 3, "shuffle": True, "generator": vesta.Generator().manual_seed(7)},
    "last dropped": lambda d: {"batch_size": 3, "shuffle": True, "drop_last": True},
    "replacement": lambda d: {"batch_size": 4, "sampler": data.RandomSampler(d, replacement=True, num_samples=31)},
    "several permutations": lambda d: {"batch_size": 4, "sampler": data.RandomSampler(d, num_samples=60)},
    "subset": lambda d: {"batch_size": 2, "sampler": data.SubsetRandomSampler([5, 2, 9, 1, 7, 3])},
    "weighted": lambda d: {"batch_size": 2, "sampler": data.WeightedRandomSampler([1.0] * 9, 9)},
    "weighted once": lambda d: {"batch_size": 2, "sampler": data.WeightedRandomSampler([1.0] * 9, 9, False)},
    "of one process": lambda d: {"batch_size": 2, "sampler": data.DistributedSampler(d, 2, 1)},
    "single samples": lambda d: {"batch_size": None, "shuffle": True},
    "a list": lambda d: {"batch_size": 2, "sampler": [4, 2, 2, 8, 1]},
    "a list of batches": lambda d: {"batch_sampler": [[1], [2, 3], [4, 5, 6], [7]]},
    "the user's": lambda d: {"batch_size": 2, "sampler": Drawn()},
}


class Drawn(data.Sampler):
    """A user's sampler that draws from the default generator."""

    def __len__(self) -> int:
        return 9

    def __iter__(self):
        return iter(vesta.randperm(9).tolist())


@pytest.mark.parametrize("name", ORDERS)
def test_a_pass_goes_on_where_it_was_left(name: str) -> None:
    def loader() -> data.DataLoader:
        dataset = Augmented()
        return data.DataLoader(dataset, **ORDERS[name](dataset))

    vesta.manual_seed(11)
    whole = loader()
    batches = iter(whole)
    taken = [whole.state_dict()]
    rows = []
    for batch in batches:
        rows += flat([{k: vesta.as_tensor(v) for k, v in batch.items()}])
        taken.append(whole.state_dict())
    after = (vesta.get_rng_state(), flat_next(whole))
    for k, state in enumerate(taken):
        state = json.loads(json.dumps(state))
        assert len(json.dumps(state)) < 1024
        vesta.manual_seed(999)
        resumed = loader()
        resumed.load_state_dict(state)
        assert resumed.state_dict() == state
        if k == len(rows):
            assert k == len(taken) - 1
            continue
        before = vesta.get_rng_state().tolist()
        rest = flat([{key: vesta.as_tensor(v) for key, v in batch.items()} for batch in resumed])
        assert rest == rows[k:]
        assert vesta.get_rng_state().tolist() == before  # continuing draws nothing from the caller's generator
        vesta.set_rng_state(after[0])
        assert flat_next(resumed) == after[1]


def flat_next(loader: data.DataLoader) -> dict:
    """Returns the first batch of the next pass."""
    batch = next(iter(loader))
    return {k: vesta.as_tensor(v).tolist() for k, v in batch.items()}


def test_a_finished_pass_is_followed_by_a_new_one() -> None:
    loader = data.DataLoader(Augmented(), batch_size=5, shuffle=True)
    list(loader)
    state = loader.state_dict()
    assert state["finished"] and state["batches"] == 5
    again = data.DataLoader(Augmented(), batch_size=5, shuffle=True)
    again.load_state_dict(state)
    assert len(list(again)) == 5


class Remembering(data.Sampler):
    """A sampler with its own state: it never repeats indices that are behind its position."""

    def __init__(self) -> None:
        self.at = 0
        self.replayed = 0

    def __iter__(self):
        while self.at < 10:
            self.at += 1
            self.replayed += 1
            yield self.at - 1
        self.at = 0

    def state_dict(self) -> dict:
        return {"at": self.at}

    def load_state_dict(self, state: dict) -> None:
        self.at = state["at"]


def test_a_sampler_with_a_state_is_asked() -> None:
    loader = data.DataLoader(range(10), batch_size=None, sampler=Remembering())
    batches = iter(loader)
    head = [next(batches) for _ in range(4)]
    state = loader.state_dict()
    resumed = data.DataLoader(range(10), batch_size=None, sampler=Remembering())
    resumed.load_state_dict(state)
    assert head == [0, 1, 2, 3] and list(resumed) == [4, 5, 6, 7, 8, 9] and resumed.sampler.replayed == 6


class Stream(data.IterableDataset):
    def __init__(self) -> None:
        self.read = 0

    def __iter__(self):
        for i in range(11):
            self.read += 1
            yield {"i": i, "r": random.random()}


class Seekable(Stream):
    """A stream that knows its position."""

    def __init__(self) -> None:
        super().__init__()
        self.at = 0

    def __iter__(self):
        while self.at < 11:
            self.at += 1
            self.read += 1
            yield {"i": self.at - 1, "r": random.random()}

    def state_dict(self) -> dict:
        return {"at": self.at}

    def load_state_dict(self, state: dict) -> None:
        self.at = state["at"]


@pytest.mark.parametrize("kind, read", [(Stream, 11), (Seekable, 5)])
def test_a_stream_goes_on(kind: type, read: int) -> None:
    loader = data.DataLoader(kind(), batch_size=3)
    batches = iter(loader)
    next(batches), next(batches)
    state = json.loads(json.dumps(loader.state_dict()))
    rest = flat(batches)
    resumed = data.DataLoader(kind(), batch_size=3)
    resumed.load_state_dict(state)
    assert flat(resumed) == rest and [b["i"] for b in rest] == [[6, 7, 8], [9, 10]]
    assert resumed.dataset.read == read


@pytest.mark.parametrize("state", [3, {}, {"version": 7, "batches": 1}, {"version": 1, "batches": 1, "more": 2}])
def test_other_states_are_refused(state) -> None:
    with pytest.raises(ValueError, match="load_state_dict"):
        data.DataLoader([1, 2]).load_state_dict(state)


def test_a_sampler_that_has_become_shorter_is_noticed() -> None:
    loader = data.DataLoader(range(9), sampler=[1, 2, 3, 4])
    batches = iter(loader)
    next(batches), next(batches), next(batches)
    shorter = data.DataLoader(range(9), sampler=[1, 2])
    shorter.load_state_dict(loader.state_dict())
    with pytest.raises(ValueError, match="3 batches or more, got one with 2"):
        iter(shorter)
