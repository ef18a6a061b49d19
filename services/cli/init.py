"""`muster init`: a fleet file to begin with, commented, that runs as it is."""

import argparse
from pathlib import Path

from services.cli.fleet import say
from shared.errors import MusterError
from shared.fleet.file import FILE_NAME

TEMPLATE = """\
# Your fleet. `muster up` starts it, `muster status` shows it. Edits of agents and backends are taken up while it runs.

# host: box                # this machine's name on the bus; default: its host name
# prefix: muster           # the first word of every topic

# tmux:
#   socket: default        # a tmux socket name, or a path when it contains a slash

# broker:
#   endpoints: [mqtts://broker.example]   # your own; without it a private broker runs on loopback
#   port: 1883                            # the private broker's port; default: a free one

# polls:
#   connected_s: 30        # how often to look while a broker answers (changes are pushed anyway)
#   alone_s: 1             # how often to look while none does

agents:
  builder:
    backend: demo          # a scripted agent that needs no model
    dir: .                 # its workspace, relative to this file
    prompt: build the thing
    # enabled: false       # only when asked: muster spawn builder
    # env: {KEY: value}
    # restart:             # an agent that dies is started again, within these limits
    #   first_wait_s: 1    # doubled each time, up to longest_wait_s
    #   longest_wait_s: 60
    #   burst: 5           # at most so many restarts ...
    #   burst_s: 60        # ... within so many seconds, then it is given up
  reviewer:
    backend: demo
    prompt: review what the builder did

# backends:                # how to run other programs
#   shell:
#     argv: [bash, --norc]
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--force", action="store_true", help="replace the file that is there")


def run(options: argparse.Namespace) -> int:
    path = Path(options.fleet).expanduser() if options.fleet else Path.cwd() / FILE_NAME
    if path.exists() and not options.force:
        raise MusterError(f"{path} is there already; edit it, or replace it with --force")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(TEMPLATE)
    say(f"wrote {path}; next: muster{f' --fleet {path}' if options.fleet else ''} up")
    return 0
