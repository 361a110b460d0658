"""Fuzz what reads the wire: ``python scripts/fuzz.py --runs 1000000 --seed 1``.

Coverage-guided, with Atheris (dependency group ``fuzz``). The runs are shared out among
the targets of ``tests/fuzz/targets.py``, each in a process of its own, two at a time. A
finding is kept as a file and can be looked at without Atheris:
``python scripts/fuzz.py --target peer --reproduce FILE``.
"""

import argparse
import base64
import importlib
import json
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SEEDS = ROOT / "packages/conformance/src/executa_conformance/golden/lines"
MISSING = "Atheris is not installed here; run this with `uv run --group fuzz`.\n"
MAX_INPUT = 512
"""Bytes of one case: the targets make much more of them."""


def main(arguments: list[str] | None = None) -> int:
    """The command. Returns its exit code: 1 for a finding, 2 if it cannot run."""
    options = _options(arguments)
    sys.path.insert(0, str(ROOT))
    if options.list:
        for name, target in _targets().items():
            sys.stdout.write(f"{name:12} {(target.__doc__ or '').splitlines()[0]}\n")
        return 0
    if options.reproduce is not None:
        _targets()[options.target](options.reproduce.read_bytes())
        sys.stdout.write("no finding\n")
        return 0
    try:
        atheris = importlib.import_module("atheris")
    except ImportError:
        sys.stderr.write(MISSING)
        return 2
    if options.corpus is not None:
        _fuzz_one(atheris, options)
    return _fuzz_all(options)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=100_000, help="cases in all (100,000)")
    parser.add_argument("--seed", type=int, default=1, help="of the random choices (1)")
    parser.add_argument("--target", help="only this one; see --list")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time (2)")
    parser.add_argument("--keep", type=Path, default=ROOT / "build" / "fuzz", help="for findings")
    parser.add_argument("--reproduce", type=Path, metavar="FILE", help="run one kept finding")
    parser.add_argument("--list", action="store_true", help="say what the targets are")
    parser.add_argument("--corpus", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.reproduce is not None and options.target is None:
        parser.error("--reproduce needs --target")
    return options


def _targets() -> dict[str, Any]:
    targets: dict[str, Any] = importlib.import_module("tests.fuzz.targets").TARGETS
    return targets


def _fuzz_all(options: argparse.Namespace) -> int:
    """Share the runs out, and say how each target went."""
    names = [options.target] if options.target else list(_targets())
    runs = -(-options.runs // len(names))
    options.keep.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as corpus, ThreadPoolExecutor(options.jobs) as pool:
        _write_seeds(Path(corpus))
        jobs = [pool.submit(_run, name, runs, options, Path(corpus)) for name in names]
        results = [job.result() for job in jobs]
    done = sum(count for _, count in results)
    findings = sum(failed for failed, _ in results)
    seconds = time.monotonic() - started
    sys.stdout.write(f"{done:,} cases, {findings} findings, {seconds:.0f} s\n")
    return 1 if findings else 0


def _run(name: str, runs: int, options: argparse.Namespace, corpus: Path) -> tuple[bool, int]:
    """Fuzz one target in a process; whether it found something, and how many cases it ran."""
    command = [sys.executable, __file__, "--target", name, "--runs", str(runs)]
    command += ["--seed", str(options.seed), "--keep", str(options.keep), "--corpus", str(corpus)]
    process = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)  # noqa: S603 - ourselves
    counts = re.findall(r"^#(\d+)", process.stderr, re.MULTILINE)
    count = int(counts[-1]) if counts else 0
    failed = process.returncode != 0
    sys.stdout.write(f"{name:12} {count:>9,} cases  {'FINDING' if failed else 'fine'}\n")
    if failed:
        sys.stdout.write(process.stdout[-6000:] + process.stderr[-6000:])
    sys.stdout.flush()
    return failed, count


def _write_seeds(corpus: Path) -> None:
    """Begin with what is known to be interesting: the golden lines."""
    for path in sorted(SEEDS.glob("*.jsonl")):
        for number, line in enumerate(path.read_bytes().splitlines()):
            row = json.loads(line)
            data = row["input"].encode() if "input" in row else base64.b64decode(row["input_b64"])
            (corpus / f"{path.stem}-{number}").write_bytes(data[:MAX_INPUT])


def _fuzz_one(atheris: Any, options: argparse.Namespace) -> None:
    """Hand this process over to Atheris, which ends it."""
    with atheris.instrument_imports(include=["executa_protocol"]):
        target = _targets()[options.target]
    own = options.keep / f"corpus-{options.target}"
    own.mkdir(exist_ok=True)
    arguments = [
        sys.argv[0],
        str(own),
        str(options.corpus),
        f"-runs={options.runs}",
        f"-seed={options.seed}",
        f"-max_len={MAX_INPUT}",
        f"-artifact_prefix={options.keep / options.target}-",
        "-timeout=20",
        "-rss_limit_mb=2048",
        "-print_final_stats=1",
    ]
    atheris.Setup(arguments, target)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
