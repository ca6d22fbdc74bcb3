"""What a line of shell would run, as far as its text says."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.shell_line import MAX_LINE, Unsplittable, commands_of


def run_by(line: str) -> list[str]:
    return [" ".join(command.words) for command in commands_of(line) if command.words]


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("git push", ["git push"]),
        ("a && b || c; d & e | f |& g", ["a", "b", "c", "d", "e", "f", "g"]),
        ("a\nb \\\n c\n", ["a", "b c"]),
        ("""g'i't "pu"sh o\\rigin""", ["git push origin"]),
        ("A=1 B+=x git push C=2", ["git push C=2"]),
        ("A=1", []),
        ("echo 'a; b' \"c && d\" e\\;f", ["echo a; b c && d e;f"]),
        ("a # b; c\nd", ["a", "d"]),
        ("a#b", ["a#b"]),
        ("a >out 2>&1 <in &>all 3>>x b", ["a b"]),
        ("(a; b)", ["a", "b"]),
        ("if a; then b; elif c; then d; else e; fi", ["a", "b", "c", "d", "e"]),
        ("while ! a; do { b; }; done", ["a", "b"]),
        ("f() { git push; }; f", ["f", "git push", "f"]),
        ("function f { git push; }", ["git push"]),
        ("case x in a) b;; esac", ["case x in a", "b"]),
        ("for x in 1 2; do a $x; done", ["for x in 1 2", "a $x"]),
    ],
)
def test_a_line_is_split_as_a_shell_splits_it(line: str, commands: list[str]) -> None:
    assert run_by(line) == commands


@pytest.mark.parametrize(
    "line",
    [
        "echo $(git push)",
        'echo "now $(git push) then"',
        "echo `git push`",
        'echo "`git push`"',
        "echo $(echo $(echo `git push`))",
        "cat <(git push) >(tee x)",
        "x=$(git push)",
        "echo ${x:-$(git push)}",
        "echo $((1 + $(git push)))",
        "bash -c 'git push'",
        "/bin/sh -ec 'true; git push'",
        "bash -lc \"bash -c 'git push'\"",
        "eval git push",
        "eval 'git  push'",
        "bash <<'EOF'\ngit push\nEOF",
        "sh <<-EOF\n\tgit push\n\tEOF",
        "sh <<< 'git push'",
        "env A=1 git push",
        "env -i -u B A=1 sh -c 'git push'",
        "env -S 'git push'",
        "sudo -u root git push",
        "nohup nice -n 5 timeout -k 1 10 git push",
        "ls | xargs -n1 git push",
        "xargs sh -c 'git push'",
        r"find . -exec git push {} \;",
        "su -c 'git push' root",
        "command git push",
        "time git push",
        "git -C x -c a=b --no-pager push",
        "$'git' push",
        '$"git" push',
        "cd x && ( git push )",
        "bash -c -x 'git push'",
        "bash -c -- 'git push'",
        "bash -c -o pipefail 'git push'",
        "bash -euco pipefail 'git push'",
        "bash +c 'git push'",
        "bash -c 'true' -c 'git push'",
        "su --command='git push'",
        "su --comm='git push' root",
        "su root --session-command 'git push'",
        "su -c'git push' root",
        "fish --init-command='git push'",
        "cat <<X\n$(git push)\nX",
        "cat <<X\nit's `git push`\nX",
        'cat <<-X\n\t"${x:-$(git push)}\n\tX',
        "cat <<X\na\\\nX\n'\nX\ngit push # '",
        "env -S'git push'",
        "env -iS'git push'",
        "env --split-string='git push'",
        "env -Sgit push",
        "env -S'git\\_push'",
        "flock -c'git push'",
        "script --command='git push' x",
        "$'\\x67it' push",
        "$'\\147\\u0069\\U00000074' push",
        "$'git\\0x' push",
        "echo $'it\\'s'; git push",
        "cat <<A; git push\nit's text\nA\n",
        "cat <<A\nit's text\nA\ngit push",
        "(( x = 1 << 2 )) && git push",
        "[[ a < b ]] && git push",
        "echo it\\'s; git push # don't",
        # Parentheses that are arithmetic only as far as they are closed like it, and to some shells only.
        "out=$((cd sub && git push) 2>&1)",
        "echo $((echo a); (git push))",
        "((git push))",
        "(( 1 # )); git push",
        "(( x = 1 << 2 ))\ngit push\n2",
        "for ((i = 0 # 0; i < 1; i++)); do git push; done",
        # Those of subshells and patterns within a substitution do not end it.
        'echo "$( (true); git push )"',
        "$(case a in a) git push;; esac)",
        'echo "$(case a in b) ;; (a) git push;; esac)"',
        'echo "$(case a in (esac) ;; a) git push;; esac)"',
        'echo "$(time case a in a) git push;; esac)"',
        "case x in esac; git push",
        # Quotes within braces and backticks, and the places where bash reads no comment and no here-document.
        "echo ${x:-'}'}; git push #'",
        'echo "${x:-"}"}"; git push #"',
        "echo ${x:-$'\\'}'}; git push #'",
        "echo `eval \\$'git push'`",
        'echo "`eval \\"git push\\"`"',
        "a[1 ]=x git push",
        "a=(x)y git push",
        "cat <<A $(echo\ngit push\nA\n)\nA",
        # What is fed, piped or said to a shell in the same pipeline, and lines that are kept for later.
        "cat <<'EOF' | bash\ngit push\nEOF",
        "cat <<'EOF' |\ngit push\nEOF\nsudo bash",
        "if true; then cat; fi <<EOF | sh\ngit push\nEOF",
        "{ bash; } <<< 'git push'",
        "( cat; bash ) <<EOF\ngit push\nEOF",
        "while bash; do :; done <<< 'git push'",
        "time { bash; } <<< 'git push'",
        "exec <<< 'git push'; bash",
        "echo 'git push' | sh",
        "echo git push | tee x | bash -s",
        "{ echo 'git push'; } | (cat; sh)",
        r"echo -e 'git\x20push' | sh",
        r"printf 'cd x\ngit push\n' | bash",
        "printf 'git %s' push | sh -",
        r"printf -- '%s\n' 'cd x' 'git push' | bash -o pipefail",
        "bash <(echo git push)",
        "eval \"$(cat <<'EOF'\ngit push\nEOF\n)\"",
        'bash -c "$(echo git push)"',
        "$(echo git push)",
        ". /dev/stdin <<EOF\ngit push\nEOF",
        "echo 'git push' | source /dev/stdin",
        "echo 'git push' | at now",
        "trap 'git push' EXIT",
        "trap -- 'git push' 0",
        "env " + "A=1 " * 70 + "git push",
        "find " + "a " * 70 + "-exec git push",
        "env " + "-u A " * 100 + "nohup git push",
    ],
)
def test_a_command_is_found_wherever_it_stands(line: str) -> None:
    found = [" ".join(" ".join(command.words).split()) for command in commands_of(line)]
    assert any(text == "git push" or text.startswith("git push ") for text in found), found


@pytest.mark.parametrize(
    "line",
    [
        *("echo git push", "echo 'git push'", "cat <<X\ngit push\nX", "# git push", "echo $((1<<2)) git push"),
        *("cat <<'X'\n$(git push)\nX", "cat <<\\X\n`git push`\nX", "cat <<X\n\\$(git push)\nX"),
        *("echo $'\\x67it push'", "read -d $'\\0' git push"),
        *("git commit -m \"$(cat <<'X'\nIt's said:\n\ngit push\nX\n)\"", "echo 'git push' | tee x; bash x.sh"),
        *("cat > x.md <<X && bash test.sh\ngit push\nX", "echo 'git push' | bash x.sh", "trap - EXIT; git pull"),
        "case $x in a|b) echo git push;; *) ls;; esac",
    ],
)
def test_a_command_that_is_only_spoken_of_is_not_run(line: str) -> None:
    assert not any(text.startswith("git push") for text in run_by(line))


@pytest.mark.parametrize(
    "line",
    [
        *("echo $(( (a+b) * ${#c[@]} ))", "for ((i=0; i<10; i++)); do echo $i; done", "(( n++ )) || true"),
        *("x=$((1 << 2)); y=$((x & 3 | 1))", "a[i+1]=2; map['a b']=1", "args[${#args[@]}]=x; echo ${a[$((i+1))]}"),
        *('echo "${x:-\'default\'}" "${y:-it\'s}"', "x=\"${x#*'/'}\"", "[[ $a =~ ^(x|y)$ ]] && ls [a-z]*"),
        *("a=$(cd x && (pwd; ls) | head -1)", "a=(x y); echo ${a[0]}", "trap 'rm -f \"$t\"' EXIT", "curl -s x | bash"),
        "cat <<X | bash\nls\nX",
    ],
)
def test_everyday_lines_are_read_to_their_end(line: str) -> None:
    assert run_by(f"{line}\nlast")[-1] == "last"


@pytest.mark.parametrize(
    "line",
    [
        *("echo $[1<<2]\ngit push\n2]", "false && echo $[ # ]; git push", "a[1<<2]=3\ngit push\n2]=3"),
        *('echo "${x:-\'}"; git push; echo "\'}"', "echo $(cat <<X)\ngit push\nX"),
        "cat <<'EOF' | bash\ngit push\n'\nEOF",
    ],
)
def test_what_one_shell_reads_otherwise_than_another_is_found_or_refused(line: str) -> None:
    with suppress(Unsplittable):
        assert "git push" in run_by(line)


def test_files_that_a_command_is_redirected_to_are_known() -> None:
    found = [command.writes for command in commands_of("a > x 2>>y >&2 < z; b &> w; > v")]
    assert found == [["x", "y"], ["w"], ["v"]]


@pytest.mark.parametrize("line", ["echo 'a", 'echo "a', "echo `a", "echo $(a", "echo ${a", "echo $((1)", "echo $'a"])
def test_what_no_shell_would_take_is_said_so(line: str) -> None:
    with pytest.raises(Unsplittable, match="is missing"):
        run_by(line)


def test_nesting_and_length_are_bounded() -> None:
    with pytest.raises(Unsplittable, match="too deep"):
        run_by("eval " * 20 + "a")
    with pytest.raises(Unsplittable, match="too deep"):
        run_by("$(" * 5000 + "a" + ")" * 5000)
    with pytest.raises(Unsplittable, match="longer"):
        run_by("a" * (MAX_LINE + 1))


@pytest.mark.parametrize("program", ["env", "sudo env", "flock"])
def test_what_multiplies_within_itself_is_refused_and_not_looked_through_to_its_end(program: str) -> None:
    line = "git push"
    for _ in range(6):
        line = f"{program} sh sh sh sh sh sh -c " + "'" + line.replace("'", "'\\''") + "'"
    with pytest.raises(Unsplittable, match=r"commands|too"):
        run_by(line)


@pytest.mark.parametrize(
    "line",
    [
        *(
            "env " + "A=1 " * 60_000,
            "( " * 100_000,
            "if a;" * 50_000,
            "a <<E;" * 40_000,
            "$((" * 80_000,
            "$[a " * 60_000,
        ),
        *("$((' " * 7 + "a;" * 100_000, "\"${x:-'" * 8 + "a" * 200_000, "((" * 8 + "a " * 100_000 + "))" * 8),
        *("echo a|" * 30_000 + "sh", "exec <<<'a b';sh;" * 15_000, "(( ' ))" * 30_000),
    ],
)
def test_beyond_every_bound_is_a_refusal_and_it_comes_soon(line: str) -> None:
    # Where work grows faster than the line does, this takes longer than a test may.
    with pytest.raises(Unsplittable):
        run_by(line)


def test_a_word_that_is_too_deep_is_refused_wherever_it_stands() -> None:
    with pytest.raises(Unsplittable, match="too deep"):
        run_by("env -S '" + "eval " * 20 + "a'")
    with pytest.raises(Unsplittable, match="too deep"):
        run_by("flock x 'a " + "$(" * 20 + "a" + ")" * 20 + "'")


@pytest.mark.parametrize("line", ["chmod 644 " + "file " * 40_000, "a\n" * 4000, "sudo chown me " + "file " * 40_000])
def test_long_lines_of_the_ordinary_kind_are_looked_through(line: str) -> None:
    assert run_by(line)


@given(st.text("ab \"'`$(){}<>|&;\\\n#=-c!x0", max_size=40))
def test_any_text_is_split_or_refused(line: str) -> None:
    with suppress(Unsplittable):
        # Each command begins at a character of its own.
        assert len(run_by(line)) <= len(line)


@given(st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=5))
def test_quoted_words_come_out_as_they_went_in(words: list[str]) -> None:
    quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in ["a", *words])
    assert next(iter(commands_of(quoted))).words == ["a", *words]
