"""Questions in worker threads: real programs, few at once, and nothing of them is left."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from services.monitor.health.query import Query
from services.monitor.health.query_runner import MARK, QueryRunner
from shared.agents.fork import CannotAsk, Fork, ForkAnswer, ForkFailed, ForkSetup, ForkSilent, OriginalConversation
from shared.system import child_process as running
from shared.system.child_process import ERROR_BYTES, OUTPUT_BYTES, ProgramResult
from shared.system.log import Log
from tests.fixtures.broker import wait_until

ENV = {"PATH": os.environ["PATH"]}


def read(ended: ProgramResult) -> ForkAnswer | ForkFailed | None:
    return ForkAnswer(ended.out) if ended.out and ended.status is not None else None


def query(code: str, *more: str, workspace: Path = Path("/"), fork: Fork | None = None, **changes: Any) -> Query:
    known: dict[str, Any] = {
        "fork": fork or Fork(read),
        "original": OriginalConversation("c1", None, workspace, ENV),
        "argv": [sys.executable, "-I", "-c", code, *more],
        "env": {},
        "question": "How is it?",
        "model": "",
        "timeout_s": 20.0,
    }
    return Query(**{**known, **changes})


@pytest.fixture
def queries(tmp_path: Path) -> Iterator[QueryRunner]:
    made = QueryRunner(tmp_path / "peeks", lambda: None, Log("monitor"))
    yield made
    made.close()


def result(queries: QueryRunner, key: str = "k") -> Any:
    return wait_until(lambda: queries.take(key), f"an answer to {key}").result


def left(queries: QueryRunner, tmp_path: Path) -> list[Path]:
    return list((tmp_path / "peeks").glob("*"))


def marked(directory: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK, "").startswith(str(directory)) and process.status() != "zombie":
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_a_question_is_its_standard_input_and_the_answer_comes_back(queries: QueryRunner, tmp_path: Path) -> None:
    code = "import os, sys, json; print(json.dumps([sys.stdin.read(), os.getcwd(), dict(os.environ), sys.argv[1:]]))"
    queries.ask("k", query(code, "{scratch}/x", workspace=tmp_path, env={"WHERE": "{scratch}/home"}))
    stdin, cwd, env, arguments = json.loads(result(queries).text)
    assert (stdin, cwd) == ("How is it?", str(tmp_path))
    scratch = env[MARK]
    assert (env["WHERE"], arguments) == (f"{scratch}/home", [f"{scratch}/x"])
    assert set(env) <= {"PATH", "WHERE", MARK, "LC_CTYPE"}
    assert not left(queries, tmp_path)
    assert queries.take("k") is None, "an answer is taken once"


def test_a_question_may_be_an_argument(queries: QueryRunner) -> None:
    queries.ask(
        "k", query("import sys; print(sys.argv[1], repr(sys.stdin.read()))", "{question}", question="{scratch}?")
    )
    assert result(queries).text == "{scratch}? ''\n"


def test_a_fork_s_setup_is_private_and_overrides_the_agent_s_environment(queries: QueryRunner, tmp_path: Path) -> None:
    seen: list[int] = []

    def prepare(original: OriginalConversation, scratch: Path) -> ForkSetup:
        seen.append(scratch.stat().st_mode & 0o777)
        (scratch / "chat").write_text("copied")
        return ForkSetup({"PATH": None, "MORE": "1"}, scratch / "chat")

    code = "import os, sys; print(open(sys.argv[1]).read(), os.environ.get('PATH'), os.environ['MORE'])"
    queries.ask("k", query(code, "{transcript}", fork=Fork(read, prepare)))
    assert result(queries).text == "copied None 1\n"
    assert seen == [0o700]


def test_a_copy_that_can_t_be_made_is_a_failure(queries: QueryRunner, tmp_path: Path) -> None:
    def prepare(original: OriginalConversation, scratch: Path) -> ForkSetup:
        raise CannotAsk("there is no room")

    queries.ask("k", query("", fork=Fork(read, prepare)))
    assert result(queries) == ForkFailed("there is no room")
    assert not left(queries, tmp_path)


def test_a_program_that_is_not_there_is_a_failure(queries: QueryRunner) -> None:
    queries.ask("k", query("", argv=["/nowhere/claude"]))
    failed = result(queries)
    assert isinstance(failed, ForkFailed)
    assert "/nowhere/claude" in failed.reason


def test_a_program_that_says_nothing_is_a_failure(queries: QueryRunner) -> None:
    queries.ask("k", query("import sys; sys.exit(3)"))
    assert result(queries) == ForkFailed(f"{Path(sys.executable).name} ended with status 3 and said nothing")


SLEEPS = "import time; time.sleep(600)"
STUBBORN = (
    "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); print('begun', flush=True);"
    "time.sleep(600)"
)


def test_no_answer_in_time_ends_the_whole_group(
    queries: QueryRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "KILLED_AFTER_S", 0.2)
    queries.ask("k", query(STUBBORN, timeout_s=1.0))
    wait_until(lambda: len(marked(tmp_path)) == 2, "it and its child")
    assert result(queries) == ForkSilent()
    wait_until(lambda: not marked(tmp_path), "the end of both")
    assert not left(queries, tmp_path)


def test_a_child_that_stays_behind_delays_no_answer(queries: QueryRunner, tmp_path: Path) -> None:
    """It holds the pipe open; what the program itself said is the answer."""
    code = (
        "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); print('so')"
    )
    began = time.monotonic()
    queries.ask("k", query(code))
    assert result(queries).text == "so\n"
    assert time.monotonic() - began < 10
    wait_until(lambda: not marked(tmp_path), "its end")


def test_a_cancelled_question_ends_at_once_without_an_answer(queries: QueryRunner, tmp_path: Path) -> None:
    queries.ask("k", query("import time; time.sleep(600)", timeout_s=600))
    wait_until(lambda: marked(tmp_path), "it runs")
    queries.cancel("k")
    assert not queries.is_asking("k")
    wait_until(lambda: not marked(tmp_path) and not left(queries, tmp_path), "its end")
    assert queries.take("k") is None


ALONE = """
import os, sys, time
busy, order = sys.argv[2:]
os.close(os.open(busy, os.O_CREAT | os.O_EXCL))
open(order, "a").write(sys.argv[1])
time.sleep(0.5)
os.remove(busy)
print("alone")
"""


def test_few_questions_run_at_once_and_those_of_people_come_first(tmp_path: Path) -> None:
    ready = threading.Event()
    queries = QueryRunner(tmp_path / "peeks", ready.set, Log("monitor"), at_once=1)
    places = [str(tmp_path / "busy"), str(tmp_path / "order")]
    try:
        for key in "abc":
            queries.ask(key, query(ALONE, key, *places))
        queries.ask("d", query(ALONE, "d", *places), soon=True)
        queries.cancel("b")
        assert [result(queries, key) for key in "adc"] == [ForkAnswer("alone\n")] * 3
        assert (tmp_path / "order").read_text() == "adc"
        assert ready.is_set()
    finally:
        queries.close()


def test_a_flood_of_output_is_cut(queries: QueryRunner) -> None:
    queries.ask("k", query("import sys\nfor _ in range(50): sys.stdout.write('x' * 100_000)"))
    assert len(result(queries).text) == OUTPUT_BYTES


def test_a_program_that_can_only_wait_is_ended(queries: QueryRunner, tmp_path: Path) -> None:
    fork = Fork(
        lambda ended: ForkFailed(f"{ended.status} {ended.err}"), is_hopeless=lambda complaints: "limit" in complaints
    )
    queries.ask(
        "k", query(f"import sys; print('limit', file=sys.stderr, flush=True); {SLEEPS}", fork=fork, timeout_s=600)
    )
    assert result(queries) == ForkFailed("None limit\n")
    assert not marked(tmp_path)


def test_the_last_lines_of_errors_are_kept(queries: QueryRunner) -> None:
    fork = Fork(lambda ended: ForkFailed(f"{len(ended.err)} {ended.err[-4:]}"))
    code = "import sys\nfor _ in range(50): sys.stderr.write('x' * 100_000)\nsys.stderr.write('last')"
    queries.ask("k", query(code, fork=fork))
    assert result(queries) == ForkFailed(f"{ERROR_BYTES} last")


def test_programs_and_files_of_a_killed_monitor_are_removed(tmp_path: Path) -> None:
    directory = tmp_path / "peeks"
    (directory / "old").mkdir(parents=True)
    (directory / "old" / "copy.db").write_text("much")
    ours, others = (
        subprocess.Popen([sys.executable, "-c", SLEEPS], env={**ENV, MARK: str(where / "old")})
        for where in (directory, tmp_path / "other")
    )
    try:
        wait_until(lambda: len(marked(tmp_path)) == 2, "both run")
        QueryRunner(directory, lambda: None, Log("monitor")).tidy()
        assert ours.wait(10) != 0
        assert others.poll() is None
        assert list(directory.iterdir()) == []
    finally:
        for process in (ours, others):
            process.kill()
            process.wait()


def test_tidying_an_absent_directory_is_fine(tmp_path: Path) -> None:
    QueryRunner(tmp_path / "peeks", lambda: None, Log("monitor")).tidy()
    assert not (tmp_path / "peeks").exists()
