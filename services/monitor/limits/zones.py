"""Time zones as agents name them, and wall-clock times in them.

Claude Code writes names such as `Europe/Paris`, Gemini `PDT` or `GMT+2`. Codex names none and means its own.
"""

import re
from bisect import bisect_left
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from pathlib import Path
from zoneinfo import ZoneInfo, available_timezones

MACHINE = Path("/etc/localtime")
DIRECTORY = "/usr/share/zoneinfo/"

HOURS_EAST: Mapping[float, str] = {
    **{-10: "HST", -9: "AKST", -8: "PST AKDT", -7: "MST PDT", -6: "CST MDT", -5: "EST CDT", -4: "EDT AST"},
    **{-3.5: "NST", -3: "ADT BRT ART", -2.5: "NDT", 0: "UTC GMT UT Z WET", 1: "CET MET BST WEST WAT"},
    **{2: "CEST MEST EET SAST CAT", 3: "EEST MSK TRT EAT", 4: "GST", 5: "PKT", 5.5: "IST", 5.75: "NPT"},
    **{7: "ICT WIB", 8: "SGT HKT AWST PHT", 9: "JST KST", 9.5: "ACST", 10: "AEST", 10.5: "ACDT", 11: "AEDT"},
    **{12: "NZST", 13: "NZDT"},
}
"""Letters that mean several zones mean the one with most readers of English: IST is India's."""

ABBREVIATIONS: Mapping[str, tzinfo] = {
    name: timezone(timedelta(hours=hours)) if hours else UTC
    for hours, names in HOURS_EAST.items()
    for name in names.split()
}
OFFSET = re.compile(r"(?:GMT|UTC|UT)?([+-])(\d{1,2})(?::?(\d\d))?", re.ASCII)
FARTHEST = timedelta(hours=14)
NAME = re.compile(r"[A-Za-z][\w+-]*(?:/[\w+-]+)*", re.ASCII)
LONGEST_NAME = 64


def zone_named(name: str) -> tzinfo | None:
    """The zone that a program means by a name in its output; None if it is none."""
    name = name.strip()
    if len(name) > LONGEST_NAME:
        return None
    if match := OFFSET.fullmatch(name.upper()):
        sign, hours, minutes = match.groups(default="0")
        offset = timedelta(hours=int(hours), minutes=int(minutes))
        return timezone(offset if sign == "+" else -offset) if offset <= FARTHEST and int(minutes) < 60 else None
    return ABBREVIATIONS.get(name.upper()) or _in_database(name)


def local_zone(variable: str | None, machine: Path = MACHINE) -> tzinfo:
    """The zone of a program with this value of TZ; the machine's own if it is empty or not known. Offsets are not read:
    in TZ `UTC+2` is west of Greenwich, in what programs print it is east."""
    name = (variable or "").strip().removeprefix(":").removeprefix(DIRECTORY)
    return _in_database(name) or _zone_of(machine)


def moment_of(wall: datetime, zone: tzinfo) -> datetime:
    """When the clocks of a zone show this, in UTC. In an hour that occurs twice, the later time: resuming late is
    better than early. In an hour that does not occur, the moment after the gap."""
    first, second = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if first <= second:
        return second.replace(fold=0)
    before = second.astimezone(zone).utcoffset()

    def has_changed(seconds: int) -> bool:
        return (second + timedelta(seconds=seconds)).astimezone(zone).utcoffset() != before

    gap_s = int((first - second).total_seconds())
    return second + timedelta(seconds=bisect_left(range(gap_s), True, key=has_changed))


def _in_database(name: str) -> ZoneInfo | None:
    # A name becomes the path of a file, so only what looks like a name is tried.
    if len(name) > LONGEST_NAME or not NAME.fullmatch(name):
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown, no zone's file, a directory
        known = _names().get(name.casefold())
        return ZoneInfo(known) if known is not None else None


@lru_cache(maxsize=1)
def _names() -> Mapping[str, str]:
    return {name.casefold(): name for name in available_timezones()}


def _zone_of(machine: Path) -> tzinfo:
    """The machine's zone with its rules for summer time, which its current abbreviation does not have."""
    try:
        with machine.open("rb") as file:
            return ZoneInfo.from_file(file, key="localtime")
    except (ValueError, OSError):
        return UTC
