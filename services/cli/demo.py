"""`muster demo`: a real broker, every service and a fleet of scripted agents, each in a situation of its own.

It plays the accidents and the person: it kills one agent's session, stops another, and begins the loop anew when it is
complete. What Muster does about it is told as it happens.
"""

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
from services.cli.demo_story import STOPPED, VICTIM, DemoStory
from services.cli.down import bring_down
from services.cli.example import lay_out
from services.cli.fleet_option import say
from services.cli.request import ask
from services.cli.up import bring_up
from services.cli.words import Paint, event_line
from shared.agents.demo.demo_script import tempo
from shared.client.board_access import new_link
from shared.client.follow import FollowedDocument, follow
from shared.contract.commands import Command, Explain, PhaseSet, Reply, Stop
from shared.contract.events.loops import SequenceCompleted
from shared.contract.ids import new_id
from shared.errors import MusterError
from shared.fleet import AgentKind, Fleet, load_fleet
from shared.system.tmux import Tmux
from shared.system.tmux.server import end_server

SOURCE = Path(__file__).parent / "demo_fleet"
SOCKET = "muster-demo"
NAME = "shop"
"""A fleet is called as its directory."""
QUIT_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
KILLS_AFTER_S, STOPS_AFTER_S = 8.0, 30.0
"""After all agents run, so that people see the fleet as it should be first."""
BEGINS_AGAIN_AFTER_S = 15.0
ENDS_WITHIN_S = 2.0


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, metavar="N", help="end by itself after about N seconds")


def run(options: argparse.Namespace) -> int:
    for number in QUIT_SIGNALS:
        signal.signal(number, signal.default_int_handler)  # a kill or a closed terminal cleans up as Ctrl-C does
    directory = Path(tempfile.mkdtemp(prefix="muster-demo-"))
    demo: Demo | None = None
    try:
        with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
            demo = Demo(demo_fleet(directory))
            demo.run(options.seconds)
    finally:
        _clean_up(demo, directory)
    if demo is None or not demo.story.healed:
        say(f"the demo ended early: {demo.story.missing() if demo else 'nothing was started yet'}")
        return 1
    say("the demo saw the drift and its healing")
    return 0


def demo_fleet(directory: Path) -> Fleet:
    """The demo's fleet in a directory of its own, on a tmux socket of its own; without git, without its loop."""
    path = directory / NAME / "fleet.yaml"
    path.parent.mkdir()
    text = (SOURCE / path.name).read_text(encoding="utf-8")
    if shutil.which("git") is not None:
        lay_out(SOURCE, path)
    else:
        say("git is missing: builder and reviewer, which hand work to each other through it, are left out")
        text = text.partition("\nloops:")[0]
    path.write_text(text.replace(f"socket: {SOCKET}", f"socket: {SOCKET}-{new_id()[-8:]}"), encoding="utf-8")
    fleet = load_fleet(path)
    for agent in fleet.agents.values():
        fleet.resolve(agent.dir).mkdir(parents=True, exist_ok=True)
    return fleet


def ways_to_watch(fleet: Fleet, link: str | None) -> Iterator[str]:
    """Where the fleet can be seen: first the board, if there is one, then the commands for another terminal."""
    if link:
        yield "the board shows every agent, and lets you answer it. Open it in a browser; the link works once:"
        yield f"  {link}"
        yield f"  (another link: export MUSTER_FLEET={fleet.path}; muster board --act)"
    yield "broker and services are up; watch and steer them from another terminal:"
    yield f"  mosquitto_sub {connection(fleet, 'viewer')} -t 'muster/#' -v"
    yield f"  tmux -L {fleet.declared.tmux.socket} attach -t {VICTIM}"
    yield f"  export MUSTER_FLEET={fleet.path}; muster status --watch"
    yield "Ctrl-C ends the demo, and leaves nothing behind"


def _is_question(followed: FollowedDocument) -> bool:
    """Whether it only answers what a page asked about an agent."""
    return isinstance(followed.document, Reply) and followed.document.verb == Explain.verb


class Demo:
    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        unasked = {name for name, agent in fleet.agents.items() if agent.kind is not AgentKind.LOOP}
        self.story = DemoStory(unasked)
        self.actions = DelayedActions()

    def run(self, seconds: float | None) -> None:
        started = time.monotonic()
        say(f"a fleet of {len(self.fleet.agents)} scripted agents in {self.fleet.path.parent}")
        bring_up(self.fleet)
        link = new_link(self.fleet, acts=True)
        self.story.has_board = link is not None
        for line in ways_to_watch(self.fleet, link):
            say(line)
        limit = None if seconds is None else max(1.0, seconds - (time.monotonic() - started))
        self._tell(limit)

    def _tell(self, limit: float | None) -> None:
        """Follow all that happens until the time is over, and play the accidents and the person."""
        bold, begun, ended = Paint(sys.stderr).bold, False, False
        for followed in self._printed(limit):
            data = None if isinstance(followed.document, Reply) else followed.document.data
            for said in self.story.see(data):
                say(bold(said))
            if self.story.ready and not begun:
                begun = True
                say(bold(f"all agents run; soon the demo kills {VICTIM}'s session in tmux, without telling Muster"))
                self.actions.add(KILLS_AFTER_S / tempo(), self._kill)
                self.actions.add(STOPS_AFTER_S / tempo(), lambda: self._ask(Stop(agent=STOPPED)))
            if isinstance(data, SequenceCompleted):
                self.actions.add(BEGINS_AGAIN_AFTER_S / tempo(), lambda: self._ask(PhaseSet(phase="1")))
            if self.story.is_told and limit is None and not ended:
                ended = True
                say(bold("all of this was shown once; the fleet goes on until you press Ctrl-C"))

    def _printed(self, limit: float | None) -> Iterator[FollowedDocument]:
        """All that happens, printed as it comes."""
        paint = Paint(sys.stdout)
        for followed in follow(self.fleet, since=0.0, seconds=limit):
            if not _is_question(followed):
                print(event_line(followed.host, followed.row, followed.document, paint), flush=True)
            yield followed

    def _kill(self) -> None:
        tmux = Tmux(self.fleet.declared.tmux.socket)
        try:
            for pane in tmux.look():
                if pane.agent == VICTIM:
                    self.story.killed = True
                    tmux.kill(pane.session_id)
        finally:
            tmux.close()

    def _ask(self, command: Command) -> None:
        reply = ask(self.fleet, command)
        if not reply.ok:
            raise MusterError(reply.said)


class DelayedActions:
    """What the demo does by itself, each in its time; none begins after the end."""

    def __init__(self) -> None:
        self._timers: list[threading.Timer] = []
        self._has_ended = threading.Event()

    def add(self, seconds: float, act: Callable[[], None]) -> None:
        timer = threading.Timer(seconds, self._carry_out, (act,))
        timer.daemon = True
        timer.start()
        self._timers.append(timer)

    def _carry_out(self, act: Callable[[], None]) -> None:
        try:
            act()
        except MusterError as error:
            if not self._has_ended.is_set():
                say(str(error))

    def end(self) -> None:
        self._has_ended.set()
        for timer in self._timers:
            timer.cancel()
        for timer in self._timers:
            timer.join(ENDS_WITHIN_S)


def _clean_up(demo: Demo | None, directory: Path) -> None:
    for number in QUIT_SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # a second Ctrl-C would leave processes behind
    steps: list[Callable[[], object]] = []
    if demo is not None:
        fleet = demo.fleet
        steps += [
            demo.actions.end,
            lambda: bring_down(fleet, agents=True),
            lambda: supervision.stop(fleet),
            lambda: end_server(fleet.declared.tmux.socket),
        ]
    steps.append(lambda: shutil.rmtree(directory, ignore_errors=True))
    for step in steps:
        try:
            step()
        except Exception as error:  # noqa: BLE001 - whatever goes wrong with one step, the others are tried
            say(f"could not clean up the polite way: {error}")
