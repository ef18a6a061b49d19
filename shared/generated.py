"""Files that are made from the code and kept beside it: printed, or written anew with `--write`."""

import argparse
import sys
from pathlib import Path


def publish(file: Path, text: str, *, prog: str, description: str) -> int:
    """The whole of such a program; answers its exit code."""
    options = argparse.ArgumentParser(prog=prog, description=description)
    options.add_argument(
        "--write", action="store_true", help=f"write {file.parent.name}/{file.name} instead of printing"
    )
    if not options.parse_args().write:
        print(text, end="")
    elif file.parent.is_dir():
        file.write_text(text, encoding="utf-8")
    else:
        print(f"{file.parent} is missing: --write is for a checkout of Muster's sources", file=sys.stderr)
        return 1
    return 0
