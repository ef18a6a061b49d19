"""What sentences about limits say: a table of all that agents write, and of what is no such sentence."""

import time
from datetime import UTC, datetime
from random import Random
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.monitor.limits.claims import Banner, read_banner
from services.monitor.limits.reset_times import ResetTime

NEW_YORK = ZoneInfo("America/New_York")
CODEX = "You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit https://chatgpt.com/settings/usage to purchase more credits or try again"  # noqa: E501
OPENCODE = (
    "This request would exceed your account's rate limit. Please try again later. [retrying in 1h 59m attempt #1]"
)
API = 'API Error: 400 {"type":"error","error":{"message":"You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."},"request_id":"req_1"}'  # noqa: E501
FIVE_HOUR = "You've hit your 5-hour limit · resets 4:16am (UTC)"
CONTINUES = "Usage limit reached · continuing automatically at 4:16am · esc to cancel"
CANCELLED = "Automatic continue cancelled · /rate-limit-options to re-arm"


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


SAID_AT = utc("2026-11-17 02:00:20")
"""Nine in the evening of the 16th in New York, where the agent is."""


def read(sentence: str) -> Banner | None:
    return read_banner(sentence, SAID_AT, NEW_YORK)


def says(
    scope: str, reset: str = "", continues: str = "", *, exact_to_s: float = 60, cancelled: bool = False
) -> Banner:
    told = [ResetTime(utc(each), exact_to_s) if each else None for each in (reset, continues)]
    return Banner(scope, told[0], told[1], cancelled)


BANNERS = {
    "You've hit your session limit · resets 3:35am (UTC)": says("session", "2026-11-17 03:35"),
    "You've hit your weekly limit · resets Nov 19, 1:50am (UTC)": says("weekly", "2026-11-19 01:50"),
    "You've hit your Opus limit · resets Nov 18, 1:51am (UTC)": says("Opus", "2026-11-18 01:51"),
    "You've hit your usage limit · resets 3:35am (UTC)": says("usage", "2026-11-17 03:35"),
    FIVE_HOUR: says("5-hour", "2026-11-17 04:16"),
    "Claude AI usage limit reached|1794891600": says("usage", "2026-11-17 05:00", exact_to_s=1),
    "5-hour limit reached ∙ resets 3am": says("5-hour", "2026-11-17 08:00"),
    "Session limit reached ∙ resets 7pm": says("session", "2026-11-18 00:00"),
    "Opus weekly limit reached ∙ resets 7pm": says("Opus weekly", "2026-11-18 00:00"),
    "You've hit your limit · resets 2am (Europe/Paris)": says("", "2026-11-18 01:00"),
    "You've hit your limit · resets Jun 26 at 5am (America/New_York)": says("", "2027-06-26 09:00"),
    "Session limit reached ∙ resets 7pm · progress saved": says("session", "2026-11-18 00:00"),
    "You've hit your limit · resets 3am (Mars/Olympus)": says(""),
    "You've hit your limit · resets Jun 26 at 5am (Mars/Olympus)": says(""),
    "You've hit your limit · resets 6:06 PM (Mars/Olympus)": says(""),
    "You've hit your limit · resets Nov 19,\n3am (Mars/Olympus)": says(""),
    "You've hit your limit · resets Nov 19, 3am   (Mars/Olympus)": says(""),
    "You've reached your Fable 5 limit. Run /usage-credits to continue or switch models with /model": says("Fable 5"),
    "API Error: 400 … You will regain access on 2026-12-01 at 00:00 UTC.": says("", "2026-12-01 00:00"),
    API: says("API", "2026-12-01 00:00"),
    "API Error: Request rejected (429) · This account is out of budget.": says(""),
    f"{CODEX} at 4:11 AM.": says("usage", "2026-11-17 09:11"),
    f"{CODEX} at Aug 27th, 2027 8:00 PM.": says("usage", "2027-08-28 00:00"),
    f"{CODEX} in 4 days 2 hours.": says("usage", "2026-11-21 04:00:20", exact_to_s=3_600),
    f"{CODEX} later.": says("usage"),
    f"{CODEX} later. 2 limits resets at 4:11 PM. 3 are left.": says("usage", "2026-11-17 21:11"),
    "You've hit your usage limit. Try again later.": says("usage"),
    "You've hit your usage limit for GPT-5.3-Codex-Spark. Switch to another model now, or try again at 4:11 AM.": says(
        "GPT-5.3-Codex-Spark", "2026-11-17 09:11"
    ),
    "Rate limit reached for gpt-5.1 in organization o-1 on tokens. Please try again in 11.054s. Visit https://x": says(
        "gpt-5.1", "2026-11-17 02:00:31.054", exact_to_s=1
    ),
    OPENCODE: says("rate", "2026-11-17 03:59:20", "2026-11-17 03:59:20"),
    "This account is out of budget. [retrying in 1h 59m attempt #1]": says(
        "", "2026-11-17 03:59:20", "2026-11-17 03:59:20"
    ),
    "Usage limit reached for all Pro models.": says("all Pro models"),
    "Usage limit reached for all Pro models.\nAccess resets at 3:05 PM PDT.": says(
        "all Pro models", "2026-11-17 22:05"
    ),
    "Access resets at 3:05 PM PDT.": says("", "2026-11-17 22:05"),
    "[API Error: You have exhausted your daily quota on this model.]\nPlease wait and try again later.": says("daily"),
    "You have exhausted your capacity on this model. Your quota will reset after 8h44m7s.": says(
        "", "2026-11-17 10:44:27", exact_to_s=1
    ),
    "gemini-3-pro (Limit resets in 3h 5m)": says("", "2026-11-17 05:05:20"),
    CONTINUES: says("usage", continues="2026-11-17 09:16"),
    "Continuing automatically at Nov 19, 2:16am · Esc to cancel": says("", continues="2026-11-19 07:16"),
    "⚠ Usage limit reached · limit resets 4:16am\n  Continuing automatically at 4:16am · Esc to cancel": says(
        "usage", "2026-11-17 09:16", "2026-11-17 09:16"
    ),
    CANCELLED: says("", cancelled=True),
    f"{FIVE_HOUR} · {CONTINUES}": says("5-hour", "2026-11-17 04:16", "2026-11-17 09:16"),
    f"{FIVE_HOUR}\n{CONTINUES}": says("5-hour", "2026-11-17 04:16", "2026-11-17 09:16"),
    f"{FIVE_HOUR} · {CONTINUES} · {CANCELLED}": says("5-hour", "2026-11-17 04:16", cancelled=True),
    f"{FIVE_HOUR}\n{CANCELLED}\n{CONTINUES}": says("5-hour", "2026-11-17 04:16", "2026-11-17 09:16"),
    f"{CONTINUES}\nUsage limit reset · Continuing automatically\n{FIVE_HOUR}": says("5-hour", "2026-11-17 04:16"),
    f"{FIVE_HOUR}\n/upgrade to increase your usage limit.": says("5-hour", "2026-11-17 04:16"),
    "You've hit your limit · resets 3am\n5-hour limit reached ∙ resets 3am": says("5-hour", "2026-11-17 08:00"),
}


@pytest.mark.parametrize(("sentence", "banner"), BANNERS.items())
def test_every_banner_says_which_limit_and_until_when(sentence: str, banner: Banner) -> None:
    assert read(sentence) == banner
    assert read(sentence.replace("'", "’")) == read(sentence.replace("’", "'")) == banner
    assert read("\n  " + sentence.replace(" ", "\u00a0") + "  ") == banner


@given(st.sampled_from([sentence for sentence in BANNERS if "\n" not in sentence]), st.integers())
def test_a_sentence_may_be_broken_over_lines(sentence: str, seed: int) -> None:
    random = Random(seed)
    broken = "".join("\n   " if each == " " and random.random() < 0.3 else each for each in sentence)
    banner, whole = read(broken), BANNERS[sentence]
    assert banner is not None
    assert (banner.reset, banner.continues, banner.cancelled) == (whole.reset, whole.continues, whole.cancelled)


@pytest.mark.parametrize(
    "sentence",
    [
        *["", " ", "All done.", "I'll try again at 3pm.", "The job resets at 3am (UTC).", "· progress saved"],
        *[
            "API error · Retrying in 5s · attempt 4/10",
            "Overloaded [retrying in 8s attempt #3]",
            "API Error: 500 (429 bytes)",
        ],
        *["Credit balance too low · Add funds: https://x", "Quota exceeded. Check your plan and billing details."],
        *["Server is temporarily limiting requests (not your usage limit) · Rate limited"],
        *["Approaching your 5-hour usage limit — Claude will wrap up the current step."],
        *["You've used 90% of your weekly limit · resets 3am", "The delimiter is unlimited; there is no time limit."],
        *["Usage limit reset · Continuing automatically", f"{FIVE_HOUR}\nUsage limit reset · Continuing automatically"],
    ],
)
def test_a_sentence_without_a_current_limit_is_no_banner(sentence: str) -> None:
    assert read(sentence) is None


PIECES = [word for sentence in BANNERS for word in sentence.split()] + [" ", "\n", "·", "|", "(", ")", "limit", "reset"]


@given(st.lists(st.sampled_from(PIECES), max_size=60).map(" ".join) | st.text())
def test_no_sentence_raises(sentence: str) -> None:
    banner = read(sentence)
    assert banner is None or not (banner.cancelled and banner.continues)


@pytest.mark.parametrize(
    "piece",
    [
        *["a", " ", "\n", "resets ", "resets 3am ", "hit your ", "hit your a.", "limit for ", "limit reached ", "· "],
        "a-b. ",
    ],
)
def test_long_sentences_take_no_time(piece: str) -> None:
    started = time.perf_counter()
    for length in (3_990, 1_000_000):
        read("You've hit your " + piece * (length // len(piece)) + " limit")
        read(piece * (length // len(piece)) + " 5")
    assert time.perf_counter() - started < 1
