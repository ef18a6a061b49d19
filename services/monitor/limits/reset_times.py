"""Reads when a limit ends from the words of an agent. Pure.

Agents cut off what is smaller than the unit that they print, so a reset time is the earliest moment that the words can
mean, and how much later it may be.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from services.monitor.limits.zones import moment_of, zone_named

MAX_CHARACTERS, MAX_TIDY_CHARACTERS = 1_000, 100
"""No agent needs more to name a time: with the padding of a screen, and without."""
MAX_AHEAD = timedelta(days=400)
MAX_PAST = timedelta(days=2)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)

MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?" for name in MONTHS) + "|sept"
WEEKDAY = "|".join(f"{name[:3]}(?:{name[3:]})?" for name in WEEKDAYS) + "|tues|thurs?"

CLOCK = (
    r"(?=\d\d?(?::| ?[ap]\.?m\b))(?P<hour>\d\d?)(?::(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.\d+)?)?)?"
    r"(?: ?(?P<half>[ap])\.?m\b\.?)?"
)
ZONE = (
    r"(?: ?\((?P<inside>[^()]+)\)"
    r"| ?(?!on\b)(?P<zone>(?:[a-z]{2,3})?[+-]\d\d?(?::?\d\d)?|[a-z]{1,5}|[a-z]+(?:/[\w+-]+)+))?"
)
DAY_OF_MONTH = r"(?P<day>\d\d?)(?:st|nd|rd|th)?"
YEAR = r"(?:,? (?P<year>\d{4}))?"
DATES = (
    rf"(?:(?:{WEEKDAY}),? )?(?P<month>{MONTH})\.? {DAY_OF_MONTH}{YEAR}",
    rf"(?:(?:{WEEKDAY}),? )?{DAY_OF_MONTH} (?P<month>{MONTH})\.?{YEAR}",
    r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)",
    rf"(?P<named>today|tomorrow|{WEEKDAY})",
)
AS_AGENTS_WRITE = re.ASCII | re.IGNORECASE
CALENDAR = tuple(
    re.compile(form, AS_AGENTS_WRITE)
    for form in (
        *(rf"(?:on |at )?{day}(?:(?:t|,|,? (?:at )?){CLOCK})?{ZONE}" for day in DATES),
        *(rf"(?:at )?{CLOCK}{ZONE},? (?:on )?{day}" for day in DATES),
        rf"(?:at )?{CLOCK}{ZONE}",
    )
)

EPOCH = re.compile(r"(?P<seconds>\d{10})(?:\.\d+)?|(?P<milliseconds>\d{13})", re.ASCII)
SECONDS: Mapping[str, float] = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
AMOUNT = (
    r"(an?(?= )|\d{1,6}(?:\.\d{1,9})?) ?"
    r"(milliseconds?|ms|weeks?|w|days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)(?![a-z])"
)
AMOUNTS = re.compile(AMOUNT, AS_AGENTS_WRITE)
RELATIVE = re.compile(rf"(?:in |after )?(?P<under>less than )?{AMOUNT}(?:,? ?(?:and )?{AMOUNT})*", AS_AGENTS_WRITE)

ALIKE = str.maketrans("‘’ʼ“”−–", "'''\"\"--")
SEPARATED = re.compile(r" ?[·∙•]")


@dataclass(frozen=True, slots=True)
class ResetTime:
    at: datetime
    """Aware, in UTC: the earliest moment that the words can mean."""
    exact_to_s: float
    """It may be this much later."""


def read_reset(words: str, said_at: datetime, zone: tzinfo) -> ResetTime | None:
    """The time that the words name, said at this time by a program in this zone; None if they name none."""
    text = _tidy(words)
    try:
        reset = _by_epoch(text) or _by_distance(text, said_at) or _by_calendar(text, said_at, zone)
    except (ValueError, OverflowError):  # 25:99, the 30th of February, the year 10000
        return None
    return reset if reset is not None and -MAX_PAST <= reset.at - said_at <= MAX_AHEAD else None


def plain(text: str) -> str:
    """The text with plain quotes and dashes, and without invisible characters."""
    usual = unicodedata.normalize("NFKC", text).translate(ALIKE)
    return "".join(each for each in usual if unicodedata.category(each) != "Cf")


def _tidy(words: str) -> str:
    words = words.strip()
    if len(words) > MAX_CHARACTERS:
        return ""
    text = SEPARATED.split(" ".join(plain(words).split()))[0].lstrip("|\"' ").rstrip(".,;:!?|\"' ")
    while text.endswith((")", "]")) and text.count("(") < text.count(")") + text.count("]"):
        text = text[:-1].rstrip(".,;:!? ")
    return text if len(text) <= MAX_TIDY_CHARACTERS else ""


def _by_epoch(text: str) -> ResetTime | None:
    if (match := EPOCH.fullmatch(text)) is None:
        return None
    since = timedelta(seconds=int(match["seconds"] or 0), milliseconds=int(match["milliseconds"] or 0))
    return ResetTime(datetime(1970, 1, 1, tzinfo=UTC) + since, 1)


def _by_distance(text: str, said_at: datetime) -> ResetTime | None:
    if (match := RELATIVE.fullmatch(text)) is None:
        return None
    amounts = [(number.lower(), _unit(unit.lower())) for number, unit in AMOUNTS.findall(text)]
    seconds = 0.0 if match["under"] else sum((1 if "a" in number else float(number)) * unit for number, unit in amounts)
    smallest = min(unit for _, unit in amounts)
    return ResetTime(said_at.astimezone(UTC) + timedelta(seconds=seconds), max(1, smallest))


def _unit(name: str) -> float:
    return 0.001 if name.startswith(("ms", "milli")) else SECONDS[name[0]]


def _by_calendar(text: str, said_at: datetime, zone: tzinfo) -> ResetTime | None:
    match = next(filter(None, (form.fullmatch(text) for form in CALENDAR)), None)
    if match is None:
        return None
    parts = {name: part.lower() for name, part in match.groupdict().items() if part}
    # A name may be broken over two lines.
    named = "".join((match["inside"] or match["zone"] or "").split())
    place = zone_named(named) if named else zone
    if place is None:
        return None
    said_at = said_at.astimezone(UTC)
    clock = _clock(parts)
    days = _days(parts, said_at.astimezone(place).date())
    moments = (moment_of(datetime.combine(day, clock), place) for day in days)
    at = next((moment for moment in moments if moment >= _not_before(parts, said_at)), None)
    exact_to_s = 86_400 if "hour" not in parts else 1 if "second" in parts else 60
    return ResetTime(at, exact_to_s) if at is not None else None


def _not_before(parts: Mapping[str, str], said_at: datetime) -> datetime:
    """A named day may have passed. A time of day, or a weekday, is the next one. Seconds are not said, and clocks
    differ, so the minute in which it was said, or the one before, still counts as next."""
    if "day" in parts or parts.get("named") in ("today", "tomorrow"):
        return said_at - MAX_PAST
    return said_at.replace(second=0, microsecond=0) - MINUTE


def _clock(parts: Mapping[str, str]) -> time:
    hour, minute, second = (int(parts.get(name, "0")) for name in ("hour", "minute", "second"))
    if "half" in parts:
        if hour > 12:
            raise ValueError(f"{hour} {parts['half']}m")
        hour = hour % 12 + (12 if parts["half"] == "p" else 0)
    return time(hour, minute, second)


def _days(parts: Mapping[str, str], today: date) -> Iterator[date]:
    """The days that may be meant, in order, from yesterday on: midnight may have just passed."""
    near = [today + DAY * count for count in range(-1, 8)]
    match parts:
        case {"month": month, "day": day}:
            years = [int(parts["year"])] if "year" in parts else [today.year - 1, today.year, today.year + 1]
            yield from filter(None, (_day(year, _month(month), int(day)) for year in years))
        case {"named": "today"}:
            yield today
        case {"named": "tomorrow"}:
            yield today + DAY
        case {"named": weekday}:
            yield from (day for day in near if WEEKDAYS[day.weekday()].startswith(weekday[:3]))
        case _:
            yield from near


def _month(name: str) -> int:
    if name.isdigit():
        return int(name)
    return next(number for number, month in enumerate(MONTHS, start=1) if month.startswith(name[:3]))


def _day(year: int, month: int, day: int) -> date | None:
    """None for a date that does not exist, such as the 29th of February in most years."""
    try:
        return date(year, month, day)
    except ValueError:
        return None
