"""Commands for the guard's oracle: made from pieces of a grammar, the same ones for the same seed.

Every piece is harmless to a machine whose file system is read-only: there is no network in it, no signal, no
device and no program that needs rights.
"""

from __future__ import annotations

import random
import shlex
from collections.abc import Callable

INSIDE = (
    "a.txt",
    "new.txt",
    "src/app.py",
    "src/new",
    "./b c.txt",
    "inner/x",
    "docs/../d.txt",
    "{base}/w/one/e",
)
OUTSIDE = (
    *("../out.txt", "{base}/w/README.md", "link_root/x", "link_file", "~/x", "$HOME/y", "{base}/w/two/z"),
    *("src/../../q", '"$PWD"/../r', "{base}/w/one10/s", ".git/config", "../two/README.md", "/etc/oracle"),
)
READERS = r"""
cat @¦ls -la¦ls @¦head -n 2 @¦tail -1 @¦wc -l @¦sort @¦uniq @¦cut -c1-3 @¦tr a-z A-Z < @¦grep -n a @
grep -rn b .¦find . -name '*.py'¦find . -type f -newer a.txt¦stat @¦file @¦diff a.txt @¦cmp a.txt @
sed -n 1,2p @¦sed s/a/b/ @¦awk '{print $1}' @¦awk 'NR==1' @¦od -c @¦base64 @¦sha256sum @¦du -sh .¦df .
tree -L 1¦nl @¦tac @¦rev @¦fold -w 3 @¦git status --short¦git log --oneline -n 3¦git diff
git show HEAD:a.txt¦git branch -a¦git ls-files¦git blame a.txt¦git rev-parse HEAD¦git grep a¦git stash list
git worktree list¦git remote -v¦git config -l¦git tag¦git describe --all¦python3 -c 'print(1)'
python3 -c 'print(open("a.txt").read())'¦perl -ne 'print if /a/' @¦test -f @¦[ -d src ]¦printf '%s\n' x y
echo hello¦echo 'a > b'¦expr 1 + 1¦seq 3¦date +%Y¦basename @¦dirname @¦realpath @¦readlink -f @¦tar tf a.tar
tar xOf a.tar a.txt¦gzip -c a.txt¦zcat a.gz¦xxd @¦column -t a.txt¦paste a.txt a.txt¦join a.txt a.txt
comm a.txt a.txt¦tsort a.txt¦shuf -n1 a.txt¦split --help¦env -i true¦command -v ls¦type ls¦which git¦id
uname -a¦pwd¦jq . package.json¦jq -r .name package.json¦find . -maxdepth 1 -exec ls {} +
find . -name x -print0¦xargs echo < a.txt¦cat @ | sort | uniq -c¦ls | head -2¦cat < @
cat <<'E'\ntouch z\nE\n¦cat <<E\n$(echo hi)\nE\n¦wc -c <<< abc¦expand @¦git log --format=%an -1
git diff --stat HEAD~1¦git cat-file -p HEAD¦git shortlog -s HEAD¦git for-each-ref¦nproc
patch --dry-run -p1 < x.diff¦git apply --check x.diff¦git apply --stat x.diff¦cksum @¦strings @¦numfmt 1000
bc <<< 1+1¦dc -e '1 2+p'¦m4 <<< x¦iconv -f utf-8 -t ascii a.txt¦look a a.txt¦csplit --help¦true¦:¦sleep 0
yes | head -1¦tput cols
"""
WRITERS = r"""
touch @¦rm -f @¦rm -rf @¦mkdir -p @¦mkdir @¦cp a.txt @¦cp -r src @¦mv a.txt @¦ln -s a.txt @¦ln -sf / @
ln a.txt @¦tee @ < a.txt¦tee -a @ < a.txt¦dd if=a.txt of=@ status=none¦truncate -s 0 @¦chmod 600 @
chmod -R u+x @¦install a.txt @¦sed -i s/a/b/ @¦sed -n 'w @' a.txt¦sed --in-place=.bak s/a/b/ @
awk '{print > "@"}' a.txt¦sort -o @ a.txt¦uniq a.txt @¦split -l 1 a.txt @¦csplit -f @ a.txt 2¦tar cf @ src
tar xf a.tar -C src¦tar xf a.tar¦gzip a.txt¦gzip -k a.txt¦gunzip a.gz¦python3 -c 'open("@","w").write("x")'
perl -e 'open(F,">","@");print F 1'¦perl -pi -e s/a/b/ @¦find . -name '*.py' -delete
find . -name a.txt -fprint @¦find . -name a.txt -exec cp {} @ \;¦echo x > @¦echo x >> @¦ls >| @¦ls &> @
ls >& @¦: > @¦cat a.txt > @¦exec 3> @¦git add -A¦git commit -qam x¦git checkout -q -b mine/x
git checkout -q -- a.txt¦git reset -q --hard¦git branch mine/y¦git branch other¦git tag t1¦git stash -q
git rm -q --cached a.txt¦git mv a.txt b.txt¦git config x.y z¦git diff --output=@¦git archive -o @ HEAD
git format-patch -q -1 -o @¦git push -q¦git clean -fdq¦git update-ref refs/heads/q HEAD¦patch -p1 < x.diff
git apply x.diff¦rsync -a src/ @¦cp -a link_root @¦shred -u @¦rmdir empty¦mkfifo @¦touch -c @¦xxd a.txt @
echo a | xargs touch¦ls | xargs -I{} cp {} @¦zip -q @ a.txt¦bash -c 'echo x > @'
printf x | dd of=@ status=none¦ed -s @ <<< 'w'¦cp a.txt b.txt; mv b.txt @¦echo 'touch @' | sh
sh <<'E'\ntouch @\nE\n¦base64 a.txt > @¦install -d @¦ln -s .. up; touch up/x¦git -c alias.z='!touch @' z
git -C .. status > @¦git worktree add -q @¦git notes add -m x¦git gc -q¦git symbolic-ref HEAD refs/heads/x
"""
JOINTS = (" ; ", " && ", " || ", " | ", "\n", " & ")
Change = Callable[[str], str]


def _quoted(template: str) -> Change:
    return lambda command: template.replace("@Q", shlex.quote(command)).replace("@", command)


CHANGES: tuple[Change, ...] = tuple(
    map(
        _quoted,
        (
            *(
                "( @ )",
                "{ @\n}",
                "if true; then @\nfi",
                "if false; then @\nfi",
                "for i in 1 2; do @\ndone",
                "! ( @ )",
            ),
            *(
                "bash -c @Q",
                "sh -c @Q",
                "eval @Q",
                "env sh -c @Q",
                "nice sh -c @Q",
                "timeout 3 bash -c @Q",
                "time ( @ )",
            ),
            *(
                "cd src; @",
                "cd .. && @",
                "cd {base}/w; @",
                "(cd /; @ )",
                "X=$( @ )",
                'echo "$( @ )"',
                "cat <( @ )",
            ),
            *(
                "f() { @\n}; f",
                "trap @Q EXIT",
                "echo @Q | sh",
                "bash <<'Z'\n@\nZ\n",
                "@ 2>/dev/null",
                "{ @\n} > /dev/null",
            ),
            *(
                "while read l; do @\nbreak; done < a.txt",
                "case x in x) @\n;; esac",
                "nobody-knows -- sh -c @Q",
                "true || @",
            ),
            *(
                'set -- @Q; eval "$1"',
                "echo x | xargs sh -c @Q",
                "find . -maxdepth 0 -exec sh -c @Q \\;",
                "{ @\n} | cat",
            ),
            *(
                'V=@Q; bash -c "$V"',
                "echo 'git push; rm -rf /' ; @",
                "# touch x\n@",
                "[ -n x ] && { @\n}",
                "stdbuf -o0 sh -c @Q",
            ),
        ),
    )
)


def commands(seed: int, count: int, base: str) -> list[str]:
    """So many different commands; ``base`` is the folder that their world lies in."""
    chance = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        found[_command(chance).replace("{base}", base)] = None
    return list(found)


def _command(chance: random.Random) -> str:
    parts = [_part(chance) for _ in range(chance.choice((1, 1, 1, 2, 2, 3)))]
    return "".join(part + chance.choice(JOINTS) for part in parts[:-1]) + parts[-1]


def _part(chance: random.Random) -> str:
    table = READERS if chance.random() < 0.55 else WRITERS
    pieces = [piece for line in table.splitlines() for piece in line.split("¦") if piece.strip()]
    piece = chance.choice(pieces).strip(" ").replace("\\n", "\n")
    paths = INSIDE if table is READERS or chance.random() < 0.5 else OUTSIDE
    command = piece.replace("@", _word(chance, chance.choice(paths)))
    for _ in range(chance.choice((0, 0, 1, 1, 2))):
        command = chance.choice(CHANGES)(command)
    return command


def _word(chance: random.Random, path: str) -> str:
    """A path as people and machines write it."""
    if "$" in path or path.startswith("~"):
        return path
    plain = shlex.quote(path)
    return chance.choice(
        (plain, plain, plain, f'"{path}"', "".join("\\" + c if c == " " else c for c in path))
    )
