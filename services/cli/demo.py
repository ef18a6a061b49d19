"""`muster demo`: a real broker, every service and three scripted agents, of which one is killed and restarted."""

import argparse
import contextlib
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from services.cli import supervision
from services.cli.broker import connection
from services.cli.down import bring_down
from services.cli.fleet_option import say
from services.cli.up import bring_up
from services.cli.words import Paint, event_line
from shared.client.follow import FollowedDocument, follow
from shared.contract.commands import Reply
from shared.contract.events.drift import SessionMissing
from shared.contract.events.lifecycle import AgentRestarted
from shared.contract.ids import new_id
from shared.contract.states import AgentState, Status
from shared.fleet import Fleet, load_fleet
from shared.system.tmux import Tmux
from shared.system.tmux.server import end_server

AGENTS = ("builder", "reviewer", "tester")
VICTIM = "builder"
QUIT_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
KILLS_AFTER_S = 2.0
"""So that people see the fleet at rest first."""

FLEET = """\
host: demo
tmux: {{socket: {socket}}}
agents:
  builder: {{prompt: build the thing}}
  reviewer: {{prompt: review what the builder did}}
  tester: {{prompt: run the tests again and again}}
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, metavar="N", help="end by itself after about N seconds")


def run(options: argparse.Namespace) -> int:
    for number in QUIT_SIGNALS:
        signal.signal(number, signal.default_int_handler)  # a kill or a closed terminal cleans up as Ctrl-C does
    directory = Path(tempfile.mkdtemp(prefix="muster-demo-"))
    fleet = _fleet(directory)
    story = Story()
    try:
        with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
            _run_story(fleet, story, options.seconds)
    finally:
        _clean_up(fleet, directory)
    say(f"the demo {'saw the drift and its healing' if story.healed else f'ended early: {story.missing()}'}")
    return 0 if story.healed else 1


def _fleet(directory: Path) -> Fleet:
    path = directory / "fleet.yaml"
    path.write_text(FLEET.format(socket=f"muster-demo-{new_id()[-8:]}"))
    return load_fleet(path)


class Story:
    """How far the demo is: all agents run, one is killed, the drift is told, recorded, and the agent restarted."""

    def __init__(self) -> None:
        self.running: set[str] = set()
        self.killed = self.drift = self.recorded = self.restarted = self.announced = False

    def see(self, followed: FollowedDocument) -> None:
        data = None if isinstance(followed.document, Reply) else followed.document.data
        if isinstance(data, AgentState) and data.status is Status.RUNNING:
            self.running.add(data.agent)
        if not self.killed or getattr(data, "agent", None) != VICTIM:
            return
        self.drift = self.drift or isinstance(data, SessionMissing)
        self.recorded = self.recorded or (isinstance(data, AgentState) and data.status is Status.TERMINATED)
        if isinstance(data, AgentRestarted):
            self.restarted = True
            self.running.discard(VICTIM)

    @property
    def ready(self) -> bool:
        return self.running.issuperset(AGENTS)

    @property
    def healed(self) -> bool:
        return self.drift and self.recorded and self.restarted and VICTIM in self.running

    def missing(self) -> str:
        steps = (
            (self.ready or self.killed, "not all agents were running yet"),
            (self.killed, "no agent was killed yet"),
            (self.drift, "the drift was not seen"),
            (self.recorded, "the registry did not change"),
            (self.restarted, "the agent was not restarted"),
        )
        return next((said for seen, said in steps if not seen), "the restarted agent was not recorded as running")


def _run_story(fleet: Fleet, story: Story, seconds: float | None) -> None:
    started = time.monotonic()
    say(f"a fleet of {len(AGENTS)} scripted agents in {fleet.path.parent}")
    bring_up(fleet)
    say("broker and services are up; watch them from another terminal with:")
    say(f"  mosquitto_sub {connection(fleet, 'viewer')} -t 'muster/#' -v")
    say(f"  tmux -L {fleet.declared.tmux.socket} attach -t {VICTIM}")
    limit = None if seconds is None else max(1.0, seconds - (time.monotonic() - started))
    accident = threading.Timer(KILLS_AFTER_S, _kill, (fleet, story))
    accident.daemon = True
    for followed in _printed(fleet, limit):
        story.see(followed)
        if story.ready and accident.ident is None:
            say(f"all {len(AGENTS)} run; in a moment {VICTIM}'s session is killed behind Muster's back")
            accident.start()
        if story.healed and seconds is None and not story.announced:
            story.announced = True
            say("seen, recorded and restarted; the fleet goes on until you press Ctrl-C")


def _printed(fleet: Fleet, limit: float | None) -> Iterator[FollowedDocument]:
    """All that happens, printed as it comes."""
    paint = Paint(sys.stdout)
    for followed in follow(fleet, since=0.0, seconds=limit):
        print(event_line(followed.host, followed.row, followed.document, paint), flush=True)
        yield followed


def _kill(fleet: Fleet, story: Story) -> None:
    tmux = Tmux(fleet.declared.tmux.socket)
    try:
        for pane in tmux.look():
            if pane.agent == VICTIM:
                story.killed = True
                tmux.kill(pane.session_id)
    finally:
        tmux.close()


def _clean_up(fleet: Fleet, directory: Path) -> None:
    for number in QUIT_SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # a second Ctrl-C would leave processes behind
    steps: list[Callable[[], object]] = [
        lambda: bring_down(fleet, agents=True),
        lambda: supervision.stop(fleet),
        lambda: end_server(fleet.declared.tmux.socket),
        lambda: shutil.rmtree(directory, ignore_errors=True),
    ]
    for step in steps:
        try:
            step()
        except Exception as error:  # noqa: BLE001 - whatever goes wrong with one step, the others are tried
            say(f"could not clean up the polite way: {error}")
