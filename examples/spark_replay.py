#!/usr/bin/env python3
"""Examine transcripts on Apache Spark with claw-replay. After claw-replay merge, the reports and their order are the
same as with one process.

    spark_replay.py --paths FILE [--partitions N] [--output DIR] -- MODE [OPTION ...] | claw-replay merge >reports

FILE has the paths, one per line and in UTF-8. They must name the transcripts on each machine of the cluster.
claw-replay must be installed on each machine, in a directory that is in the PATH of the driver: workers get the
driver's PATH and HOME, and no other variables. Without --output, the driver collects all reports and writes them to
standard output. With it, the executors write several files to a directory; the reports are these files, joined in the
order of their names. `claw-replay merge` checks that the output of each worker is complete, and gives the exit status.
If a worker ends with a status other than 0, 1 or 65, its task fails; Spark repeats the task, and ends with an error if
it keeps failing.
"""

import argparse
import os
import shlex
import sys

from pyspark.sql import SparkSession

# Turns the statuses that describe transcripts into 0, because Spark treats any other status as a failure of the task.
WORKER = '"$@"; status=$?; case $status in 0 | 1 | 65) ;; *) exit $status ;; esac'


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--paths", required=True, help="file with the paths, which all executors can read")
    parser.add_argument("--partitions", type=int, help="number of parts, at least one for each processor")
    parser.add_argument("--output", help="new directory for the reports")
    parser.add_argument("mode", nargs="+", metavar="MODE", help="mode of claw-replay and its options, after --")
    args = parser.parse_args()

    worker = ["claw-replay", *args.mode, "--quiet", "--jobs", "1", "--files-from", "-"]
    context = SparkSession.builder.appName("claw-replay").getOrCreate().sparkContext
    paths = context.textFile(args.paths, args.partitions or context.defaultParallelism)
    # A pipe keeps the order within a part, and collecting and writing keep the order of the parts.
    command = shlex.join(["sh", "-c", WORKER, "sh", *worker])
    environment = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
    reports = paths.pipe(command, environment, checkCode=True)
    if args.output:
        reports.saveAsTextFile(args.output)
        return
    for report in reports.collect():
        sys.stdout.buffer.write(report.encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
