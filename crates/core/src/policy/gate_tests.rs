//! Tests of the command gate.

use super::*;

fn gate(mode: Mode) -> Gate {
    let allow = "sh python3 xargs let declare typeset local getopts mapfile alias hash trap unset command exec builtin /bin/bash";
    Gate { mode, allow: allow.split(' ').map(str::to_owned).collect(), preset: true, strict: false }
}

fn argv(line: &str) -> Vec<OsText> {
    ["sh", "-c", line].iter().map(OsText::from).collect()
}

/// Covers: R2
#[test]
fn r2_lines_that_are_allowed() {
    for line in [
        "ls",
        "git status && cargo test 2>&1 | tail -n 5",
        "cd x; make -j8 || echo failed >&2",
        "A=1 B='x y' make",
        "echo 'rm -rf /; eval x' \"a; rm b\"",
        "echo a # rm -rf /",
        "cat <<'EOF' > file\nrm -rf $(evil)\nEOF\nls",
        "cat <<-EOF\n\trm -rf /\n\tEOF\nls",
        "ls \\\n  -l",
        "if test -f x; then cat x; else echo no; fi",
        "for f in a b; do cat $f; done",
        "while true; do sleep 1; done",
        "(cd x && ls)",
        "{ ls; pwd; }",
        "! grep -q x file",
        "echo $(git rev-parse HEAD) `pwd` ${X:-y} $((1 + 2))",
        "diff <(sort a) <(sort b)",
        "'ls' -l; \"pwd\"; l\\s",
        "echo one|python3 -c 'print(1)'",
        "ls 2>/dev/null",
        "sort <file >out",
        "git commit -m \"$(cat <<'EOF'\nit's a (message)\nEOF\n)\"",
        "echo \"${XDG_CACHE_HOME:-$HOME/.cache}\" ${#A} ${A%.*} ${A##*/} ${A:0:7} ${A/b/c} \"$@\" $?",
        "for f in *.rs; do test -f \"$f\" && wc -l \"$f\"; done",
        "for env in a b\ndo\necho $env # it's\ndone",
        "while read -r line; do echo \"$line\"; done < file",
        "export RUST_LOG=debug CI=1 A=\"$(pwd)\"; cargo test",
        "set -euo pipefail; make",
        "set -x",
        "[ \"$a\" = b ] && [ $# -gt 0 ] || [ ! -e \"$c\" ]",
        "test -z \"${A:-}\" -a \"$b\" != c",
        "printf '%s\\n' \"$A\"; printf \"a $A\"; printf -- \"$A\"",
        "grep -E 'a|b$' x; grep \"b$\" x; grep a$ x",
        "sed -n '1,5p' x | awk '{print $1}' | sort -u > out 2>&1",
        "find . -name '*.rs' -exec grep -l x {} \\;",
        "echo {a,b}.c *.c [ab].c ~/x a#b",
        "if (cd x); then (cd y && ls) | wc -l; fi > out",
        "make &> log; cat log >&2; cat 0<x 2>>y",
        "cat > a.txt << \"END\"\n`x` $(y)\nEND\necho ok",
        "cat <<EOF\n$HOME ${A} $(pwd) \\$(rm) it's \"\nEOF",
        "echo 'r\rs\u{2028}\u{85}' größe",
        "unset A; : ${B:=c}; cd - && ls",
        "A=$(git rev-parse HEAD); echo \"$A\"",
        "cargo build 2>&1 | tail -20; echo \"exit: ${?} $!\"",
        "",
    ] {
        assert_eq!(gate(Mode::Enforce).admit(&argv(line)), Ok(None), "{line}");
    }
}

/// Covers: R2
#[test]
fn r2_lines_that_are_refused() {
    for (line, named) in [
        ("rm -rf /", "rm -rf /"),
        ("ls; rm x", "rm x"),
        ("ls\nrm x", "rm x"),
        ("ls && rm x", "rm x"),
        ("ls || rm x", "rm x"),
        ("ls | rm x", "rm x"),
        ("ls & rm x", "rm x"),
        ("(rm x)", "rm x"),
        ("ls\u{2028}rm x", "character"),
        ("r\\\nm x", "continued"),
        ("r''m x", "rm x"),
        ("\"rm\" x", "rm x"),
        ("A=1 rm x", "rm x"),
        ("if true; then rm x; fi", "rm x"),
        ("while rm x; do ls; done", "rm x"),
        ("for f in a; do rm x; done", "rm x"),
        ("echo $(rm x)", "rm x"),
        ("echo \"$(rm x)\"", "rm x"),
        ("echo `rm x`", "rm x"),
        ("echo ${A:-$(rm x)}", "rm x"),
        ("echo $((1 + $(rm x)))", "rm x"),
        ("diff <(rm x) b", "rm x"),
        ("ls > $(rm x)", "rm x"),
        ("cat <<EOF\n$(rm x)\nEOF", "rm x"),
        ("cat <<EOF; rm x\nEOF", "rm x"),
        ("2>/dev/null rm x", "rm x"),
        ("/tmp/ls", "/tmp/ls"),
        ("eval ls", "eval"),
        (". ./x", "runs text"),
        ("$X y", "known only"),
        ("$(echo ls)", "known only"),
        ("`echo ls` -l", "known only"),
        // Words between a name and `do`.
        ("set -- a; for x do rm y; done", "for x do"),
        ("for x rm", "for x rm"),
        ("A=1 if ls", "does not understand"),
        (">f if ls", "does not understand"),
        ("if >f while ls", "does not understand"),
        ("'A'=1 ls", "A=1"),
        // What is a blank, a comment, a continued line.
        ("echo a\r# ; rm x", "character"),
        ("echo a\u{2028}# ; rm x", "character"),
        ("echo a\u{85}# ; rm x", "character"),
        ("echo a\u{a0}# ; rm x", "character"),
        ("ls # '\nrm x # '", "rm x"),
        ("ls \\\n;rm x", "rm x"),
        ("echo $\\\n(rm x)", "continued"),
        ("(\\\n(x=1))", "continued"),
        // Backticks.
        ("echo `echo \\'; rm x; echo \\'`", "backslash"),
        ("echo \"`echo \"a\"`\"", "backticks"),
        // What stands in braces.
        ("echo ${x:-'}'$(rm x)} \\'", "rm x"),
        ("echo ${x:-\"}\"}", "plain text"),
        ("echo ${!x}", "plain text"),
        ("echo ${x@P}", "plain text"),
        ("echo ${x[y]}", "plain text"),
        ("echo ${x:y}", "plain text"),
        ("echo ${ rm x; }", "plain text"),
        // Here-documents.
        ("cat <<EF\nx\nE\\\nF\nrm x", "continued"),
        ("cat <<E\\F\nEF", "plain word"),
        ("cat <<EOF\nx", "does not end"),
        ("cat <<EOF $(ls\n)\nx\nEOF", "between"),
        ("cat <<EOF 'a\nEOF\n'\nEOF", "between"),
        ("cat <<EOF\n$(rm\nEOF\nx)", "does not end"),
        ("cat <<EOF\n\\\\$(rm x)\nEOF", "rm x"),
        // Arithmetic.
        ("((x=1<<2))\nrm x\n2", "(("),
        ("echo $[1<<2]\nrm x\n2]", "$["),
        ("echo $((rm x) )", "rm x"),
        ("x='b[$(rm x)]'; echo $((x))", "arithmetic"),
        ("echo $(($x))", "arithmetic"),
        ("RANDOM='a[$(rm x)]'", "RANDOM"),
        ("let x", "it may change"),
        ("declare -i x", "it may change"),
        ("[ -v 'a[$(rm x)]' ]", "does not understand"),
        ("x=-v; [ \"$x\" \"$y\" ]", "does not understand"),
        ("[ $x ]", "quote it"),
        // Variables that decide something, however they are set.
        ("export PATH=$PWD/evil:/usr/bin; ls", "PATH"),
        ("for PATH in $PWD/evil; do ls; done", "PATH"),
        ("read PATH <<< X; ls", "PATH"),
        ("read -aPATH", "-aPATH"),
        ("read \"$x\"", "does not understand"),
        ("readonly BASH_ENV=x", "BASH_ENV"),
        ("export \"$x\"", "does not understand"),
        ("export A=$x", "quote it"),
        ("unset PATH", "PATH"),
        (": ${PATH:=x}", "PATH"),
        ("echo \"$(echo ${ENV=x})\"", "ENV"),
        ("A=1 LD_LIBRARY_PATH=x ls", "LD_LIBRARY_PATH"),
        ("PATH+=:x ls", "PATH"),
        ("printf -v PATH %s x", "does not understand"),
        ("printf \"$a\" PATH x", "does not understand"),
        ("declare PATH=x", "it may change"),
        ("typeset PATH=x", "it may change"),
        ("local PATH=x", "it may change"),
        ("getopts a PATH", "it may change"),
        ("mapfile PATH", "it may change"),
        ("exec {PATH}>x", "with a name"),
        ("set -k; ls PATH=x", "does not understand"),
        ("set -o history -o histexpand", "does not understand"),
        ("alias ls=rm", "it may change"),
        ("hash -p ./x ls", "it may change"),
        ("trap 'rm x' EXIT", "it may change"),
        ("command export PATH=x", "PATH"),
        ("command rm x", "rm x"),
        ("exec rm x", "rm x"),
        ("builtin eval ls", "runs text"),
        ("exec -a ls rm x", "does not understand"),
        ("PATH=/tmp ls", "PATH"),
        ("LD_PRELOAD=x ls", "LD_PRELOAD"),
        ("ls() { pwd; }", "function"),
        ("case x in y) ls;; esac", "does not understand"),
        ("$'rm' x", "does not understand"),
        ("echo 'x", "does not end"),
    ] {
        let refusal = gate(Mode::Enforce).admit(&argv(line)).expect_err(line);
        assert!(refusal.contains(named), "{line}: {refusal}");
        assert!(refusal.contains("nothing ran") && refusal.contains("trying it again"), "{refusal}");
        let warning = gate(Mode::Warn).admit(&argv(line)).expect("it only warns").expect("a warning");
        assert!(warning.contains(named), "{line}: {warning}");
        assert_eq!(gate(Mode::Off).admit(&argv(line)), Ok(None), "{line}");
    }
}

/// Covers: R2
#[test]
fn r2_strict_refuses_pipes_into_bare_interpreters() {
    let strict = Gate { strict: true, ..gate(Mode::Enforce) };
    for line in [
        "cat x | sh",
        "cat x | python3 -",
        "cat x |& sh -s",
        "true | perl",
        "cat x |\nsh",
        "cat x | (sh)",
        "cat x | if true; then sh; fi",
        "cat x | sh -s x",
        "cat x | sh +e",
        "cat x | sh -e",
        "cat x | sh /dev/stdin",
        "cat x | sh //dev/./fd/0",
        "cd /dev; cat x | sh stdin",
        "cat x | command sh",
        "cat x | sh -c \"$(cat)\"",
        "cat x | sh $y",
        "sh < x",
        "sh <<< x",
        "sh <<EOF\nrm x\nEOF",
        "sh <(cat x)",
        "cat x > >(sh)",
        "echo $(cat x | sh)",
    ] {
        assert!(strict.admit(&argv(line)).is_err(), "{line}");
        assert!(gate(Mode::Enforce).admit(&argv(line)).is_ok(), "{line}");
    }
    for line in [
        "cat x | python3 script.py",
        "sh script",
        "cat x | python3 -c 'print(1)'",
        "true || perl",
        "cat x | perl -pe 's/a/b/'",
        "cat x | sh -c 'cat'",
        "cat x | python3 -m json.tool",
        "ls | head; node --version",
    ] {
        assert!(strict.admit(&argv(line)).is_ok(), "{line}");
    }
}

/// Covers: R2
#[test]
fn r2_a_command_without_a_shell_is_one_segment() {
    let words = |line: &[&str]| line.iter().map(OsText::from).collect::<Vec<_>>();
    assert_eq!(gate(Mode::Enforce).admit(&words(&["echo", "a; rm b"])), Ok(None));
    assert!(gate(Mode::Enforce).admit(&words(&["rm", "x"])).is_err());
    assert!(gate(Mode::Enforce).admit(&words(&["sh", "script"])).is_ok(), "sh is in the list");
    for (words, is_read) in [(["bash", "-c"], true), (["/bin/bash", "-c"], true), (["./sh", "-c"], false)] {
        let line = |line: &str| words.iter().chain([&line]).map(OsText::from).collect::<Vec<_>>();
        assert_eq!(gate(Mode::Enforce).admit(&line("ls")).is_ok(), is_read, "{words:?}");
        assert!(gate(Mode::Enforce).admit(&line("rm x")).is_err(), "{words:?}");
    }
    assert!(gate(Mode::Enforce).admit(&["sh".into(), "-c".into(), OsText(b"ls \xa0".to_vec())]).is_err());
    let deep = "$(".repeat(5000);
    assert!(gate(Mode::Enforce).admit(&argv(&format!("echo {deep}"))).is_err_and(|why| why.contains("nesting")));
    let names: Vec<&str> = PRESET.split(' ').collect();
    assert!(names.is_sorted() && names.len() > 190 && !names.contains(&"rm") && !names.contains(&""));
}

/// Covers: R2
#[test]
fn r2_the_longest_line_of_commands_that_run_commands_is_read_with_a_small_stack() {
    // An argument has 128 KiB at most (execve(2), MAX_ARG_STRLEN).
    let line = "exec ".repeat((128 << 10) / 5 - 1) + "ls";
    let look = move || gate(Mode::Enforce).admit(&argv(&line));
    let looked = std::thread::Builder::new().stack_size(256 << 10).spawn(look).expect("a thread");
    assert_eq!(looked.join().expect("it returns"), Ok(None));
}
