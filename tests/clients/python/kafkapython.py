"""The contract's verbs with kafka-python. See ../README.md."""

import json
import select
import sys

from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic


def text(data):
    return None if data is None else data.decode()


def data(text):
    return None if text is None else text.encode()


def shown(record):
    return {
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": text(record.key),
        "value": text(record.value),
        "headers": [[name, text(value)] for name, value in record.headers],
    }


def say(line):
    print(json.dumps(line), flush=True)


def create(address, topic, partitions):
    admin = KafkaAdminClient(bootstrap_servers=address)
    admin.create_topics([NewTopic(name=topic, num_partitions=int(partitions), replication_factor=-1)])
    admin.close()


def delete(address, topic):
    admin = KafkaAdminClient(bootstrap_servers=address)
    admin.delete_topics([topic])
    admin.close()


def produce(address, topic, codec):
    producer = KafkaProducer(bootstrap_servers=address, compression_type=None if codec == "none" else codec)
    pending = []
    for line in sys.stdin:
        record = json.loads(line)
        pending.append(
            producer.send(
                topic,
                partition=record["partition"],
                timestamp_ms=record["timestamp"],
                key=data(record["key"]),
                value=data(record["value"]),
                headers=[(name, data(value)) for name, value in record["headers"]],
            )
        )
    producer.flush(30)
    for future in pending:
        future.get(30)
    producer.close()


def consume(address, topic, partition, start, count):
    consumer = KafkaConsumer(bootstrap_servers=address, group_id=None, consumer_timeout_ms=30000)
    place = TopicPartition(topic, int(partition))
    consumer.assign([place])
    if start.startswith("time:"):
        found = consumer.offsets_for_times({place: int(start.removeprefix("time:"))})
        consumer.seek(place, found[place].offset)
    else:
        consumer.seek_to_beginning(place)
    left = int(count)
    for record in consumer:
        say(shown(record))
        left -= 1
        if left == 0:
            break
    if left:
        sys.exit(f"{left} records did not come")
    consumer.close()


class Listener(ConsumerRebalanceListener):
    def on_partitions_revoked(self, revoked):
        pass

    def on_partitions_assigned(self, assigned):
        say({"assigned": sorted(place.partition for place in assigned)})


def member(address, topic, group):
    consumer = KafkaConsumer(
        bootstrap_servers=address,
        group_id=group,
        auto_offset_reset="earliest",
        session_timeout_ms=6000,
        heartbeat_interval_ms=500,
    )
    consumer.subscribe([topic], listener=Listener())
    while not select.select([sys.stdin], [], [], 0)[0]:
        for records in consumer.poll(timeout_ms=100).values():
            for record in records:
                say(shown(record))
    consumer.close()


if __name__ == "__main__":
    {"create": create, "delete": delete, "produce": produce, "consume": consume, "member": member}[sys.argv[1]](*sys.argv[2:])
