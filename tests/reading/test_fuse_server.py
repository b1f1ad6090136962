"""Requests that Python answers: the arguments that the handlers get, and the messages that their values become."""

from __future__ import annotations

import errno
import os
import socket
import stat
import struct
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from fake_device import HEADER, Device, reply, request

from gompfs._native.fuse import Listing, ReplyCache, answer_init
from gompfs.model import Inode

LOOKUP, GETATTR, READLINK, OPEN, READ, STATFS, RELEASE, GETXATTR, LISTXATTR = 1, 3, 5, 14, 15, 17, 18, 22, 23
OPENDIR, INTERRUPT, DESTROY, READDIRPLUS, LSEEK = 27, 36, 38, 44, 46
FILE = Inode(7, stat.S_IFREG | 0o640, 5, 6, 1025, 3_000_000_007, 2, 0)
ENTRY = struct.Struct("<4QII")
ATTRIBUTES = struct.Struct("<6Q10I")
FILE_ATTRIBUTES = ATTRIBUTES.pack(7, 1025, 2, 3, 3, 3, 7, 7, 7, FILE.mode, 2, 5, 6, 0, 1 << 20, 0)
READ_BODY = struct.Struct("<QQIIQII")


class Handlers:
    """Answers about the node 7; records all calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []
        self.error: BaseException | None = None
        self.parked: list[Callable[[], None]] = []
        self.refusals: list[int] = []
        self.pieces: list[bytes | memoryview] = [b"ab", memoryview(b"cde")]

    def _called(self, *call: object) -> None:
        self.calls.append(call)
        if self.error is not None:
            raise self.error

    def lookup(self, parent: int, name: bytes, uid: int) -> tuple[Inode | None, int, int | None]:
        self._called("lookup", parent, name, uid)
        return (FILE, 60, 600) if name == b"file" else (None, 30, None)

    def getattr(self, node: int) -> tuple[Inode, int, int | None]:
        self._called("getattr", node)
        return FILE, 60, 600

    def readlink(self, node: int) -> bytes:
        self._called("readlink", node)
        return b"target"

    def readdir(self, node: int) -> Listing:
        self._called("readdir", node)
        return Listing(node, [(b"file", FILE)], 60)

    def statfs(self, node: int) -> tuple[int, int, int, int, int]:
        self._called("statfs", node)
        return (1 << 64) - 1, 9, 65536, 255, 4096

    def getxattr(self, node: int, name: bytes) -> bytes:
        self._called("getxattr", node, name)
        return b"value"

    def listxattr(self, node: int, uid: int) -> tuple[list[bytes], bool]:
        self._called("listxattr", node, uid)
        return [b"user.a", b"user.b"], node == 7

    def open(self, node: int) -> tuple[bool, int | None]:
        self._called("open", node)
        return {7: (True, 12), 8: (True, None)}.get(node, (False, None))

    def release(self, node: int) -> None:
        self._called("release", node)

    def read(self, node: int, file_offset: int, size: int) -> list[bytes | memoryview]:
        self._called("read", node, file_offset, size)
        return self.pieces

    def seek(self, node: int, file_offset: int, whence: int) -> int:
        self._called("seek", node, file_offset, whence)
        return 1 << 62

    def lasts(self, node: int) -> bool:
        return node in (7, 8)

    def failed(self, operation: str, error: BaseException, answer_again: Callable[[], None]) -> int | None:
        self.calls.append(("failed", operation))
        if isinstance(error, BlockingIOError):
            self.parked.append(answer_again)
            return None
        return error.errno if isinstance(error, OSError) else errno.EIO

    def refused(self, number: int) -> None:
        self.refusals.append(number)


@pytest.fixture
def handlers() -> Handlers:
    return Handlers()


@pytest.fixture
def device(handlers: Handlers) -> Iterator[Device]:
    made = Device(handlers=handlers, replies=ReplyCache(1 << 16))
    yield made
    made.close()


def xattr(capacity: int, name: bytes = b"") -> bytes:
    return struct.pack("<II", capacity, 0) + name


def from_user(message: bytes, uid: int) -> bytes:
    return message[:24] + struct.pack("<I", uid) + message[28:]


def test_lookup(device: Device, handlers: Handlers) -> None:
    entry = ENTRY.pack(7, 0, 60, 60, 0, 0) + FILE_ATTRIBUTES
    assert device.ask(from_user(request(LOOKUP, 3, b"file\0"), 1000)) == reply(entry)
    absent = ENTRY.pack(0, 0, 30, 0, 0, 0) + bytes(ATTRIBUTES.size)
    assert device.ask(request(LOOKUP, 3, b"n" * 300 + b"\0")) == reply(absent)
    assert handlers.calls == [("lookup", 3, b"file", 1000), ("lookup", 3, b"n" * 300, 0)]


@pytest.mark.parametrize(
    ("opcode", "body", "call", "content"),
    [
        (GETATTR, bytes(16), ("getattr", 7), struct.pack("<QII", 60, 0, 0) + FILE_ATTRIBUTES),
        (READLINK, b"", ("readlink", 7), b"target"),
        (STATFS, b"", ("statfs", 7), struct.pack("<5Q4I24x", (1 << 64) - 1, 0, 0, 9, 0, 65536, 255, 4096, 0)),
        (GETXATTR, xattr(5, b"user.a\0"), ("getxattr", 7, b"user.a"), b"value"),
        (GETXATTR, xattr(0, b"user.a\0"), ("getxattr", 7, b"user.a"), struct.pack("<II", 5, 0)),
        (LISTXATTR, xattr(14), ("listxattr", 7, 0), b"user.a\0user.b\0"),
        (LISTXATTR, xattr(0), ("listxattr", 7, 0), struct.pack("<II", 14, 0)),
    ],
)
def test_replies_that_last_are_cached(
    device: Device, handlers: Handlers, opcode: int, body: bytes, call: tuple[object, ...], content: bytes
) -> None:
    for unique in (5, 6):
        assert device.ask(request(opcode, 7, body, unique)) == reply(content, unique)
    assert handlers.calls == [call]
    for _ in range(2):
        assert device.ask(request(opcode, 9, body)) == reply(content)
    assert len(handlers.calls) == 3


def test_names_that_not_all_users_see_are_not_cached(device: Device, handlers: Handlers) -> None:
    for uid in (0, 1000):
        assert device.ask(from_user(request(LISTXATTR, 8, xattr(100)), uid)) == reply(b"user.a\0user.b\0")
    assert handlers.calls == [("listxattr", 8, 0), ("listxattr", 8, 1000)]


def test_extended_attributes_larger_than_the_buffer(device: Device, handlers: Handlers) -> None:
    for message in (request(GETXATTR, 7, xattr(4, b"user.a\0")), request(LISTXATTR, 7, xattr(13))):
        assert device.ask(message) == reply(b"", error=-errno.ERANGE)


def test_contents(device: Device, handlers: Handlers) -> None:
    assert device.ask(request(READ, 7, READ_BODY.pack(0, 1 << 40, 5, 0, 0, 0, 0))) == reply(b"abcde")
    handlers.pieces = [b"%04d" % number for number in range(5000)]  # more than one writev takes
    expected = b"".join(handlers.pieces)
    assert device.ask(request(READ, 7, READ_BODY.pack(0, 0, 20_000, 0, 0, 0, 0))) == reply(expected)
    assert device.ask(request(LSEEK, 7, struct.pack("<QQII", 0, 9, 3, 0))) == reply(struct.pack("<Q", 1 << 62))
    assert handlers.calls == [("read", 7, 1 << 40, 5), ("read", 7, 0, 20_000), ("seek", 7, 9, 3)]


def test_listings_continue_at_any_position(device: Device) -> None:
    expected = Listing(2, [(b"file", FILE)], 60)
    for position in range(4):
        for capacity in (100, 300, 4096):
            answer = device.ask(request(READDIRPLUS, 2, READ_BODY.pack(0, position, capacity, 0, 0, 0, 0)))
            assert answer == reply(expected.pack(position, capacity))


def test_open_and_release(device: Device, handlers: Handlers) -> None:
    """Files are counted if they have a backing file, or may get one; the kernel sends RELEASE for these only."""
    keep_cache, no_flush, passthrough = 1 << 1, 1 << 5, 1 << 7
    expected = {7: (1, passthrough | no_flush, 12), 8: (1, keep_cache | no_flush, 0), 9: (0, keep_cache | no_flush, 0)}
    for node, fields in expected.items():
        assert device.ask(request(OPEN, node, bytes(8))) == reply(struct.pack("<QIi", *fields))
    for handle in (0, 1):
        assert device.ask(request(RELEASE, 7, struct.pack("<QIIQ", handle, 0, 0, 0))) == reply(b"")
    assert handlers.calls == [("open", 7), ("open", 8), ("open", 9), ("release", 7)]


def test_requests_without_a_handler(device: Device, handlers: Handlers) -> None:
    assert device.ask(request(DESTROY, 0)) == reply(b"")
    for opcode in (OPENDIR, 99, 0):
        assert device.ask(request(opcode, 7, bytes(8))) == reply(b"", error=-errno.ENOSYS)
    assert handlers.calls == []


def test_errors(device: Device, handlers: Handlers) -> None:
    for error, number in ((OSError(errno.ESTALE, ""), errno.ESTALE), (ValueError(), errno.EIO)):
        handlers.error = error
        for node in (7, 7):
            assert device.ask(request(GETATTR, node)) == reply(b"", error=-number)
    assert handlers.calls == [("getattr", 7), ("failed", "getattr")] * 4


def test_absent_attributes_are_cached(device: Device, handlers: Handlers) -> None:
    handlers.error = OSError(errno.ENODATA, "")
    for _ in range(3):
        assert device.ask(request(GETXATTR, 7, xattr(9, b"user.x\0"))) == reply(b"", error=-errno.ENODATA)
    assert len(handlers.calls) == 2


@pytest.mark.parametrize("opcode", [READ, RELEASE, GETXATTR, LISTXATTR, READDIRPLUS, LSEEK])
def test_requests_that_are_too_short(device: Device, handlers: Handlers, opcode: int) -> None:
    assert device.ask(request(opcode, 7, b"\0")) == reply(b"", error=-errno.EIO)
    assert [name for name, *_ in handlers.calls] == ["failed"]


def test_handlers_that_return_nonsense(device: Device, handlers: Handlers) -> None:
    handlers.pieces = ["text"]  # type: ignore[list-item]
    assert device.ask(request(READ, 7, READ_BODY.pack(0, 0, 5, 0, 0, 0, 0))) == reply(b"", error=-errno.EIO)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def park(device: Device, handlers: Handlers, unique: int) -> None:
    """Sends a request that has to wait."""
    before = len(handlers.parked)
    handlers.error = BlockingIOError()
    device.kernel.send(request(READLINK, 9, b"", unique))
    wait_for(lambda: len(handlers.parked) > before)
    handlers.error = None


def test_parked_requests_are_answered_once(device: Device, handlers: Handlers) -> None:
    park(device, handlers, 20)
    park(device, handlers, 21)
    assert device.ask(request(READLINK, 9, b"", 22)) == reply(b"target", 22)
    for _ in range(2):  # the second call comes too late
        for answer_again in reversed(handlers.parked):
            answer_again()
    assert [device.kernel.recv(100), device.kernel.recv(100)] == [reply(b"target", 21), reply(b"target", 20)]
    assert device.ask(request(READLINK, 9, b"", 23)) == reply(b"target", 23)


def test_a_request_that_can_be_answered_at_once_after_all(device: Device, handlers: Handlers) -> None:
    """`failed` may call `answer_again` before it returns."""

    def failed(_operation: str, _error: BaseException, answer_again: Callable[[], None]) -> None:
        handlers.error = None
        answer_again()

    handlers.failed = failed  # type: ignore[method-assign]
    handlers.error = BlockingIOError()
    assert device.ask(request(READLINK, 9, b"", 20)) == reply(b"target", 20)


def test_interrupted_requests(device: Device, handlers: Handlers) -> None:
    """INTERRUPT has no reply of its own, and does nothing to requests that are not parked."""
    park(device, handlers, 20)
    device.kernel.send(request(INTERRUPT, 0, struct.pack("<Q", 99), 21))
    device.kernel.send(request(INTERRUPT, 0, b"short", 21))
    assert device.ask(request(INTERRUPT, 0, struct.pack("<Q", 20), 21)) == reply(b"", 20, -errno.EINTR)
    handlers.parked[0]()
    assert device.ask(request(READLINK, 9, b"", 23)) == reply(b"target", 23)


def test_nothing_is_answered_after_the_end(device: Device, handlers: Handlers) -> None:
    park(device, handlers, 20)
    device.server.close()
    handlers.parked[0]()
    assert device.ask(request(READLINK, 9, b"", 23)) == reply(b"target", 23)


def test_replies_that_the_kernel_refuses(handlers: Handlers) -> None:
    reading, writing = os.pipe()
    device = Device(handlers=handlers, descriptor=reading)
    os.write(writing, request(READLINK, 9))
    wait_for(lambda: bool(handlers.refusals))
    os.close(writing)
    device.close()
    os.close(reading)
    assert handlers.refusals == [errno.EBADF]


# INIT

INIT_EXT, PASSTHROUGH, READDIRPLUS_FEATURE, ACLS, UNKNOWN = 1 << 30, 1 << 37, 1 << 13, 1 << 20, 1 << 40
INIT = struct.Struct("<IIIII44x")
INIT_REPLY = struct.Struct("<4IHHIIHHII24x")


def negotiate(
    body: bytes, *, wants_passthrough: bool = False, wants_acls: bool = False
) -> tuple[tuple[bool, bool], tuple[int, ...]]:
    """Returns what answer_init returns, and the fields of its reply."""
    kernel, daemon = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with kernel, daemon:
        kernel.send(HEADER.pack(HEADER.size + len(body), 26, 77, 0, 0, 0, 0, 0, 0) + body)
        supported = answer_init(daemon.fileno(), wants_passthrough, wants_acls)
        answer = kernel.recv(1000)
    fields = INIT_REPLY.unpack(answer[16:])
    assert answer == reply(INIT_REPLY.pack(*fields), 77)
    return supported, fields


def test_features_negotiated_with_the_kernel() -> None:
    offered = READDIRPLUS_FEATURE | INIT_EXT | PASSTHROUGH | UNKNOWN
    body = INIT.pack(7, 45, 131072, offered & 0xFFFFFFFF, offered >> 32)
    limits = (64, 48, 1 << 20, 1, (1 << 20) // os.sysconf("SC_PAGE_SIZE"), 0)
    supported, fields = negotiate(body, wants_passthrough=True)
    assert supported == (True, False)
    assert fields == (7, 40, 131072, READDIRPLUS_FEATURE | INIT_EXT, *limits, PASSTHROUGH >> 32, 1)
    supported, fields = negotiate(body)
    assert supported == (False, False)
    assert fields == (7, 40, 131072, READDIRPLUS_FEATURE | INIT_EXT, *limits, 0, 0)


def test_features_of_older_kernels() -> None:
    """Bits of features are only read where the kernel says that it has them."""
    body = INIT.pack(7, 45, 131072, READDIRPLUS_FEATURE, PASSTHROUGH >> 32)
    for message in (body, body[:16]):
        supported, fields = negotiate(message, wants_passthrough=True, wants_acls=True)
        assert supported == (False, False)
        assert fields[3] == READDIRPLUS_FEATURE
        assert fields[-2:] == (0, 0)


@pytest.mark.parametrize("wants_acls", [False, True])
def test_acls_are_applied_only_if_wanted(wants_acls: bool) -> None:
    """The flag makes the kernel check permissions, so a mount without allow_other must not set it."""
    supported, fields = negotiate(INIT.pack(7, 26, 131072, READDIRPLUS_FEATURE | ACLS, 0), wants_acls=wants_acls)
    assert supported == (False, wants_acls)
    assert fields[3] == READDIRPLUS_FEATURE | (ACLS if wants_acls else 0)


@pytest.mark.parametrize("version", [(6, 40), (8, 1), (7, 22)])
def test_other_protocols_are_refused(version: tuple[int, int]) -> None:
    with pytest.raises(RuntimeError, match="version"):
        negotiate(INIT.pack(*version, 0, 0, 0))


def test_a_first_request_that_is_not_init() -> None:
    with pytest.raises(RuntimeError, match="not INIT"):
        negotiate(b"short")
    with pytest.raises(OSError, match="Bad file descriptor"):
        answer_init(-1, False, False)


def test_threads_share_the_parked_requests(handlers: Handlers) -> None:
    device = Device(handlers=handlers, num_threads=3)
    for unique in range(20, 60):
        park(device, handlers, unique)
    threads = [threading.Thread(target=answer_again) for answer_again in handlers.parked for _ in range(2)]
    for thread in threads:
        thread.start()
    answers = {device.kernel.recv(100) for _ in range(20, 60)}
    for thread in threads:
        thread.join()
    device.close()
    assert answers == {reply(b"target", unique) for unique in range(20, 60)}
