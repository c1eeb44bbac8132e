"""Checks redis-py's asyncio side through the proxy: one line per check, see test/clients/doc.go."""

import asyncio
import time

import redis
import redis.asyncio

from checks import HOST, PORT, RUN, ask_for_restart, equal, function_library, leave, report

PREFIX = "aio:" + RUN + ":"


def connect(**options):
    return redis.asyncio.Redis(host=HOST, port=PORT, **options)


async def strings(r):
    key = PREFIX + "s"
    equal(await r.set(key, b"\x00\r\n\xff"), True)
    equal(await r.get(key), b"\x00\r\n\xff")
    equal(await r.get(key + "none"), None)


async def pipeline(r):
    async with r.pipeline(transaction=False) as p:
        for i in range(500):
            p.set(f"{PREFIX}p{i}", i)
            p.get(f"{PREFIX}p{i}")
        equal((await p.execute())[1::2], [str(i).encode() for i in range(500)])


async def transaction(r):
    key = PREFIX + "t"
    async with r.pipeline(transaction=True) as p:
        equal(await p.incr(key).incr(key).execute(), [1, 2])


async def optimistic_lock(r):
    key, other = PREFIX + "w", connect()
    await r.set(key, 1)
    async with r.pipeline() as p:
        await p.watch(key)
        await other.set(key, 2)
        p.multi()
        p.set(key, 3)
        try:
            await p.execute()
            raise AssertionError("a lost WATCH went unnoticed")
        except redis.WatchError:
            pass
    equal(await r.get(key), b"2")
    await other.aclose()


async def script(r):
    double = r.register_script("return tonumber(ARGV[1]) * 2")
    equal(await double(args=[21]), 42)
    equal(await double(args=[4]), 8)


async def functions(r):
    library, text = function_library("_aio" + str((await r.client_info())["resp"]))
    equal(await r.function_load(text), library.encode())
    equal(await r.fcall(library, 1, PREFIX + "f", "a"), [(PREFIX + "f").encode(), b"a"])
    equal(await r.function_delete(library), True)


async def blocking_pop(r):
    """Many wait at a time, each on a connection of the pool, and one client wakes them."""
    keys = [f"{PREFIX}b{i}" for i in range(20)]
    waiting = [asyncio.create_task(r.blpop([key], timeout=15)) for key in keys]
    await asyncio.sleep(0.2)
    for key in keys:
        await r.rpush(key, key)
    for key, reply in zip(keys, await asyncio.gather(*waiting)):
        equal([bytes(v) for v in reply], [key.encode(), key.encode()])
    equal(await r.blpop([keys[0]], timeout=0.1), None)


async def publish(r):
    channel, got, deadline = PREFIX + "c", None, time.time() + 15
    async with r.pubsub(ignore_subscribe_messages=True) as p:
        await p.subscribe(channel)
        while got is None and time.time() < deadline:
            await r.publish(channel, "hello")
            got = await p.get_message(timeout=0.2)
    equal(got and got["data"], b"hello")


async def streams(r):
    key = PREFIX + "x"
    await r.xgroup_create(key, "g", id="$", mkstream=True)
    entry = await r.xadd(key, {"a": "1"})
    reply = await r.xreadgroup("g", "c", {key: ">"}, count=10, block=1000)
    entries = reply[key.encode()][0] if isinstance(reply, dict) else reply[0][1]
    equal(entries[0][0], entry)
    equal(await r.xack(key, "g", entry), 1)


async def errors(r):
    key = PREFIX + "e"
    await r.set(key, "text")
    try:
        await r.incr(key)
        raise AssertionError("INCR of a text succeeded")
    except redis.ResponseError as e:
        equal(str(e), "value is not an integer or out of range")


async def databases(r):
    key, three = PREFIX + "d", connect(db=3)
    await three.set(key, "three")
    equal([await three.get(key), await r.get(key)], [b"three", None])
    await three.aclose()


async def ownership(r):
    async def work(number):
        for i in range(50):
            await r.set(f"{PREFIX}o{number}", f"{number}:{i}")
            equal(await r.get(f"{PREFIX}o{number}"), f"{number}:{i}".encode())

    await asyncio.gather(*(work(n) for n in range(40)))


async def cancelled(r):
    """A task that is cancelled while its command is under way leaves nothing for the next one."""
    key = PREFIX + "cancelled"
    for _ in range(20):
        task = asyncio.create_task(r.blpop([key], timeout=15))
        await asyncio.sleep(0.005)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await r.set(key + "s", "v")
        equal(await r.get(key + "s"), b"v")


async def restart(r):
    """The same client goes on after a restart of Redis."""
    deadline = await asyncio.to_thread(ask_for_restart)
    while True:
        try:
            await strings(r)
            break
        except redis.RedisError:
            if time.time() > deadline:
                raise
            await asyncio.sleep(0.05)
    await blocking_pop(r)
    await script(r)


CHECKS = [strings, pipeline, transaction, optimistic_lock, script, functions, blocking_pop, publish, streams,
          errors, databases, ownership, cancelled, restart]


async def run(check, r, name):
    try:
        await check(r)
        report(name, None)
    except Exception as e:
        report(name, e)


async def main():
    """Everything with the library's defaults, and with the other protocol."""
    global PREFIX
    print("version", redis.__version__, flush=True)
    plain = connect()
    await run(strings, plain, "default connect")
    default = int((await plain.client_info())["resp"])
    for protocol, r in ((default, plain), (5 - default, connect(protocol=5 - default))):
        PREFIX += f"{protocol}:"
        for check in CHECKS:
            await run(check, r, f"{check.__name__} resp{protocol}")
        await r.aclose()


asyncio.run(main())
leave()
