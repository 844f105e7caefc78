"""Saving what is on a GPU, and loading to one."""

from __future__ import annotations

import io

import pytest
import vesta

pytestmark = pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a GPU or the build tree's emulated device")


def test_devices_in_files() -> None:
    for zip_format in (True, False):
        file = io.BytesIO()
        tensor = vesta.arange(6.0).cuda()
        vesta.save({"t": tensor, "row": tensor[2:4]}, file, _use_new_zipfile_serialization=zip_format)
        assert b"cuda:0" in file.getvalue()
        for where, kind in (
            (None, "cuda"),
            ("cpu", "cpu"),
            ({"cuda:0": "cpu"}, "cpu"),
            (lambda s, _: s.cuda(0), "cuda"),
        ):
            file.seek(0)
            found = vesta.load(file, map_location=where)
            assert found["t"].device.type == kind and found["row"].tolist() == [2.0, 3.0]
            found["t"].zero_()
            assert found["row"].tolist() == [0.0, 0.0]
        file.seek(0)
        with pytest.raises(RuntimeError, match="device_count"):
            vesta.load(file, map_location="cuda:99")
