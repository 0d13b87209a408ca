"""A link between two network namespaces of this machine, and pools whose nodes are placed one by one: on one side of
it or the other, each with a part of a core. Needs root, `ip` and `tc`.

`w5xde bench original` has its own link (apps/bench/link_lab.h): it must work where this tree is not, and without root.
"""

import json
import pathlib
import shutil
import sqlite3
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = ROOT / "build/release/w5xde"
ADDRESS = "10.93.0.1:5555"
HERE, THERE = "w5xde-here", "w5xde-there"
CGROUPS = pathlib.Path("/sys/fs/cgroup")
PERIOD_US = 10_000


def run(*command):
    subprocess.run(command, check=True)


class Link:
    """The coordinator is HERE, at ADDRESS; nodes that are THERE reach it at `rate`, each way."""

    def __init__(self, rate):
        self.rate = rate

    def __enter__(self):
        self.remove()
        for name in (HERE, THERE):
            run("ip", "netns", "add", name)
        run("ip", "link", "add", "w5a", "type", "veth", "peer", "name", "w5b")
        for name, device, address in ((HERE, "w5a", "10.93.0.1/24"), (THERE, "w5b", "10.93.0.2/24")):
            run("ip", "link", "set", device, "netns", name)
            run("ip", "-n", name, "address", "add", address, "dev", device)
            run("ip", "-n", name, "link", "set", "lo", "up")
            run("ip", "-n", name, "link", "set", device, "up")
            run("ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", self.rate,
                "burst", "32kb", "latency", "50ms")
        return self

    def __exit__(self, *_):
        self.remove()

    @staticmethod
    def remove():
        for name in (HERE, THERE):
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)


class Core:
    """So much of a core, for whoever is put into it: a control group of version 1 or 2."""

    def __init__(self, name, part):
        old = (CGROUPS / "cpu").is_dir()
        self.folder = CGROUPS / ("cpu" if old else "") / f"w5xde-{name}"
        self.folder.mkdir(exist_ok=True)
        quota = round(part * PERIOD_US)
        if old:
            (self.folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (self.folder / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (self.folder / "cpu.max").write_text(f"{quota} {PERIOD_US}")

    def remove(self):
        self.folder.rmdir()

    def command(self, command):
        # Before `ip netns exec`, which mounts another /sys.
        return ["sh", "-c", f'echo $$ > {self.folder}/cgroup.procs; exec "$@"', "sh", *command]


def train(flags, nodes, seconds=None):
    """Serves a run to nodes, (where, core or None) each, to its end: its summary, and its steps as (step, seconds)."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="w5xde-lab-"))
    try:
        summary = folder / "summary.json"
        command = ["ip", "netns", "exec", HERE, BINARY, "serve", folder / "run", "--listen", ADDRESS, "--insecure"]
        command += ["--wait-for", str(len(nodes)), "--json", summary, "--log", "silent", *flags]
        if seconds is not None:
            command += ["--seconds", str(seconds)]
        processes = [subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL)]
        for number, (where, core) in enumerate(nodes):
            join = ["ip", "netns", "exec", where, str(BINARY), "join", ADDRESS, "--name", f"node{number}"]
            join += ["--log", "silent"]
            processes.append(subprocess.Popen(core.command(join) if core else join))
        codes = [process.wait() for process in processes]
        if any(codes):
            raise SystemExit(f"a process of the pool failed: {codes}")
        database = sqlite3.connect(folder / "run" / "run.db")
        steps = database.execute("select step, seconds from steps order by step").fetchall()
        return json.loads(summary.read_text()), steps
    finally:
        shutil.rmtree(folder)


def steps_per_second(steps, warm_seconds):
    warm = [row for row in steps if row[1] >= warm_seconds]
    return (warm[-1][0] - warm[0][0]) / (warm[-1][1] - warm[0][1])


def median(values):
    return statistics.median(values)
