"""`muster init`: writes a fleet file that runs as it is and shows every setting, and its schema for editors."""

import argparse
from pathlib import Path

from services.cli.example import EXAMPLES, examples, lay_out
from services.cli.fleet_option import say
from shared.agents.parts import programs_with
from shared.errors import MusterError
from shared.fleet import Declaration, Fleet
from shared.fleet.file import FILE_NAME, as_path
from shared.fleet.schema import render, schema
from shared.system.files import make_directory, write

TEMPLATE = """\
# yaml-language-server: $schema=.muster/fleet.schema.json
# Your fleet. `muster up` starts it, `muster status` shows it. Edits are taken up while it runs; a file with a fault is
# told of, and the last good one stays in force. Lines with # right before a key are settings: take the # away to use
# one. Numbers are those that hold anyway, if nothing else is said. More in docs/fleet.md.

agents:
  builder:
    backend: demo               # a scripted one without a model; others: OTHER_BACKENDS
    dir: .                      # its workspace, from where this file is
    prompt: build the thing
    #kind: loop                 # started anew for each phase of a loop; else persistent: kept running; task: runs once
    #role: builds the thing     # for people
    #model: large               # by the name that the backend's program knows; without it, that program's own choice
    #enabled: false             # only when asked: muster spawn builder
    #resume: true               # a restart takes up the conversation where it ended, if the backend can ...
    #resume_prompt: Go on.      # ... and tells it this; without it, nothing
    #env: {KEY: value}          # seen by this agent only
    #env_file: builder.env      # NAME=value lines, for secrets; chmod 600
    #env_from: [AWS_*]          # seen of the environment that `muster up` was started in, beside `environment` below
    #restart:                   # an agent that dies is started again, within these limits; then it is given up
    #  first_wait_s: 1          # doubled with each death of a burst ...
    #  longest_wait_s: 60       # ... up to this
    #  burst: 5                 # at most so many restarts ...
    #  burst_s: 60              # ... within so many seconds,
    #  sustained: 30            # and at most so many ...
    #  sustained_s: 3600        # ... within so many
    #account: work              # agents on one account share its usage limits; default: one for each backend
    #watch:                     # what is done about an agent that ...
    #  stall:                   # ... idles too long, or past what it promised
    #    {after_s: 1800, grace_s: 120, promise_s: 86400, then: [nudge, restart, tell], nudge: Go on with your task.}
    #  limits:                  # ... hit a usage limit: it is held until that lifts, and then resumed
    #    {resume: true, slack_s: 60, gap_s: 15, patience_s: 180, unknown_s: 900, tries: 3, prompt: continue}
    #  heal: {after_s: 30, then: restart}        # ... has lost its program, or its conversation is refused
    #  login: {retry_s: 0}      # ... is not logged in: held; 0: until a person has mended that
    #  credit: {retry_s: 3600, prompt: continue} # ... has no credit: held, and asked again every so often
    #  unresponsive: {after_s: 900, then: tell}  # ... is said to work, and writes nothing
    #  health: {every_s: 0, timeout_s: 120, model: small, then: stop}    # ... should be asked how it is; 0: never
    #wake: {every_s: 3600, text: Look for new work.}                       # pinged while it is idle
  reviewer:
    prompt: review what the builder did
    #wake: {cron: "0 9 * * 1-5"}        # or at times as in crontab
  #tidy:
  #  kind: task
  #  enabled: false
  #  prompt: tidy up

#defaults:                      # what agents have that do not say otherwise; any key of an agent
#  backend: demo
#  prompt_file: prompts/all.md  # a prompt in a file of its own

#services:                      # any command that is kept running beside the agents; also: env_from, env_file, restart
#  web:
#    argv: [python3, -m, http.server, "8000"]    # no shell reads it
#    dir: .
#    enabled: false
#    env: {PORT: "8000"}
#    env_file: web.env
#    env_from: [NODE_*]
#    restart: {burst: 3}

#backends:                      # more kinds of agents, or changes of those that come with Muster
#  claude:
#    extra_args: [--verbose]    # only this is changed: what you would add to the command line
#  careful:
#    like: claude               # begin with another one
#  shell:
#    binary: bash
#    argv: ["{binary}", --norc]
#    deliver: paste             # the prompt: arg, paste or exec

#workspaces: [.]                # agents run in these directories and below, nowhere else
#environment:                   # what agents see of the environment that `muster up` was started in
#  allow: [HOME, USER, LOGNAME, SHELL, PATH, LANG, LC_*, TZ, TMPDIR, XDG_*, SSH_AUTH_SOCK, GIT_*]    # or more

#start: {at_once: 8, gap_s: 0.5}    # starting many: so many together, then one more after each gap
#restarts:                      # for all agents together, for what kills them all alike
#  burst: 20                    # more restarts than this ...
#  burst_s: 10                  # ... within so many seconds wait for their turn
#  sustained: 0                 # more than this, and who dies next is given up; 0: ten for each agent, at least 100
#  sustained_s: 3600
#logs: {max_mb: 10, keep: 5}    # of each agent's output
#registry: {keep_ended_s: 86400}    # how long it tells of sessions that ended
#adoption: {found: true, ignore: ["scratch-*"]}    # agents that you start by hand in the same tmux server

# These take effect after `muster down` and `muster up`.
#version: 1                     # of this file's format
#host: box                      # this machine's name on the bus; without it, its host name
#prefix: muster                 # the first word of every topic
#tmux: {socket: default, width: 200, height: 50}    # a socket name, or a path when it contains a slash
#broker:
#  endpoints: [mqtts://broker.example]    # your own, the first that answers; without it a private one runs on loopback
#  port: 1883                   # the private broker's; without it, a free one
#  websocket_port: 0            # for browsers; 0: none
#polls:
#  connected_s: 30              # how often to look while a broker answers (changes are pushed anyway) ...
#  alone_s: 1                   # ... and while none does
#handoff: {enabled: true}       # the service that drives loops; false where there are none
#board:                         # the service that shows the fleet as a page: muster board
#  enabled: true
#  listen: 127.0.0.1:0          # port 0: a free one, which it keeps
#  public_url: https://board.example    # what people type, if it is behind a proxy or VPN of yours

# Agents that hand work to each other by commits, and go through phases: docs/loops.md. `muster init --example
# builder-reviewer` writes a pair that works.
#loops:
#  main:
#    enabled: true
#    remote: git@example.com:team/thing.git    # or a path from where this file is
#    branch: main
#    poll_s: 20                 # how often the remote is asked
#    roles: {build: builder, review: reviewer}
#    patterns:                  # commits whose subject begins with `claim:`, or matches `subject`
#      claim: {to: review, text: "{author} committed {commit}: {subject}"}
#      stuck: {subject: "(?i)help needed", to: [build, review]}
#    inbox:                     # files on the branch, and who reads each
#      notes/for-build.md: build
#      "notes/review/*.md": {to: review, text: "{path} is for you."}
#    when: idle                 # messages wait until their reader is done with what it does; now: they don't
#    status_file: STATUS.md
#    done: '^STATUS: DONE\\b'    # the line in it that ends a phase; {phase} and {number} are filled in
#    advance: true              # ... and begins the next one; false: `muster phase next` does
#    grace_s: 300               # who is to be started anew for it may finish what it does, for so long
#    kickoff: prompts/phase.md  # the template of a phase's first prompt, and of what each role is told before it
#    role_prompts: {build: prompts/build.md}
#    phases:
#      - name: first
#      - {name: second, kickoff: prompts/second.md, models: {build: large}}    # for an agent of kind loop
#    on_complete: tidy          # a task that runs after the last phase
""".replace("OTHER_BACKENDS", ", ".join(name for name in programs_with() if name != "demo"))


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--force", action="store_true", help="replace the files that are there")
    parser.add_argument(
        "--example", metavar="NAME", choices=examples(), help=f"a ready-made fleet instead: {', '.join(examples())}"
    )


def run(options: argparse.Namespace) -> int:
    path = (as_path(options.fleet) if options.fleet else Path.cwd() / FILE_NAME).absolute()
    if path.exists() and not options.force:
        raise MusterError(f"{path} is there already; edit it, or replace it with --force")
    path.parent.mkdir(parents=True, exist_ok=True)
    home = Fleet(path, Declaration()).home
    make_directory(home)
    write(home / ".gitignore", "*\n")
    write(home / "fleet.schema.json", render(schema()))
    if options.example:
        lay_out(EXAMPLES / options.example, path, force=options.force)
    else:
        path.write_text(TEMPLATE, encoding="utf-8")
    muster = f"muster --fleet {path}" if options.fleet else "muster"
    then = f", then: {muster} phase show, and {muster} events" if options.example else ""
    say(f"wrote {path}; next: {muster} up{then}")
    return 0
