"""Becomes a program that the kernel refuses some system calls, as another host would.

    python deny.py CALL[=MASK]:ERROR … -- PROGRAM WORDS…

CALL is a number; with a mask the call is refused if one of these bits is in its first argument, or,
for prctl, if that argument is the number. Like the kernel of another machine it is not asked twice:
the program's children have it too.
"""

import ctypes
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, MODE_FILTER = 38, 22, 2
LOAD, EQUAL, ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06
NUMBER, FIRST_ARGUMENT = 0, 16
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
PRCTL = 157


def instructions(call, mask, error):
    """Refuses one call, or falls through to what comes next."""
    refuse = (RETURN, 0, 0, ERRNO | error)
    if mask is None:
        return [(LOAD, 0, 0, NUMBER), (EQUAL, 0, 1, call), refuse]
    test = EQUAL if call == PRCTL else ANY_BIT
    return [(LOAD, 0, 0, NUMBER), (EQUAL, 0, 3, call), (LOAD, 0, 0, FIRST_ARGUMENT),
            (test, 0, 1, mask), refuse]


def refuse(rules):
    code = [one for rule in rules for one in instructions(*rule)] + [(RETURN, 0, 0, ALLOW)]
    filters = b"".join(struct.pack("HBBI", *one) for one in code)
    held = ctypes.create_string_buffer(filters, len(filters))
    program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(held))
    libc = ctypes.CDLL(None, use_errno=True)
    root = os.geteuid() == 0
    if not root and libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs")
    if libc.prctl(PR_SET_SECCOMP, MODE_FILTER, ctypes.c_char_p(program), 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


def rule(word):
    call, _, error = word.partition(":")
    call, _, mask = call.partition("=")
    return int(call), int(mask, 0) if mask else None, int(error)


def main():
    split = sys.argv.index("--")
    refuse([rule(word) for word in sys.argv[1:split]])
    os.execvp(sys.argv[split + 1], sys.argv[split + 1:])


if __name__ == "__main__":
    main()
