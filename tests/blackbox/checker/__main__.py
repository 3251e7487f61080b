"""Checks files of recorded steps, one JSON object a line.

    python -m checker <dialect> <file.jsonl>...
"""

import argparse
import json
import sys
from pathlib import Path

from . import DIALECTS, check


def main() -> int:
    words = argparse.ArgumentParser(prog="checker", description=(__doc__ or "").splitlines()[0])
    words.add_argument("dialect", choices=DIALECTS)
    words.add_argument("files", nargs="+", type=Path, metavar="file.jsonl")
    words.add_argument("--partial", action="store_true", help="the files may stop in the middle")
    chosen = words.parse_args()
    bad = 0
    for path in chosen.files:
        try:
            lines = path.read_text(encoding="utf-8").split("\n")
            steps = [json.loads(line) for line in lines if line.strip()]
        except (OSError, ValueError) as error:
            print(f"{path}: cannot be read as JSON lines: {error}")
            bad += 1
            continue
        problems = check(chosen.dialect, steps, complete=not chosen.partial)
        for problem in problems:
            print(f"{path}: {problem}")
        bad += bool(problems)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
