"""Checks redis-py through the proxy: one line per check, see test/clients/doc.go."""

import os
import threading
import time

import redis
from redis.cache import CacheConfig

from checks import HOST, PORT, REDIS_PORT, RUN, Refused, ask_for_restart, equal, function_library, leave, report

PREFIX = "py:" + RUN + ":"


def connect(**options):
    return redis.Redis(host=HOST, port=PORT, **options)


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
    equal([bytes(v) for v in r.blpop([key], timeout=15)], [key.encode(), b"x"])
    equal(r.blpop([key], timeout=0.1), None)


def publish(r):
    with r.pubsub(ignore_subscribe_messages=True) as p:
        p.subscribe(PREFIX + "c")
        hears(r, p, PREFIX + "c", time.time() + 15)


def script(r):
    double = r.register_script("return tonumber(ARGV[1]) * 2")
    equal(double(args=[21]), 42)


def functions(r):
    library, text = function_library(r.client_info()["resp"])
    equal(r.function_load(text), library.encode())
    equal(r.fcall(library, 1, PREFIX + "f", "a"), [(PREFIX + "f").encode(), b"a"])
    equal(r.function_delete(library), True)


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


def caching(r):
    """Answers come from the client's memory until another client, directly connected, changes the value."""
    key, direct = PREFIX + "cached", redis.Redis(port=REDIS_PORT)
    direct.set(key, 1)
    try:
        redis.Redis(port=REDIS_PORT, protocol=3, cache_config=CacheConfig()).ping()
    except redis.ConnectionError as e:
        raise Refused(e)
    cached = connect(protocol=3, cache_config=CacheConfig())
    equal([cached.get(key), cached.get(key)], [b"1", b"1"])
    equal(cached.get_cache().size, 1)
    direct.set(key, 2)
    deadline = time.time() + 15
    while cached.get(key) != b"2":
        if time.time() > deadline:
            raise AssertionError("another client's SET was not seen")
        time.sleep(0.02)


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
    """The same client goes on after a restart of Redis, with what it had loaded gone, and so does a subscriber."""
    double = r.register_script("return tonumber(ARGV[1]) * 2")
    equal(double(args=[1]), 2)
    subscriber = r.pubsub(ignore_subscribe_messages=True)
    subscriber.subscribe(PREFIX + "r")
    hears(r, subscriber, PREFIX + "r", time.time() + 15)
    deadline = ask_for_restart()
    while True:
        try:
            equal(double(args=[21]), 42)
            break
        except redis.RedisError:
            if time.time() > deadline:
                raise
            time.sleep(0.05)
    hears(r, subscriber, PREFIX + "r", deadline)
    strings(r)
    blocking_pop(r)


def hears(r, subscriber, channel, deadline):
    """Publishes until the subscriber hears it. It connects anew by itself, and says so if it could not yet."""
    while time.time() < deadline:
        r.publish(channel, "hello")
        try:
            if subscriber.get_message(timeout=0.2):
                return
        except redis.ConnectionError:
            time.sleep(0.05)
    raise AssertionError("the subscriber hears nothing")


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


CHECKS = [strings, large_value, pipeline, transaction, optimistic_lock, blocking_pop, publish, script,
          cached_script, functions, streams, errors, databases, names, ownership, caching, restart]


def run(check, r, name):
    try:
        check(r)
        report(name, None)
    except Exception as e:
        report(name, e)


def main():
    """Everything with the library's defaults, and with the other protocol."""
    global PREFIX
    print("version", redis.__version__, flush=True)
    plain = connect()
    run(strings, plain, "default connect")
    default = int(plain.client_info()["resp"])
    for protocol, r in ((default, plain), (5 - default, connect(protocol=5 - default))):
        PREFIX += f"{protocol}:"
        for check in CHECKS:
            if check is not caching or protocol == 3:
                run(check, r, f"{check.__name__} resp{protocol}")
    leave()


main()
