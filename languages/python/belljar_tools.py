"""Calls the tools of this run.

    tools.read_file(path="a.txt")        # a name, arguments by keyword
    tools("read_file", path="a.txt")     # the same, for a name that is computed
    from belljar_tools import read_file

A text answer is a str, a structured one its value, an image or file bytes. A
call that fails raises ToolError (a RuntimeError) with .tool, .reason, .denied
and .code. Threads and forked processes may call at the same time.

How it works: the host's bridge package draws the wire. Each process has a
stream of its own, asked for on descriptor 3. Whoever waits for an answer reads
the stream, one thread at a time, and hands the others theirs. An exception in
the middle of a call (KeyboardInterrupt, a signal handler that raises) leaves
the stream in order: what was read is kept in a single attribute that is
replaced in one step, and a call cut off while writing retires its stream.
"""

import os
import sys
from _signal import SIG_BLOCK, SIG_SETMASK, pthread_sigmask, valid_signals
from _thread import RLock, allocate_lock, get_ident
from _socket import (
    AF_UNIX,
    CMSG_LEN,
    MSG_CMSG_CLOEXEC,
    MSG_NOSIGNAL,
    MSG_WAITALL,
    SO_DOMAIN,
    SO_TYPE,
    SOCK_SEQPACKET,
    SOCK_STREAM,
    SOL_SOCKET,
    socket,
)

__all__ = ["ToolError", "tools"]


class ToolError(RuntimeError):
    """A tool call that failed. The message is the reason.

    tool    name of the tool
    reason  why, in a sentence
    denied  True when policy refused the call
    code    stable word for the reason: unknown_tool, fence, failed, closed ...
    """

    def __init__(self, reason, tool="", denied=False, code="failed"):
        super().__init__(reason)
        self.reason = reason
        self.tool = tool
        self.denied = denied
        self.code = code

    def __reduce__(self):
        return ToolError, (self.reason, self.tool, self.denied, self.code)


# JSON. Importing json costs as much as a hundred calls; its C parts are enough.


def _refuse(value):
    raise TypeError(
        "%s is not a value that tools take: pass str, int, float, bool, None, list or dict"
        % type(value).__name__
    )


try:
    from _json import encode_basestring, make_encoder, make_scanner

    class _Plain:
        strict = True
        object_hook = object_pairs_hook = None
        parse_float = float
        parse_int = int
        parse_constant = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}.get

    _chunks = make_encoder(None, _refuse, encode_basestring, None, ":", ",", False, False, False)
    _scan = make_scanner(_Plain)

    def _encode(value):
        return "".join(_chunks(value, 0))

    def _decode(text):
        text = text.strip(" \t\r\n")
        try:
            value, end = _scan(text, 0)
            if end == len(text):
                return value
        except (ValueError, StopIteration, SystemError):
            pass
        from json import loads  # to say what is wrong it needs the whole package

        return loads(text)

    _decode('{"a":[1,2.5,"x",null,true]}'), _encode({"a": [1, 2.5, "x", None, True]})
except Exception:  # another Python, other insides
    import json

    _encode = json.JSONEncoder(
        ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":"), default=_refuse
    ).encode
    _decode = json.loads


def _arguments(tool, arguments):
    """Arguments as bytes, or the TypeError or ValueError that says why not."""
    try:
        return _encode(arguments).encode()
    except UnicodeEncodeError as e:
        wrong = ValueError("tools.%s: %r in a text is half a character (a surrogate)" % (tool, e.object[e.start]))
    except RecursionError:
        wrong = ValueError("tools.%s: the arguments are nested too deep, or contain themselves" % tool)
    except TypeError as e:
        wrong = TypeError("tools.%s: %s" % (tool, e))
    except ValueError as e:
        wrong = ValueError("tools.%s: %s" % (tool, e))
    raise wrong from None


# The stream.

_HEAD = 9  # u32 length, u32 id, u8 kind
_TEXT, _JSON, _BYTES, _ERROR = 2, 3, 4, 5
_ROOM = 64 << 10  # the buffer that every answer is read into
_MOST = 1 << 20  # what it may grow to; a larger answer gets its own
_EMFILE = 24
_LOST = 9, 32, 88, 104, 107  # EBADF EPIPE ENOTSOCK ECONNRESET ENOTCONN


class _Closed(Exception):
    """The host ended the stream."""


class _Stream:
    """The stream of this process."""

    sock = None

    def __init__(self, fd):
        self.sock = socket(AF_UNIX, SOCK_STREAM, 0, fd)
        self.sock.settimeout(None)  # whatever socket.setdefaulttimeout says
        # Before 3.10 an exception can leave a "with" without releasing: RLocks, so
        # that a thread at least never waits for itself.
        self.writing = RLock()
        self.mutex = RLock()  # guards leader, and who sleeps
        self.leader = None  # the slot of the thread that reads
        self.slots = {}  # id: [answer or None, lock to sleep on or None]
        self.last = 0  # id of the last call
        self.inside = set()  # threads that are in a call
        self.retired = False  # takes no more calls
        # What was read: the buffer, where in it the next frame starts, the bytes
        # received, to be added up, and a second buffer. recv_into adds to the list
        # without a step of the interpreter in between, so no signal can come
        # between the two.
        self.state = memoryview(bytearray(_ROOM)), 0, [], None

    def __del__(self):
        if self.sock is not None:
            self.sock.close()

    def call(self, tool, name, body):
        me = get_ident()
        slot = [None, None]
        number = None
        sent = False
        try:
            self.inside.add(me)
            with self.writing:
                number = self.last = (self.last + 1) & 0xFFFFFFFF
                self.slots[number] = slot
                size = 1 + len(name) + len(body)
                head = b"%b%b\x01%b%b" % (
                    size.to_bytes(4, "little"),
                    number.to_bytes(4, "little"),
                    len(name).to_bytes(1, "little"),
                    name,
                )
                if size < _ROOM:
                    self.sock.sendall(head + body, MSG_NOSIGNAL)
                else:
                    self.sock.sendall(head, MSG_NOSIGNAL)
                    self.sock.sendall(body, MSG_NOSIGNAL)
                sent = True
            while slot[0] is None:
                with self.mutex:
                    if slot[0] is not None:
                        break
                    if self.leader is None:
                        self.leader = slot
                    elif slot[1] is None:
                        slot[1] = allocate_lock()
                        slot[1].acquire()
                if self.leader is slot:
                    self.read(slot)
                else:
                    slot[1].acquire()  # until there is an answer, or nobody reads
        except _Closed:
            pass
        except OSError as e:
            if e.errno not in _LOST:  # a signal handler's own, TimeoutError for instance
                raise
        finally:
            try:  # first of all, and once more if it is interrupted
                self.leave(me, number, slot, sent)
            except BaseException:
                self.leave(me, number, slot, sent)
                raise
        if slot[0] is None:
            self.retired = True
            raise ToolError("the bridge to the tools is closed", tool, code="closed")
        return slot[0]

    def leave(self, me, number, slot, sent):
        """Ends a call, answered or not. An answer that comes later is dropped."""
        if not sent:
            self.retired = True  # half a frame may be out
        self.inside.discard(me)
        self.slots.pop(number, None)
        if self.leader is slot or self.leader is None:
            with self.mutex:
                if self.leader is slot:
                    self.leader = None
                if self.leader is None:
                    for other in list(self.slots.values()):
                        if other[1] is not None:
                            self.wake(other)
                            if other[0] is None:
                                break  # it reads now

    def wake(self, slot):
        # With mutex held. The lock is free when its owner was woken already.
        if slot[1] is not None and slot[1].locked():
            slot[1].release()

    def read(self, slot):
        """Reads answers, as the leader, until the one for slot is there."""
        recv_into = self.sock.recv_into
        while slot[0] is None:
            buf, start, got, spare = self.state
            end = sum(got)
            have = end - start
            need = _HEAD
            if have >= _HEAD:
                need += int.from_bytes(buf[start : start + 4], "little")
                if have >= need:
                    stop = start + need
                    self.deliver(
                        int.from_bytes(buf[start + 4 : start + 8], "little"), buf[start + 8], buf[start + _HEAD : stop]
                    )
                    if stop < end:
                        self.state = buf, stop, got, spare
                    elif len(buf) <= _MOST:
                        self.state = buf, 0, [], spare
                    else:
                        self.state = spare, 0, [], None
                    continue
            if start + need > len(buf):
                # Into another buffer, never within this one: until the new state
                # is set the old one has to stay true.
                into = spare
                if into is None or len(into) < need:
                    size = need if need > _MOST else max(_ROOM, 1 << (need - 1).bit_length())
                    into = memoryview(bytearray(size))
                into[:have] = buf[start:end]
                self.state = buf, start, got, spare = into, 0, [have], buf
                end = have
            if need - have > _ROOM // 4:
                got.extend(map(recv_into, (buf[end : start + need],), (0,), (MSG_WAITALL,)))
            else:
                got.extend(map(recv_into, (buf[end:],)))
            if got[-1] == 0:
                raise _Closed

    def deliver(self, number, kind, data):
        slot = self.slots.get(number)
        if slot is None:
            return  # of a call that was given up
        try:
            slot[0] = kind, bytes(data) if kind == _BYTES else str(data, "utf-8", "replace")
        except MemoryError:
            slot[0] = _ERROR, '{"reason":"there is not enough memory for the answer"}'
        if slot is not self.leader:
            with self.mutex:
                self.wake(slot)


_stream = None
_opening = RLock()


def _open(tool):
    """Asks the host for a stream, safe from signals: an answer must not get lost."""
    before = pthread_sigmask(SIG_BLOCK, ())
    try:
        pthread_sigmask(SIG_BLOCK, valid_signals())
        return _ask(tool)
    finally:
        pthread_sigmask(SIG_SETMASK, before)


def _ask(tool):
    inode = getattr(sys.modules.get("sitecustomize"), "bridge", 0)  # 0: not ours, it cannot tell
    control = None
    try:
        if inode is None or inode and os.fstat(3).st_ino != inode:
            raise OSError
        # On a copy, since a socket object closes what it holds.
        control = socket(AF_UNIX, SOCK_SEQPACKET, 0, os.dup(3))
        kind = control.getsockopt(SOL_SOCKET, SO_TYPE), control.getsockopt(SOL_SOCKET, SO_DOMAIN)
        if kind != (SOCK_SEQPACKET, AF_UNIX):
            raise OSError
    except OSError as e:
        if control is not None:
            control.close()
        if e.errno == _EMFILE:
            raise
        raise ToolError(
            "tools cannot be called in this process: only the script and the processes it forks can"
            " (with multiprocessing, use the 'fork' start method)",
            tool,
            code="no_bridge",
        ) from None
    try:
        control.settimeout(None)
        control.send(b"bj\x01\x01", MSG_NOSIGNAL)
        answer, rights, _, _ = control.recvmsg(4096, CMSG_LEN(4), MSG_CMSG_CLOEXEC)
    except OSError as e:
        if e.errno not in _LOST:
            raise
        answer, rights = b"", None
    finally:
        control.close()
    if rights:
        return _Stream(int.from_bytes(rights[0][2][:4], sys.byteorder))
    if answer == b"bj\x01\x01":  # and the descriptor had no room here
        raise OSError(_EMFILE, os.strerror(_EMFILE))
    if answer[:4] == b"bj\x01\x02":
        raise _error(tool, answer[4:].decode("utf-8", "replace"))
    raise ToolError("the bridge to the tools is closed", tool, code="closed")


def _call(tool, name, arguments):
    global _stream
    body = _arguments(tool, arguments)
    if len(name) > 255 or len(body) > 1 << 29:
        raise ToolError("the name or the arguments of this tool call are too long", tool[:255], code="too_large")
    stream = _stream
    if stream is None or stream.retired:
        with _opening:
            stream = _stream
            if stream is None or stream.retired:
                stream = _stream = _open(tool)
    elif get_ident() in stream.inside:
        # A call from within a call: a signal handler or a __del__ that calls a
        # tool. It may wait for nothing that its own thread holds.
        stream = _open(tool)
    kind, answer = stream.call(tool, name, body)
    if kind == _TEXT or kind == _BYTES:
        return answer
    if kind == _ERROR:
        raise _error(tool, answer)
    try:
        return _decode(answer)
    except ValueError:
        raise ToolError("tool '%s' answered what is not JSON" % tool, tool) from None


def _error(tool, body):
    told = _decode(body)
    return ToolError(told["reason"], told.get("tool") or tool, told.get("denied", False), told.get("code", "failed"))


def _after_fork():
    # The stream is the parent's: its frames and ours would mix. The locks may
    # have been held by threads that are not here.
    global _stream, _opening
    _opening = RLock()
    if _stream is not None:
        old, _stream = _stream, None
        old.sock.close()


os.register_at_fork(after_in_child=_after_fork)


# What scripts use.


class _Tool:
    """One tool. Calling it runs the tool outside of the sandbox."""

    def __init__(self, name):
        if not isinstance(name, str):
            raise TypeError("the name of a tool is a str, not %s" % type(name).__name__)
        self.__name__ = name
        self._wire = name.encode("utf-8", "replace")

    def __call__(*args, **arguments):
        self = args[0]
        if len(args) > 1:
            raise TypeError(
                "tools.%s takes keyword arguments only, as in tools.%s(key=value); a dict goes in as tools.%s(**dict)"
                % ((self.__name__,) * 3)
            )
        return _call(self.__name__, self._wire, arguments)

    def __repr__(self):
        return "<tool %s>" % self.__name__

    def __reduce__(self):
        return _Tool, (self.__name__,)


class _Tools:
    """tools.name(key=value) calls a tool, and so does tools("name", key=value)."""

    def __getattr__(self, name):
        if name[:2] == "__":
            raise AttributeError(name)
        tool = self.__dict__[name] = _Tool(name)
        return tool

    def __call__(*args, **arguments):
        if len(args) != 2:
            raise TypeError('tools takes one name and keyword arguments, as in tools("name", key=value)')
        return _Tool(args[1])(**arguments)

    def __repr__(self):
        return "<the tools of this run: tools.name(key=value)>"

    def __reduce__(self):
        return "tools"


tools = _Tools()
tools.ToolError = ToolError


def __getattr__(name):
    if name[:1] == "_":
        raise AttributeError("module 'belljar_tools' has no attribute %r" % name)
    return getattr(tools, name)
