"""An idempotent producer: two records, so many seconds of silence, two more. Fails if any is not acknowledged."""

import sys
import time

from confluent_kafka import Producer

address, topic, seconds = sys.argv[1:]
failures = []
producer = Producer({"bootstrap.servers": address, "enable.idempotence": True})


def delivered(error, _message):
    if error is not None:
        failures.append(str(error))


for number in range(4):
    if number == 2:
        time.sleep(float(seconds))
    producer.produce(topic, partition=0, value=f"{number}", on_delivery=delivered)
    left = producer.flush(60)
    if left or failures:
        sys.exit(f"record {number}: {left} without an answer, failures: {failures}")
