"""Reads the event files of runs with TensorBoard's own reader and compares every number with metrics.csv.

usage: check_events.py RUN...              folders of runs
       check_events.py --writer PROGRAM    runs PROGRAM FOLDER first, and checks the folder
"""
import csv
import math
import os
import struct
import subprocess
import sys
import tempfile

from tensorboard.backend.event_processing import event_accumulator

PLACES = ("kind", "time", "epoch", "step", "steps", "global_step")


def f32(number):
    """Event files keep scalars as f32."""
    try:
        return struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)


def tag_of(kind, column):
    if column.startswith("validation_"):
        return "validation/" + column[len("validation_"):]
    return ("train/" if kind == "step" else "epoch/") + column


def expected_scalars(folder):
    """tag -> [(step, value)], from metrics.csv."""
    scalars = {}
    with open(os.path.join(folder, "metrics.csv"), newline="") as table:
        for row in csv.DictReader(table):
            for column, text in row.items():
                if column in PLACES or text == "":
                    continue
                point = (int(row["global_step"]), f32(float(text)))
                scalars.setdefault(tag_of(row["kind"], column), []).append(point)
    return scalars


def same(a, b):
    return a == b or (math.isnan(a) and math.isnan(b))


def check(folder):
    events = event_accumulator.EventAccumulator(folder, size_guidance={event_accumulator.SCALARS: 0})
    events.Reload()
    expected = expected_scalars(folder)
    found = events.Tags()["scalars"]
    assert expected, "metrics.csv has no numbers"
    # Metrics without a column are in the event file alone.
    missing = set(expected) - set(found)
    assert not missing, f"tags that TensorBoard does not show: {sorted(missing)}"
    count = 0
    for tag, points in expected.items():
        shown = [(event.step, event.value) for event in events.Scalars(tag)]
        assert len(shown) == len(points), f"{tag}: {len(shown)} points, metrics.csv has {len(points)}"
        for (step, value), (expected_step, expected_value) in zip(shown, points):
            assert step == expected_step, f"{tag}: step {step}, metrics.csv has {expected_step}"
            assert same(value, expected_value), f"{tag}, step {step}: {value}, metrics.csv has {expected_value}"
        count += len(points)
    print(f"{folder}: {len(expected)} tags, {count} numbers, all equal to metrics.csv")


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "--writer":
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([arguments[1], folder], check=True)
            check(folder)
    elif arguments and not arguments[0].startswith("-"):
        for folder in arguments:
            check(folder)
    else:
        sys.exit(__doc__)


main(sys.argv[1:])
