"""Which changed paths a plan's patterns leave outside."""

from __future__ import annotations

import re
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.rules import pattern_problem
from domain.scope import outside, refused

glob_problem = partial(pattern_problem, "paths")


def allows(glob: str, path: str) -> bool:
    return outside((glob,), [path]) == ()


@pytest.mark.parametrize(
    ("glob", "inside", "beyond"),
    [
        ("README.md", ["README.md"], ["docs/README.md", "README.mdx", "readme.md", "README_md"]),
        ("docs/*.md", ["docs/a.md", "docs/.md"], ["docs/deep/a.md", "docs/a.txt", "a.md"]),
        ("docs/", ["docs/a", "docs/deep/a"], ["docs", "docs2/a", "x/docs/a"]),
        ("docs/**", ["docs/a", "docs/deep/a"], ["docs", "docs2/a", "x/docs/a"]),
        ("**", ["a", "a/b/c", ".hidden", "a\nb"], []),
        ("**/", ["a", "a/b"], []),
        ("*", ["a", ".hidden"], ["a/b"]),
        ("*/", ["a/b", "a/b/c"], ["a"]),
        ("**/*.md", ["a.md", "x/a.md", "x/y/a.md"], ["a.txt", "a.md/b"]),
        ("src/**/t?.py", ["src/t1.py", "src/x/y/t2.py"], ["t1.py", "src/t10.py", "src/t/.py"]),
        ("a/**/b/**/c", ["a/b/c", "a/x/b/y/z/c"], ["a/c", "a/b", "a/b/x"]),
        ("a/**/**/b", ["a/b", "a/x/b"], ["ab"]),
        ("a**b", ["ab", "axxb"], ["a/b"]),
        ("[a-c]?.txt", ["ax.txt"], ["dx.txt", "a/.txt"]),
        ("[!a]", ["b"], ["a", "/"]),
        ("[^a]x", ["bx"], ["ax"]),
        ("[]x]", ["]", "x"], ["a"]),
        ("[.-0]x", [".x", "0x"], ["/x"]),
        (r"\*", ["*"], ["a"]),
        (r"a\[b", ["a[b"], ["ab"]),
        ("a.b+c(d)|e", ["a.b+c(d)|e"], ["axb+c(d)|e", "e"]),
        ("größe/日本 *", ["größe/日本 x"], ["grösse/日本 x"]),
    ],
)  # fmt: skip
def test_a_pattern_matches_whole_paths_from_the_root(glob: str, inside: list[str], beyond: list[str]) -> None:
    assert [path for path in inside if not allows(glob, path)] == []
    assert [path for path in beyond if allows(glob, path)] == []


def test_a_path_needs_one_of_the_patterns_and_order_is_kept() -> None:
    changed = ["z", "src/a.py", "a", "docs/b.md", "src/b.py"]
    assert outside(("src/**", "docs/*.md"), changed) == ("z", "a")


def test_a_refused_path_is_named_whatever_else_is_allowed() -> None:
    changed = [".github/workflows/ci.yml", "src/a.py", "src/keys/b.pem"]
    assert refused((".github/**", "**/*.pem"), changed) == (".github/workflows/ci.yml", "src/keys/b.pem")
    assert refused((), changed) == ()


def test_without_patterns_everything_in_the_repository_is_allowed() -> None:
    assert outside((), ["a", "b/c"]) == ()


@pytest.mark.parametrize("path", ["../a", "a/../../b", "/etc/passwd", "a//b", "./a", "a/.", "a/", "", ".."])
def test_a_path_that_leaves_the_repository_is_always_outside(path: str) -> None:
    assert outside((), [path]) == (path,)
    assert outside(("**",), [path]) == (path,)


@pytest.mark.parametrize(
    "glob",
    ["", "/", "/a", "../a", "a/../b", "./a", "a//b", "a/.", "[", "a[b", "a[/]b", "\\", "[z-a]", "x" * 501],
)
def test_a_pattern_that_could_never_be_meant_is_refused(glob: str) -> None:
    assert glob_problem(glob)
    with pytest.raises(ValueError, match=re.escape(glob_problem(glob))):
        outside((glob,), ["a"])


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("*a" * 50 + "b", "a" * 4000),
        ("**/" * 50 + "b", "a/" * 2000 + "a"),
        ("**/*a*a*/" * 20 + "b", "aaaa/" * 800 + "a"),
        ("?*" * 100 + "b", "a" * 4000),
    ],
)
def test_a_hostile_path_cannot_send_a_match_through_every_combination(glob: str, path: str) -> None:
    assert not allows(glob, path)


def reference(glob: list[str], path: list[str]) -> bool:
    """The same rules over segments, by plain recursion."""
    if not glob or not path:
        return not glob and not path
    if glob[0] == "**":
        return len(glob) == 1 or any(reference(glob[1:], path[skip:]) for skip in range(len(path) + 1))
    return one_segment(glob[0], path[0]) and reference(glob[1:], path[1:])


def one_segment(glob: str, name: str) -> bool:
    if not glob or not name:
        return not name and not glob.strip("*")
    if glob[0] == "*":
        return any(one_segment(glob[1:], name[skip:]) for skip in range(len(name) + 1))
    return glob[0] in ("?", name[0]) and one_segment(glob[1:], name[1:])


SEGMENTS = st.sampled_from(["**", "*", "a", "b", "?", "a*", "*a", "*a*", "a?b", "**a", "a*b*a", "?*"])


@given(
    st.lists(SEGMENTS, min_size=1, max_size=5),
    st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=5),
)
def test_patterns_agree_with_plain_recursion(glob: list[str], path: list[str]) -> None:
    assert allows("/".join(glob), "/".join(path)) == reference(glob, path)


@given(st.text("ab*?[]!^-\\/.", max_size=12), st.text("ab/.\\[]*-\n", max_size=12))
def test_any_pattern_is_refused_or_answers_and_never_lets_a_path_escape(glob: str, path: str) -> None:
    if not glob_problem(glob) and allows(glob, path):
        assert not path.startswith("/")
        assert ".." not in path.split("/")


@given(st.lists(st.text("ab*?[", min_size=1, max_size=4), min_size=1, max_size=3))
def test_an_escaped_pattern_is_its_own_only_match(segments: list[str]) -> None:
    path = "/".join(segments)
    glob = re.sub(r"([*?\[])", r"\\\1", path)
    assert allows(glob, path)
    assert not allows(glob, path + "x")
