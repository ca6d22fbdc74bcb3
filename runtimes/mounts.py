"""What a confined run sees of the host's files, as arguments for bubblewrap.

Nothing is there but what is named: the system's directories, and whatever lies on the run's PATH outside of
them, all read-only; over these go the places that must not be seen, and over those the run's own.
"""

from __future__ import annotations

import os
import pwd
import stat
import sys
from collections.abc import Iterable, Iterator

from runtimes.files import read_bytes

SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store", "/gnu/store",
    "/var/lib/ca-certificates",
)  # fmt: skip
"""What a run sees of the system. Homes, /run, /var, /srv, /mnt, /media, /sys and the like it does not."""

EMPTY = ("/tmp", "/var/tmp")  # noqa: S108 - these are made, not used

SECRET = (
    "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssh",
    "/etc/ssl/private", "/etc/pki/tls/private", "/etc/letsencrypt", "/etc/krb5.keytab", "/etc/docker",
    "/etc/kubernetes", "/etc/rancher", "/etc/NetworkManager",
)  # fmt: skip
"""What of that is for no program of a run, and which a worker that is root could read."""

_PREFIX = ("bin", "sbin", "lib", "lib64", "libexec", "include", "share", "pyvenv.cfg")
"""What belongs to programs in a folder with a `bin`. Beside it there may be anything, credentials too."""

_DISTRIBUTION = ("/usr/bin", "/usr/sbin", "/bin", "/sbin")

_ANYBODYS = ("/", "/home", "/root", "/var", "/srv", "/run", "/mnt", "/media", "/tmp", "/var/tmp")  # noqa: S108 - named
_SHARED = (".local", "share", ".config", ".cache")
"""Folders in homes that programs of all kinds keep their things in, credentials too."""

_SETTINGS = ("/etc", "/usr/local/etc")
_FOR_ALL_TO_ENTER = stat.S_IROTH | stat.S_IXOTH


class Mounts:
    """Collects what is mounted, in order. A place is shown once, under the name that it is called by."""

    def __init__(self) -> None:
        self._arguments: list[str] = []
        self._closing: list[str] = []
        self._shown: list[str] = []
        self._hidden: list[str] = []
        self._links: set[str] = set()
        for place in SYSTEM:
            if os.path.islink(place):
                self._link(place)
            elif os.path.isdir(place):
                self._bind(place)
        for place in EMPTY:
            self._arguments += ["--tmpfs", place]

    @property
    def arguments(self) -> list[str]:
        """All of it, with what is empty closed to writing in the end, the root too."""
        return [*self._arguments, *self._closing, "--remount-ro", "/"]

    def show(self, path: str) -> None:
        """Let this be seen, read-only, with the symbolic links on the way to it as they are."""
        self._lead_to(path)
        real = os.path.realpath(path)
        if real != "/" and os.path.exists(real) and not self._sees(real):
            self._bind(real)

    def show_programs(self, path: str) -> None:
        """Let the programs of a PATH be seen, with what they need to run as far as their places tell."""
        for folder in map(os.path.normpath, path.split(os.pathsep)):
            if not os.path.isabs(folder) or not os.access(folder, os.R_OK | os.X_OK) or not os.path.isdir(folder):
                continue
            if _holds_anything(os.path.realpath(folder)):
                continue
            self.show_prefix(folder)
            # A distribution's own programs lead nowhere but to its own, and are thousands.
            for target in _linked(folder) if folder not in _DISTRIBUTION else ():
                if not self._sees(target):
                    self.show_program(target)

    def show_prefix(self, folder: str) -> None:
        """Let a folder of programs be seen, with its libraries."""
        self.show(folder)
        base, name = os.path.split(os.path.realpath(folder))
        if name == "shims":
            # A version manager's: what they start lies beside them.
            if not _holds_anything(base) and os.path.basename(base) not in _SHARED:
                self.show(base)
        elif name == ".bin":
            if os.path.basename(base) == "node_modules":
                self.show(base)
        elif name in ("bin", "sbin") and not _holds_anything(base):
            for each in _PREFIX:
                if (each, os.path.basename(base)) != ("share", ".local"):
                    self.show(os.path.join(base, each))

    def show_program(self, file: str) -> None:
        """Let a program that a link leads to be seen, with what it is a part of."""
        folder = os.path.dirname(file)
        parts = file.split("/")
        if "node_modules" in parts:
            self.show("/".join(parts[: parts.index("node_modules") + 1]))
        elif os.path.basename(folder) in ("bin", "sbin"):
            self.show_prefix(folder)
        else:
            self.show(file)

    def show_python(self) -> None:
        """Let the interpreter that we run under be seen, and what it needs to start without its packages."""
        self.show(sys.executable)
        self.show(os.path.join(os.path.dirname(os.path.dirname(sys.executable)), "pyvenv.cfg"))
        self.show_prefix(os.path.dirname(os.path.realpath(sys.executable)))

    def hide(self, path: str) -> None:
        """Let this not be seen, nor anything below it, where it would be."""
        for name in dict.fromkeys((path, os.path.realpath(path))):
            if not self._sees(name) and not any(_is_below(name, shown) for shown in self._shown):
                continue
            if any(name == hidden or _is_below(name, hidden) for hidden in self._hidden):
                continue
            self._hidden.append(name)
            if os.path.isdir(name):
                self._arguments += ["--tmpfs", name]
                self._closing += ["--remount-ro", name]
            elif os.path.lexists(name):
                self._arguments += ["--ro-bind", "/dev/null", name]

    def hide_roots(self) -> None:
        """Let nothing be seen of the system's settings that is not for everybody, where we could read it: as root."""
        if os.geteuid() == 0:
            for place in _SETTINGS:
                for path in _closed(place):
                    self.hide(path)

    def hide_sockets(self) -> None:
        """Let no socket be seen on which somebody listens: what is read-only can still be connected to."""
        for path in _sockets():
            if self._sees(path) and os.path.exists(path):
                self._arguments += ["--ro-bind-try", "/dev/null", path]

    def lend(self, path: str) -> None:
        """The run's own: it may be written."""
        self._lead_to(path)
        self._arguments += ["--bind", real := os.path.realpath(path), real]

    def fix(self, path: str, source: str = "") -> None:
        """The run's own to read only; `source` holds what is to be seen there, where it is another."""
        self._lead_to(path)
        real = os.path.realpath(path)
        self._arguments += ["--ro-bind", source or real, real]

    def _lead_to(self, path: str) -> None:
        """Put the symbolic links on the way to this where they are not seen already."""
        at = "/"
        parts = os.path.normpath(path).strip("/").split("/")
        for number, part in enumerate(parts, 1):
            at = os.path.join(at, part)
            if self._sees(at):
                return
            if os.path.islink(at):
                self._link(at)
                self._lead_to(os.path.join(os.path.dirname(at), os.readlink(at), *parts[number:]))
                return

    def _bind(self, path: str) -> None:
        self._arguments += ["--ro-bind-try", path, path]
        self._shown.append(path)

    def _link(self, path: str) -> None:
        if path not in self._links:
            self._links.add(path)
            self._arguments += ["--symlink", os.readlink(path), path]

    def _sees(self, path: str) -> bool:
        return any(path == shown or _is_below(path, shown) for shown in self._shown)


def _is_below(path: str, root: str) -> bool:
    return path.startswith(f"{root.rstrip('/')}/")


def _linked(folder: str) -> Iterator[str]:
    """The programs that the links among a folder's entries lead to in the end."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_symlink() and os.path.isfile(target := os.path.realpath(entry.path)):
                yield target


def _closed(folder: str) -> Iterator[str]:
    """What lies below a folder and is not for everybody to read; of a folder that is not, itself alone."""
    folders = [folder]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        continue
                    inside = entry.is_dir(follow_symlinks=False)
                    wanted = _FOR_ALL_TO_ENTER if inside else stat.S_IROTH
                    if entry.stat(follow_symlinks=False).st_mode & wanted != wanted:
                        yield entry.path
                    elif inside:
                        folders.append(entry.path)
        except (FileNotFoundError, PermissionError):
            # Gone since, or closed to us too: so it is not seen either.
            continue


def _holds_anything(folder: str) -> bool:
    """Whether this is somebody's home, or above one: what lies beside its `bin` is anything."""
    return folder in _ANYBODYS or os.path.dirname(folder) == "/home" or any(_is_home(folder, own) for own in _homes())


def _is_home(folder: str, own: str) -> bool:
    return own == folder or _is_below(own, folder)


def _homes() -> Iterator[str]:
    """Our own home, as the environment has it and as the system does."""
    yield os.path.realpath(os.path.expanduser("~"))
    try:
        yield os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        # A user without an entry has none.
        return


def _sockets() -> Iterable[str]:
    """The paths of this host's listening Unix sockets, as proc(5) has them: flag 10000 is for listening."""
    for line in (read_bytes("/proc/net/unix") or b"").splitlines()[1:]:
        fields = line.split(maxsplit=7)
        if len(fields) == 8 and fields[3] == b"00010000" and fields[7].startswith(b"/"):
            yield os.fsdecode(fields[7])
