"""How words come out, with bash itself as the judge: what it really calls must be among what is foreseen."""

from __future__ import annotations

import fnmatch
import shutil
import subprocess
from pathlib import Path

import pytest

from remuda.guard.model import Evaluate, Execute, Unknown, Word
from remuda.guard.shell.interpret import effects
from remuda.guard.shell.state import Surroundings

BASH = shutil.which("bash")

SNIPPETS = r"""
probe a 'b c' "d e" f\ g '' "" x''y "a\
b" c\
d
---
x='1 2'; y=; probe $x "$x" a$x"b"c $y "$y" z
---
probe {a,b}{1,2} {1..3} {a..c} {01..03} {a} {a,{b,c}} x{,y} {3..1} a{1..5..2}b "{a,b}" \{a,b} {a,b
---
probe $'a\tb\'c\x41\101' "a\$b\`c\"d\\e\f" $'\'' "'" \' "\"" '"'
---
probe ~ ~/x "~" a~ ~root x=~ --x=~ x=$HOME
---
x=abcabc; probe ${x#a} ${x##*b} ${x%c} ${x%%b*} ${x/b/X} ${x//b/X} ${x/#a/Z} ${x/%c/Z}
probe ${x:1:2} ${x: -2} ${x^^} ${x^} ${#x}
---
probe ${u:-def} ${u-def} "${u:-a b}" ${u:-a b} ${u:=zz} $u ${u:+set} ${v:+set}
probe "${w:-"q r"}" ${w:-'s t'} "${w:-'u'}"
---
x=1; unset x; probe "${x-unset}" "$x" "${x:=def}" $x
---
set -- a 'b c' d; probe "$@" -- $@ -- "$*" $# $1 "${@}" "x$@y"; probe "${@:2}" "${@:2:1}" "${*:3}"
---
set -- "$@" -f; probe "$@"; shift; probe "$@" "$*" x
---
f() { probe "$1" "$2" $#; shift; probe "$@"; }; f 'a b' c; f
---
a=(1 '2 3' 4); a+=(5); a[4]=6; probe "${a[@]}" ${a[1]} "${a[*]}" ${#a[@]} "${a[-1]}" "${a[@]:1}"; a[0]=z
probe "${a[@]}"
---
declare -A m=([k]=probe [j]="x y"); ${m[k]} "${m[j]}"; m[z]=w; probe "${m[z]}"
---
for i in a 'b c' d; do probe "$i" $i; done; for i in 1 2 3; do x=$x$i; probe "$x"; done
---
i=0; while [ $i -lt 3 ]; do i=$((i+1)); probe $i; done; for ((i=0;i<2;i++)); do probe $i; done
---
x=a; if [ -e nope ]; then x=b; fi; probe $x; [ -e nope ] && x=c; probe $x; [ -e a.txt ] || x=d; probe $x
---
case abc in a*) probe 1;; *) probe 2;; esac; case x in (a|b) probe 3;; x) probe 4 ;& *) probe 5;; esac
---
probe $(echo a b) "$(echo a b)" `echo c` "`echo d e`" $(printf '%s\n' x y) "$(printf 'a\nb\n\n')"
---
probe "$(echo "a $(echo "b $(echo c)")")" "a "$(probe "b c"; echo z)" d"
---
y=$(x=inner; echo $x); probe $y "$x"; eval 'probe a "b c"'; eval probe '"x y"' z; a=b; b=c; eval "probe \$$a"
---
bash -c 'probe "$0" "$@"' n 1 '2 3'; echo 'probe from pipe' | bash; bash -s x y <<< 'probe $1 $2'
---
bash <<'EOF'
probe "$HOME" here
EOF
bash <<EOF
probe "$HOME" \$HOME $(probe expanded) `probe ticks`
EOF
---
cat <<-EOF | sh
	probe tab
	EOF
cat <<A <<"B C"; probe after
x
A
y $(probe never)
B C
---
IFS=:; x=a:b:c; probe $x; unset IFS; probe $x
---
IFS=: read -r a b <<< 'x:y:z'; probe "$a" "$b"; read -r a b c <<< 'one two three four'; probe "$a" "$b" "$c"
---
while read -r l; do probe "$l"; done <<< $'l1\nl2 x'; while IFS=, read -r a b; do probe $a $b
done <<< $'1,2\n3,4'
---
mapfile -t m <<< $'p\nq r'; probe "${m[@]}"; read -ra arr <<< 'probe y z'; "${arr[@]}"
---
probe *.txt "*.txt" *.nope [ab].txt; for f in *.py; do probe "$f" "${f%.py}.o"; done
---
cd sub && probe $PWD; cd ..; probe "$PWD"; cd - >/dev/null; probe "$PWD"; cd "$OLDPWD"
pushd sub >/dev/null; probe $PWD; popd >/dev/null; probe $PWD; (cd sub; probe "$PWD"); probe "$PWD"
---
false && cd sub; probe "$PWD"; cd nosuch 2>/dev/null || true; probe "$PWD"
if cd nosuch 2>/dev/null; then probe a; else probe "$PWD"; fi; cd nosuch 2>/dev/null; probe "$PWD"
---
while true; do cd sub 2>/dev/null || break; done; probe "$PWD"
---
x=1 y=2; x=3 bash -c 'probe "$x" "$y"'; probe $x; export y; bash -c 'probe "$y"'; (x=2; probe $x); probe $x
---
n=x; x=val; probe ${!n}; g() { local v=in; probe $v; }; v=out; g; probe $v
---
shopt -s expand_aliases
alias p='probe q'
p x
---
trap 'probe trapped' EXIT; probe now; trap 'probe dbg' DEBUG; true
---
x='probe a'; $x b; c=probe; "$c" x; pr=pro; ${pr}be z; pro""be q; p\robe w; 'probe' e; $'\x70robe' t
\probe bs
---
probe${IFS}a${IFS}b; a=pr; b=obe; $a$b x; $(printf pro)be y; "$(echo probe)" z; {probe,brace}
---
pro\
be joined \
  line
probe a # comment \
probe b;# comment
probe c#d
---
probe a; probe b & wait; probe c && probe d || probe e; ! probe neg; time probe timed; { probe g; }
( probe s )
---
command probe c; builtin command probe bc; command -p probe p; (exec probe ex); (exec -a name probe ea)
---
env A=1 probe e1; env -u A probe e3; env -S 'probe e4 "x y"' z; env -C sub probe e5; /usr/bin/env probe e6
---
nice -n 5 probe n5; nice -5 probe n; timeout --signal=KILL 5 probe t; nohup probe nh; stdbuf -oL -e0 probe sb
---
echo a b | xargs probe; printf 'x y\nz\n' | xargs -I{} probe [{}] ; printf 'a\0b c\0' | xargs -0 probe
echo "1 2" | xargs -n1 probe k
---
echo 'a "b c"' | xargs probe; xargs probe e </dev/null; echo a | xargs sh -c 'probe "$0" x'
---
find . -name 'y.py' -exec probe {} \; ; find . -name '*.txt' | xargs probe
find sub -type f -print0 | xargs -0 probe
---
ls *.txt | while read -r f; do probe "$f"; done; for f in $(ls *.txt); do probe "$f"; done
---
probe "$(basename /a/b.txt .txt)" $(dirname /a/b/c) "$(basename "$PWD")" $(seq 1 3) $((1+2)) $((x=5)) $x
---
source /dev/stdin <<< 'probe sourced'; . <(echo 'probe psub'); bash <(echo 'probe "$1"') arg
. /dev/fd/3 3<<< 'probe fd'
---
cat > s.sh <<'E'
probe script "$1"
E
bash s.sh one; sh ./s.sh two; chmod +x s.sh; ./s.sh three; set -- four; . ./s.sh; . ./s.sh five
---
echo 'probe one' > t.sh; echo 'probe two' >> t.sh; . ./t.sh; tee u.sh <<< 'probe tee' >/dev/null; sh u.sh
---
declare -a d=(1 2); declare e=x; export g=y h=z; readonly r=q; printf -v v '%s-%s' a b; x=a; x+=b
probe ${d[@]} $e $g $h $r $v $x
---
if false; then f() { probe A; }; else f() { probe B; }; fi; f; function g { probe in-g "$@"; }; g 1
h() ( probe par ); h
---
echo() { probe "$@"; }; echo hi; command_not_found_handle() { probe cnf "$@"; }; nosuchcmd q
---
x=1; f() { x=2; }; f; probe $x; ( x=3 ); probe $x; f | cat; probe $x
---
g() { probe exported; }; export -f g; bash -c g; h() { probe private; }; bash -c h 2>/dev/null
---
echo $(( $(probe 1; echo 1) + 1 )); a[$(probe 2; echo 0)]=1; ((a[$(probe 3; echo 0)]++)); [[ $(probe 4) ]]
case $(probe 5) in x) ;; esac; for i in $(probe 6); do :; done; echo > $(probe 7; echo /dev/null)
cat <<< $(probe 8) >/dev/null; echo ${a[$(probe 9
echo 0)]} ${HOME/$(probe 10)/} "${HOME#$(probe 11)}" ${q:-`probe 12`}
x=$(probe 13); a=($(probe 14)); declare y=$(probe 15); export z=$(probe 16); : "${w:=$(probe 17)}"
---
x='a[$(probe arithmetic)]'; echo $((x)); [[ x -eq 1 ]]; let y=x
---
if probe c; then :; elif probe d; then :; fi; while probe w; do break; done; until probe u; do break; done
---
sh -c -- 'probe dd'; bash -c -e 'probe ce'; bash +e -c 'probe pe'; bash --norc -c 'probe nr'
bash -o pipefail -ec 'probe o'
---
bash -c "bash -c 'bash -c \"probe deep\"'"; echo "probe dq $(echo inner)" | sh; { echo 'probe g1'
echo 'probe g2'; } | bash
---
printf 'probe\x20x' | bash /dev/stdin; printf 'probe %s %d\n' a 5 | sh; echo -e 'probe\tx' | sh
echo -n probe nn | cat | sh
---
read x < <(echo probe ps); $x; diff <(probe l) <(probe r); cat >/dev/null < <(probe in); echo x > >(probe out)
---
probe<a.txt>/dev/null x; 2>/dev/null probe y; > out.txt probe z; probe a >/dev/null b 2>&1 c; v=1 w=2 probe d
---
coproc N { probe con; }; wait; set -- p q; for x; do probe $x; done; select x in a; do probe $x; break
done <<< 1
---
hash -p /usr/bin/env zz; zz probe hashed; true last; probe $_; probe ${BASH_VERSION:+b}
---
probe $( (probe sub) ) $(( (1+2) * 3 )); echo $((probe a); (probe b))
---
[[ "a(b" =~ a\(b|c ]] && probe re; [[ -n $HOME && ( a < b || 1 -eq 1 ) ]] && probe yes
(( 5 > 3 )) && probe big
---
shopt -s extglob
probe @(a|b).txt !(a.txt)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("place")
    for name in ("a.txt", "b.txt", "c d.py", "x.py", "sub/y.py", "bin/probe"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    probe = '#!/bin/sh\n{ for a; do printf "%s\\0" "$a"; done; printf "\\1"; } >>"$CALLS"\n'
    (folder / "bin/probe").write_text(probe)
    (folder / "bin/probe").chmod(0o755)
    return folder


def _matches(word: Word, text: str) -> bool:
    if not word.values:
        return text.startswith(word.prefix)
    if word.pattern:
        return any(fnmatch.fnmatchcase(text, value.replace("**/", "*")) for value in word.values)
    return text in word.values


def _foreseen(argv: tuple[Word, ...], real: list[str]) -> bool:
    """Whether a call is one of those that an abstract one stands for."""
    if not argv:
        return not real
    first, rest = argv[0], argv[1:]
    if first.values and not first.pattern:
        return bool(real) and _matches(first, real[0]) and _foreseen(rest, real[1:])
    for count in range(len(real) + 1):
        if _foreseen(rest, real[count:]):
            return True
        if count < len(real) and first.values and not _matches(first, real[count]):
            return False
    return False


@pytest.mark.skipif(BASH is None, reason="needs bash")
@pytest.mark.parametrize("snippet", [part.strip("\n") for part in SNIPPETS.split("\n---\n")])
def test_every_call_that_bash_makes_is_foreseen(snippet: str, place: Path) -> None:
    calls = place / "calls"
    calls.write_text("")
    path = f"{place / 'bin'}:/usr/local/bin:/usr/bin:/bin"
    env = {"PATH": path, "HOME": "/home/alice", "CALLS": str(calls), "LC_ALL": "C.UTF-8"}
    subprocess.run(
        [str(BASH), "-c", snippet],
        cwd=place,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
    )
    made = [call.split("\0")[:-1] for call in calls.read_text().split("\1")[:-1]]
    assert made, "the snippet calls nothing"
    found = effects(
        snippet, Surroundings(cwd=str(place), home="/home/alice", observe=lambda path: Path(path).is_dir())
    )
    if any(isinstance(effect, Unknown | Evaluate) for effect in found):
        return
    argvs = [effect.argv for effect in found if isinstance(effect, Execute)]
    assert [real for real in made if not any(_foreseen(argv, real) for argv in argvs)] == []


def test_few_of_them_are_given_up(place: Path) -> None:
    """Giving up is always safe, so that it must stay rare to be worth anything."""
    snippets = SNIPPETS.split("\n---\n")
    where = Surroundings(cwd=str(place), home="/home/alice")
    given_up = [
        s for s in snippets if any(isinstance(e, Unknown | Evaluate) for e in effects(s.strip("\n"), where))
    ]
    assert len(given_up) <= 3
