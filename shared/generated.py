"""What the programs share that generate committed files from the code. `./muster test --write` runs them all."""

import argparse
import sys
from pathlib import Path
from typing import Any

from pydantic.json_schema import GenerateJsonSchema


class UntitledFields(GenerateJsonSchema):
    """JSON Schemas without a title for each field, which would only repeat its name."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        del schema
        return False


def publish(file: Path, text: str, *, prog: str, description: str) -> int:
    """Print the text, or write it to the file with `--write`; returns the exit code."""
    options = argparse.ArgumentParser(prog=prog, description=description)
    options.add_argument(
        "--write", action="store_true", help=f"write {file.parent.name}/{file.name} instead of printing"
    )
    if options.parse_args().write:
        return write(file, text)
    print(text, end="")
    return 0


def write(file: Path, text: str) -> int:
    """Write a generated file of the checkout; returns the exit code."""
    if not file.parent.is_dir():
        print(f"{file.parent} is missing: --write is for a checkout of Muster's sources", file=sys.stderr)
        return 1
    file.write_text(text, encoding="utf-8")
    return 0
