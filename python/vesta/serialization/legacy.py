"""The format of PyTorch before 1.6: pickles and storages in a row.

    magic number | protocol version | byte order and sizes | the object | keys of the storages | per storage: number of
    elements in 8 bytes, values

The first five are pickles. A reference to a storage is ("storage", class, key, location, number of elements, view),
where a view of a part is (key, offset, number of elements) in files of very old versions, else None.
"""

from __future__ import annotations

import io
import struct
import sys
from typing import Any

from vesta import _C

from .pickler import Storages, dump
from .zip_writer import write_all

__all__ = ["MAGIC_NUMBER", "PROTOCOL_VERSION", "save"]

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001


def save(obj: Any, file: Any, pickle_module: Any, protocol: int) -> None:
    """Writes ``obj`` in the old format."""
    storages = Storages(
        # a text of its own each time, as in PyTorch: the pickle does not refer back to the first one
        lambda key, kind, location, numel: ("storage", kind, str(int(key)), location, numel, None),
        str,
    )
    sizes = {"short": struct.calcsize("=h"), "int": struct.calcsize("=i"), "long": struct.calcsize("=l")}
    system = {
        "protocol_version": PROTOCOL_VERSION,
        "little_endian": sys.byteorder == "little",
        "type_sizes": sizes,
    }
    head = io.BytesIO()
    for part in (MAGIC_NUMBER, PROTOCOL_VERSION, system):
        pickle_module.dump(part, head, protocol=protocol)
    dump(obj, head, pickle_module, protocol, storages)
    keys = sorted(storages.found)
    pickle_module.dump(keys, head, protocol=protocol)
    write_all(file, head.getbuffer())
    for key in keys:
        storage, dtype = storages.found[key]
        write_all(file, struct.pack("<q", storage.nbytes() // dtype.itemsize))
        write_all(file, _C._lend(storage.cpu()._bytes))
