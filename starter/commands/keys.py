"""The keys that workers sign with: which there are, and which count no more."""

from __future__ import annotations

from typing import Annotated

import typer

from starter.exits import Exit
from starter.options import Json


def keys(
    retire: Annotated[
        str,
        typer.Option(metavar="KID", help="Let nothing count that this key signs from now on; 8 characters are enough."),
    ] = "",
    json: Json = False,
) -> Exit:
    """Print the keys that workers sign with, or retire one.

    Capabilities of a retired key let nobody in any more, a second later; what it sealed before stays good. It
    cannot be taken back: a worker that has the key is given another first, or starts no agent.
    """
    from starter import keys as keys_

    return keys_.retire(retire, json=json) if retire else keys_.show(json=json)
