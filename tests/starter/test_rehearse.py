"""A rehearsal takes a plan to merged pull requests on this machine alone, and leaves nothing behind."""

from __future__ import annotations

import re
import shutil
import signal
import time
from pathlib import Path

import psutil
import pytest

from domain.document import parse
from domain.review import reviewer_of
from domain.vendors import vendor_of
from starter.exits import Exit
from tests.starter.browsing import opened
from tests.starter.conftest import plan

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

ROOT = Path(__file__).parents[2]
DEMO, EXAMPLE = ROOT / "docs/examples/demo", ROOT / "docs/examples/plan.md"
REVIEWED = ROOT / "docs/examples/reviewed.md"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "README.md").write_text("# shop\n")
    return folder


@pytest.fixture
def stays_clean(watchbill, tmp_path):
    """No home of a rehearsal stays, and no process that was told of it."""
    places = tmp_path / "temporary"
    places.mkdir()
    watchbill.settings["TMPDIR"] = str(places)
    yield
    assert list(places.iterdir()) == []
    assert not [each for each in psutil.process_iter() if str(places) in _told(each)]


def _told(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline()) + str(process.environ().get("WATCHBILL_HOME"))
    except psutil.Error:
        return ""


@pytest.mark.usefixtures("stays_clean")
def test_the_demo_ends_with_three_proven_pull_requests(watchbill):
    done = watchbill("rehearse", DEMO / "plan.md", "--repository", DEMO / "shop")
    assert done.returncode == Exit.DONE, done.stdout + done.stderr
    report = done.stdout.partition("## What became of it")[2]
    assert len(re.findall(r"^- \d\. .*: \*\*merged\*\*, proven in", report, re.MULTILINE)) == 3
    assert report.count("`python3 -m unittest -q` on") == 3
    assert "Temporal's UI" in done.stdout
    assert not list((DEMO / "shop").rglob("__pycache__"))


@pytest.mark.agents
@pytest.mark.usefixtures("stays_clean")
@pytest.mark.parametrize("runtime", ["claude", "codex", "opencode"])
def test_the_example_plan_is_rehearsed_by_each_agent(watchbill, runtime):
    if shutil.which(runtime) is None:
        pytest.skip(f"{runtime} is not installed; `watchbill doctor` says how to install it")
    done = watchbill("rehearse", EXAMPLE, "--repository", ROOT, "--runtime", runtime)
    assert done.returncode == Exit.DONE, done.stdout + done.stderr
    report = done.stdout.partition("## What became of it")[2]
    boxes = len(parse(EXAMPLE.read_text()).tasks)
    assert len(re.findall(r"^- \d\. .*: \*\*merged\*\*, proven in", report, re.MULTILINE)) == boxes
    assert report.count("What the agent says of its work") == boxes


def _costs(report: str, what: str) -> dict[str, float]:
    """What each row of this table of costs says was spent, in USD."""
    table = re.search(rf"^\| {what} \|.*\n\|[-:|]+\n((?:\|.*\n?)+)", report, re.MULTILINE)
    assert table
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table[1].splitlines()]
    return {row[0]: float(row[-2].removesuffix(" USD")) for row in rows}


@pytest.mark.agents
@pytest.mark.usefixtures("stays_clean")
def test_one_makers_work_is_changed_at_anothers_request_then_approved_and_all_of_it_stands_on_the_page(
    watchbill, tmp_path
):
    spec = parse(REVIEWED.read_text())
    author, (reviewer,) = spec.tasks[0], map(reviewer_of, spec.reviewers)
    for cli in (author.runtime, reviewer.runtime):
        if shutil.which(cli) is None:
            pytest.skip(f"{cli} is not installed; `watchbill doctor` says how to install it")
    assert (author.runtime, reviewer.runtime) == ("claude", "codex")
    assert (vendor_of(author.model), reviewer.vendor) == ("anthropic", "openai")
    page = tmp_path / "reviewed.html"
    done = watchbill("rehearse", REVIEWED, "--repository", DEMO / "shop", "--html", page)
    assert done.returncode == Exit.DONE, done.stdout + done.stderr
    story, _, report = done.stdout.partition("## What became of it")

    judged = re.findall(r"(\d)-reviewer-(\d)-review: (\w+) \((\S+) on (\w+)\)$", story, re.MULTILINE)
    assert [each[:4] for each in judged] == [
        ("1", "1", "changes_requested", str(reviewer)),
        ("1", "2", "approved", str(reviewer)),
        ("2", "1", "approved", str(reviewer)),
    ]
    changed, approved, second = (each[4] for each in judged)
    assert len({changed, approved, second}) == 3
    went_back = re.findall(r"task 1: working \((\S+) asks for changes: (shop/cart\.py:\d+) .*630\.5", story)
    assert went_back == [(str(reviewer), "shop/cart.py:19")]

    assert len(re.findall(r"^- \d\. .*: \*\*merged\*\*, proven in", report, re.MULTILINE)) == 2
    assert "    - 2 runs, 2 checks, 2 reviews\n" in report
    for sha in (approved, second):
        assert f"`python3 -m unittest -q` on `{sha}`: exit 0\n" in report
        assert f"    - review by `{reviewer}` on `{sha}`: approved." in report
    assert f"    - before that, review by `{reviewer}` on `{changed}`: changes requested." in report
    by_role, by_model = _costs(report, "role"), _costs(report, "model")
    assert set(by_role) == {"author", "reviewer"}
    assert min(by_role.values()) > 0
    assert by_model == {author.model: by_role["author"], reviewer.model: by_role["reviewer"]}

    with opened(page) as seen:
        task = seen.page.locator("table.tasks tr", has_text="Take a discount off").first
        task.locator("summary").click()
        (stands,), (earlier,) = (task.locator(f"ul.{kind} li.review").all() for kind in ("proof", "earlier"))
        assert (stands.locator(".approved").is_visible(), approved in stands.inner_text()) == (True, True)
        assert (earlier.locator(".changes_requested").is_visible(), changed in earlier.inner_text()) == (True, True)
        assert "shop/cart.py:19" in earlier.inner_text()
        assert seen.page.locator(".proven").count() == 2
        assert seen.page.locator("table.costs-by-role tbody tr").count() == 2
        assert seen.page.locator("svg.timeline rect.reviewer").count() == 3
        # Of each maker's model a bar, for each of the tasks.
        assert seen.page.locator("svg.costs rect").count() == 4
    assert (seen.asked, seen.wrong) == ([page.as_uri()], [])


@pytest.mark.usefixtures("stays_clean")
def test_what_is_merged_by_hand_is_merged_by_the_rehearsal(watchbill, write, shop):
    path = write("by-hand.md", plan("by-hand"))
    done = watchbill("rehearse", path, "--repository", shop)
    assert done.returncode == Exit.DONE, done.stdout + done.stderr
    assert "approve by the rehearsal" in done.stdout


@pytest.mark.usefixtures("stays_clean")
def test_a_question_ends_the_rehearsal_with_a_report_of_it(watchbill, write, shop):
    path = write("stray.md", plan("stray", "Stray | echo x > stray.md", paths="[src/**]"))
    done = watchbill("rehearse", path, "--repository", shop)
    assert done.returncode == Exit.UNFINISHED, done.stderr
    assert "## What waits for a person" in done.stdout
    assert "stray.md" in done.stdout


@pytest.mark.usefixtures("stays_clean")
def test_what_cannot_be_rehearsed_is_one_sentence_and_starts_nothing(watchbill, write, shop):
    path = write("plan.md", plan("faster"))
    done = watchbill("rehearse", path, "--repository", shop, "--runtime", "codex", PATH="/usr/bin:/bin")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (Exit.NOT_FOUND, "", 1)
    assert "faster is done by codex, which is not on the PATH; install it: npm install --global" in done.stderr
    done = watchbill("rehearse", path, "--repository", shop / "nowhere")
    assert (done.returncode, done.stderr.count("\n")) == (Exit.NOT_FOUND, 1)
    assert "nowhere is no directory" in done.stderr
    (shop.parent / "empty").mkdir()
    done = watchbill("rehearse", path, "--repository", shop.parent / "empty")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (Exit.NOT_FOUND, "", 1)
    done = watchbill("rehearse", path, "--repository", shop, "--owner", "Ada Lovelace")
    assert (done.returncode, done.stdout) == (Exit.USAGE, "")
    assert done.stderr == "--owner is 'Ada Lovelace'; use at most 40 of a-z, 0-9 and hyphens between them\n"
    done = watchbill("rehearse", path, "--repository", shop, "--html", shop / "nowhere" / "report.html")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (Exit.NOT_FOUND, "", 1)
    assert "nowhere is no directory" in done.stderr
    done = watchbill("rehearse", path, "--repository", shop, "--html", shop)
    assert (done.returncode, done.stdout) == (Exit.NOT_FOUND, "")
    assert "cannot be written; name a file" in done.stderr
    reviewed = write("reviewed.md", plan("reviewed", reviewers="[codex]"))
    done = watchbill("rehearse", reviewed, "--repository", shop, PATH="/usr/bin:/bin")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (Exit.NOT_FOUND, "", 1)
    assert "reviewed is reviewed by codex, which is not on the PATH; install it: npm" in done.stderr
    faulty = write("faulty.md", plan("faster", slug="Nope"))
    assert watchbill("rehearse", faulty, "--repository", shop).returncode == Exit.FAULTS


@pytest.mark.usefixtures("stays_clean")
@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_during_a_run_says_at_once_what_is_waited_for_and_ends_the_run_too(
    watchbill, write, shop, tmp_path, presses
):
    begun = tmp_path / "begun"
    # A confined run could not tell the test that it has begun.
    watchbill.settings["WATCHBILL_CONFINE"] = "off"
    path = write("slow.md", plan("slow", f"Slow | touch {begun}; sleep 600"))
    rehearsing = watchbill.start("rehearse", path, "--repository", shop)
    while not begun.exists():
        assert rehearsing.poll() is None, rehearsing.communicate()
        time.sleep(0.1)
    rehearsing.send_signal(signal.SIGINT)
    assert rehearsing.stderr.readline().startswith("Stopping: worker, webhooks, relay, temporal, stand-in")
    began = time.monotonic()
    if presses == 2:
        rehearsing.send_signal(signal.SIGINT)
    _, said = rehearsing.communicate()
    assert rehearsing.returncode == Exit.INTERRUPTED
    assert said == ("Killing what has not ended\n" if presses == 2 else "")
    assert time.monotonic() - began < (8 if presses == 2 else 30)


@pytest.mark.usefixtures("stays_clean")
def test_nothing_of_this_installation_is_told_to_a_rehearsal_and_ctrl_c_ends_all_of_it(watchbill, write, shop):
    path = write("kept.md", plan("kept"))
    watchbill.settings.update(
        WATCHBILL_STORE_URL="postgresql://nowhere.invalid/x", WATCHBILL_GITHUB_API="https://nowhere.invalid",
        TEMPORAL_ADDRESS="nowhere.invalid:7233", http_proxy="http://127.0.0.1:1", HTTPS_PROXY="http://127.0.0.1:1",
    )  # fmt: skip
    rehearsing = watchbill.start("rehearse", path, "--repository", shop, "--keep")
    told = ""
    while "Ctrl-C ends it" not in told:
        told += rehearsing.stdout.readline()
    found = re.search(r"export WATCHBILL_HOME=(\S+)", told)
    assert found
    assert Path(found[1], "up.json").exists()
    rehearsing.send_signal(signal.SIGINT)
    _, said = rehearsing.communicate(timeout=120)
    assert "Traceback" not in said
    assert rehearsing.returncode in (Exit.DONE, Exit.INTERRUPTED)
