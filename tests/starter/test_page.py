"""The report as a page: one file that needs nothing else, in which words are words; in a real browser too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from domain.identity import plan_id
from domain.projection import Check, Review
from domain.spending import Spending
from starter.reporting.charts import COLOURS, WIDTH, cost_chart, timeline
from starter.reporting.facts import Cell, Costs, MorningReport, Part, Report, RunReport, Word
from starter.reporting.loading import load_morning_report, load_plan_report
from starter.reporting.page import morning_page, plan_page
from store.database import open_store
from tests.starter.browsing import opened
from tests.store.crowd import AT, Crowd

BERLIN = ZoneInfo("Europe/Berlin")
LATER = AT + timedelta(hours=9)

ATTACK = (
    '</td></svg></style><script>document.title="taken"</script>'
    "<img src=http://evil.example/x onerror=alert(1)>\u202e\"'"
)
PROSE = f"""# Why

{ATTACK}

![a picture](http://evil.example/y.png) [a link](javascript:alert(1)) <http://fine.example/>
"""


@pytest.fixture
def report(sqlite_url: str) -> Report:
    """The report of a plan of six tasks, with every kind of end."""
    store = open_store(sqlite_url)
    crowd = Crowd().make(store)
    with store.read() as connection:
        found = load_plan_report(connection, crowd.plan, LATER)
    store.close()
    assert found is not None
    return found


@pytest.fixture
def morning(sqlite_url: str) -> MorningReport:
    store = open_store(sqlite_url)
    Crowd("one").make(store)
    Crowd("two", tasks=3, begins=AT - timedelta(days=3)).make(store)
    Crowd("still", tasks=2, begins=AT - timedelta(days=3)).make(store)
    Crowd("theirs", "bob").make(store)
    with store.read() as connection:
        found = load_morning_report(connection, "ada", LATER, AT)
    store.close()
    return found


def attacked(report: Report) -> Report:
    """As it would be if everybody whose words are in it meant harm."""
    runs = [
        [replace(run, runtime=ATTACK, model=ATTACK, outcome=ATTACK) for run in task.attempts] for task in report.tasks
    ]
    tasks = [
        replace(
            task, title=ATTACK, reason=ATTACK, said=ATTACK, waits_for=ATTACK, pull_url="javascript:alert(1)//" + ATTACK,
            checks=(Check(ATTACK, ATTACK, 0),), attempts=tuple(own),
            reviews=(Review(ATTACK, ATTACK, "rejected", ATTACK, ATTACK, ATTACK),),
            earlier_reviews=(Review(ATTACK, ATTACK, ATTACK, ATTACK, ATTACK, ATTACK),),
        )
        for task, own in zip(report.tasks, runs, strict=True)
    ]  # fmt: skip
    spending = Spending(5, 10**7, 1, 0, {"input": 3})
    costs = Costs(
        spending, (Part("1", spending, ATTACK),), (Part(ATTACK, spending),), (Part(ATTACK, spending),),
        (Cell("1", ATTACK, ATTACK, spending),),
    )  # fmt: skip
    waits = tuple(replace(each, title=ATTACK, text=ATTACK, commands=(ATTACK,)) for each in report.waiting)
    return replace(
        report, title=ATTACK, asked=PROSE, words=(Word("2026-01-01T00:00:00+00:00", ATTACK),), tasks=tuple(tasks),
        waiting=waits, costs=costs, repository=ATTACK, base=ATTACK,
    )  # fmt: skip


class Elements(HTMLParser):
    """What a page is made of: elements, and what they point at."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in ("meta", "br", "hr"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"{tag} is closed where it is not open"


def pages(report: Report, morning: MorningReport) -> Iterator[str]:
    yield plan_page(report, BERLIN)
    yield morning_page(morning, BERLIN)
    yield plan_page(attacked(report), BERLIN)
    yield morning_page(replace(morning, plans=tuple(map(attacked, morning.plans)), owner=ATTACK), BERLIN)


def test_every_page_is_well_formed_and_loads_and_runs_nothing(report: Report, morning: MorningReport) -> None:
    for page in pages(report, morning):
        elements = Elements(page)
        assert elements.open == []
        loading = {
            "script",
            "img",
            "link",
            "iframe",
            "object",
            "embed",
            "image",
            "use",
            "foreignobject",
            "base",
            "form",
        }
        assert not loading & set(elements.names)
        names = {name for name, _ in elements.attributes}
        assert not {name for name in names if name.startswith("on")} | (names & {"src", "style", "srcset", "action"})
        links = [value for name, value in elements.attributes if name == "href"]
        assert all(re.match("https?://", link) for link in links)
        assert "url(" not in page
        assert "@import" not in page
        assert "\u202e" not in page


def test_the_style_is_the_one_that_the_page_allows(report: Report) -> None:
    from base64 import b64encode
    from hashlib import sha256

    page = plan_page(report, BERLIN)
    style = page.partition("<style>")[2].partition("</style>")[0]
    policy = re.search('Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    allowed = b64encode(sha256(style.encode()).digest()).decode()
    assert policy[1].startswith(f"default-src 'none'; style-src 'sha256-{allowed}'; ")


def test_the_timeline_has_every_run_in_its_place(report: Report) -> None:
    chart = timeline(report.tasks, BERLIN, LATER, None)
    assert chart is not None
    assert len(chart.bars) == 24
    first, check, *_, last = chart.bars[:4]
    # Of 105 minutes, the first run took 20, and the check began after 30.
    assert (first.kind, check.kind) == ("author finished", "check finished")
    whole = last.x + last.width - first.x
    assert first.width / whole == pytest.approx(20 / 105, abs=0.002)
    assert (check.x - first.x) / whole == pytest.approx(30 / 105, abs=0.002)
    assert all(bar.x + bar.width <= WIDTH for bar in chart.bars)
    assert [label.text for label in chart.labels][:2] == ["1. Do thing 1", "2. Do thing 2"]
    # In the owner's clock: 21:00 UTC is 22:00 in Berlin.
    assert [tick.text for tick in chart.ticks][:2] == ["01 Mar 22:00", "22:15"]
    assert "24 runs of 6 tasks, from 2026-03-01 22:00:00 to 2026-03-01 23:45:00" in chart.text


def test_a_run_at_work_is_drawn_to_this_moment_and_one_before_the_time_not_at_all(report: Report) -> None:
    task = report.tasks[0]
    at_work = replace(task.attempts[-1], state="running", ended_at="", seconds=None)
    chart = timeline([replace(task, attempts=(*task.attempts[:-1], at_work))], BERLIN, LATER, AT + timedelta(hours=2))
    assert chart is not None
    assert [bar.kind for bar in chart.bars] == ["author finished", "check running"]
    assert chart.bars[-1].x + chart.bars[-1].width == pytest.approx(WIDTH - 16, abs=0.2)
    assert chart.bars[-1].text.endswith("at work")
    assert timeline(report.tasks, BERLIN, LATER, LATER) is None


def test_the_cost_chart_splits_each_bar_by_model_to_scale(report: Report) -> None:
    def part(name: str, spent: int, held: int = 0) -> Part:
        return Part(name, Spending(held, spent, 1))

    cells = (Cell("1", "author", "a", Spending(0, 300)), Cell("1", "check", "b", Spending(0, 100)),
             Cell("2", "author", "b", Spending(100, 100)))  # fmt: skip
    costs = Costs(
        Spending(100, 500, 3), (part("1", 400), part("2", 100, 100)), (), (part("a", 300), part("b", 200, 100)), cells
    )
    chart = cost_chart(costs)
    assert chart is not None
    assert [bar.kind for bar in chart.bars] == ["model-0 spent", "model-1 spent", "model-1 spent", "model-1 held"]
    widths = [bar.width for bar in chart.bars]
    assert widths[0] == pytest.approx(3 * widths[1], rel=0.01)
    assert widths[1] == pytest.approx(widths[2], rel=0.01)
    assert [text for _, text in chart.legend] == ["a", "b"]
    assert cost_chart(Costs()) is None
    assert cost_chart(report.costs) is not None


def test_more_models_than_colours_are_still_told_by_their_names() -> None:
    names = [f"model {number}" for number in range(COLOURS + 2)]
    parts = tuple(Part(name, Spending(0, 10, 1)) for name in names)
    whole = Spending.of(part.spending for part in parts)
    cells = tuple(Cell("1", "author", name, Spending(0, 10, 1)) for name in names)
    chart = cost_chart(Costs(whole, (Part("1", whole, "One"),), (), parts, cells))
    assert chart is not None
    assert {kind for kind, _ in chart.legend} == {f"model-{number}" for number in range(COLOURS)}
    assert [name for bar in chart.bars for name in names if bar.text.endswith(name)] == names


def test_a_morning_tells_of_every_plan_that_moved_or_waits_and_of_no_others(morning: MorningReport) -> None:
    assert [plan.plan_id for plan in morning.plans] == [plan_id("ada", "one"), plan_id("ada", "two")]
    assert [(each.plan, each.task) for each in morning.waiting] == [("one", 6), ("two", 3)]
    # What the second plan spent was before.
    assert [part.name for part in morning.costs.tasks] == ["one"]
    assert morning.costs.whole.spent_nano_usd == morning.plans[0].spent_nano_usd
    (waits,) = morning.plans[1].tasks
    assert (waits.moved, morning.plans[1].still) == (False, {"merged": 1, "failed": 1})


@pytest.fixture
def reviewed(sqlite_url: str) -> Report:
    """The report of a plan whose commits another maker's model has judged."""
    store = open_store(sqlite_url)
    crowd = Crowd(tasks=3, rounds=1, reviewed=True).make(store)
    with store.read() as connection:
        found = load_plan_report(connection, crowd.plan, LATER)
    store.close()
    assert found is not None
    return found


def test_reviews_are_rows_of_proof_and_reviewers_runs_stand_in_the_timeline_and_the_costs(reviewed: Report) -> None:
    assert [[review.verdict for review in task.reviews] for task in reviewed.tasks] == [
        ["approved"], ["changes_requested"], ["approved"],
    ]  # fmt: skip
    assert reviewed.tasks[1].reviews[0].findings == "- `a.py:3`: It says nothing of `why`."
    chart = timeline(reviewed.tasks, BERLIN, LATER, None)
    assert chart is not None
    assert [bar.kind for bar in chart.bars][:3] == ["author finished", "check finished", "reviewer finished"]
    assert "reviewer 1 by opencode: done" in chart.bars[2].text
    by_role = {part.name: part.spending.calls for part in reviewed.costs.roles}
    assert by_role == {"author": 3, "reviewer": 3}
    page = plan_page(reviewed, BERLIN)
    rows = re.findall('<li class="review">(.*?)</li>', page, re.DOTALL)
    assert len(rows) == 3
    assert "review by <code>opencode:gemini-2.5-pro</code>" in rows[1]
    assert '<span class="changes_requested">changes requested</span>' in rows[1]
    assert "In its own words, which nobody has checked:" in rows[1]
    assert "- `a.py:3`: It says nothing of `why`.</div>" in rows[1]
    assert "1 check, 1 review, what its agent says</summary>" in page


def test_what_reviewers_said_of_earlier_commits_stands_beneath_what_counts(reviewed: Report) -> None:
    task = reviewed.tasks[0]
    before = replace(task.reviews[0], commit_sha="e" * 40, verdict="changes_requested", findings="- `a.py:3`: no")
    page = plan_page(replace(reviewed, tasks=(replace(task, earlier_reviews=(before,)),)), BERLIN)
    assert "1 check, 1 review, 1 earlier review, what its agent says</summary>" in page
    counts, _, earlier = page.partition('<ul class="earlier">')
    assert counts.count('<li class="review">') == earlier.count('<li class="review">') == 1
    assert '<span class="approved">approved</span>' in counts
    assert f'<code>{"e" * 12}</code>: <span class="changes_requested">changes requested</span>' in earlier


def unmetered(report: Report, costs: Costs) -> Report:
    """As it would be if its agents were on logins of their own."""
    tasks = [
        replace(task, metering="unmetered", attempts=tuple(_around(run) for run in task.attempts))
        for task in report.tasks
    ]
    return replace(report, tasks=tuple(tasks), metering="unmetered", spent_nano_usd=None, costs=costs)


def _around(run: RunReport) -> RunReport:
    return replace(run, metering="unmetered", spent_nano_usd=None) if run.role == "author" else run


def test_a_page_never_says_that_what_is_not_known_is_nothing(report: Report) -> None:
    nothing = Spending(spent_nano_usd=None, unmetered_runs=12)
    parts = (Part("author", nothing),)
    told = unmetered(report, Costs(nothing, (Part("1", nothing, "One"),), parts, (Part("a", nothing),)))
    page = plan_page(told, BERLIN)
    assert (
        "Agents are unmetered: they call their models on logins of their own, and what that costs is not known." in page
    )
    assert "<p>What 12 unmetered runs cost is not known.</p>" in page
    assert '<dt>spent</dt><dd class="">not known</dd>' in page
    assert '2 <span class="dim">(unmetered)</span>' in page
    assert page.count(", unmetered</td>") == page.count('<td class="number">not known</td></tr>') == 12
    assert '<svg class="costs"' not in page
    some = Spending(0, 10**7, 1, 0, {"input": 3}, 12)
    page = plan_page(unmetered(report, Costs(some, (Part("1", some, "One"),), (), (), ())), BERLIN)
    assert '<dt>spent, as far as it is known</dt><dd class="">0.01 USD</dd>' in page
    assert "<p>0.01 USD spent, 1 call of models; what 12 unmetered runs cost is not known.</p>" in page
    assert '<td class="number">0.01 USD, and what is not known</td>' in page


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_shows_it_and_asks_for_nothing(report: Report, tmp_path: Path, scheme: str) -> None:
    path = tmp_path / "report.html"
    path.write_text(plan_page(report, BERLIN))
    with opened(path, scheme) as seen:
        page = seen.page
        assert page.title() == "A crowd of 6"
        assert page.locator("svg.timeline rect").count() == 24
        assert page.locator("svg.costs rect").count() == 6
        assert page.get_by_role("img", name="Runs over time, by task").is_visible()
        assert page.get_by_role("img", name="Costs by task and model").is_visible()
        assert page.locator("table.runs tbody tr").count() == 24
        assert page.locator("table.costs-by-model tbody tr").count() == 2
        assert page.get_by_text("Which `name`?").is_visible()
        # The page follows whoever looks at it, and its style is let in by its own policy.
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(13, 17, 23)"}[scheme]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        bar = page.locator("svg.timeline rect").first
        assert bar.evaluate("e => getComputedStyle(e).fill") not in ("rgb(0, 0, 0)", "none")
    assert seen.asked == [path.as_uri()]
    assert seen.wrong == []


@pytest.mark.slow
def test_in_a_browser_words_are_words(report: Report, morning: MorningReport, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    for text in [*pages(report, morning)][2:]:
        path.write_text(text)
        with opened(path, width=400) as seen:
            assert seen.page.title() != "taken"
            assert seen.page.get_by_text('<script>document.title="taken"</script>').first.is_visible()
            assert seen.page.locator("script, img, iframe").count() == 0
            assert seen.page.locator('a[href^="javascript"]').count() == 0
            assert seen.page.locator("svg.timeline rect").count() > 0
            assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert seen.asked == [path.as_uri()]
        assert seen.wrong == []


@pytest.mark.slow
def test_it_is_read_without_any_script(morning: MorningReport, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(morning_page(morning, BERLIN))
    with opened(path, scripts=False) as seen:
        seen.page.get_by_text("Every run").first.click()
        assert seen.page.locator("table.runs").first.is_visible()
        assert seen.page.get_by_role("heading", name="What waits for a person").is_visible()
    assert seen.wrong == []
