"""Run a command where user namespaces are forbidden, as in a default container.

``python forbid_namespaces.py COMMAND…``: a seccomp filter, which everything the command starts
inherits, answers EPERM to new user namespaces and ENOSYS to clone3 (its flags lie in memory; the C
library falls back to clone).
"""

import ctypes
import errno
import os
import platform
import struct
import sys

# audit architecture, then the numbers of unshare, clone, clone3
_NUMBERS = {"x86_64": (0xC000003E, 272, 56, 435), "aarch64": (0xC00000B7, 97, 220, 435)}
_CLONE_NEWUSER = 0x10000000
_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _ARCH, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _MODE_FILTER = 38, 22, 2


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def main() -> None:
    arch, unshare, clone, clone3 = _NUMBERS[platform.machine()]
    steps = [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 0, 6, arch),
        (_LOAD, 0, 0, _NUMBER),
        (_EQUAL, 5, 0, clone3),
        (_EQUAL, 1, 0, unshare),
        (_EQUAL, 0, 2, clone),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_ANY_BIT, 2, 0, _CLONE_NEWUSER),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
    ]
    code = b"".join(struct.pack("=HBBI", *step) for step in steps)
    libc = ctypes.CDLL(None, use_errno=True)
    program = _Program(len(steps), code)
    for arguments in (
        (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program)),
    ):
        if libc.prctl(*arguments):
            raise OSError(ctypes.get_errno(), "the filter was not accepted")
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
