"""The networks that benchmarks train and serve, written once for both libraries; `lib` is vesta or torch.

Sources: ResNet-50, arXiv 1512.03385; MobileNet v1 and v2, arXiv 1704.04861 and 1801.04381; VGG-19, arXiv 1409.1556;
AlexNet, the variant of arXiv 1404.5997; neural collaborative filtering, arXiv 1708.05031; the translator is the encoder
and decoder of arXiv 1409.3215; the GPT has layer norm in front, as arXiv 2005.14165.
"""

from __future__ import annotations

# ---- networks for images ----


def _convolution(nn, inputs, outputs, kernel, stride=1, groups=1, act=None):
    """Returns a convolution without bias, batch norm and an activation, as a list of layers."""
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)]
    layers.append(nn.BatchNorm2d(outputs))
    return layers + ([act(inplace=True)] if act else [])


def _residual(lib, body, shortcut, act):
    nn = lib.nn

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(*body)
            self.shortcut = nn.Sequential(*shortcut) if shortcut else nn.Identity()
            self.act = act(inplace=True) if act else nn.Identity()

        def forward(self, x):
            return self.act(self.body(x) + self.shortcut(x))

    return Residual()


def resnet50(lib, channels=64):
    nn = lib.nn
    layers = [*_convolution(nn, 3, channels, 7, 2, act=nn.ReLU), nn.MaxPool2d(3, 2, 1)]
    inputs = channels
    for width, blocks, first_stride in ((1, 3, 1), (2, 4, 2), (4, 6, 2), (8, 3, 2)):
        width *= channels
        for i in range(blocks):
            stride = first_stride if i == 0 else 1
            body = [
                *_convolution(nn, inputs, width, 1, act=nn.ReLU),
                *_convolution(nn, width, width, 3, stride, act=nn.ReLU),
                *_convolution(nn, width, 4 * width, 1),
            ]
            shortcut = _convolution(nn, inputs, 4 * width, 1, stride) if i == 0 else None
            layers.append(_residual(lib, body, shortcut, nn.ReLU))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


def mobilenet_v1(lib):
    nn = lib.nn
    layers = _convolution(nn, 3, 32, 3, 2, act=nn.ReLU)
    inputs = 32
    for outputs, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2),
                            (1024, 1)):  # fmt: skip
        layers += _convolution(nn, inputs, inputs, 3, stride, inputs, act=nn.ReLU)
        layers += _convolution(nn, inputs, outputs, 1, act=nn.ReLU)
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1024, 1000))


def mobilenet_v2(lib):
    nn = lib.nn
    layers = _convolution(nn, 3, 32, 3, 2, act=nn.ReLU6)
    inputs = 32
    for expansion, outputs, blocks, first_stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                                     (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):  # fmt: skip
        for i in range(blocks):
            stride, wide = (first_stride if i == 0 else 1), expansion * inputs
            body = _convolution(nn, inputs, wide, 1, act=nn.ReLU6) if expansion != 1 else []
            body += _convolution(nn, wide, wide, 3, stride, wide, act=nn.ReLU6)
            body += _convolution(nn, wide, outputs, 1)
            kept = stride == 1 and inputs == outputs
            layers += [_residual(lib, body, None, None)] if kept else body
            inputs = outputs
    layers += _convolution(nn, 320, 1280, 1, act=nn.ReLU6)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(1280, 1000))


def vgg19(lib):
    nn = lib.nn
    layers, inputs = [], 3
    for width, count in ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4)):
        for _ in range(count):
            layers += [nn.Conv2d(inputs, width, 3, padding=1), nn.ReLU(inplace=True)]
            inputs = width
        layers.append(nn.MaxPool2d(2))
    head = [nn.Linear(512 * 49, 4096), nn.ReLU(True), nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(True), nn.Dropout()]
    return nn.Sequential(*layers, nn.Flatten(), *head, nn.Linear(4096, 1000))


def alexnet(lib):
    nn = lib.nn
    return nn.Sequential(
        nn.Conv2d(3, 64, 11, 4, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
        nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
        nn.Conv2d(192, 384, 3, padding=1), nn.ReLU(inplace=True),
        nn.Conv2d(384, 256, 3, padding=1), nn.ReLU(inplace=True),
        nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
        nn.Flatten(), nn.Dropout(), nn.Linear(256 * 36, 4096), nn.ReLU(inplace=True),
        nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Linear(4096, 1000),
    )  # fmt: skip


def lenet(lib):
    nn = lib.nn
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip


# ---- networks for sequences and tables ----


def transformer(lib, layers, width, heads, vocabulary, length, causal):
    """Returns a GPT (causal) or an encoder with a token for each position; with `keep`, it generates token by token."""
    nn, functional = lib.nn, lib.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x, kept=None, at=0):
            batch, count, _ = x.shape
            parts = self.qkv(self.norm1(x)).split(width, dim=2)
            q, k, v = (t.view(batch, count, heads, width // heads).transpose(1, 2) for t in parts)
            if kept is not None:
                for store, new in zip(kept, (k, v)):
                    store[:, :, at : at + count] = new
                k, v = (store[:, :, : at + count] for store in kept)
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=causal and count > 1)
            x = x + self.out(mixed.transpose(1, 2).reshape(batch, count, width))
            return x + self.mlp(self.norm2(x))

    class Transformer(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

        def forward(self, ids, kept=None, at=0):
            x = self.tokens(ids) + self.places(lib.arange(at, at + ids.shape[1], device=ids.device))
            for i, block in enumerate(self.blocks):
                x = block(x, None if kept is None else kept[i], at)
            return self.head(self.norm(x))

    return Transformer()


def translator(lib, vocabulary=4000, width=256):
    nn = lib.nn

    class Translator(nn.Module):
        def __init__(self):
            super().__init__()
            self.source, self.target = nn.Embedding(vocabulary, width), nn.Embedding(vocabulary, width)
            self.encoder = nn.LSTM(width, width, num_layers=2, batch_first=True)
            self.decoder = nn.LSTM(width, width, num_layers=2, batch_first=True)
            self.head = nn.Linear(width, vocabulary)

        def forward(self, source, target):
            _, state = self.encoder(self.source(source))
            return self.head(self.decoder(self.target(target), state)[0])

    return Translator()


def collaborative_filtering(lib, users=6000, items=4000, width=64):
    nn = lib.nn

    class Filtering(nn.Module):
        def __init__(self):
            super().__init__()
            self.users, self.items = nn.Embedding(users, width), nn.Embedding(items, width)
            self.users_mlp, self.items_mlp = nn.Embedding(users, width), nn.Embedding(items, width)
            self.mlp = nn.Sequential(
                nn.Linear(2 * width, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU()
            )
            self.head = nn.Linear(width + 32, 2)

        def forward(self, user, item):
            deep = self.mlp(lib.cat([self.users_mlp(user), self.items_mlp(item)], 1))
            return self.head(lib.cat([self.users(user) * self.items(item), deep], 1))

    return Filtering()
