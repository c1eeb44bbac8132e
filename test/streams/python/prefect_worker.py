"""A consumer of Prefect's messages over Redis, or its producer.

Usage: prefect_worker.py work|send URL CONSUMER FROM COUNT
Prints "ready", then "got N" for each message. See test/streams/libraries_test.go.
"""

import asyncio
import os
import sys
from datetime import timedelta

ROLE, URL, CONSUMER = sys.argv[1:4]
FROM, COUNT = map(int, sys.argv[4:6])

os.environ["PREFECT_REDIS_MESSAGING_URL"] = URL
os.environ["DO_NOT_TRACK"] = "1"

from prefect_redis.messaging import Cache, Consumer, Publisher  # noqa: E402, it reads the environment


async def note(message):
    print(f"got {message.data}", flush=True)


async def main():
    if ROLE == "send":
        async with Publisher("p", Cache()) as publisher:
            for n in range(FROM, FROM + COUNT):
                await publisher.publish_data(str(n), {})
        return
    consumer = Consumer("p", name=CONSUMER, group="workers", min_idle_time=timedelta(seconds=2))
    print("ready", flush=True)
    await consumer.run(note)


asyncio.run(main())
