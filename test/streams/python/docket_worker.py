"""A docket worker, or its producer.

Usage: docket_worker.py work|send URL CONSUMER FROM COUNT
Prints "ready", then "got N" for each task. See test/streams/libraries_test.go.
"""

import asyncio
import sys
from datetime import timedelta

from docket import Docket, Worker

ROLE, URL, CONSUMER = sys.argv[1:4]
FROM, COUNT = map(int, sys.argv[4:6])


async def note(number: int) -> None:
    print(f"got {number}", flush=True)


async def main():
    async with Docket(name="d", url=URL) as docket:
        docket.register(note)
        if ROLE == "send":
            for n in range(FROM, FROM + COUNT):
                await docket.add(note)(n)
            return
        worker = Worker(docket, name=CONSUMER, redelivery_timeout=timedelta(seconds=2))
        async with worker:
            print("ready", flush=True)
            await worker.run_forever()


asyncio.run(main())
