"""The forge over a GitHub that answers as the real one does, and sometimes not at all."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from domain.errors import NotFound, RateLimited, Unauthorized, Unavailable, WatchbillError
from domain.pull import MergeKind, Opened, OpenKind, PullRequest, Push, PushKind
from forge.git import Auth
from forge.github import GitHub
from forge.github_api import GitHubApi
from forge.github_auth import PersonalToken
from forge.github_errors import ErrorAnswer
from forge.mirror import Mirror
from tests.forge.desk import AT, BRANCH, TASK, plain_git
from tests.forge.github_scene import PERSON, REPOSITORY, Canned, GitHubScene
from tests.forge.traps import SECRET, make_trap, set_traps, sprung


async def opened(github: GitHubScene, branch: str = BRANCH) -> Opened:
    return await github.forge.open_pull_request(REPOSITORY, branch=branch, base="main", title="T", body="B")


async def with_pull(github: GitHubScene, files: dict[str, str] | None = None) -> PullRequest:
    github.commit(BRANCH, files or {"a": "1"})
    pull = (await opened(github)).pull
    assert pull is not None
    return pull


# The repository


async def test_a_repository_is_as_the_forge_spells_it(github: GitHubScene) -> None:
    found = await github.forge.repository(REPOSITORY)
    assert (found.name, found.default_branch, found.clone_url) == (REPOSITORY, "main", github.url)


async def test_the_default_branch_is_asked_and_not_guessed(github: GitHubScene) -> None:
    await github.as_person("POST", f"/repos/{REPOSITORY}/branches/main/rename", {"new_name": "trunk"})
    assert (await github.forge.repository(REPOSITORY)).default_branch == "trunk"


async def test_a_repository_that_is_not_there_is_not_found(github: GitHubScene) -> None:
    with pytest.raises(NotFound, match="acme/nothing is not there, or our credentials do not reach it"):
        await github.forge_of(PERSON).repository("acme/nothing")
    for name in ("shop", "acme/../user", "acme/..", "../x", "a/b/c", "acme/sh op", "acme/shop?x"):
        with pytest.raises(NotFound, match="write owner/name"):
            await github.forge.repository(name)


async def test_a_branch_has_a_head_or_is_not_there(github: GitHubScene) -> None:
    pushed = github.commit("feature/ä#1%20", {"a": "1"})
    assert await github.forge.branch_head(REPOSITORY, "feature/ä#1%20") == pushed
    assert await github.forge.branch_head(REPOSITORY, "feature/ä") is None
    assert await github.forge.branch_head(REPOSITORY, "feature") is None


# Opening


async def test_a_pull_request_is_opened_once_and_found_after_that(github: GitHubScene) -> None:
    head = github.commit(BRANCH, {"a": "1"})
    first = await opened(github)
    assert first.kind == OpenKind.OPENED
    assert first.pull is not None
    assert (first.pull.head_ref, first.pull.head_sha, first.pull.base_ref) == (BRANCH, head, "main")
    assert first.pull.open
    again = await opened(github)
    assert again.kind == OpenKind.FOUND
    assert again.pull is not None
    assert again.pull.number == first.pull.number


async def drafted(github: GitHubScene, body: str = "B") -> Opened:
    return await github.forge.open_pull_request(
        REPOSITORY, branch=BRANCH, base="main", title="T", body=body, draft=True
    )


async def test_a_draft_says_what_is_so_now_and_becomes_the_pull_request(github: GitHubScene) -> None:
    github.commit(BRANCH, {"a": "1"})
    first = await drafted(github, "unfinished")
    assert first.kind == OpenKind.OPENED
    assert first.pull is not None
    assert first.pull.draft
    again = await drafted(github, "more of it")
    assert again.pull == first.pull
    assert (await github.as_person("GET", f"/repos/{REPOSITORY}/pulls/1"))["body"] == "more of it"

    ready = await opened(github)
    assert (ready.kind, ready.pull) == (OpenKind.FOUND, replace(first.pull, draft=False))
    assert (await github.as_person("GET", f"/repos/{REPOSITORY}/pulls/1"))["body"] == "B"
    merge = await github.forge.merge_pull_request(REPOSITORY, 1, sha=first.pull.head_sha, title="T")
    assert merge.kind == MergeKind.MERGED


async def test_what_is_ready_does_not_become_a_draft_again(github: GitHubScene) -> None:
    pull = await with_pull(github)
    found = await drafted(github, "unfinished")
    assert found.pull is not None
    assert (found.kind, found.pull.number, found.pull.draft) == (OpenKind.FOUND, pull.number, False)
    assert (await github.as_person("GET", f"/repos/{REPOSITORY}/pulls/1"))["body"] == "B"


async def test_a_pull_request_of_another_text_says_that_and_only_where_it_is_wanted(github: GitHubScene) -> None:
    pull = await with_pull(github)
    for renew, said in ((False, ("T", "B")), (True, ("Other", "another body"))):
        found = await github.forge.open_pull_request(
            REPOSITORY, branch=BRANCH, base="main", title="Other", body="another body", renew=renew
        )
        assert found.pull is not None
        assert (found.kind, found.pull.number, found.pull.head_sha) == (OpenKind.FOUND, pull.number, pull.head_sha)
        shown = await github.as_person("GET", f"/repos/{REPOSITORY}/pulls/1")
        assert (shown["title"], shown["body"]) == said


async def test_a_repository_without_drafts_says_so_and_nothing_is_opened(github: GitHubScene) -> None:
    github.commit(BRANCH, {"a": "1"})
    github.standin.scene.fault("no-drafts")
    assert await drafted(github) == Opened(OpenKind.NO_DRAFTS)
    assert (await opened(github)).kind == OpenKind.OPENED


async def test_a_draft_that_somebody_made_ready_meanwhile_is_ready(github: GitHubScene) -> None:
    github.commit(BRANCH, {"a": "1"})
    await drafted(github)
    github.standin.scene.fault("error-after", path="/graphql", status=502)
    with pytest.raises(Unavailable):
        await opened(github)
    ready = await opened(github)
    assert ready.pull is not None
    assert not ready.pull.draft


async def test_a_draft_that_may_not_be_made_ready_is_an_error_that_says_so(github: GitHubScene) -> None:
    github.commit(BRANCH, {"a": "1"})
    await drafted(github)
    github.standin.scene.collaborator(REPOSITORY, "reader", "read")
    with pytest.raises(Unauthorized, match="check what the token or the App may do there"):
        await github.forge_of("reader").open_pull_request(REPOSITORY, branch=BRANCH, base="main", title="T", body="B")


async def test_many_at_once_open_one_pull_request(github: GitHubScene) -> None:
    github.commit(BRANCH, {"a": "1"})
    answers = await asyncio.gather(*(opened(github) for _ in range(6)))
    assert len({answer.pull.number for answer in answers if answer.pull}) == 1
    assert [answer.kind for answer in answers].count(OpenKind.OPENED) == 1
    assert len(await github.as_person("GET", f"/repos/{REPOSITORY}/pulls?state=all")) == 1


@pytest.mark.parametrize("fault", ["lost-after", "error-after", "lost-before", "error-before"])
async def test_a_lost_answer_does_not_make_a_second_pull_request(github: GitHubScene, fault: str) -> None:
    github.commit(BRANCH, {"a": "1"})
    github.standin.scene.fault(fault, "POST", "*/pulls")
    with pytest.raises(Unavailable):
        await opened(github)
    answer = await opened(github)
    assert answer.kind == (OpenKind.FOUND if fault.endswith("after") else OpenKind.OPENED)
    assert len(await github.as_person("GET", f"/repos/{REPOSITORY}/pulls?state=all")) == 1


async def test_a_list_that_lags_behind_does_not_make_a_second_pull_request(github: GitHubScene) -> None:
    pull = await with_pull(github)
    github.standin.scene.fault("stale-list", "GET", "*/pulls", times=2)
    with pytest.raises(Unavailable):
        await opened(github)
    found = (await opened(github)).pull
    assert found is not None
    assert found.number == pull.number


async def test_a_branch_without_commits_of_its_own_is_empty(github: GitHubScene) -> None:
    head = await github.forge.branch_head(REPOSITORY, "main")
    await github.as_person("POST", f"/repos/{REPOSITORY}/git/refs", {"ref": f"refs/heads/{BRANCH}", "sha": head})
    assert await opened(github) == Opened(OpenKind.EMPTY)


async def test_a_branch_or_base_that_is_not_there_is_named(github: GitHubScene) -> None:
    with pytest.raises(NotFound, match=f"no branch '{BRANCH}'"):
        await opened(github)
    github.commit(BRANCH, {"a": "1"})
    with pytest.raises(NotFound, match="no branch 'trunk'"):
        await github.forge.open_pull_request(REPOSITORY, branch=BRANCH, base="trunk", title="T", body="B")


async def test_a_branch_of_the_same_name_in_a_fork_is_not_ours(github: GitHubScene) -> None:
    scene = github.standin.scene
    scene.collaborator(REPOSITORY, "mallory", "read")
    fork = scene.fork(REPOSITORY, "mallory")
    github.commit(BRANCH, {"theirs": "1"}, login="mallory", to=fork)
    theirs = {"title": "x", "head": f"mallory:{BRANCH}", "base": "main"}
    await github.as_person("POST", f"/repos/{REPOSITORY}/pulls", theirs, login="mallory")
    assert await github.forge.find_pull_request(REPOSITORY, branch=BRANCH, base="main") is None
    github.commit(BRANCH, {"ours": "1"})
    assert (await opened(github)).kind == OpenKind.OPENED


async def test_a_pull_request_into_another_base_is_another_one(github: GitHubScene) -> None:
    await with_pull(github)
    github.commit("release", {"r": "1"})
    assert await github.forge.find_pull_request(REPOSITORY, branch=BRANCH, base="release") is None


async def test_what_was_merged_is_found_merged(github: GitHubScene) -> None:
    pull = await with_pull(github)
    await github.as_person("PUT", f"/repos/{REPOSITORY}/pulls/{pull.number}/merge", {"merge_method": "squash"})
    answer = await opened(github)
    assert answer.kind == OpenKind.FOUND
    assert answer.pull is not None
    assert answer.pull.merged
    assert answer.pull.merged_sha == await github.forge.branch_head(REPOSITORY, "main")
    await github.as_person("DELETE", f"/repos/{REPOSITORY}/git/refs/heads/{BRANCH}")
    assert await opened(github) == answer


async def test_what_a_person_closed_is_not_opened_again(github: GitHubScene) -> None:
    pull = await with_pull(github)
    await github.forge.close_pull_request(REPOSITORY, pull.number)
    answer = await opened(github)
    assert answer.kind == OpenKind.FOUND
    assert answer.pull is not None
    assert (answer.pull.number, answer.pull.open, answer.pull.merged) == (pull.number, False, False)


async def test_new_work_after_a_closed_pull_request_gets_a_new_one(github: GitHubScene) -> None:
    pull = await with_pull(github)
    await github.forge.close_pull_request(REPOSITORY, pull.number)
    github.commit(BRANCH, {"b": "2"})
    answer = await opened(github)
    assert answer.kind == OpenKind.OPENED
    found = await github.forge.find_pull_request(REPOSITORY, branch=BRANCH, base="main")
    assert found is not None
    assert answer.pull is not None
    assert found.number == answer.pull.number != pull.number


async def test_a_title_closes_nothing_when_it_becomes_a_commit(github: GitHubScene) -> None:
    head = github.commit(BRANCH, {"a": "1"})
    answer = await github.forge.open_pull_request(
        REPOSITORY, branch=BRANCH, base="main", title="Fixes #7 für Zoë", body="B"
    )
    assert answer.pull is not None
    await github.forge.merge_pull_request(REPOSITORY, answer.pull.number, sha=head, title="Fixes #7 für Zoë")
    landed = await github.as_person("GET", f"/repos/{REPOSITORY}/commits/main")
    assert landed["commit"]["message"].startswith(f"Fixes #\u200d7 für Zoë (#{answer.pull.number})")


# Reading, merging, closing


async def test_an_open_pull_request_tells_whether_it_can_be_merged(github: GitHubScene) -> None:
    pull = await with_pull(github)
    assert (await github.forge.read_pull_request(REPOSITORY, pull.number)).mergeable is True
    github.standin.scene.fault("mergeable-unknown", "GET", "*/pulls/*")
    read = await github.forge.read_pull_request(REPOSITORY, pull.number)
    assert read.mergeable is None
    assert read.merged_sha == ""


async def test_a_merge_is_told_with_its_commit_and_a_repeat_finds_it(github: GitHubScene) -> None:
    pull = await with_pull(github)
    merged = await merge(github, pull)
    assert merged.kind == MergeKind.MERGED
    assert merged.sha == await github.forge.branch_head(REPOSITORY, "main")
    assert await merge(github, pull) == merged
    read = await github.forge.read_pull_request(REPOSITORY, pull.number)
    assert (read.merged, read.open, read.merged_sha) == (True, False, merged.sha)
    assert read.merged_by == "watchbill-test[bot]"
    assert read.closed_at


async def merge(github: GitHubScene, pull: PullRequest, forge: GitHub | None = None):
    return await (forge or github.forge).merge_pull_request(
        REPOSITORY, pull.number, sha=pull.head_sha, title="T", message="M"
    )


async def test_a_merge_whose_answer_was_lost_is_found(github: GitHubScene) -> None:
    pull = await with_pull(github)
    github.standin.scene.fault("lost-after", "PUT", "*/merge")
    with pytest.raises(Unavailable):
        await merge(github, pull)
    assert (await merge(github, pull)).kind == MergeKind.MERGED


async def test_what_was_pushed_after_the_proof_is_not_merged(github: GitHubScene) -> None:
    pull = await with_pull(github)
    github.commit(BRANCH, {"late": "1"})
    assert (await merge(github, pull)).kind == MergeKind.HEAD_MOVED
    assert (await github.forge.read_pull_request(REPOSITORY, pull.number)).open


async def test_a_conflict_is_told_from_a_rule(github: GitHubScene) -> None:
    pull = await with_pull(github, {"README.md": "ours\n"})
    github.standin.scene.protect(REPOSITORY, "main", checks=["ci"])
    blocked = await merge(github, pull)
    assert blocked.kind == MergeKind.BLOCKED
    assert 'Required status check "ci" is expected' in blocked.reason
    github.standin.scene.protect(REPOSITORY, "main")
    github.commit("main", {"README.md": "theirs\n"})
    assert (await merge(github, pull)).kind == MergeKind.CONFLICT


async def test_a_method_that_the_repository_does_not_allow_is_said(github: GitHubScene) -> None:
    github.standin.scene.repository(REPOSITORY, merge_methods=["merge"])
    pull = await with_pull(github)
    blocked = await merge(github, pull)
    assert blocked.kind == MergeKind.BLOCKED
    assert "Squash merges are not allowed" in blocked.reason
    other = GitHub(github.api, github.app, merge_method="merge")
    assert (await merge(github, pull, other)).kind == MergeKind.MERGED


async def test_a_closed_pull_request_is_not_merged(github: GitHubScene) -> None:
    pull = await with_pull(github)
    await github.forge.close_pull_request(REPOSITORY, pull.number)
    blocked = await merge(github, pull)
    assert (blocked.kind, blocked.reason) == (MergeKind.BLOCKED, f"pull request {pull.number} is closed")


async def test_a_refused_merge_waits_while_the_forge_works_out_whether_it_could_be(
    github: GitHubScene,
) -> None:
    pull = await with_pull(github)
    github.standin.scene.protect(REPOSITORY, "main", checks=["ci"])
    github.standin.scene.fault("mergeable-unknown", "GET", "*/pulls/*")
    with pytest.raises(Unavailable, match="has not worked out yet"):
        await merge(github, pull)


async def test_a_base_that_moved_meanwhile_is_tried_again(github: GitHubScene, monkeypatch: pytest.MonkeyPatch) -> None:
    pull = await with_pull(github)
    ask = github.api.ask

    async def moving(authorization: str, method: str, path: str, **about: Any) -> object:
        if method == "PUT":
            message = b'{"message": "Base branch was modified. Review and try the merge again."}'
            raise ErrorAnswer("PUT /merge", 405, {}, message, 0).error()
        return await ask(authorization, method, path, **about)

    monkeypatch.setattr(github.api, "ask", moving)
    with pytest.raises(Unavailable, match="moved while it was being merged"):
        await merge(github, pull)


async def test_closing_is_done_once_and_a_merged_one_stays_merged(github: GitHubScene) -> None:
    pull = await with_pull(github)
    for _ in range(2):
        await github.forge.close_pull_request(REPOSITORY, pull.number)
    assert not (await github.forge.read_pull_request(REPOSITORY, pull.number)).open
    github.commit(BRANCH, {"b": "1"})
    second = (await opened(github)).pull
    assert second is not None
    await merge(github, second)
    await github.forge.close_pull_request(REPOSITORY, second.number)
    assert (await github.forge.read_pull_request(REPOSITORY, second.number)).merged


async def test_a_pull_request_that_is_not_there_is_not_found(github: GitHubScene) -> None:
    with pytest.raises(NotFound):
        await github.forge.read_pull_request(REPOSITORY, 4711)


# Comments


async def bodies(github: GitHubScene, number: int) -> list[str]:
    comments = await github.as_person("GET", f"/repos/{REPOSITORY}/issues/{number}/comments?per_page=100")
    return [comment["body"] for comment in comments]


async def test_a_comment_is_written_once_and_kept_up_to_date(github: GitHubScene) -> None:
    number = (await with_pull(github)).number
    for text in ("first", "first", "second"):
        await github.forge.comment(REPOSITORY, number, "proof", text)
    await github.forge.comment(REPOSITORY, number, "other", "another")
    assert await bodies(github, number) == [
        "<!-- watchbill comment=proof -->\nsecond",
        "<!-- watchbill comment=other -->\nanother",
    ]
    await github.asked(1, "PATCH", "")


async def test_a_persons_copy_of_our_comment_is_left_alone(github: GitHubScene) -> None:
    number = (await with_pull(github)).number
    copy = {"body": "<!-- watchbill comment=proof -->\nmine"}
    await github.as_person("POST", f"/repos/{REPOSITORY}/issues/{number}/comments", copy)
    for text in ("first", "second"):
        await github.forge.comment(REPOSITORY, number, "proof", text)
    assert await bodies(github, number) == [copy["body"], "<!-- watchbill comment=proof -->\nsecond"]


async def test_our_comment_is_found_behind_more_than_a_page_of_others(
    github: GitHubScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forge.github._PAGE", 2)
    number = (await with_pull(github)).number
    for index in range(4):
        await github.as_person("POST", f"/repos/{REPOSITORY}/issues/{number}/comments", {"body": str(index)})
    for text in ("first", "second"):
        await github.forge.comment(REPOSITORY, number, "proof", text)
    await github.asked(5, "POST", "/comments")


# Errors


@pytest.mark.parametrize(
    ("fault", "options", "wait"),
    [
        ("secondary-limit", {}, 60),
        ("secondary-limit", {"status": 429}, 60),
        ("secondary-limit", {"retry_after": "17"}, 17),
        ("secondary-limit", {"retry_after": formatdate(4_000_000_000, usegmt=True)}, 1e6),
        ("primary-limit", {"reset_in": 1200}, 1190),
    ],
)
async def test_a_limit_is_told_with_its_wait(github: GitHubScene, fault: str, options: dict, wait: float) -> None:
    await github.app.token(REPOSITORY)
    github.standin.scene.fault(fault, "GET", f"/repos/{REPOSITORY}", **options)
    with pytest.raises(RateLimited) as caught:
        await github.forge.repository(REPOSITORY)
    assert caught.value.retry_after is not None
    assert caught.value.retry_after >= wait
    assert (await github.forge.repository(REPOSITORY)).name == REPOSITORY


async def test_a_forge_that_does_not_answer_is_unavailable() -> None:
    api = GitHubApi("http://127.0.0.1:9/")
    with pytest.raises(Unavailable, match="did not answer GET /repos/acme/shop"):
        await GitHub(api, PersonalToken(api, SECRET)).repository(REPOSITORY)
    await api.close()


@pytest.mark.parametrize(("status", "content"), [(200, b"<html>a proxy</html>"), (502, b"<html>bad gateway</html>")])
async def test_what_is_not_github_is_unavailable(canned: Canned, status: int, content: bytes) -> None:
    canned.status, canned.content = status, content
    api = GitHubApi(canned.url)
    with pytest.raises(Unavailable):
        await GitHub(api, PersonalToken(api, SECRET)).repository(REPOSITORY)
    await api.close()


async def test_a_post_is_sent_once_whatever_comes_back(canned: Canned) -> None:
    canned.status = 500
    api = GitHubApi(canned.url)
    with pytest.raises(Unavailable):
        await api.ask("Bearer x", "POST", "/x", json={})
    assert len(canned.asked) == 1
    await api.close()


async def test_one_tokens_answer_is_never_given_to_another(canned: Canned) -> None:
    canned.headers = {"cache-control": "public, max-age=600", "etag": '"1"'}
    api = GitHubApi(canned.url)
    for token in ("a", "b", "a"):
        await api.ask(f"Bearer {token}", "GET", "/user")
    assert [headers["authorization"] for _, _, headers in canned.asked] == [
        "Bearer a",
        "Bearer b",
        "Bearer a",
    ]
    await api.close()


async def test_writes_are_a_second_apart_and_reads_are_not(canned: Canned, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("forge.github_api.sleep", sleep)
    api = GitHubApi(canned.url, seconds_between_writes=100)
    for method in ("POST", "GET", "PATCH", "GET", "PUT"):
        await api.ask("Bearer x", method, "/x", json=None if method == "GET" else {})
    assert [round(wait, -2) for wait in waits] == [0, 100, 200]
    await api.close()


# Git over HTTP


async def test_a_run_goes_from_the_forge_to_a_pull_request_and_the_token_is_nowhere(
    github: GitHubScene, tmp_path: Path
) -> None:
    trap = make_trap(tmp_path)
    repository = await github.forge.repository(REPOSITORY)
    auth = await github.forge.push_auth(REPOSITORY)
    mirror = Mirror(tmp_path / "home", repository.name)
    workspace = tmp_path / "home" / "workspaces" / TASK

    def work() -> Push:
        base_sha = str(mirror.fetch(repository.clone_url, auth, "main", BRANCH)["main"])
        mirror.cut(workspace, start=base_sha, branch=BRANCH, base="main", base_sha=base_sha)
        set_traps(workspace, trap)
        (workspace / "work").write_text("done")
        head = mirror.collect(
            workspace, task_id=TASK, run_id="run-1", start=base_sha, base_sha=base_sha, message="Work", at=AT
        ).head_sha
        mirror.push(repository.clone_url, auth, BRANCH, head, "")
        return mirror.push(repository.clone_url, auth, BRANCH, head, "")

    pushed = await asyncio.to_thread(work)
    assert pushed.kind == PushKind.PUSHED
    assert await github.forge.branch_head(REPOSITORY, BRANCH) == pushed.sha
    assert (await opened(github)).kind == OpenKind.OPENED
    assert sprung(trap) == ""
    token = await github.app.token(REPOSITORY)
    for path in (tmp_path / "home").rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert token.encode() not in content
            assert auth.header.encode() not in content


async def test_git_credentials_that_are_refused_are_told_apart_and_not_repeated(
    github: GitHubScene, tmp_path: Path
) -> None:
    mirror = Mirror(tmp_path / "home", REPOSITORY)
    wrong = Auth.with_token(SECRET)
    with pytest.raises(Unauthorized) as caught:
        await asyncio.to_thread(mirror.fetch, github.url, wrong, "main")
    assert SECRET not in str(caught.value)
    assert wrong.header not in str(caught.value)


async def test_a_repository_that_git_cannot_see_is_not_found(github: GitHubScene, tmp_path: Path) -> None:
    auth = await github.forge.push_auth(REPOSITORY)
    mirror = Mirror(tmp_path / "home", "acme/nothing")
    with pytest.raises((NotFound, Unauthorized)):
        await asyncio.to_thread(mirror.fetch, f"{github.standin.url}acme/nothing.git", auth, "main")


@pytest.mark.parametrize("fault", ["error-before", "lost-before", "error-after", "lost-after"])
async def test_a_push_that_was_cut_off_succeeds_when_it_is_repeated(
    github: GitHubScene, tmp_path: Path, fault: str
) -> None:
    mirror, auth, head = await fetched(github, tmp_path)
    # curl itself repeats a request once when its connection had been in use before.
    github.standin.scene.fault(fault, "POST", "*/git-receive-pack", times=2)
    try:
        first = await asyncio.to_thread(mirror.push, github.url, auth, BRANCH, head, "")
    except Unavailable:
        assert fault.endswith("before")
    else:
        # The answer was lost, but the branch is where it should be.
        assert first == Push(PushKind.PUSHED, head)
    github.standin.scene.clear_faults()
    again = await asyncio.to_thread(mirror.push, github.url, auth, BRANCH, head, "")
    assert again == Push(PushKind.PUSHED, head)
    assert await github.forge.branch_head(REPOSITORY, BRANCH) == head


async def fetched(github: GitHubScene, tmp_path: Path) -> tuple[Mirror, Auth, str]:
    """A mirror of the repository, what opens it for git, and the commit at main."""
    mirror = Mirror(tmp_path / "home", REPOSITORY)
    auth = await github.forge.push_auth(REPOSITORY)
    heads = await asyncio.to_thread(mirror.fetch, github.url, auth, "main")
    return mirror, auth, str(heads["main"])


async def test_a_persons_commit_on_the_forge_is_fetched_and_not_overwritten(
    github: GitHubScene, tmp_path: Path
) -> None:
    mirror, auth, head = await fetched(github, tmp_path)
    theirs = github.commit(BRANCH, {"person.txt": "mine"})
    moved = await asyncio.to_thread(mirror.push, github.url, auth, BRANCH, head, "")
    assert moved == Push(PushKind.MOVED, theirs)
    assert plain_git(mirror.path, "show", f"{theirs}:person.txt") == "mine"
    assert await github.forge.branch_head(REPOSITORY, BRANCH) == theirs


async def test_the_token_does_not_follow_git_to_where_a_server_sends_it(
    github: GitHubScene, canned: Canned, tmp_path: Path
) -> None:
    canned.status, canned.headers = 302, {"location": f"{github.standin.url}stolen/info/refs"}
    mirror = Mirror(tmp_path / "home", REPOSITORY)
    with pytest.raises(WatchbillError):
        await asyncio.to_thread(mirror.fetch, f"{canned.url}{REPOSITORY}.git", Auth.with_token(SECRET), "main")
    assert "authorization" in canned.asked[0][2]
    await github.asked(0, "GET", "stolen/info/refs")
