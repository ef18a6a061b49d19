"""Two files change places in one step, where the system can do that: neither name is ever without a file."""

import ctypes
import errno
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

AT_FDCWD = -100
RENAME_EXCHANGE = 2  # Linux
RENAME_SWAP = 2  # macOS

_CANT = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}


def exchange(first: Path, second: Path) -> bool:
    """Swap two files; False where the system or the file system can't. Raises OSError if one of them is missing."""
    libc = _libc()
    names = os.fsencode(first), os.fsencode(second)
    if hasattr(libc, "renameat2"):
        failed = libc.renameat2(AT_FDCWD, names[0], AT_FDCWD, names[1], ctypes.c_uint(RENAME_EXCHANGE))
    elif sys.platform == "darwin" and hasattr(libc, "renamex_np"):
        failed = libc.renamex_np(*names, ctypes.c_uint(RENAME_SWAP))
    else:
        return False
    if not failed:
        return True
    code = ctypes.get_errno()
    if code in _CANT:
        return False
    raise OSError(code, os.strerror(code), str(first), None, str(second))


@cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)
