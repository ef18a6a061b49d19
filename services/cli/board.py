"""`muster board`: opens the board's page by a link that works once; ends all sessions; puts a comment on a card."""

import argparse
import html
import json
import os
import sys
import time
import webbrowser

from pydantic import ValidationError

from services.cli import exit_codes
from services.cli.fleet_option import is_up, open_fleet, open_fleet_leniently, say
from services.cli.request import add_wait, ask, check_name
from services.cli.words import plain
from shared.client.board_access import LINK_LASTS_S, BoardAccess, new_link
from shared.client.processes import switched_on_since
from shared.contract.commands import Comment
from shared.contract.topics import first_fault
from shared.errors import MusterError
from shared.fleet import Fleet
from shared.messaging.journal import why_not_writable
from shared.system.files import write

BOARD = "board"
SERVED_WITHIN_S = 5.0
REDIRECT = """\
<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={link}">
<title>Muster</title>
<p><a rel="noreferrer" href="{link}">Open the board</a></p>
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--url", action="store_true", help="only print the link, for a browser elsewhere")
    which.add_argument("--revoke", action="store_true", help="end all sessions of pages, and links that nobody used")
    parser.add_argument("--act", action="store_true", help="a link that lets the page act: approve, send, stop …")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON, and open nothing")
    actions = parser.add_subparsers(dest="action", metavar="comment")
    comment = actions.add_parser("comment", help="say something on a card; `stop` stops monitoring, `resume` starts it")
    comment.add_argument("agent", help="the agent's name")
    comment.add_argument("text", nargs="+", help="what is said")
    # Without a default: it would undo what was given before the word `comment`.
    comment.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print the reply as JSON")
    add_wait(comment)


def run(options: argparse.Namespace) -> int:
    if options.action == "comment":
        return _comment(options)
    fleet, fault = open_fleet_leniently(options)
    if fault:
        say(f"{fault}; the file of the last `muster up` counts")
    return _revoke(fleet, options) if options.revoke else _enter(fleet, options)


def _enter(fleet: Fleet, options: argparse.Namespace) -> int:
    """Make a link, print it, and open it where there is a browser."""
    _must_be_writable(fleet)
    link = _link_soon(fleet, acts=options.act)
    if link is None:
        raise MusterError(_why_not(fleet))
    if options.json:
        print(json.dumps({"url": link, "acts": options.act, "lasts_s": LINK_LASTS_S}))
        return 0
    may = "may look and act, until 30 minutes after its last action" if options.act else "may look"
    print(link, flush=True)
    say(f"the link works once, within {LINK_LASTS_S / 60:.0f} minutes; the page {may}")
    if not options.url and has_display():
        # By a file: what is on a command line, every user of this machine can read.
        page = BoardAccess(fleet.home).redirect_page
        write(page, REDIRECT.format(link=html.escape(link)))
        if not webbrowser.open(page.as_uri()):
            say("no browser could be started; open the link yourself")
    return 0


def _link_soon(fleet: Fleet, *, acts: bool) -> str | None:
    """A link; right after `up` the page may need a moment."""
    until = time.monotonic() + SERVED_WITHIN_S
    while (link := new_link(fleet, acts=acts)) is None and is_up(fleet) and BOARD in fleet.services:
        if time.monotonic() > until:
            return None
        time.sleep(0.1)
    return link


def _must_be_writable(fleet: Fleet) -> None:
    """A link and its end are files, which the page's server reads."""
    if why := why_not_writable(fleet.journal):
        raise MusterError(why)


def has_display() -> bool:
    """Whether a browser that is started here is seen by who started it."""
    if "SSH_CONNECTION" in os.environ or "SSH_TTY" in os.environ:
        return False
    return sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def _why_not(fleet: Fleet) -> str:
    if BOARD not in fleet.services:
        return (
            f"{fleet.path.name} switches the board off: set `board: {{enabled: true}}` there, then run"
            " `muster down` and `muster up`"
        )
    if not is_up(fleet):
        return "the services are not running, so there is no page; start them with: muster up"
    if BOARD in switched_on_since(fleet):
        return "the board was switched on after the services were started; run `muster down` and `muster up`"
    return "the board does not serve its page (yet); `muster status` tells how it is, and `muster doctor` what to do"


def _revoke(fleet: Fleet, options: argparse.Namespace) -> int:
    _must_be_writable(fleet)
    ended = BoardAccess(fleet.home).revoke()
    if options.json:
        print(json.dumps({"sessions": ended.sessions, "links": ended.links}))
    else:
        print(f"ended {_count(ended.sessions, 'session')} and {_count(ended.links, 'unused link')}")
    return 0


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _comment(options: argparse.Namespace) -> int:
    fleet = open_fleet(options)
    check_name(options.agent)
    try:
        command = Comment(agent=options.agent, text=" ".join(options.text))
    except ValidationError as error:
        raise MusterError(f"comment can't be sent: {first_fault(error)}") from error
    if not is_up(fleet):
        say("the services are not running (start them with: muster up); the command waits for them for a minute")
    reply = ask(fleet, command, wait_s=options.wait)
    print(reply.model_dump_json() if options.json else plain(reply.said))
    return 0 if reply.ok else exit_codes.FAILED
