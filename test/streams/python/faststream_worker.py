"""A FastStream subscriber that takes over what others have abandoned, or its producer.

Usage: faststream_worker.py work|send URL CONSUMER FROM COUNT
Prints "ready", then "got N" for each message. See test/streams/libraries_test.go.
"""

import asyncio
import sys

from faststream import FastStream
from faststream.redis import RedisBroker, StreamSub

ROLE, URL, CONSUMER = sys.argv[1:4]
FROM, COUNT = map(int, sys.argv[4:6])

broker = RedisBroker(URL)
app = FastStream(broker)


@broker.subscriber(stream=StreamSub("f", group="workers", consumer=CONSUMER, min_idle_time=2000))
async def note(number: int) -> None:
    print(f"got {number}", flush=True)


@app.after_startup
async def ready():
    print("ready", flush=True)


async def send():
    async with RedisBroker(URL) as producer:
        for n in range(FROM, FROM + COUNT):
            await producer.publish(n, stream="f")


asyncio.run(send() if ROLE == "send" else app.run())
