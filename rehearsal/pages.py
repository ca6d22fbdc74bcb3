"""A small face for a person: repositories, pull requests with their diff and checks, and three buttons.

Whoever reaches the address acts as the repository's owner, so it must be served to the local
machine only. A form is taken from our own pages alone.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from html import escape
from urllib.parse import parse_qs, urlsplit

from markdown_it import MarkdownIt
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from rehearsal import checks, merging, protection, pulls, reviews
from rehearsal.answers import Refused, not_found
from rehearsal.git import Comparison
from rehearsal.repositories import bare, find, full_name
from rehearsal.state import Row, State

# js-default escapes HTML in the text and refuses links that could run script.
_MARKDOWN = MarkdownIt("js-default")
_LONGEST_DIFF = 400_000
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    # Not no-referrer: under that a browser sends its own forms with the origin "null".
    "Referrer-Policy": "same-origin",
}
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --dim: #8889; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
a { color: inherit; } h1 { font-size: 1.4rem; } h1 small, .dim { color: gray; font-weight: normal; }
table { border-collapse: collapse; width: 100%; }
td { border-top: 1px solid var(--line); padding: .4rem .6rem .4rem 0; }
.state { border: 1px solid var(--line); border-radius: 1rem; padding: .1rem .7rem; font-size: .85rem; }
.open { background: #2da44e33; } .merged { background: #8250df33; } .closed { background: #cf222e33; }
section { border: 1px solid var(--line); border-radius: .4rem; padding: 0 1rem; margin: 1rem 0; }
pre { overflow-x: auto; font-size: .85rem; }
.add { color: #2da44e; } .del { color: #cf222e; } .hunk { color: gray; }
button { font: inherit; padding: .3rem 1rem; } form { display: inline; margin-right: .5rem; }
.refused { border-color: #cf222e; }
"""


def routes(state: State, changed: Callable[[], None]) -> list[Route]:
    def page(show: Callable[[State, Request], Response]) -> Callable[[Request], Awaitable[Response]]:
        async def respond(request: Request) -> Response:
            if not _at_home(state, request):
                return _page("Misdirected", "<h1>This is not my address</h1>", status=421)
            return await run_in_threadpool(show, state, request)

        return respond

    async def act(request: Request) -> Response:
        form = parse_qs((await request.body()).decode())
        action = form.get("action", [""])[0]
        response = await page(lambda _, request: _act(state, request, action))(request)
        changed()
        return response

    pull = "/{owner}/{repo}/pull/{number:int}"
    return [
        Route("/", page(_index)),
        Route("/{owner}/{repo}", page(_list)),
        Route("/{owner}/{repo}/pulls", page(_list)),
        Route(pull, page(_show), methods=["GET"]),
        Route(pull, act, methods=["POST"]),
    ]


def _index(state: State, _: Request) -> Response:
    rows = [
        f'<tr><td><a href="/{escape(full_name(row))}/pulls">{escape(full_name(row))}</a></td>'
        f"<td>{state.count(_OPEN, row['id'])} open</td>"
        f"<td class=dim>{'private' if row['private'] else 'public'}</td></tr>"
        for row in state.all("SELECT * FROM repository ORDER BY owner, name")
    ]
    return _page("Repositories", "<h1>Repositories</h1>", _table(rows, "There is none yet."))


_OPEN = "SELECT count(*) FROM pull JOIN issue ON issue.id = pull.issue WHERE state = 'open' AND repository = ?"


def _list(state: State, request: Request) -> Response:
    try:
        repository = _repository(state, request)
    except Refused as refused:
        return _page("Not found", "<h1>There is no such repository</h1>", status=refused.status)
    name = escape(full_name(repository))
    rows = [
        f'<tr><td>{_badge(pull)}</td><td><a href="/{name}/pull/{pull["number"]}">{escape(pull["title"])}</a>'
        f" <span class=dim>#{pull['number']}</span></td>"
        f"<td class=dim>{escape(pull['head_ref'])} → {escape(pull['base_ref'])}</td></tr>"
        for pull in pulls.search(state, repository, {"state": "all"})
    ]
    top = f"<p><a href=/>Repositories</a></p><h1>{name} <small>pull requests</small></h1>"
    return _page(full_name(repository), top, _table(rows, "There is none yet."))


def _show(state: State, request: Request, refusal: str = "", status: int = 200) -> Response:
    try:
        with state.transaction():
            repository = _repository(state, request)
            pull = pulls.read(state, repository, request.path_params["number"])
            found = pulls.compare(state, pull)
            diff = bare(state, repository).diff(pull["base_sha"], pull["head_sha"])
            parts = [
                _head(repository, pull),
                f"<section class=refused><p>{escape(refusal)}</p></section>" if refusal else "",
                f"<section>{_MARKDOWN.render(pull['body'] or '*No description.*')}</section>",
                _talk(state, pull),
                _checks(state, repository, pull),
                _buttons(state, pull, found),
                _changes(found, diff),
            ]
    except Refused as refused:
        return _page("Not found", "<h1>There is no such pull request</h1>", status=refused.status)
    return _page(f"{pull['title']} #{pull['number']}", *parts, status=status)


def _act(state: State, request: Request, action: str) -> Response:
    if not _from_our_page(request):
        return _page("Refused", "<h1>This form did not come from our own page</h1>", status=403)
    try:
        with state.transaction():
            repository = _repository(state, request)
            pull = pulls.read(state, repository, request.path_params["number"])
            owner = repository["owner"]
            if action == "merge":
                method = json.loads(repository["merge_methods"])[0]
                merging.merge(state, repository, pull, owner, method=method, sha="", title="", message="")
            elif action in ("close", "reopen"):
                wanted = {"close": "closed", "reopen": "open"}[action]
                pulls.update(state, repository, pull, owner, {"state": wanted})
    except Refused as refused:
        return _show(state, request, refusal=_words(refused), status=refused.status)
    return RedirectResponse(request.url.path, 303)


def _at_home(state: State, request: Request) -> bool:
    """Whether we were called by a name of ours. A stranger's name may have been rebound to this machine,
    and the stranger's page would then read ours.
    """
    ours = urlsplit(state.address)
    local = {f"{name}:{ours.port}" for name in ("127.0.0.1", "localhost")}
    return request.headers.get("host") in local | {ours.netloc}


def _from_our_page(request: Request) -> bool:
    """Browsers send Origin with every form; without one it was no browser, and nobody was tricked."""
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host")


def _words(refused: Refused) -> str:
    return " ".join(problem.get("message", "") for problem in refused.body.get("errors", [])) or str(refused)


def _repository(state: State, request: Request) -> Row:
    repository = find(state, request.path_params["owner"], request.path_params["repo"])
    if repository is None:
        raise not_found()
    return repository


def _badge(pull: Row) -> str:
    word = "merged" if pull["merged_at"] else pull["state"]
    return f"<span class='state {word}'>{word}</span>"


def _head(repository: Row, pull: Row) -> str:
    name = escape(full_name(repository))
    return (
        f'<p><a href=/>Repositories</a> / <a href="/{name}/pulls">{name}</a></p>'
        f"<h1>{escape(pull['title'])} <small>#{pull['number']}</small></h1>"
        f"<p>{_badge(pull)} {escape(pull['author'])} wants to merge <code>{escape(pull['head_ref'])}</code> "
        f"<span class=dim>{pull['head_sha'][:10]}</span> into <code>{escape(pull['base_ref'])}</code></p>"
    )


def _talk(state: State, pull: Row) -> str:
    said = [(row["submitted_at"], row["author"], row["state"].lower().replace("_", " "), row["body"])
            for row in reviews.of(state, pull)]  # fmt: skip
    said += [
        (row["created_at"], row["author"], "commented", row["body"])
        for row in state.all("SELECT * FROM comment WHERE issue = ? ORDER BY id", pull["issue"])
    ]
    return "".join(
        f"<section><p class=dim>{escape(who)} {escape(what)}</p>{_MARKDOWN.render(text)}</section>"
        for _, who, what, text in sorted(said)
    )


def _checks(state: State, repository: Row, pull: Row) -> str:
    found = [(row["name"], row["conclusion"] or row["status"]) for row in
             checks.runs(state, repository, pull["head_sha"])]  # fmt: skip
    found += [(row["context"], row["state"]) for row in checks.statuses(state, repository, pull["head_sha"])]
    rows = [f"<tr><td>{escape(name)}</td><td>{escape(result)}</td></tr>" for name, result in found]
    return f"<h2>Checks</h2>{_table(rows, 'None reported.')}"


def _buttons(state: State, pull: Row, found: Comparison) -> str:
    if pull["merged_at"]:
        return f"<p>Merged as <code>{escape(pull['merge_commit_sha'] or '')}</code></p>"
    if pull["state"] == "closed":
        return f"<p>{_button('reopen', 'Reopen')}</p>"
    reason = protection.unmet(state, pull) or ("" if found.mergeable else "It conflicts with its base.")
    buttons = _button("merge", "Merge") + _button("close", "Close")
    return f"<p>{buttons}<span class=dim>{escape(reason)}</span></p>"


def _button(action: str, word: str) -> str:
    return f"<form method=post><button name=action value={action}>{word}</button></form>"


def _colored(diff: str) -> str:
    classes = {"+": "add", "-": "del", "@": "hunk"}
    lines = []
    for line in diff[:_LONGEST_DIFF].splitlines():
        kind = classes.get(line[:1])
        lines.append(f"<span class={kind}>{escape(line)}</span>" if kind else escape(line))
    return "\n".join(lines)


def _changes(found: Comparison, diff: str) -> str:
    lines = f"<span class=add>+{found.additions}</span> <span class=del>-{found.deletions}</span>"
    return (
        f"<p>{found.commits} commits, {found.changed_files} files, {lines}</p>"
        f"<section><pre>{_colored(diff)}</pre></section>"
    )


def _table(rows: list[str], empty: str) -> str:
    return f"<table>{''.join(rows)}</table>" if rows else f"<p class=dim>{empty}</p>"


def _page(title: str, *parts: str, status: int = 200) -> Response:
    text = (
        f"<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>{escape(title)}</title><style>{_STYLE}</style><body>{''.join(parts)}</body></html>"
    )
    return HTMLResponse(text, status, _HEADERS)
