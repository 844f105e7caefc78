"""Execution traces: which operations a program calls, in which order and nesting, and with which shapes."""

from __future__ import annotations

import gzip
import json
import os
import time
from typing import Any

from vesta.autograd.recording import OP, PART, Recording

__all__ = ["ExecutionTraceObserver"]


class ExecutionTraceObserver:
    """A recorder of the operations and parts of a program between ``start`` and ``stop``, as nodes of a JSON file with
    their parents and the shapes of their operands. ``torch.profiler``'s name; it is no timeline.

    Example::

        >>> import json, tempfile, vesta
        >>> from vesta.profiler import ExecutionTraceObserver
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     observer = ExecutionTraceObserver().register_callback(folder + "/trace.json")
        ...     with observer:
        ...         _ = vesta.ones(2).exp()
        ...     observer.unregister_callback()
        ...     [node["name"] for node in json.load(open(folder + "/trace.json"))["nodes"]]
        ['aten::ones', 'aten::full', 'aten::exp']
    """

    def __init__(self) -> None:
        self._path: str | None = None
        self._recordings: list[Recording] = []
        self._running = False

    def register_callback(self, output_file_path: str | os.PathLike[str]) -> ExecutionTraceObserver:
        """Chooses the file, compressed if its name ends in ``.gz``; returns the observer."""
        self._path = os.fspath(output_file_path)
        return self

    def get_output_file_path(self) -> str | None:
        """Returns the file; None where none was chosen."""
        return self._path

    @property
    def is_registered(self) -> bool:
        """Whether a file was chosen and not yet written for good."""
        return self._path is not None

    def is_running(self) -> bool:
        """Returns whether it records."""
        return self._running

    def start(self) -> None:
        """Begins to record; does nothing without a file, or where it records."""
        if self._path is None or self._running:
            return
        self._running = True
        self._recordings.append(Recording(shapes=True))
        self._recordings[-1].start()

    def stop(self) -> None:
        """Ends to record, and writes the file."""
        if self._running:
            self._running = False
            self._recordings[-1].stop()
            self._write()

    def unregister_callback(self) -> None:
        """Ends to record, and forgets the file, which stays."""
        self.stop()
        self._path, self._recordings = None, []

    cleanup = unregister_callback

    def _write(self) -> None:
        assert self._path is not None
        nodes: list[dict[str, Any]] = []
        for recording in self._recordings:
            first = len(nodes)
            for event in recording.events():
                outer = event.outer
                nodes.append(
                    {
                        "id": first + event.id,
                        "name": event.name,
                        "ctrl_deps": first + outer.id if outer is not None else 0,
                        "inputs": {"shapes": event.input_shapes},
                        "attrs": {"tid": event.thread, "seq_id": event.sequence_nr, "kind": _KINDS.get(event.kind, "")},
                    }
                )
        made = {"schema": "1.1.1-vesta", "pid": os.getpid(), "time": time.strftime("%Y-%m-%d %H:%M:%S"), "nodes": nodes}
        with (gzip.open if self._path.endswith(".gz") else open)(self._path, "wt", encoding="utf-8") as file:
            file.write(json.dumps(made, default=list))

    def __enter__(self) -> ExecutionTraceObserver:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


_KINDS = {OP: "op", PART: "part", 2: "layer", 3: "backward", 4: "backward"}
