"""The contract's verbs by calling kcat. It creates topics only by using them and deletes none. See ../README.md."""

import json
import re
import select
import signal
import subprocess
import sys
import threading


def kcat(address, *arguments):
    return ["kcat", "-b", address, *arguments]


def shown(line):
    record = json.loads(line)
    headers = record.get("headers", [])
    return {
        "partition": record["partition"],
        "offset": record["offset"],
        "timestamp": record["ts"],
        "key": record["key"],
        "value": record["payload"],
        "headers": [list(pair) for pair in zip(headers[::2], headers[1::2])],
    }


def say(line):
    print(json.dumps(line), flush=True)


def produce(address, topic, codec):
    # Flags hold for a whole call, so records that differ in them go one call each.
    for line in sys.stdin:
        record = json.loads(line)
        command = kcat(address, "-P", "-t", topic, "-p", str(record["partition"]), "-z", codec)
        for name, value in record["headers"]:
            command += ["-H", name if value is None else f"{name}={value}"]
        key, value = record["key"], record["value"]
        if key is not None:
            command += ["-K", "\x1f"]
        if value is None or (key is None and value == ""):
            command += ["-Z"]
        body = (value or "") if key is None else f"{key}\x1f{value or ''}"
        subprocess.run(command, input=body.encode() + b"\n", check=True)


def consume(address, topic, partition, start, count):
    offset = "s@" + start.removeprefix("time:") if start.startswith("time:") else "beginning"
    command = kcat(address, "-C", "-t", topic, "-p", partition, "-o", offset, "-c", count, "-J", "-q")
    for line in subprocess.run(command, check=True, capture_output=True, timeout=60).stdout.splitlines():
        say(shown(line))


def member(address, topic, group):
    command = kcat(
        address, "-G", group, "-J", "-u", "-X", "auto.offset.reset=earliest",
        "-X", "session.timeout.ms=6000", "-X", "heartbeat.interval.ms=500", topic,
    )
    # A member that is killed takes its kcat along.
    libc = __import__("ctypes").CDLL("libc.so.6")
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: libc.prctl(1, signal.SIGKILL),
    )

    def assignments():
        for line in process.stderr:
            if b"assigned:" in line:
                say({"assigned": sorted(int(number) for number in re.findall(rb"\[(\d+)\]", line.split(b"assigned:")[1]))})

    def records():
        for line in process.stdout:
            say(shown(line))

    readers = [threading.Thread(target=run) for run in (assignments, records)]
    for reader in readers:
        reader.start()
    select.select([sys.stdin], [], [])
    process.terminate()
    process.wait(30)


if __name__ == "__main__":
    {"produce": produce, "consume": consume, "member": member}[sys.argv[1]](*sys.argv[2:])
