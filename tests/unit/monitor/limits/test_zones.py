"""Zones by all the names that agents give them, the zone of a program, and clocks that are put forward and back."""

from datetime import UTC, datetime, timedelta, tzinfo
from importlib.resources import files
from pathlib import Path
from zoneinfo import TZPATH, ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.monitor.limits.zones import local_zone, moment_of, zone_named

SUMMER, WINTER = map(datetime.fromisoformat, ("2026-07-01", "2026-12-01"))


def file_of(zone: str) -> Path:
    """As /etc/localtime is one: from the machine, or from Python's own copy."""
    here = next((Path(place, zone) for place in TZPATH if Path(place, zone).is_file()), None)
    return here or Path(str(files("tzdata")), "zoneinfo", zone)


def hours(zone: tzinfo | None, when: datetime = WINTER) -> float | None:
    offset = zone.utcoffset(when) if zone is not None else None
    return offset / timedelta(hours=1) if offset is not None else None


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("name", "winter", "summer"),
    [
        *[("Europe/Paris", 1, 2), ("America/New_York", -5, -4), ("Asia/Kolkata", 5.5, 5.5), ("europe/paris", 1, 2)],
        *[("America/Argentina/Buenos_Aires", -3, -3), ("Etc/GMT+5", -5, -5), ("EST5EDT", -5, -4)],
        *[("UTC", 0, 0), ("GMT", 0, 0), ("Z", 0, 0), ("utc", 0, 0), (" UTC ", 0, 0), ("GMT+0", 0, 0)],
        *[("GMT+2", 2, 2), ("UTC+05:30", 5.5, 5.5), ("GMT-3", -3, -3), ("+02:00", 2, 2), ("-0330", -3.5, -3.5)],
        *[("GMT+5:45", 5.75, 5.75), ("gmt-9:30", -9.5, -9.5), ("+14:00", 14, 14), ("UTC-12", -12, -12)],
    ],
)
def test_a_zone_is_known_by_its_name_or_its_offset(name: str, winter: float, summer: float) -> None:
    assert (hours(zone_named(name)), hours(zone_named(name), SUMMER)) == (winter, summer)


@pytest.mark.parametrize(
    ("names", "east"),
    [
        *[("HST", -10), ("AKST", -9), ("PST AKDT", -8), ("MST PDT", -7), ("CST MDT", -6), ("EST CDT", -5), ("EDT", -4)],
        *[("WET", 0), ("BST WEST CET", 1), ("CEST EET SAST", 2), ("EEST MSK", 3), ("IST", 5.5), ("SGT HKT AWST", 8)],
        *[("JST KST", 9), ("ACST", 9.5), ("AEST", 10), ("ACDT", 10.5), ("AEDT", 11), ("NZST", 12), ("NZDT", 13)],
    ],
)
def test_an_abbreviation_is_the_same_all_year(names: str, east: float) -> None:
    for name in names.split():
        zones = zone_named(name), zone_named(name.lower())
        assert [hours(zone, when) for zone in zones for when in (WINTER, SUMMER)] == [east] * 4, name


@pytest.mark.parametrize(
    "name",
    [
        *["", " ", "Mars/Olympus", "Europe", "Europe/", "/etc/localtime", "/usr/share/zoneinfo/UTC", "../x", "../UTC"],
        *["Europe/../UTC", "a\0b", "tzdata.zi", "zone.tab", "é", "٣", "GMT+", "GMT+15", "+99:00", "+02:60", "+2:3"],
        "x" * 9_999,
    ],
)
def test_what_is_no_zone_is_none(name: str) -> None:
    assert zone_named(name) is None


@given(st.text(max_size=80) | st.text("+-:0123456789/.GMTUC", max_size=12))
def test_no_name_raises(name: str) -> None:
    zone = zone_named(name)
    assert zone is None or hours(zone) is not None
    assert hours(local_zone(name)) is not None


def test_every_zone_of_the_database_has_its_own_offsets() -> None:
    names = {name for name in available_timezones() if "/" in name}
    assert len(names) > 400
    for name in names:
        known = ZoneInfo(name)
        assert zone_named(name) is known
        assert zone_named(name.upper()) is not None


@pytest.mark.parametrize(
    ("variable", "winter", "summer"),
    [
        *[("Europe/Paris", 1, 2), (":Europe/Paris", 1, 2), ("EST5EDT", -5, -4), ("UTC", 0, 0), ("CET", 1, 2)],
        *[("/usr/share/zoneinfo/Europe/Paris", 1, 2), (":/usr/share/zoneinfo/Asia/Tokyo", 9, 9)],
        *[(None, 5.5, 5.5), ("", 5.5, 5.5), (":", 5.5, 5.5), ("Mars/Olympus", 5.5, 5.5), (":/etc/localtime", 5.5, 5.5)],
        *[("UTC+2", 5.5, 5.5), ("<+03>-3", 5.5, 5.5), ("../UTC", 5.5, 5.5)],
    ],
)
def test_a_program_has_the_zone_of_its_environment_or_of_the_machine(
    variable: str | None, winter: float, summer: float
) -> None:
    zone = local_zone(variable, machine=file_of("Asia/Kolkata"))
    assert (hours(zone), hours(zone, SUMMER)) == (winter, summer)


def test_the_machine_knows_its_summer_time() -> None:
    zone = local_zone(None, machine=file_of("Europe/Paris"))
    assert (hours(zone), hours(zone, SUMMER)) == (1, 2)


def test_a_machine_that_does_not_tell_its_zone_is_in_utc(tmp_path: Path) -> None:
    damaged = tmp_path / "localtime"
    damaged.write_bytes(b"TZif but not really")
    assert [local_zone(None, machine=path) for path in (tmp_path / "none", tmp_path, damaged)] == [UTC, UTC, UTC]


@pytest.mark.parametrize(
    ("zone", "wall", "moment"),
    [
        ("Europe/Paris", "2026-07-01 12:00", "2026-07-01 10:00"),
        ("UTC", "2026-07-01 12:00", "2026-07-01 12:00"),
        ("America/New_York", "2026-11-01 00:59", "2026-11-01 04:59"),
        ("America/New_York", "2026-11-01 01:30", "2026-11-01 06:30"),  # at 5:30 it was the same time
        ("America/New_York", "2026-11-01 02:00", "2026-11-01 07:00"),
        ("America/New_York", "2026-03-08 01:59", "2026-03-08 06:59"),
        *[("America/New_York", f"2026-03-08 02:{minute}", "2026-03-08 07:00") for minute in ("00", "01", "30", "59")],
        ("America/New_York", "2026-03-08 03:00", "2026-03-08 07:00"),
        ("Australia/Lord_Howe", "2026-10-04 02:15", "2026-10-03 15:30"),  # by half an hour
        ("Australia/Lord_Howe", "2026-04-05 01:45", "2026-04-04 15:15"),
        ("Antarctica/Troll", "2026-03-29 01:30", "2026-03-29 01:00"),  # by two hours
        ("Pacific/Apia", "2011-12-30 12:00", "2011-12-30 10:00"),  # a day that was left out
    ],
)
def test_clocks_show_a_time_never_once_or_twice(zone: str, wall: str, moment: str) -> None:
    meant = moment_of(at(wall), UTC if zone == "UTC" else ZoneInfo(zone))
    assert (meant, meant.tzinfo, meant.fold) == (at(moment).replace(tzinfo=UTC), UTC, 0)
