"""Showing a plan as Markdown, and keeping that in a file: an edit of such a file is said, kept aside and discarded."""

from __future__ import annotations

import shutil
import stat
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path

from domain.imprint import imprint_of
from domain.projection import render
from starter import graph
from starter import settings as settings_
from starter.discreet import reviews_without_secrets, without_secrets
from starter.exits import CommandFailed, Exit
from starter.looking import no_such_plan
from starter.names import plan_named
from starter.output import clean, note, say, say_json
from starter.settings import Settings
from starter.whole import write_whole


@dataclass(frozen=True)
class Shown:
    """A projection: `markdown` is the whole file, `seq` and `head` are where the plan's chain stood."""

    plan_id: str
    slug: str
    seq: int
    head: str
    digest: str
    markdown: str


@dataclass(frozen=True)
class Written:
    """What came of writing: where the projection is now, whether that changed, and where what was edited is kept."""

    path: str
    changed: bool
    edited: str = ""


def show(name: str, folder: Path | None, *, json: bool) -> Exit:
    """Print the plan's projection, or write it into a folder."""
    settings = settings_.load()
    shown = load_shown(settings, plan_named(name, settings.owner))
    if folder is None:
        say_json(shown) if json else say(clean(shown.markdown).rstrip("\n"))
        return Exit.DONE
    written = write(shown, folder)
    if json:
        told = {key: value for key, value in asdict(shown).items() if key != "markdown"}
        say_json({**told, **asdict(written)})
    if written.edited:
        note(f"{written.path} had been edited; nothing reads that back, and it is kept as {written.edited}")
    if not json:
        say(f"{written.path}: {'written' if written.changed else 'it was so already'}")
    return Exit.DONE


def load_shown(settings: Settings, plan_id: str) -> Shown:
    """Raises NotFound for a plan that was never published, and Unavailable without the store."""
    with graph.opened(settings) as store, store.read() as connection:
        from store.projections import projection_of

        found = projection_of(connection, plan_id)
    if found is None:
        raise no_such_plan(settings, plan_id)
    boxes = tuple(
        replace(box, view=without_secrets(box.view), reviews=reviews_without_secrets(box.reviews))
        for box in found.boxes
    )
    text = render(replace(found, boxes=boxes))
    imprint = imprint_of(text)
    assert imprint is not None
    return Shown(plan_id, found.view.slug, imprint.seq, imprint.head, imprint.digest, text)


def write(shown: Shown, folder: Path) -> Written:
    """Write the projection as `<slug>.md`, whole or not at all; what was edited in its place is kept beside it.

    Raises CommandFailed where there is something else in its place: nothing of anybody's is overwritten. OSError for
    what the disk refuses.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{shown.slug}.md"
    there = _ours(path, shown.plan_id)
    if there == shown.markdown:
        return Written(str(path), changed=False)
    imprint = imprint_of(there) if there else None
    edited = "" if imprint is None or imprint.intact else str(_kept(path))
    write_whole(path, shown.markdown)
    return Written(str(path), changed=True, edited=edited)


def _ours(path: Path, plan_id: str) -> str:
    """What this plan's projection holds, edited or not; empty where there is no file."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise CommandFailed(Exit.REFUSED, f"{path} is no file; nothing is written over it")
    except FileNotFoundError:
        return ""
    text = path.read_bytes().decode(errors="replace")
    imprint = imprint_of(text)
    if imprint is None:
        raise CommandFailed(
            Exit.REFUSED, f"{path} is no projection of {plan_id}, and is not overwritten; name another folder"
        )
    if imprint.plan != plan_id:
        said = f"{path} is the projection of another plan, {imprint.plan}, and is not overwritten"
        raise CommandFailed(Exit.REFUSED, f"{said}; name another folder")
    return text


def _kept(path: Path) -> Path:
    """The file as it is now, under a name of its own that nothing had; it stays in its place as well."""
    for number in count(1):
        beside = path.with_name(f"{path.name}.edited{'' if number == 1 else f'-{number}'}")
        try:
            # Exclusively: what was kept before stays.
            with beside.open("xb") as kept, path.open("rb") as edited:
                shutil.copyfileobj(edited, kept)
        except FileExistsError:
            continue
        return beside
    raise AssertionError("there is always a further number")
