"""What a running job takes: memory and open files by kind of process, files of its checkpoint and
scratch folder, and its own metrics. Reads ``/proc``, so Linux alone."""

from __future__ import annotations

import os
import subprocess
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

_PAGE = os.sysconf("SC_PAGE_SIZE")
_MIB = 1 << 20


def sample(pid: int, folders: Mapping[str, Path], metrics_port: int) -> dict[str, float]:
    """Figures of the job whose driver is ``pid``; what cannot be had is left out. ``folders``: by
    the name that their figures are to have."""
    figures = processes(pid)
    for name, folder in folders.items():
        figures |= _files(name, folder)
    with suppress(OSError, ValueError):
        figures |= _metrics(metrics_port)
    return figures


def processes(driver: int) -> dict[str, float]:
    """Memory, open files and number of the processes in the session that ``driver`` leads, by
    kind."""
    figures: Counter[str] = Counter()
    for entry, kind in members(driver):
        with suppress(OSError, IndexError, ValueError):
            resident = int((entry / "statm").read_text("utf-8").split()[1]) * _PAGE
            figures[f"{kind}_memory_mib"] += resident / _MIB  # type: ignore[assignment]
            figures[f"{kind}_open_files"] += len(list((entry / "fd").iterdir()))
            figures[f"{kind}_processes"] += 1
            if kind == "jvm":
                old_generation = _old_generation(int(entry.name))
                figures["jvm_old_generation_mib"] += old_generation  # type: ignore[assignment]
    return {name: float(value) for name, value in figures.items()}


def members(driver: int) -> Iterator[tuple[Path, str]]:
    """The processes in the session that ``driver`` leads, below ``/proc``, and which kind each is:
    ``driver``, ``jvm`` or ``workers``."""
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError, ValueError):
            fields = (entry / "stat").read_text("utf-8").rpartition(")")[2].split()
            if int(fields[3]) == driver:
                java = (entry / "comm").read_text("utf-8").strip() == "java"
                pid = int(entry.name)
                yield entry, "driver" if pid == driver else "jvm" if java else "workers"


def _old_generation(pid: int) -> float:
    """What is used of the JVM's old generation, in MiB: objects that outlived collections."""
    return _jstat(pid).get("OU", 0.0) / 1024


def _jstat(pid: int) -> dict[str, float]:
    command = ["jstat", "-gc", str(pid)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    names, _, values = told.stdout.strip().partition("\n")
    pairs = zip(names.split(), values.split(), strict=False)
    # "-" where a collector does not have it.
    return {name: float(value) for name, value in pairs if value != "-"}


def _files(what: str, top: Path) -> dict[str, float]:
    count = size = 0
    for folder, _, names in os.walk(top):
        for name in names:
            # Files come and go while they are counted.
            with suppress(OSError):
                size += (Path(folder) / name).stat().st_size
                count += 1
    return {f"{what}_files": float(count), f"{what}_mib": size / _MIB}


def totals(port: int) -> Counter[str]:
    """The job's metrics by name, summed over labels; of memory that has a bound, what is used.
    OSError where nobody answers."""
    found: Counter[str] = Counter()
    for each in series(port):
        if each.labels.get("area") != "max":
            found[each.name] += each.value  # type: ignore[assignment]
    return found


def series(port: int) -> list[Sample]:
    """All series of the job's metrics. OSError where nobody answers."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        text = answer.read().decode()
    families = text_string_to_metric_families(text)
    return [each for family in families for each in family.samples]


def heap_in_use(pid: int) -> float:
    """What is left in the heap of the JVM ``pid`` when all that can be collected is, in MiB."""
    command = ["jcmd", str(pid), "GC.run"]
    subprocess.run(command, capture_output=True, timeout=60, check=True)
    table = _jstat(pid)
    return sum(table.get(name, 0.0) for name in ("S0U", "S1U", "EU", "OU")) / 1024


def _metrics(port: int) -> dict[str, float]:
    total = totals(port)
    prefix = "spark_cep_"
    return {
        "batch_seconds_sum": float(total[f"{prefix}batch_duration_seconds_sum"]),
        "batches": float(total[f"{prefix}batch_duration_seconds_count"]),
        "records_read": float(total[f"{prefix}records_consumed_total"]),
        "late": float(total[f"{prefix}late_events_total"]),
        "lag_records": float(total[f"{prefix}consumer_lag_records"]),
        "partial_matches": float(total[f"{prefix}partial_matches"]),
        "state_rows": float(total[f"{prefix}state_rows"]),
        "state_mib": float(total[f"{prefix}state_bytes"]) / _MIB,
        "watermark": float(total[f"{prefix}watermark_timestamp_seconds"]),
    }


def with_batch_times(samples: list[dict[str, float]]) -> None:
    """Add to each sample the mean time of the batches since the one before it, in seconds."""
    for before, after in pairwise(samples):
        if not {"batches", "batch_seconds_sum"} <= before.keys() & after.keys():
            continue
        batches = after["batches"] - before["batches"]
        if batches > 0 and before["run"] == after["run"]:
            seconds = after["batch_seconds_sum"] - before["batch_seconds_sum"]
            after["batch_seconds"] = seconds / batches
