"""Layers as functions: PyTorch's names and argument order over the ops in C++.

A function with the same arguments in C++ is bound directly, so that a call costs nothing in Python. What has arguments
that no schema says (``inplace``, ``return_indices``, the old forms of ``reduction``) is a function of a file here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import vesta
from vesta._C import _nn, _private
from vesta._names import listing
from vesta._overridable import overridable

from . import activation, attention, loss, normalization, pooling, vision
from . import dropout as _dropouts
from . import embedding as _tables
from . import grouped_mm as _groups
from . import linear_cross_entropy as _classifier
from .activation import *  # noqa: F403
from .attention import *  # noqa: F403
from .dropout import *  # noqa: F403
from .embedding import *  # noqa: F403
from .grouped_mm import *  # noqa: F403
from .linear_cross_entropy import *  # noqa: F403
from .loss import *  # noqa: F403
from .loss import _reduction  # noqa: F401
from .normalization import *  # noqa: F403
from .pooling import *  # noqa: F403
from .vision import *  # noqa: F403

if TYPE_CHECKING:  # names that only the op list says
    from vesta._C._names_of_functional import *  # noqa: F403

_PARTS = (activation, attention, _classifier, _dropouts, _groups, _tables, loss, normalization, pooling, vision)
_OWN = tuple(name for part in _PARTS for name in part.__all__)

#: Names that stand in ``vesta`` as well.
_SHARED = (
    "adaptive_avg_pool1d",
    "avg_pool1d",
    "bilinear",
    "celu_",
    "channel_shuffle",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cosine_similarity",
    "hardshrink",
    "native_channel_shuffle",
    "pairwise_distance",
    "pdist",
    "pixel_shuffle",
    "pixel_unshuffle",
    "prelu",
    "relu_",
    "rms_norm",
    "rrelu_",
    "selu_",
    "threshold_",
)

#: Functions that write into their argument, under the names that PyTorch has for them.
_IN_PLACE = ("elu_", "hardtanh_", "leaky_relu_")

__all__ = list(_OWN)
_spaces = ((_nn, [name for name in dir(_nn) if not name.startswith("_")]), (vesta, _SHARED), (_private, _IN_PLACE))
for _home, _names in _spaces:
    for _name in _names:
        if _name not in _OWN and hasattr(_home, _name):
            globals()[_name] = getattr(_home, _name)
            __all__.append(_name)
            if _home is _private:
                globals()[_name].__module__ = __name__  # that pickles find it
for _name in _OWN:
    globals()[_name].__module__ = __name__  # where users find them, and where pickles look
#: Other names of methods and of ``interpolate``, which PyTorch, too, takes over only as what they call.
_OTHER_NAMES = ("sigmoid", "tanh", "upsample", "upsample_bilinear", "upsample_nearest")
overridable(*(globals()[_name] for _name in _OWN if _name not in _OTHER_NAMES))

__dir__ = listing(globals(), hidden="activation attention loss normalization ops pooling vision")
