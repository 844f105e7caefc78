"""Stores: the contract that all of them share, and the features of TCP and file stores."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from datetime import timedelta

import pytest
from distributed_ranks import on_threads
from vesta.distributed import DistNetworkError, DistStoreError, FileStore, HashStore, PrefixStore, TCPStore

SECONDS = timedelta(seconds=30)


def tcp(**options):
    return TCPStore("127.0.0.1", 0, None, True, SECONDS, **options)


KINDS = ("tcp", "file", "hash", "prefix")


def make(kind, folder):
    if kind == "tcp":
        store = tcp()
    elif kind == "file":
        store = FileStore(str(folder / "store"), 1)
    elif kind == "hash":
        store = HashStore()
    else:
        store = PrefixStore("some", HashStore())
    store.set_timeout(SECONDS)
    return store


@pytest.mark.parametrize("kind", KINDS)
def test_contract(kind, tmp_path):
    store = make(kind, tmp_path)
    start = store.num_keys()
    store.set("a", "1")
    store.set("bytes", b"\0\xff\n")
    assert store.get("a") == b"1" and store.get("bytes") == b"\0\xff\n"
    store.set("a", "2")
    assert store.get("a") == b"2"
    assert store.num_keys() == start + 2
    assert store.add("n", 5) == 5 and store.add("n", -7) == -2 and store.get("n") == b"-2"
    assert store.check(["a", "n"]) and not store.check(["a", "missing"])
    assert store.compare_set("c", "", "first") == b"first"
    assert store.compare_set("c", "other", "second") == b"first"
    assert store.compare_set("c", "first", "second") == b"second" and store.get("c") == b"second"
    assert store.compare_set("none", "expected", "x") == b"expected" and not store.check(["none"])
    assert store.delete_key("a") and not store.delete_key("a") and not store.check(["a"])
    store.append("log", "x")
    store.append("log", b"y")
    assert store.get("log") == b"xy"
    store.multi_set(["p", "q"], ["1", "2"])
    assert store.multi_get(["q", "p"]) == [b"2", b"1"]
    assert {"p", "q", "log"} <= set(store.list_keys())
    store.wait(["p", "q"])
    store.wait(["p"], timedelta(milliseconds=1))
    with pytest.raises(ValueError, match="expected a value for each of 2 keys"):
        store.multi_set(["p", "q"], ["1"])
    with pytest.raises(DistStoreError, match="is no number"):
        store.add("log", 1)


@pytest.mark.parametrize("kind", KINDS)
def test_waiting(kind, tmp_path):
    store = make(kind, tmp_path)

    def later():
        time.sleep(0.2)
        store.set("late", "x")

    thread = threading.Thread(target=later)
    thread.start()
    assert store.get("late") == b"x"
    thread.join()
    start = time.monotonic()
    with pytest.raises(DistStoreError, match=r"wait timeout after 200ms, keys: .*never"):
        store.wait(["late", "never"], timedelta(milliseconds=200))
    assert time.monotonic() - start >= 0.2
    store.set_timeout(timedelta(milliseconds=100))
    assert store.timeout == timedelta(milliseconds=100)
    with pytest.raises(DistStoreError, match="never"):
        store.get("never")
    store.set_timeout(SECONDS)
    assert store.add("still", 1) == 1  # the store still works


def test_prefixes_do_not_meet():
    base = HashStore()
    a, b = PrefixStore("a", base), PrefixStore("a/b", base)
    a.set("k", "1")
    b.set("k", "2")
    assert a.get("k") == b"1" and b.get("k") == b"2" and base.get("a/b/k") == b"2"
    assert b.list_keys() == ["k"] and a.underlying_store is base and a.prefix == "a"


@pytest.mark.parametrize("kind", ("tcp", "file"))
def test_many_clients_count_together(kind, tmp_path):
    """64 clients with 1000 operations each; for the file, which is locked in each operation, 8 clients with 100."""
    clients, operations = (64, 1000) if kind == "tcp" else (8, 100)
    master = tcp() if kind == "tcp" else FileStore(str(tmp_path / "store"), clients + 1)

    def client(rank):
        own = TCPStore("127.0.0.1", master.port, None, False, SECONDS) if kind == "tcp" else None
        own = own or FileStore(str(tmp_path / "store"), clients + 1)
        for i in range(operations // 4):
            own.add("sum", 1)
            own.set(f"{rank}/{i}", str(i))
            assert own.get(f"{rank}/{i}") == str(i).encode()
            assert own.check([f"{rank}/{i}"])
        own.set(f"done{rank}", "")
        own.wait([f"done{r}" for r in range(clients)])

    on_threads(clients, client)
    assert master.add("sum", 0) == clients * (operations // 4)


def test_tcp_workers_are_waited_for_and_the_port_is_free_again():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    for _ in range(3):  # the same port, without a pause
        stores = on_threads(3, lambda rank: TCPStore("127.0.0.1", port, 3, rank == 0, SECONDS))
        stores[1].set("k", "v")
        assert stores[2].get("k") == b"v" and stores[0].port == port and stores[0].host == "127.0.0.1"
        assert repr(stores[0]) == f"TCPStore(host_name='127.0.0.1', port={port})"
        del stores
    with pytest.raises(DistStoreError, match="expected 2 processes within 300 ms, got 1"):
        TCPStore("127.0.0.1", 0, 2, True, timedelta(milliseconds=300))
    first = TCPStore("127.0.0.1", port, None, True, SECONDS, multi_tenant=True)
    second = TCPStore("127.0.0.1", port, None, True, SECONDS, multi_tenant=True)
    first.set("shared", "x")
    assert second.get("shared") == b"x"


def test_tcp_errors_say_what_to_do():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
        with pytest.raises(DistNetworkError, match=rf"nobody answers at 127.0.0.1:{port} .*Check that rank 0 runs"):
            TCPStore("127.0.0.1", port, None, False, timedelta(milliseconds=200))
        s.listen()
        with pytest.raises(DistNetworkError, match=rf"cannot listen at \*:{port}"):
            TCPStore("127.0.0.1", port, None, True, SECONDS)
    with pytest.raises(ValueError, match="expected a port from 0 to 65535"):
        TCPStore("127.0.0.1", 70000, None, True)
    with pytest.raises(ValueError, match="Only the master may let the system choose"):
        TCPStore("127.0.0.1", 0, None, False)


def test_garbage_does_not_end_the_server():
    store = tcp()
    store.set("k", "v")
    for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64, b"\x05\0\0\0Z\x10\0\0\0", b"\x01\0\0\0S", b""):
        with socket.create_connection(("127.0.0.1", store.port)) as s:
            s.sendall(garbage)
            s.shutdown(socket.SHUT_WR)
            s.settimeout(10)
            s.recv(100)
    assert store.get("k") == b"v"


def test_a_server_that_is_killed_is_reported():
    code = (
        "import sys, time; from datetime import timedelta; from vesta.distributed import TCPStore\n"
        "s = TCPStore('127.0.0.1', 0, None, True); print(s.port, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as server:
        port = int(server.stdout.readline())
        client = TCPStore("127.0.0.1", port, None, False, SECONDS)
        threading.Timer(0.3, lambda: os.kill(server.pid, signal.SIGKILL)).start()
        with pytest.raises(DistNetworkError, match=rf"the server at 127.0.0.1:{port} is gone"):
            client.get("never")
        server.wait()


def test_file_store_is_removed_by_the_last_and_may_be_used_again(tmp_path):
    path = tmp_path / "store"
    for round in range(2):
        a, b = FileStore(str(path), 2), FileStore(str(path), 2)
        assert not a.check(["k"]), f"round {round} sees the one before"
        a.set("k", "v")
        assert b.get("k") == b"v" and a.path == str(path)
        del a
        assert path.exists()
        del b
        assert not path.exists()
    with pytest.raises(DistStoreError, match="cannot open .*No such file"):
        FileStore(str(tmp_path / "missing" / "store"), 1)
    other = tmp_path / "text"
    other.write_bytes(b"not a store at all")
    with pytest.raises(Exception, match="FileStore|wire"):
        FileStore(str(other), 1)


def test_a_file_that_is_none_of_a_store(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("garbage, more garbage")
    with pytest.raises(DistStoreError, match="notes.txt is no file of a FileStore. Remove it"):
        FileStore(str(path), 1)


@pytest.mark.parametrize("banner", [b"", b"SSH-2.0-OpenSSH_9.2\r\n"], ids=["silent", "ssh"])
def test_somebody_else_listens_at_the_port(banner):
    def answer(listener):
        with listener.accept()[0] as connection:
            connection.sendall(banner)
            connection.recv(1 << 16)

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        thread = threading.Thread(target=answer, args=(listener,))
        if banner:
            thread.start()
        with pytest.raises(DistNetworkError, match="does not answer as a store does: it is another program"):
            TCPStore("127.0.0.1", listener.getsockname()[1], None, False, timedelta(seconds=1))
        if banner:
            thread.join()
