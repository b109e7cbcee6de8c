"""The contract's verbs with confluent-kafka, that is librdkafka. See ../README.md."""

import json
import select
import sys

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic


def text(data):
    return None if data is None else data.decode()


def shown(message):
    return {
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": message.timestamp()[1],
        "key": text(message.key()),
        "value": text(message.value()),
        "headers": [[name, text(value)] for name, value in message.headers() or []],
    }


def say(line):
    print(json.dumps(line), flush=True)


def create(address, topic, partitions):
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.create_topics([NewTopic(topic, int(partitions))]).values():
        future.result(30)


def delete(address, topic):
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.delete_topics([topic]).values():
        future.result(30)


def produce(address, topic, codec):
    producer = Producer({"bootstrap.servers": address, "compression.type": codec})
    failures = []

    def delivered(error, _message):
        if error is not None:
            failures.append(error)

    for line in sys.stdin:
        record = json.loads(line)
        producer.produce(
            topic,
            partition=record["partition"],
            timestamp=record["timestamp"],
            key=record["key"],
            value=record["value"],
            headers=[(name, value) for name, value in record["headers"]],
            on_delivery=delivered,
        )
    left = producer.flush(30)
    if left or failures:
        sys.exit(f"{left} records without an answer, failures: {failures}")


def consume(address, topic, partition, start, count):
    consumer = Consumer({"bootstrap.servers": address, "group.id": "contract-reader", "enable.auto.commit": False})
    place = TopicPartition(topic, int(partition), 0)
    if start.startswith("time:"):
        place.offset = int(start.removeprefix("time:"))
        [place] = consumer.offsets_for_times([place], timeout=30)
    else:
        low, _high = consumer.get_watermark_offsets(place, timeout=30)
        place.offset = low
    consumer.assign([place])
    for _ in range(int(count)):
        message = consumer.poll(30)
        if message is None or message.error():
            raise KafkaException(message and message.error())
        say(shown(message))
    consumer.close()


def member(address, topic, group):
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 500,
        }
    )

    def assigned(_consumer, partitions):
        say({"assigned": sorted(place.partition for place in partitions)})

    consumer.subscribe([topic], on_assign=assigned)
    while not select.select([sys.stdin], [], [], 0)[0]:
        message = consumer.poll(0.1)
        if message is not None and not message.error():
            say(shown(message))
    consumer.close()


if __name__ == "__main__":
    {"create": create, "delete": delete, "produce": produce, "consume": consume, "member": member}[sys.argv[1]](*sys.argv[2:])
