"""Ready-made fleets, for `muster init --example` and the demo: files, a git remote, and a clone for each workspace."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from shared.errors import MusterError
from shared.fleet import Fleet, load_fleet

EXAMPLES = Path(__file__).parent / "examples"
README = "# The thing\n\nBuilt phase by phase; STATUS.md says how far it is.\n"
STATUS = "STATUS: OPEN\n"
GIT_WITHIN_S = 60.0


def examples() -> list[str]:
    return sorted(each.name for each in EXAMPLES.iterdir() if each.is_dir())


def files_of(source: Path) -> Iterator[Path]:
    """The files of a ready-made fleet, relative to its directory."""
    yield from (path.relative_to(source) for path in sorted(source.rglob("*")) if path.is_file())


def lay_out(source: Path, path: Path, *, force: bool = False) -> Fleet:
    """Write the files of a ready-made fleet beside the fleet file, and make the repositories that it names."""
    directory = path.parent
    places = {file: path if file.name == "fleet.yaml" else directory / file for file in files_of(source)}
    if there := [str(place) for place in places.values() if place.exists() and not force]:
        raise MusterError(f"{', '.join(there)}: there already; choose an empty directory, or replace them with --force")
    for file, place in places.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text((source / file).read_text(encoding="utf-8"), encoding="utf-8")
    fleet = load_fleet(path)
    for loop in fleet.declared.loops.values():
        clones = {fleet.resolve(agent.dir): each for each, agent in reversed(list(fleet.agents.items()))}
        _make_repositories(fleet.resolve(Path(loop.remote)), loop.branch, clones)
    return fleet


def _make_repositories(remote: Path, branch: str, clones: dict[Path, str]) -> None:
    """A bare remote with one commit, and a clone for each agent, with its name as the author's."""
    if remote.exists() or any(clone.exists() for clone in clones):
        return  # what people have pushed there is theirs
    if shutil.which("git") is None:
        raise MusterError("its loop needs git; install it with: apt-get install git, or brew install git")
    remote.parent.mkdir(parents=True, exist_ok=True)
    _git(remote.parent, "init", "--quiet", "--bare", str(remote))
    _git(remote, "symbolic-ref", "HEAD", f"refs/heads/{branch}")
    try:
        _fill_repositories(remote, branch, clones)
    except MusterError:
        for made in (remote, *clones):
            shutil.rmtree(made, ignore_errors=True)  # so that the next try starts from nothing
        raise


def _fill_repositories(remote: Path, branch: str, clones: dict[Path, str]) -> None:
    for place, (clone, author) in enumerate(clones.items()):
        clone.parent.mkdir(parents=True, exist_ok=True)
        _git(clone.parent, "clone", "--quiet", str(remote), str(clone))
        _git(clone, "config", "user.name", author)
        _git(clone, "config", "user.email", f"{author}@example.invalid")
        if not place:
            _git(clone, "symbolic-ref", "HEAD", f"refs/heads/{branch}")
            (clone / "README.md").write_text(README)
            (clone / "STATUS.md").write_text(STATUS)
            _git(clone, "add", "--all")
            _git(clone, "commit", "--quiet", "--message", "begin")
            _git(clone, "push", "--quiet", "--set-upstream", "origin", branch)


def _git(directory: Path, *arguments: str) -> None:
    hidden = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
    try:
        done = subprocess.run(
            ["git", "-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null", *arguments],
            cwd=directory,
            env={name: value for name, value in os.environ.items() if name not in hidden},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=GIT_WITHIN_S,
        )
    except subprocess.TimeoutExpired as error:
        raise MusterError(f"git {arguments[0]} in {directory} did not end within {GIT_WITHIN_S:g} s") from error
    if done.returncode:
        raise MusterError(f"git {arguments[0]} in {directory}: {' '.join(done.stderr.split())[:300]}")
