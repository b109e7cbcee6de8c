"""An idempotent producer paced over a time, while the node may be killed under it.

    paced.py ADDRESS TOPIC RECORDS KEYS SECONDS PARTITIONS ACKNOWLEDGED

Record n has key k = n % KEYS and the value `k:i`, i counting up per key; key k goes to partition k % PARTITIONS.
Writes one line per acknowledged record, `n partition offset`, to the file ACKNOWLEDGED. Ends with 0 when every record
was acknowledged.
"""

import sys
import time

from confluent_kafka import Producer

address, topic, records, keys, seconds, partitions, out = sys.argv[1:]
records, keys, seconds, partitions = int(records), int(keys), float(seconds), int(partitions)

acknowledged = []
failures = []


def delivered(number):
    def report(error, message):
        if error is None:
            acknowledged.append((number, message.partition(), message.offset()))
        else:
            failures.append(str(error))

    return report


producer = Producer(
    {
        "bootstrap.servers": address,
        "enable.idempotence": True,
        "acks": "all",
        "linger.ms": 5,
        "message.timeout.ms": 600_000,
        "request.timeout.ms": 10_000,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 200,
        "retry.backoff.ms": 50,
        "queue.buffering.max.messages": 2_000_000,
        "queue.buffering.max.kbytes": 1_048_576,
        "log_level": 2,
    }
)
started = time.monotonic()
for number in range(records):
    key = number % keys
    producer.produce(
        topic,
        partition=key % partitions,
        key=f"{key}",
        value=f"{key}:{number // keys}",
        on_delivery=delivered(number),
    )
    if number % 100 == 0:
        producer.poll(0)
        ahead = number / records * seconds - (time.monotonic() - started)
        if ahead > 0:
            producer.poll(ahead)
left = producer.flush(300)
with open(out, "w") as file:
    for number, partition, offset in acknowledged:
        file.write(f"{number} {partition} {offset}\n")
if left or failures:
    sys.exit(f"{left} records without an answer, {len(failures)} failures, first: {failures[:3]}")
