"""Shared by the checks of redis-py, blocking and asyncio: where to connect, and a line for each check."""

import os
import sys
import time
import uuid

HOST, PORT = os.environ["PROXY_HOST"], int(os.environ["PROXY_PORT"])
REDIS_PORT = int(os.environ["REDIS_PORT"])  # of the server itself
RUN = uuid.uuid4().hex

FAULTS = []


class Refused(Exception):
    """The library does not offer this with the server, directly connected or not."""


def equal(got, want):
    if got != want:
        raise AssertionError(f"got {got!r}, want {want!r}")


def report(name, fault):
    """Prints what became of a check; a fault is a line, and the next check goes on."""
    why = f" # {type(fault).__name__}: {fault}".replace("\n", " ")
    if fault is None:
        print(f"ok {name}", flush=True)
    elif isinstance(fault, Refused):
        print(f"refused {name}{why}", flush=True)
    else:
        FAULTS.append(name)
        print(f"failed {name}{why}", flush=True)


def leave():
    sys.exit(1 if FAULTS else 0)


def function_library(protocol):
    """A library with a function of the same name, which returns its first key and argument."""
    name = f"py{protocol}_{RUN}"
    return name, f"#!lua name={name}\nredis.register_function('{name}', function(k, a) return {{k[1], a[1]}} end)"


def ask_for_restart():
    """Has the server restarted and returns when it was; the deadline for being back is returned."""
    print("restart", flush=True)
    sys.stdin.readline()
    return time.time() + 20
