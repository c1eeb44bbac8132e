"""A taskiq worker with many streams, its producer, or one that takes messages and never acks.

Usage: taskiq_worker.py work|hoard|send URL CONSUMER STREAMS BLOCK FROM COUNT
Prints "ready", then "got N" for each message. See test/streams/libraries_test.go.
"""

import asyncio
import sys

from taskiq.api import run_receiver_task
from taskiq_redis import RedisStreamBroker

ROLE, URL, CONSUMER = sys.argv[1:4]
STREAMS, BLOCK, FROM, COUNT = map(int, sys.argv[4:8])
NAMES = [f"q:{i:03d}" for i in range(STREAMS)]

broker = RedisStreamBroker(
    URL,
    queue_name=NAMES[0],
    additional_streams={name: ">" for name in NAMES[1:]},
    consumer_group_name="workers",
    consumer_name=CONSUMER,
    xread_block=BLOCK,
    xread_count=8,
    idle_timeout=2000,
    unacknowledged_batch_size=5,
    unacknowledged_lock_timeout=60,
)


def say(text):
    print(text, flush=True)


@broker.task(task_name="note")
async def note(number: int) -> None:
    say(f"got {number}")


async def send():
    for n in range(FROM, FROM + COUNT):
        await note.kicker().with_labels(queue_name=NAMES[n % STREAMS]).kiq(n)


async def hoard():
    await broker.startup()
    say("ready")
    async for message in broker.listen():
        say("got " + str(broker.formatter.loads(message.data).args[0]))


async def work():
    await broker.startup()
    say("ready")
    await run_receiver_task(broker)


asyncio.run({"send": send, "hoard": hoard, "work": work}[ROLE]())
