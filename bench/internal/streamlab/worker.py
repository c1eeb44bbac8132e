"""A stream worker under measurement: taskiq-redis as installed, or with a listen() of ours.

Takes one JSON object as its only argument and prints one line per event, the first word being
what happened and the second the monotonic clock in nanoseconds, which all processes share:

    listening NS            startup is over, listen() begins
    read NS PASS ENTRIES    XREADGROUP returned; PASS is how long the worker had not been reading
    got NS PAYLOAD          listen() yielded a message
"""

import asyncio
import json
import os
import sys
import time

from redis.asyncio import Redis
from taskiq import AckableMessage
from taskiq_redis import RedisStreamBroker


def say(word, *rest):
    line = " ".join(str(part) for part in (word, time.monotonic_ns(), *rest)) + "\n"
    os.write(1, line.encode())


class Watched(Redis):
    """Tells of every read, and of the time since the one before."""

    returned = None

    async def xreadgroup(self, *args, **kwargs):
        before, asked = Watched.returned, time.monotonic_ns()
        reply = await super().xreadgroup(*args, **kwargs)
        Watched.returned = time.monotonic_ns()
        streams = reply.values() if isinstance(reply, dict) else [entries for _, entries in reply or ()]
        say("read", asked - before if before else 0, sum(len(entries) for entries in streams))
        return reply


class SplitBroker(RedisStreamBroker):
    """Reads and reclaims in two tasks, as issue 699 proposes."""

    every = 30.0  # seconds between two scans of whoever holds the lease

    def _message(self, stream, entry_id, fields):
        return AckableMessage(data=fields[b"data"], ack=self._ack_generator(id=entry_id, queue_name=stream))

    def _names(self):
        return [self.queue_name, *self.additional_streams]

    async def _read(self, redis, out):
        offsets = dict.fromkeys(self._names(), ">")
        while True:
            reply = await redis.xreadgroup(
                self.consumer_group_name, self.consumer_name, offsets, count=self.count, block=self.block
            )
            pairs = reply.items() if isinstance(reply, dict) else reply or ()
            for stream, entries in pairs:
                for entry_id, fields in entries:
                    await out.put(self._message(stream, entry_id, fields))

    async def _scan(self, redis, out):
        lease = f"split-reclaim:{self.consumer_group_name}"
        while True:
            mine = await redis.set(lease, self.consumer_name, nx=True, px=int(self.every * 1000))
            left = self._names() if mine else []
            while left:
                async with redis.pipeline(transaction=False) as batch:
                    for stream in left:
                        batch.xautoclaim(
                            stream,
                            self.consumer_group_name,
                            self.consumer_name,
                            min_idle_time=self.idle_timeout,
                            count=self.unacknowledged_batch_size,
                        )
                    replies = await batch.execute()
                full = []
                for stream, reply in zip(left, replies):
                    for entry_id, fields in reply[1]:
                        await out.put(self._message(stream, entry_id, fields))
                    if len(reply[1]) >= self.unacknowledged_batch_size:
                        full.append(stream)
                left = full
            await asyncio.sleep(self.every)

    async def listen(self):
        out = asyncio.Queue(maxsize=100)
        async with Watched(connection_pool=self.connection_pool) as redis:
            loops = [asyncio.create_task(loop(redis, out)) for loop in (self._read, self._scan)]
            try:
                while True:
                    message = asyncio.create_task(out.get())
                    done, _ = await asyncio.wait([message, *loops], return_when=asyncio.FIRST_COMPLETED)
                    if message not in done:
                        message.cancel()
                        next(iter(done)).result()  # a loop ends only by its error
                    yield message.result()
            finally:
                for loop in loops:
                    loop.cancel()



async def main(job):
    import taskiq_redis.redis_broker as module

    module.Redis = Watched  # listen() of the package looks it up there
    names = job["streams"]
    broker_class = SplitBroker if job["split"] else RedisStreamBroker
    broker = broker_class(
        job["url"],
        queue_name=names[0],
        additional_streams=dict.fromkeys(names[1:], ">"),
        consumer_group_name=job["group"],
        consumer_name=job["consumer"],
        consumer_id="0",
        xread_block=job["block"],
        xread_count=8,
        idle_timeout=job["idle"],
        unacknowledged_batch_size=5,
        unacknowledged_lock_timeout=60.0,
    )
    await broker.startup()
    acks = set()
    say("listening")
    async for message in broker.listen():
        say("got", message.data.decode())
        if job["ack"]:
            ack = asyncio.create_task(message.ack())
            acks.add(ack)
            ack.add_done_callback(acks.discard)


asyncio.run(main(json.loads(sys.argv[1])))
