"""Puts `tools` in reach of a script that runs under Belljar.

Python imports this file at every start, so it does next to nothing: the client
itself (belljar_tools) is imported when a tool is called for the first time.
"""

import _thread
import builtins
import os


class _Tools:
    """Stands for the real `tools` until it is used."""

    __slots__ = ()

    def __getattr__(self, name):
        if name[:2] == "__":
            raise AttributeError(name)
        return getattr(_load(), name)

    def __call__(*args, **arguments):
        return _load()(*args[1:], **arguments)

    def __dir__(self):
        return dir(_load())

    def __repr__(self):
        return repr(_load())

    def __reduce__(self):
        return "tools"


# A fork in the middle of an import by another thread leaves the child with a
# module that nobody will ever finish: it waits until the import is done.
_importing = _thread.RLock()
os.register_at_fork(before=_importing.acquire, after_in_parent=_importing.release, after_in_child=_importing.release)


def _load():
    with _importing:
        from belljar_tools import tools as real
    if builtins.tools is tools:
        builtins.tools = real
    return real


# The inode of the bridge's socket, descriptor 3 of the program: by it the client
# knows the bridge from what may be open under that number later. None in a
# program that did not get it.
bridge = None
try:
    _stat = os.fstat(3)
    if _stat.st_mode & 0o170000 == 0o140000:
        bridge = _stat.st_ino
        os.set_inheritable(3, False)  # the bridge is not for programs that the script starts
except OSError:
    pass

tools = builtins.tools = _Tools()


def _environments_own():
    """Runs the sitecustomize of the interpreter's own packages, which ours hides."""
    import sys

    ours = sys.modules.get(__name__)
    here = os.path.dirname(__file__)
    path = sys.path[:]
    sys.path[:] = [entry for entry in path if entry != here]
    sys.modules.pop(__name__, None)
    try:
        import sitecustomize  # noqa: F401
    except Exception as error:  # as Python itself treats one that fails
        if not (isinstance(error, ImportError) and error.name == "sitecustomize"):
            sys.stderr.write("Error in sitecustomize; set PYTHONVERBOSE for traceback:\n%s: %s\n" % (type(error).__name__, error))
    finally:
        added = [entry for entry in sys.path if entry not in path]
        sys.path[:] = path + added
        sys.modules[__name__] = ours


_environments_own()
