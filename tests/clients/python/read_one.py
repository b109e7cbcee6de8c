"""Reads exactly one record of a topic as a group's only member, within the auto-commit period, and closes in order."""

import sys

from confluent_kafka import Consumer

address, topic, group = sys.argv[1:]
consumer = Consumer({"bootstrap.servers": address, "group.id": group, "auto.offset.reset": "earliest"})
consumer.subscribe([topic])
message = consumer.poll(60)
if message is None or message.error():
    sys.exit(f"no record: {message and message.error()}")
print(message.value().decode())
consumer.close()
