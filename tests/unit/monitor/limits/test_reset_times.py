"""When a limit ends: a table of all that agents write, with the second that it means."""

import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.monitor.limits.reset_times import ResetTime, read_reset

NEW_YORK, PARIS = ZoneInfo("America/New_York"), ZoneInfo("Europe/Paris")
NOON = "2026-11-17 12:00:20"
"""In UTC, a Tuesday; 7 in the morning in New York, where the agent is that says these things."""


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def read(words: str, said_at: str = NOON) -> ResetTime | None:
    return read_reset(words, utc(said_at), NEW_YORK)


TIMES_OF_DAY = {
    "3:35am (UTC)": "2026-11-18 03:35",
    "3am": "2026-11-18 08:00",
    "7pm": "2026-11-18 00:00",
    "12am": "2026-11-18 05:00",
    "12pm": "2026-11-17 17:00",
    "12:30 AM": "2026-11-18 05:30",
    "2am (Europe/Paris)": "2026-11-18 01:00",
    "6:06 PM": "2026-11-17 23:06",
    "15:05": "2026-11-17 20:05",
    "0:05": "2026-11-18 05:05",
    "3:05 PM PDT": "2026-11-17 22:05",
    "3:05 PM GMT+2": "2026-11-17 13:05",
    "3:05 PM GMT-3": "2026-11-17 18:05",
    "3:05 PM GMT+5:30": "2026-11-18 09:35",
    "3:05 PM GMT−3": "2026-11-17 18:05",
    "3 p.m. (UTC)": "2026-11-17 15:00",
    "at 3:05 PM PDT.": "2026-11-17 22:05",
    "3:05\u200e PM\u200b": "2026-11-17 20:05",
}
DATES = {
    "Nov 19, 1:50am (UTC)": "2026-11-19 01:50",
    "Jun 26 at 5am (America/New_York)": "2027-06-26 09:00",
    "Aug 27th, 2027 8:00 PM": "2027-08-28 00:00",
    "at Nov 22nd, 2026 8:00 PM": "2026-11-23 01:00",
    "Dec 31, 2026, 11:59pm": "2027-01-01 04:59",
    "Dec 31, 2026 at 11:59pm": "2027-01-01 04:59",
    "19 Nov 1:50": "2026-11-19 06:50",
    "19 Nov, 01:50 UTC": "2026-11-19 01:50",
    "3 September 2027 1pm": "2027-09-03 17:00",
    "Sept. 3, 1pm": "2027-09-03 17:00",
    "Thu, Nov 19, 1:50am (UTC)": "2026-11-19 01:50",
    "Nov 16, 1:50am (UTC)": "2026-11-16 01:50",
    "Mon 3pm": "2026-11-23 20:00",
    "Monday at 9am": "2026-11-23 14:00",
    "Tue 3pm": "2026-11-17 20:00",
    "Tuesday 6am": "2026-11-24 11:00",
    "Thurs 6am (UTC)": "2026-11-19 06:00",
    "5pm on Monday": "2026-11-23 22:00",
    "tomorrow at 9am": "2026-11-18 14:00",
    "9am tomorrow": "2026-11-18 14:00",
    "today at 5pm": "2026-11-17 22:00",
    "today at 5am": "2026-11-17 10:00",
    "on 2026-12-01 at 00:00 UTC": "2026-12-01 00:00",
    "2026-12-01T08:30Z": "2026-12-01 08:30",
    "2026-12-01 08:30": "2026-12-01 13:30",
    "2026-12-01T08:30+02:00": "2026-12-01 06:30",
}
SECONDS = {
    "2026-12-01T08:30:15Z": "2026-12-01 08:30:15",
    "2026-12-01t08:30:15.999z": "2026-12-01 08:30:15",
    "2026-12-01T08:30:15": "2026-12-01 13:30:15",
    "2026-12-01T08:30:15-0800": "2026-12-01 16:30:15",
    "6:06:07 PM": "2026-11-17 23:06:07",
    "1794853396": "2026-11-16 18:23:16",
    "|1794853396": "2026-11-16 18:23:16",
    "1794853396000": "2026-11-16 18:23:16",
    "11.054s": "2026-11-17 12:00:31.054000",
    "8h44m7s": "2026-11-17 20:44:27",
    "86ms": "2026-11-17 12:00:20.086000",
}
DISTANCES = {
    "in 4 days 2 hours": ("2026-11-21 14:00:20", 3_600),
    "4 days 2 hours": ("2026-11-21 14:00:20", 3_600),
    "4 days, 2 hours and 1 minute": ("2026-11-21 14:01:20", 60),
    "1h 59m": ("2026-11-17 13:59:20", 60),
    "1h59m": ("2026-11-17 13:59:20", 60),
    "3h 5m": ("2026-11-17 15:05:20", 60),
    "2 hours 5 minutes": ("2026-11-17 14:05:20", 60),
    "45 minutes": ("2026-11-17 12:45:20", 60),
    "an hour": ("2026-11-17 13:00:20", 3_600),
    "2 days": ("2026-11-19 12:00:20", 86_400),
    "1 week": ("2026-11-24 12:00:20", 604_800),
    "less than a minute": ("2026-11-17 12:00:20", 60),
    "Nov 19": ("2026-11-19 05:00", 86_400),
    "2026-12-01": ("2026-12-01 05:00", 86_400),
}
FORMS = {
    **{words: (at, 60) for words, at in (TIMES_OF_DAY | DATES).items()},
    **{words: (at, 1) for words, at in SECONDS.items()},
    **DISTANCES,
}


@pytest.mark.parametrize(("words", "at", "exact_to_s"), [(words, *meant) for words, meant in FORMS.items()])
def test_every_form_means_a_moment(words: str, at: str, exact_to_s: float) -> None:
    meant = ResetTime(utc(at), exact_to_s)
    assert read(words) == meant
    assert read(words.upper()) == read(words.lower()) == meant
    assert read(f"  {words}. ") == read(f"“{words}”,") == read(f"{words})") == read(f"{words} · saved") == meant
    assert read(words.replace(" ", "\n     ")) == read(words.replace(" ", "\u202f")) == meant


@pytest.mark.parametrize(
    "words",
    [
        *["", " ", "later", "soon", ".", "·", "|", "()", "(UTC)", "UTC", "at", "in", "an", "a", "3", "1:5", "noonish"],
        *["25:99", "24:00", "12:60", "13pm", "13:05 AM", "3:05:61", "Feb 30", "Feb 30, 3am", "Nov 31, 3am"],
        *["Nov 0, 3am", "2026-13-01", "2026-02-29T00:00Z", "2026-12-01T25:00Z", "Foo 3, 3am", "19 19, 3am"],
        *["3am (Mars/Olympus)", "3am (../x)", "3am XYZZY", "3am later", "3am 4am", "in 3am", "1h 59m attempt #1"],
        *["1794853396x", "17948533960", "9999999999", "1794657620", "999999 weeks", "401 days", "5 parsecs"],
        *["Nov 14, 2026, 3am", "Nov 14, 2025, 3am", "Dec 31, 2027, 3am", "2026-11-15T12:00:00Z", "9999-12-31"],
        *["٣:٠٥", "3:35am (UTC) (UTC)", "3:35am ((UTC)", "Feb 29, 3am", "3 amsterdam", "-5 minutes"],
        "3am" + " x" * 99,
    ],
)
def test_what_is_no_time_is_none(words: str) -> None:
    assert read(words) is None


@pytest.mark.parametrize(
    ("said_at", "words", "at"),
    [
        ("2026-11-17 15:05:00", "3:05pm (UTC)", "2026-11-17 15:05"),
        ("2026-11-17 15:05:59", "3:05pm (UTC)", "2026-11-17 15:05"),
        ("2026-11-17 15:06:02", "3:05pm (UTC)", "2026-11-17 15:05"),
        ("2026-11-17 15:07:00", "3:05pm (UTC)", "2026-11-18 15:05"),
        ("2026-11-17 15:04:59", "3:05pm (UTC)", "2026-11-17 15:05"),
        ("2026-11-18 00:00:30", "11:59pm (UTC)", "2026-11-17 23:59"),
        ("2026-11-17 23:59:30", "12am (UTC)", "2026-11-18 00:00"),
        ("2026-11-17 15:05:30", "Tue 3:05pm UTC", "2026-11-17 15:05"),
        ("2026-11-18 00:00:30", "Tue 11:59pm UTC", "2026-11-17 23:59"),
        ("2026-11-17 15:08:00", "Tue 3:05pm UTC", "2026-11-24 15:05"),
        ("2026-11-18 03:30:00", "tomorrow at 9am", "2026-11-18 14:00"),  # in New York it is still the 17th
        ("2026-12-30 12:00:00", "Jan 2, 3am (UTC)", "2027-01-02 03:00"),
        ("2027-01-01 00:05:00", "Dec 31, 11:59pm (UTC)", "2026-12-31 23:59"),
        ("2027-01-01 02:00:00", "Jan 1, 1:50am (UTC)", "2027-01-01 01:50"),
        ("2026-12-31 23:50:00", "12:10am (UTC)", "2027-01-01 00:10"),
        ("2028-02-28 23:00:00", "3am (UTC)", "2028-02-29 03:00"),
        ("2028-02-27 12:00:00", "Feb 29, 3am (UTC)", "2028-02-29 03:00"),
        ("2027-03-01 12:00:00", "Feb 29, 3am (UTC)", "2028-02-29 03:00"),
        ("2026-11-01 04:30:00", "1:30am", "2026-11-01 06:30"),  # twice: the later one
        ("2026-11-01 06:30:10", "1:30am", "2026-11-01 06:30"),
        ("2026-11-01 06:40:00", "1:30am", "2026-11-02 06:30"),
        ("2026-11-01 04:30:00", "1:30am EDT", "2026-11-01 05:30"),
        ("2026-10-25 00:00:00", "Nov 1, 1:30am", "2026-11-01 06:30"),
        ("2026-03-08 06:00:00", "2:30am", "2026-03-08 07:00"),  # never: the moment after the gap
        ("2026-03-01 06:00:00", "Mar 8 at 2:30am", "2026-03-08 07:00"),
        ("2026-03-07 12:00:00", "6am", "2026-03-08 10:00"),
    ],
)
def test_the_day_follows_from_when_it_was_said(said_at: str, words: str, at: str) -> None:
    assert read(words, said_at) == ResetTime(utc(at), 60)


def test_a_name_of_a_zone_may_be_broken_over_two_lines() -> None:
    assert read("3am (America/\n     Los_Angeles)") == ResetTime(utc("2026-11-18 11:00"), 60)


@pytest.mark.parametrize("end", ["0001-01-01 00:00", "9999-12-31 23:59:59"])
@pytest.mark.parametrize("words", FORMS)
def test_nothing_raises_at_the_ends_of_the_calendar(words: str, end: str) -> None:
    for zone in (NEW_YORK, PARIS):
        reset = read_reset(words, utc(end), zone)
        assert reset is None or abs(reset.at - utc(end)) <= timedelta(days=400)


PIECES = (
    *("1", "3", "59", "2026", "99999999", ":", "-", "/", "am"),
    *(" PM", "(", ")", "UTC", "Nov ", "19", "th", ", ", " at "),
    *("in ", "h ", "m", " days", "T", "Z", "+02", ".", "Mon", "today"),
    *("\n", "\u202f", "·", "|", "an ", "é", "\0", "𝟛", "½"),
)


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | st.text())
def test_no_text_raises(words: str) -> None:
    reset = read(words)
    assert reset is None or (reset.at.tzinfo is UTC and reset.exact_to_s >= 1)
    assert reset is None or timedelta(days=-2) <= reset.at - utc(NOON) <= timedelta(days=400)


@pytest.mark.parametrize("piece", [*PIECES, "1h ", "1h1", "1 ", "3am ", "3am (", "Nov 19, ", "\ufdfa", "a/", "and "])
def test_long_texts_take_no_time(piece: str) -> None:
    started = time.perf_counter()
    for length in (20, 90, 900, 1_000_000):
        read(piece * (length // len(piece)) + "!")
    assert time.perf_counter() - started < 1
