"""A report as one HTML file that needs nothing else: no script, no font, no picture from anywhere.

Whatever people, agents and forges said goes through the template, which escapes it; what is Markdown is rendered
without HTML and without pictures. The page itself says that nothing may be loaded, should any of this ever fail.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from jinja2 import Environment, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup

from domain import confinement, metering
from domain.spending import Spending
from domain.wording import OWN_WORDS, counted
from starter.output import clean
from starter.reporting import charts
from starter.reporting.facts import MorningReport, Report, TaskReport
from starter.reporting.markdown import COLUMNS, LANDED, LOST, UNKNOWN, WITHOUT_PROOF, amount, came_to, row_of, sorts_of

_HERE = Path(__file__).parent
_ADDRESS = re.compile(r"https?://[^\s<>\"'\\]+")


def plan_page(report: Report, zone: ZoneInfo) -> str:
    """The page of one plan; its times are told in `zone`."""
    below = f"What moved since {_clock(report.since, zone)}" if report.since else "From its first text to this moment"
    return _page(zone, report.title, below, [report], report.costs.whole, report.made_at, report=report)


def morning_page(morning: MorningReport, zone: ZoneInfo) -> str:
    """The page of all plans that moved; its times are told in `zone`."""
    title = f"Since {_clock(morning.since, zone)}"
    below = f"{counted(len(morning.plans), 'plan')} of {morning.owner} that moved or wait for a person"
    return _page(zone, title, below, morning.plans, morning.costs.whole, morning.made_at, morning=morning)


def _page(
    zone: ZoneInfo,
    title: str,
    below: str,
    plans: Iterable[Report],
    spent: Spending,
    made_at: str,
    report: Report | None = None,
    morning: MorningReport | None = None,
) -> str:
    style = (_HERE / "page.css").read_text(encoding="utf-8")
    template = _environment(zone).from_string((_HERE / "page.html.jinja").read_text(encoding="utf-8"))
    page = template.render(
        title=title,
        below=below,
        sums=_sums(list(plans), spent),
        style=Markup(style),  # noqa: S704 - a file of ours
        style_digest=b64encode(sha256(style.encode()).digest()).decode(),
        columns=COLUMNS,
        made_at=made_at,
        zone=zone.key,
        own_words=OWN_WORDS,
        report=report,
        morning=morning,
    )
    return f"{page.strip()}\n"


def _sums(plans: list[Report], spent: Spending) -> list[tuple[str, str, str]]:
    """What a reader wants to know first: a name, a number, and what it is to look like."""
    found: Counter[str] = Counter()
    for plan in plans:
        found.update({name: len(those) for name, those in sorts_of(_moved(plan)).items()})
    waits = sum(len(plan.waiting) for plan in plans)
    known = UNKNOWN if spent.spent_nano_usd is None else charts.to_see(spent.spent_nano_usd)
    beside = spent.unmetered_runs and spent.spent_nano_usd is not None
    return [
        ("landed, with proof", str(found[LANDED]), "merged"),
        ("merged without proof", str(found[WITHOUT_PROOF]), "unproven" if found[WITHOUT_PROOF] else ""),
        ("ended without a merge", str(found[LOST]), "failed" if found[LOST] else ""),
        ("wait for a person", str(waits), "paused" if waits else ""),
        ("spent, as far as it is known" if beside else "spent", known, ""),
    ]


def _moved(plan: Report) -> list[TaskReport]:
    return [task for task in plan.tasks if task.moved]


def _told_of(task: TaskReport) -> str:
    """What there is to be read of a task beneath its row."""
    kinds = (
        counted(len(task.checks), "check") if task.checks else "",
        counted(len(task.reviews), "review") if task.reviews else "",
        counted(len(task.earlier_reviews), "earlier review") if task.earlier_reviews else "",
        "what its agent says" if task.said else "",
    )
    return ", ".join(filter(None, kinds))


def _environment(zone: ZoneInfo) -> Environment:
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters.update(
        usd=amount,
        took=_took,
        row=row_of,
        came_to=came_to,
        sorts=sorts_of,
        told_of=_told_of,
        counted=counted,
        sentence=confinement.sentence,
        around=metering.sentence,
        has_unmetered=metering.has_unmetered,
        prose=_prose,
        cost_chart=charts.cost_chart,
        clock=lambda at: _clock(at, zone),
        timeline=lambda told: charts.timeline(
            told.tasks, zone, datetime.fromisoformat(told.made_at), _time(told.since)
        ),
        is_address=lambda url: _ADDRESS.fullmatch(url) is not None,
        short=lambda url: re.sub(r"^https?://", "", url),
    )
    return environment


def _shown(value: Any) -> Any:
    """A value as it may be shown: what reorders or hides what is seen is no part of a text."""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _prose(markdown: str) -> Markup:
    """A plan's own words, typeset. js-default escapes HTML and refuses links that could run script."""
    parser = MarkdownIt("js-default").disable("image")
    tokens = parser.parse(clean(markdown))
    for token in tokens:
        if token.type.startswith("heading_"):
            # Below the page's own headings.
            token.tag = f"h{min(6, int(token.tag[1:]) + 3)}"
    return Markup(parser.renderer.render(tokens, parser.options, {}))  # noqa: S704 - see above


def _took(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 90:
        return f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02} min"


def _clock(at: str, zone: ZoneInfo) -> str:
    moment = _time(at)
    return f"{moment.astimezone(zone):%Y-%m-%d %H:%M:%S}" if moment else ""


def _time(at: str) -> datetime | None:
    return datetime.fromisoformat(at) if at else None
