"""What the programs share that generate committed files from the code."""

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
    if not options.parse_args().write:
        print(text, end="")
    elif file.parent.is_dir():
        file.write_text(text, encoding="utf-8")
    else:
        print(f"{file.parent} is missing: --write is for a checkout of Muster's sources", file=sys.stderr)
        return 1
    return 0
