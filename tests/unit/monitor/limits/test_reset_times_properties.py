"""When a limit ends: what agents would print for any moment in any zone is read back as that moment."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from random import Random
from zoneinfo import ZoneInfo, available_timezones

from hypothesis import assume, example, given
from hypothesis import strategies as st

from services.monitor.limits.reset_times import read_reset

ZONES = sorted(name for name in available_timezones() if "/" in name or name == "UTC")
CHANGE_CLOCKS = (
    *("Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Antarctica/Troll", "America/St_Johns"),
    *("Africa/Casablanca", "Pacific/Chatham", "America/Nuuk", "America/Havana", "Asia/Beirut"),
)
NAMED_IN_AMERICA = ("America/New_York", "America/Chicago", "America/Denver", "America/Los_Angeles", "Pacific/Honolulu")
FIRST, LAST = map(datetime.fromisoformat, ("2024-01-01", "2036-12-31"))
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def changes(zone: str) -> list[datetime]:
    """The hours of some years in which clocks are changed."""
    hours = [datetime(2027, 1, 1, tzinfo=UTC) + HOUR * count for count in range(2 * 366 * 24)]
    offsets = [hour.astimezone(ZoneInfo(zone)).utcoffset() for hour in hours]
    return [hour for hour, offset, after in zip(hours, offsets, offsets[1:], strict=False) if offset != after]


CHANGES = [(ZoneInfo(zone), hour) for zone in CHANGE_CLOCKS for hour in changes(zone)]
EDGES = ("2028-02-29", "2028-03-01", "2027-03-01", "2027-01-01", "2026-08-01")


def spans(least: timedelta, most: timedelta) -> st.SearchStrategy[timedelta]:
    return st.timedeltas(least, most) | st.integers(0, 200).map(lambda minutes: least + minutes * MINUTE)


def aware(moment: datetime | str) -> datetime:
    return (datetime.fromisoformat(moment) if isinstance(moment, str) else moment).replace(tzinfo=UTC)


SAID = st.one_of(
    st.tuples(st.sampled_from(ZONES).map(ZoneInfo), st.datetimes(FIRST, LAST).map(aware)),
    st.builds(lambda change, span: (change[0], change[1] + span), st.sampled_from(CHANGES), spans(-DAY, 6 * HOUR)),
    st.tuples(
        st.sampled_from(ZONES).map(ZoneInfo),
        st.builds(lambda edge, span: aware(edge) + span, st.sampled_from(EDGES), spans(-DAY, DAY)),
    ),
)
"""In which zone, and when: also just before clocks change, and around the ends of months and years."""


def clock(local: datetime, *, spaced: bool) -> str:
    half = ("AM" if local.hour < 12 else "PM") if spaced else ("am" if local.hour < 12 else "pm")
    minutes = f":{local.minute:02}" if local.minute or spaced else ""
    return f"{(local.hour + 11) % 12 + 1}{minutes}{' ' if spaced else ''}{half}"


def claude(local: datetime) -> str:
    return f"{clock(local, spaced=False)} ({local.tzinfo})"


def claude_dated(local: datetime) -> str:
    return f"{local:%b} {local.day}, {claude(local)}"


def claude_next_year(local: datetime) -> str:
    return f"{local:%b} {local.day}, {local.year}, {claude(local)}"


def codex(local: datetime) -> str:
    return clock(local, spaced=True)


def codex_dated(local: datetime) -> str:
    suffix = "th" if 11 <= local.day <= 13 else {1: "st", 2: "nd", 3: "rd"}.get(local.day % 10, "th")
    return f"{local:%b} {local.day}{suffix}, {local.year} {clock(local, spaced=True)}"


def gemini(local: datetime) -> str:
    offset = local.utcoffset()
    assert offset is not None
    minutes = abs(offset) // MINUTE
    zone = f"GMT{'-' if offset < timedelta(0) else '+'}{minutes // 60}{f':{minutes % 60:02}' if minutes % 60 else ''}"
    if str(local.tzinfo) in NAMED_IN_AMERICA:
        zone = str(local.tzname())
    return f"{clock(local, spaced=True)}\u202f{zone}"


def wrapped(words: str, seed: int) -> str:
    random = Random(seed)
    return "".join(
        "\n" + " " * random.randint(0, 9) if each == " " and random.random() < 0.5 else each for each in words
    )


def last_alike(instant: datetime, zone: tzinfo) -> datetime:
    """Of the moments at which clocks show the same, within hours, the last: nobody can tell which is meant."""
    shown = f"{instant.astimezone(zone):%F %T}"
    later = (instant + 30 * MINUTE * halves for halves in range(5))
    return [each for each in later if f"{each.astimezone(zone):%F %T}" == shown][-1]


def holds(form: Callable[[datetime], str], said_at: datetime, instant: datetime, zone: tzinfo, seed: int) -> None:
    """`zone` of the agent; what names its zone is read the same by a program elsewhere."""
    words = form(instant.astimezone(zone))
    tells_offset = form is gemini
    reader = ZoneInfo("Asia/Tokyo") if form not in (codex, codex_dated) else zone
    meant = instant if tells_offset else last_alike(instant, zone)
    for text in (words, wrapped(words, seed)):
        reset = read_reset(text, said_at, reader)
        assert reset is not None, text
        assert reset.exact_to_s == 60
        assert reset.at <= meant < reset.at + timedelta(seconds=reset.exact_to_s), (text, reset.at, meant)


@given(SAID, spans(timedelta(0), 23 * HOUR), st.integers())
@example((ZoneInfo("America/New_York"), aware("2026-11-01 04:30")), HOUR, 0)
@example((ZoneInfo("America/New_York"), aware("2026-03-08 06:59:59")), timedelta(seconds=1), 0)
@example((ZoneInfo("Europe/Paris"), aware("2027-12-31 22:59:59")), timedelta(seconds=1), 0)
def test_a_time_of_day_is_read_back(said: tuple[ZoneInfo, datetime], ahead: timedelta, seed: int) -> None:
    zone, said_at = said
    instant = said_at + ahead
    holds(gemini, said_at, instant, zone, seed)
    # Where the clocks are put forward, 23 hours later they show the same time, or are past it.
    naive = (each.astimezone(zone).replace(tzinfo=None) for each in (instant, said_at))
    assume(next(naive) - next(naive) < DAY - 2 * MINUTE)
    holds(claude, said_at, instant, zone, seed)
    holds(codex, said_at, instant, zone, seed)


@given(SAID, spans(-DAY, 360 * DAY), st.integers())
@example((ZoneInfo("UTC"), aware("2027-03-01")), 365 * DAY, 0)
def test_a_date_is_read_back(said: tuple[ZoneInfo, datetime], ahead: timedelta, seed: int) -> None:
    zone, said_at = said
    for form in (claude_dated, claude_next_year, codex_dated):
        holds(form, said_at, said_at + ahead, zone, seed)


@given(st.sampled_from(NAMED_IN_AMERICA), st.datetimes(FIRST, LAST).map(aware), spans(timedelta(0), 23 * HOUR))
def test_american_abbreviations_are_read_back(zone: str, said_at: datetime, ahead: timedelta) -> None:
    holds(gemini, said_at, said_at + ahead, ZoneInfo(zone), 0)


@given(st.datetimes(FIRST, LAST).map(aware), st.integers(0, 399 * 86_400), st.integers())
def test_a_distance_is_read_back(said_at: datetime, seconds: int, seed: int) -> None:
    instant = said_at + timedelta(seconds=seconds)
    days, hours, minutes = seconds // 86_400, seconds // 3_600 % 24, seconds // 60 % 60
    forms = [(f"in {days} days {hours} hours", 3_600), (f"{days}d {hours}h {minutes}m", 60), (f"{seconds // 60}m", 60)]
    for words, exact_to_s in forms:
        reset = read_reset(wrapped(words, seed), said_at, ZoneInfo("Asia/Tokyo"))
        assert reset is not None
        assert reset.exact_to_s == exact_to_s
        assert reset.at <= instant < reset.at + timedelta(seconds=exact_to_s)


@given(st.datetimes(FIRST, LAST).map(aware), st.integers(0, 399 * 86_400))
def test_a_count_of_seconds_or_milliseconds_is_read_back(said_at: datetime, seconds: int) -> None:
    instant = said_at.replace(microsecond=0) + timedelta(seconds=seconds)
    epoch = int(instant.timestamp())
    for words in (f"|{epoch}", f"{epoch * 1000}", instant.isoformat(), f"{instant:%FT%TZ}"):
        reset = read_reset(words, said_at, ZoneInfo("Asia/Tokyo"))
        assert reset is not None
        assert (reset.at, reset.exact_to_s) == (instant, 1)
