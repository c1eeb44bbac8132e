"""Checks redis-py through the proxy: one line per check, see test/clients/doc.go."""

import os
import sys
import threading
import time
import uuid

import redis

HOST, PORT = os.environ["PROXY_HOST"], int(os.environ["PROXY_PORT"])
PREFIX = "py:" + uuid.uuid4().hex + ":"


def connect(**options):
    return redis.Redis(host=HOST, port=PORT, **options)


def equal(got, want):
    if got != want:
        raise AssertionError(f"got {got!r}, want {want!r}")


def strings(r):
    key = PREFIX + "s"
    equal(r.set(key, b"\x00\r\n\xff"), True)
    equal(r.get(key), b"\x00\r\n\xff")
    equal(r.get(key + "none"), None)
    equal(r.set(key, ""), True)
    equal(r.get(key), b"")


def large_value(r):
    value = os.urandom(3 << 20)
    r.set(PREFIX + "large", value)
    equal(r.get(PREFIX + "large"), value)


def pipeline(r):
    with r.pipeline(transaction=False) as p:
        for i in range(500):
            p.set(f"{PREFIX}p{i}", i)
            p.get(f"{PREFIX}p{i}")
        equal(p.execute()[1::2], [str(i).encode() for i in range(500)])


def transaction(r):
    key = PREFIX + "t"
    with r.pipeline(transaction=True) as p:
        equal(p.incr(key).incr(key).execute(), [1, 2])


def optimistic_lock(r):
    key, other = PREFIX + "w", connect()
    r.set(key, 1)
    with r.pipeline() as p:
        p.watch(key)
        other.set(key, 2)
        p.multi()
        p.set(key, 3)
        try:
            p.execute()
            raise AssertionError("a lost WATCH went unnoticed")
        except redis.WatchError:
            pass
    equal(r.get(key), b"2")


def blocking_pop(r):
    key = PREFIX + "b"
    threading.Timer(0.2, lambda: connect().rpush(key, "x")).start()
    equal([bytes(v) for v in r.blpop([key], timeout=5)], [key.encode(), b"x"])
    equal(r.blpop([key], timeout=1), None)


def publish(r):
    channel, got = PREFIX + "c", []
    with r.pubsub(ignore_subscribe_messages=True) as p:
        p.subscribe(channel)
        deadline = time.time() + 5
        while not got and time.time() < deadline:
            r.publish(channel, "hello")
            message = p.get_message(timeout=0.2)
            if message:
                got.append(message["data"])
    equal(got[:1], [b"hello"])


def script(r):
    double = r.register_script("return tonumber(ARGV[1]) * 2")
    equal(double(args=[21]), 42)


def streams(r):
    key = PREFIX + "x"
    r.xgroup_create(key, "g", id="$", mkstream=True)
    entry = r.xadd(key, {"a": "1"})
    reply = r.xreadgroup("g", "c", {key: ">"}, count=10, block=1000)
    entries = reply[key.encode()][0] if isinstance(reply, dict) else reply[0][1]
    equal(entries[0][0], entry)
    equal(r.xack(key, "g", entry), 1)
    equal(r.xpending(key, "g")["pending"], 0)
    if r.xreadgroup("g", "c", {key: ">"}, block=50):
        raise AssertionError("an empty stream returned an entry")


def errors(r):
    key = PREFIX + "e"
    r.set(key, "text")
    try:
        r.incr(key)
        raise AssertionError("INCR of a text succeeded")
    except redis.ResponseError as e:
        equal(str(e), "value is not an integer or out of range")


def databases(r):
    key, three = PREFIX + "d", connect(db=3)
    three.set(key, "three")
    equal(three.get(key), b"three")
    equal(r.get(key), None)


def names(r):
    named = connect(client_name="checker", single_connection_client=True)
    equal(named.client_getname() in ("checker", b"checker"), True)
    if named.client_id() == r.client_id():
        raise AssertionError("two clients have one id")


def cached_script(r):
    sha = r.script_load("return {KEYS[1], ARGV[1]}")
    equal(r.evalsha(sha, 1, "k", "a"), [b"k", b"a"])
    equal(r.script_exists(sha, "0" * 40), [True, False])


def restart(r):
    """The same client goes on after a restart of Redis, with what it had loaded gone."""
    double = r.register_script("return tonumber(ARGV[1]) * 2")
    equal(double(args=[1]), 2)
    print("restart", flush=True)
    sys.stdin.readline()
    deadline = time.time() + 15
    while True:
        try:
            equal(double(args=[21]), 42)
            break
        except redis.RedisError:
            if time.time() > deadline:
                raise
            time.sleep(0.05)
    strings(r)
    blocking_pop(r)


def ownership(_):
    faults = []

    def work(number):
        r = connect()
        for i in range(100):
            value = f"{number}:{i}"
            r.set(f"{PREFIX}o{number}", value)
            got = r.get(f"{PREFIX}o{number}")
            if got != value.encode():
                faults.append((value, got))

    workers = [threading.Thread(target=work, args=(n,)) for n in range(40)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    equal(faults, [])


CHECKS = [strings, large_value, pipeline, transaction, optimistic_lock, blocking_pop, publish,
          script, cached_script, streams, errors, databases, names, ownership, restart]


def main():
    failed = False
    for protocol in (2, 3):
        r = connect(protocol=protocol)
        for check in CHECKS:
            name = f"{check.__name__} resp{protocol}"
            try:
                check(r)
                print(f"ok {name}", flush=True)
            except Exception as e:  # every fault is a line; the next check goes on
                failed = True
                print(f"not ok {name} # {type(e).__name__}: {e}".replace("\n", " "))
        global PREFIX
        PREFIX += "3:"
    sys.exit(1 if failed else 0)


main()
