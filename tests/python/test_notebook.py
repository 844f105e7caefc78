"""What notebooks show: right, bounded, escaped, without a trace."""

from __future__ import annotations

import base64
import doctest
import importlib
import math
import random
import re
import struct
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
import vesta
from vesta import nn
from vesta.notebook import markup, png
from vesta.utils.data import ConcatDataset, DataLoader, Dataset, IterableDataset, Subset, TensorDataset

#: Characters that nothing here may exceed.
BOUND = 150_000


class Checker(HTMLParser):
    """Raises where elements are not closed in their order, or a script is among them."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert tag in {
            "div",
            "b",
            "span",
            "table",
            "thead",
            "tbody",
            "tr",
            "td",
            "th",
            "pre",
            "details",
            "summary",
            "img",
        }
        assert not any(name.startswith("on") for name, _ in attrs)
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def html_of(value: Any) -> str:
    """Returns the HTML, after checking its form and size."""
    shown = value._repr_html_()
    assert isinstance(shown, str) and len(shown) < BOUND
    checker = Checker()
    checker.feed(shown)
    checker.close()
    assert checker.open == []
    return shown


def words_of(value: Any) -> str:
    """Returns what the HTML says, without its elements."""
    return re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", html_of(value)))


def picture_of(value: Any) -> tuple[int, int, bytes, bytes]:
    """Returns width, height, pixels and palette of the picture, read by another reader than the writer."""
    data = base64.b64decode(re.search('src="data:image/png;base64,([^"]*)"', html_of(value)).group(1))
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        size = struct.unpack(">I", data[at : at + 4])[0]
        name, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert zlib.crc32(name + body) == struct.unpack(">I", data[at + 8 + size : at + 12 + size])[0]
        chunks[name], at = body, at + 12 + size
    width, height, depth, kind = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert depth == 8 and list(chunks)[-1] == b"IEND"
    raw, line = zlib.decompress(chunks[b"IDAT"]), width * {0: 1, 2: 3, 3: 1, 6: 4}[kind] + 1
    assert len(raw) == line * height and all(raw[i] == 0 for i in range(0, len(raw), line))
    return width, height, b"".join(raw[i + 1 : i + line] for i in range(0, len(raw), line)), chunks.get(b"PLTE", b"")


# ---- tensors ----


KINDS = {
    "empty": lambda: vesta.ones(0),
    "empty 2-d": lambda: vesta.ones(3, 0),
    "0-d": lambda: vesta.tensor(2.5),
    "0-d NaN": lambda: vesta.tensor(math.nan),
    "bool": lambda: vesta.tensor([[True, False], [False, False]]),
    "int": lambda: vesta.arange(6).reshape(2, 3),
    "uint8": lambda: vesta.ones(3, dtype=vesta.uint8),
    "half": lambda: vesta.full((4, 4), 60000.0, dtype=vesta.float16),
    "bfloat16": lambda: vesta.ones(4, 4, dtype=vesta.bfloat16),
    "complex": lambda: vesta.ones(4, 4, dtype=vesta.complex64),
    "sparse": lambda: vesta.eye(3).to_sparse(),
    "sparse empty": lambda: vesta.zeros(3, 3).to_sparse(),
    "huge": lambda: vesta.ones(1).expand(1 << 20, 1 << 20),
    "many dimensions": lambda: vesta.ones([2] * 12),
    "all NaN": lambda: vesta.full((3, 3), math.nan),
    "infinite": lambda: vesta.tensor([[math.inf, -math.inf], [1, 2]]),
    "overflow": lambda: vesta.tensor([[3e38, -3e38], [3e38, 3e38]]),
    "requires grad": lambda: vesta.ones(2, 3, requires_grad=True),
    "a result": lambda: vesta.ones(2, 3, requires_grad=True) * 2,
    "a parameter": lambda: nn.Parameter(vesta.ones(2)),
    "lazy": lambda: nn.LazyLinear(3).weight,
    "inference": lambda: made_in_inference_mode(),
    "transposed": lambda: vesta.ones(2, 3).t(),
    "image": lambda: vesta.rand(3, 16, 20),
    "last": lambda: vesta.ones(16, 20, 4, dtype=vesta.uint8),
    "batch": lambda: vesta.randn(20, 1, 9, 8),
    "wide": lambda: vesta.ones(2, 100_000),
}


def made_in_inference_mode() -> vesta.Tensor:
    with vesta.inference_mode():
        return vesta.ones(2, 2)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "lazy"])
def test_every_kind_of_tensor(kind: str) -> None:
    t = KINDS[kind]()
    words = words_of(t)
    assert str(t.dtype) in words and str(t.device) in words
    assert kind in ("a parameter", "inference") or t._version == 0 or t.grad_fn is None


def test_a_lazy_parameter_shows_as_its_repr_or_html() -> None:
    """What has no shape yet never raises."""
    assert KINDS["lazy"]()._repr_html_() is None or "lazy" in words_of(KINDS["lazy"]()).lower()


def test_statistics_and_places_of_nans() -> None:
    x = vesta.arange(12.0).reshape(3, 4)
    assert "[3 × 4] · vesta.float32 · cpu · 48 B" in words_of(x)
    assert "0 … 11" in words_of(x) and "5.5 ± 3.6056" in words_of(x) and "NaN" not in words_of(x)
    x[1, 2] = math.nan
    x[2, 0] = math.inf
    assert "NaN 1 of 12: at [1, 2]" in words_of(x) and "infinite 1 of 12: at [2, 0]" in words_of(x)
    x[0] = math.nan
    assert "5 of 12: first at [0, 0], [0, 1], [0, 2], [0, 3]; within [0:2, 0:4]" in words_of(x)
    assert "True 1 (25 %)" in words_of(vesta.tensor([True, False, False, False]))


def test_one_nan_in_a_large_tensor_is_found() -> None:
    """Statistics are of a sample, and say so; the search for NaNs is not."""
    x = vesta.zeros(3000, 2000)
    x[1235, 567] = math.nan
    assert "of a sample of" in words_of(x) and "1 of 6,000,000: at [1235, 567]" in words_of(x)
    _, _, pixels, _ = picture_of(x)
    assert 254 in pixels


def test_a_picture_of_values() -> None:
    """Colours run from the lowest to the highest value; NaN and infinity have their own; cells are enlarged."""
    width, height, pixels, palette = picture_of(vesta.tensor([[0.0, 1.0], [math.nan, math.inf]]))
    assert (width, height, len(palette)) == (160, 160, 768)
    assert (pixels[0], pixels[-1]) == (0, 255) and (pixels[159], pixels[159 * 160]) == (253, 254)
    assert palette[:3].hex() == "440154" and palette[253 * 3 : 254 * 3].hex() == "fde725"
    width, height, pixels, _ = picture_of(vesta.arange(200.0)[:, None].expand(200, 4))
    assert (width, height) == (4 * 2, 67 * 2) and pixels[0] == 0  # every third of 200 rows, enlarged twice


def test_a_picture_of_magnitudes() -> None:
    x = vesta.complex(vesta.randn(20, 30), vesta.randn(20, 30))
    assert picture_of(x) == picture_of(x.abs()) and 'alt="magnitude: 20 x 30' in html_of(x)
    x[3, 4] = complex(math.nan, 1)
    assert picture_of(x) == picture_of(x.abs())


def test_a_picture_of_an_image() -> None:
    image = vesta.zeros(3, 200, 8, dtype=vesta.uint8)
    image[0] = 255
    width, height, pixels, palette = picture_of(image)
    assert not palette and pixels[:3] == b"\xff\0\0" and len(pixels) == width * height * 3
    _, _, pixels, _ = picture_of(vesta.full((8, 8, 3), 0.5))
    assert pixels[0] == 128
    width, height, _, _ = picture_of(vesta.rand(20, 3, 8, 8))
    assert width == 8 * 8 * (160 // 64) and height == 8 * (160 // 64)


def test_a_png_of_too_few_pixels_is_refused() -> None:
    with pytest.raises(ValueError, match="expected 2 x 2 pixels of 1 to 4 bytes, got 3 bytes"):
        png.encode(b"abc", 2, 2)


def test_nothing_is_changed() -> None:
    """No random number, no gradient and no mode is touched, and a subclass is not asked."""

    class Watched(vesta.Tensor):
        calls = 0

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            cls.calls += 1
            return super().__torch_function__(func, types, args, kwargs)

    t = vesta.randn(4, 4).as_subclass(Watched)
    state, Watched.calls = vesta.get_rng_state(), 0
    assert "Watched" in words_of(t) and Watched.calls == 0
    assert vesta.equal(state, vesta.get_rng_state()) and vesta.is_grad_enabled()


@pytest.mark.skipif(not vesta.cuda.is_available(), reason="row 8 of tests/EXCEPTIONS.md")
def test_a_tensor_on_cuda() -> None:
    """The same is shown as on the CPU, also where new tensors are made on the GPU."""
    x = vesta.randn(30, 40)
    x[3, 4] = math.nan
    on_host = words_of(x).replace("cpu", "cuda:0")
    vesta.set_default_device("cuda")
    try:
        assert words_of(x.cuda()).split(" values ")[0] == on_host.split(" values ")[0]
        assert "NaN 1 of 1,200: at [3, 4]" in words_of(x) and picture_of(x) == picture_of(x.cuda())
        assert "within" not in words_of(vesta.ones(3, 16, 16))
    finally:
        vesta.set_default_device(None)


# ---- modules and datasets ----


class Strange(nn.Module):
    def extra_repr(self) -> str:
        raise RuntimeError("not finished")


class Named(nn.Module):
    def extra_repr(self) -> str:
        return "<script>alert(1)</script>"


def test_a_module_is_a_tree() -> None:
    shared = nn.Linear(4, 4)
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Sequential(shared, shared), nn.LazyLinear(2), Named())
    shared.bias.requires_grad_(False)
    words = words_of(net)
    assert "Sequential 260 parameters, 256 of them trained, 2 not yet initialized" in words and "training" in words
    assert "weight [8, 3, 3, 3] vesta.float32 cpu" in words and "num_batches_tracked [] vesta.int64 cpu buffer" in words
    assert "weight not yet initialized vesta.float32 cpu" in words
    assert "initialized vesta.float32 cpu buffer" not in words and "initialized vesta.float32 cpu frozen" not in words
    assert "bias [4] vesta.float32 cpu frozen" in words and "&lt;script&gt;" in html_of(net)
    assert html_of(net).count("<details") >= 5


def test_modules_without_end() -> None:
    """Many parts, deep ones, one inside itself and one that raises are shown within bounds."""
    assert "more modules" in words_of(nn.Sequential(*(nn.Linear(2, 2) for _ in range(1000))))
    deep = nn.Identity()
    for _ in range(50):
        deep = nn.Sequential(deep)
    words_of(deep)
    assert "Strange" in words_of(nn.Sequential(Strange()))
    wide = nn.Module()
    for i in range(100):
        wide.register_buffer(f"b{i}", vesta.ones(1))
    assert "80 more" in words_of(wide)


class Files(Dataset):
    """A dataset whose samples cannot be made."""

    def __init__(self) -> None:
        self.path, self.names, self.table = "<a>", ["x"] * 7, vesta.ones(2, 3)

    def __len__(self) -> int:
        return 7

    def __getitem__(self, index: int) -> Any:
        raise AssertionError("read")


class Stream(IterableDataset):
    def __len__(self) -> int:
        raise TypeError("unknown")


def test_datasets_and_loaders() -> None:
    pairs = TensorDataset(vesta.ones(10, 3), vesta.arange(10))
    assert "TensorDataset 10 samples" in words_of(pairs) and "tensors[0] [10 × 3] · vesta.float32" in words_of(pairs)
    assert "Subset 2 samples" in words_of(Subset(pairs, [0, 1])) and "TensorDataset" in words_of(Subset(pairs, [0]))
    both = ConcatDataset([pairs, Files()])
    assert "17 samples" in words_of(both) and "Files" in words_of(both)
    assert "path &#x27;&lt;a&gt;&#x27;" in words_of(Files()) and "names list of 7" in words_of(Files())
    assert "first sample AssertionError: read" in words_of(Files()) and "read" not in words_of(both)
    assert "Stream" in words_of(Stream())
    loader = DataLoader(pairs, batch_size=4)
    assert "DataLoader 3 batches batch_size 4" in words_of(loader) and "TensorDataset" in words_of(loader)


class Drawn(Dataset):
    """Samples of random numbers, in a structure."""

    def __init__(self) -> None:
        self.made = 0

    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> Any:
        self.made += 1
        return {"image": vesta.rand(3, 4), "boxes": [(random.random(), np.random.rand(2))] * 10}, index


class Numbers(Drawn):
    def __getitem__(self, index: int) -> Any:
        return [1] * 9, "<b>"


def test_a_dataset_of_the_users_shows_its_first_sample() -> None:
    states = vesta.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()
    for shown in (Drawn(), DataLoader(Drawn(), batch_size=2)):
        words = words_of(shown)
        assert "Drawn 5 samples" in words and "first sample ({image: Tensor [3 × 4] · vesta.float32" in words
        assert "boxes: [(float 0." in words and "ndarray [2] float64), (" in words
        assert words_of(Numbers()).count("int 1") == 8 and "… 1 more], str &#x27;&lt;b&gt;&#x27;" in words_of(Numbers())
    assert vesta.equal(vesta.get_rng_state(), states[0]) and random.getstate() == states[1]
    assert np.random.get_state()[1].tolist() == states[2]
    assert "first sample" not in words_of(TensorDataset(vesta.ones(3)))
    assert "first sample" not in words_of(Subset(Drawn(), [1]))


def test_what_cannot_be_shown_is_none() -> None:
    """An object that raises while it is asked shows as its repr."""

    class Broken(nn.Module):
        def parameters(self, recurse: bool = True) -> Any:
            raise RuntimeError("broken")

    assert Broken()._repr_html_() is None and vesta.notebook.show(3) is None


def test_markup_escapes_and_cuts() -> None:
    assert markup.text("<&\"'") == "&lt;&amp;&quot;&#x27;" and len(markup.text("x" * 1000)) == markup.LONGEST
    assert markup.size(1023) == "1023 B" and markup.size(1536) == "1.5 KiB" and markup.size(3 << 40) == "3.0 TiB"


@pytest.mark.parametrize("name", ["vesta.notebook", "vesta.notebook.png", "vesta.adapters", "vesta.storage"])
def test_the_examples_run(name: str) -> None:
    failed, count = doctest.testmod(importlib.import_module(name))
    assert count and not failed


def test_import_vesta_does_not_import_it() -> None:
    code = "import sys, vesta; print([n for n in sys.modules if n.startswith(('vesta.notebook', 'vesta.adapters'))])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
