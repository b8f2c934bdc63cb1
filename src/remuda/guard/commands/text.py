"""Programs and builtins that only read and print, with the options by which some of them write or run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from remuda.guard.commands.contract import Call, Table
from remuda.guard.commands.operands import HERE
from remuda.guard.commands.options import parse
from remuda.guard.commands.rows import operands, options, role, table
from remuda.guard.model import AnyEffect, Environment, Unknown

ROWS = """\
: true false acpi inxi cpuid slabtop tload pinky finger infocmp toe lpstat ts dust duf procs btm gping choose
lsipc errno echo printf yes seq factor expr numfmt sleep
usleep basename dirname cal ncal uptime who w id whoami groups logname users uname arch nproc free vmstat
iostat mpstat pidstat lscpu lsblk lsusb lspci lsmem lsns lsmod lsipc pstree top htop pgrep pidof pmap pwdx tty
tput clear getconf locale apropos whatis whereis which type help pwd dirs jobs wait times ulimit
umask exit return break continue shift getopts let caller compgen compopt complete logout disown fg bg unset
set shopt test [ [[ tokei neofetch fastfetch sw_vers uuidgen netstat arp vm_stat system_profiler
mdfind jot tldr cheat espeak getent ipcs findmnt last lastb lastlog banner figlet fortune lolcat units => -*
    -* --*
man => -*
    -P:x --pager:x -H?x --html?x --browser:x -C:! --config-file:! -M:n --manpath:n -X? -T? -t -S: -s: -e:
    -L: -m: -r:
    -R: -E: -p: --prompt: --sections: --extension: --locale: -* --*
info => -*
    -o|--output:w --dribble:w --restore:! --init-file:! -f: -n: -d: -k: --file: --node: --directory: -* --*
bc => r*
    -* --*
sensors => -*
    -s! --set! --bus-list -c:! --config-file:! -* --*
lshw => -*
    ~ --dump:w -* --*
dmidecode => -*
    --dump-bin:w -* --*
hwinfo => -*
    --log:w --save-config:! --save-config! -* --*
glances => -*
    -w! --webserver! --export:! --export-csv-file:w --export-json-file:w -* --*
nvidia-smi => -*
    -r! --gpu-reset! -pm:! -pl:! -c:! -f:w --filename:w -l: -i: -q --query-gpu: -* --*
sar => -*
    -o:w -f:r -* --*
zoxide => -*
    -* --*
say => -*
    -o:w -f:r -v: -r: --output-file:w -* --*
notify-send => -*
    -A:! --action:! -u: -t: -a: -i: -c: -h: -* --*
cowsay cowthink => -*
    -f:! -e: -T: -W: -* --*
cloc => r*
    --out:w --report-file:w --sql:w --diff-list-file:r --list-file:r --exclude-dir: --include-lang:
    --exclude-lang:
    --exclude-ext: --include-ext: --extract-with:! --ignored:w --counted:w --found:w --categorized:w
    --unicode? --read-lang-def:r --write-lang-def:w --sql-append --config:! --force-lang: -* --*
scc => r*
    -o|--output:w --format-multi:! -f: -i: -x: --sort: -s: --exclude-dir: --include-ext: -* --*
diffstat => r*
    -o:w -e:w -* --*
xsv => -*
    -o:w --output:w -* --*
xq tomlq => - r*
    -i! --in-place! --xml-output --arg:: -* --*
identify => r*
    ~ --write:w --format: -* --*
ffprobe => r*
    ~ --o:w --show_entries: --print_format: --of: --i:r -* --*
actionlint => r*
    ~ --shellcheck:! --pyflakes:! --config-file:r --format: --ignore: -* --*
difft datamash in2csv gron htmlq pup yj jc rga pv cat tac wc rev expand
unexpand comm diff3 colordiff wdiff icdiff delta cksum sum md5sum sha1sum sha224sum sha256sum sha384sum
sha512sum b2sum b3sum shasum md5 crc32 nm readelf size objdump otool zcat bzcat xzcat lzcat gzcat bzless
xzless zmore tsort col colrm mediainfo pdfinfo pdffonts dwarfdump c++filt addr2line ldd mdcat
glow csvlook csvstat csvcut csvgrep csvsort csvjson hexyl jless => r*
    -* --*
dir vdir df readlink realpath namei getfacl getfattr lsattr exa eza lsd pathchk mountpoint lsof => n*
    -* --*
ls => n*
    -I: -w: -T: --ignore: --hide: --width: --tabsize: -* --*
du => n*
    -d: -B: -t: -X:r --max-depth: --block-size: --exclude: --exclude-from:r --files0-from:r -* --*
stat => n*
    -c: -t: --format: --printf: -* --*
blkid => n*
    -c:! --cache-file:! -g! --garbage-collect! -* --*
file => n*
    -C! --compile! -p! --preserve-date! -m:r --magic-file:r -f:r --files-from:r -F: -e: -P: -* --*
tree => n*
    -L: -P: -I: -H: -T: -o:w --charset: --filelimit: --timefmt: --infofile:r --gitfile:r -* --*
head tail => r*
    -# -n: -c: -s: --lines: --bytes: --pid: --sleep-interval: --max-unchanged-stats: -* --*
cut => r*
    -b: -c: -d: -f: --delimiter: --fields: --bytes: --characters: --output-delimiter: -* --*
paste => r*
    -d: --delimiters: -* --*
fold fmt => r*
    -w: -p: -g: -# --width: --prefix: --goal: -* --*
column => r*
    -s: -o: -c: -N: -n: -H: -R: -W: -T: --separator: --output-separator: --table-columns: -* --*
pr nl => r*
    -# -b: -d: -f: -h: -i: -l: -n: -o: -s: -v: -w: -W: -N: -* --*
join => r*
    -1: -2: -j: -t: -a: -e: -o: -v: -* --*
cmp => r r
    -n: -i: --bytes: --ignore-initial: -* --*
base64 base32 basenc => r*
    -w: --wrap: -b: -i:r -o:w -* --*
od => r*
    -A: -j: -N: -S: -t: -w? -* --*
hexdump hd => r*
    -e: -f:r -n: -s: -* --*
strings => r*
    -n: -e: -t: -T: -U: -# -* --*
uniq => r w
    -# -f: -s: -w: --skip-fields: --skip-chars: --check-chars: -* --*
zstdcat zstdless => r*
    -o:w --trace:w -D:r -* --*
ptx => r w
    -F: -M: -S: -W: -b:r -g: -i:r -o:r -w: -* --*
xxd => r w
    -c: -g: -l: -o: -s: -n: -R: -* --*
tr => -*
    -cCdst --complement --delete --squeeze-repeats --truncate-set1
sort => r*
    -bdfghiMnRrVzcCmsu -k|--key: -S|--buffer-size: -t|--field-separator: -T|--temporary-directory:
    --batch-size: --parallel: --random-source:r --files0-from:r -o|--output:w --compress-program:! --sort:
    --check? --debug --ignore-leading-blanks --dictionary-order --ignore-case --general-numeric-sort
    --ignore-nonprinting --month-sort --human-numeric-sort --numeric-sort --random-sort --reverse
    --version-sort --merge --stable --unique --zero-terminated --help --version
shuf => r*
    -ezr -i: -n: -o|--output:w --random-source:r --echo --head-count: --input-range: --repeat
    --zero-terminated
diff => r*
    -# -I: -x: -X:r -F: -U: -C: -W: -S: -D: --label: --exclude: --exclude-from:r --from-file:r --to-file:r
    --ignore-matching-lines: --show-function-line: --width: --starting-file: -* --*
sdiff => r*
    -o|--output:w -* --*
iconv => r*
    -f: -t: -o|--output:w --from-code: --to-code: -* --*
date => -*
    -d: -f:r -r:n -I? -Ru --date: --file:r --reference:n --iso-8601? --rfc-3339: --rfc-email --rfc-2822 --utc
    --universal --debug --resolution -j -v:
ss =>
    -K! --kill! -D:w --diag:w -F:r --filter:r -* --*
xattr => n*
    -w! -d! -c! -lprsvxz
plutil => r*
    -p -lint -extract:: -convert! -insert! -replace! -remove! -create! -o:w
mdls => n*
    -name: -* --*
hostname =>
    -aAdfiIsy --all-fqdns --fqdn --long --short --ip-address --all-ip-addresses --domain
locate plocate mlocate => -*
    -d:r -l: -n: --database:r --limit: -* --*
look => - r
    -t: -* --*
xmllint => r*
    --xpath: --schema:r --dtdvalid:r --relaxng:r --encode: --output:w -o:w --shell! -* --*
xsltproc => r*
    -o|--output:w --writesubtree:! --stringparam: --param: -* --*
shellcheck => r*
    -e: -f: -i: -o: -P: -s: -S: -W: -axV --exclude: --format: --include: --enable: --shell: --severity: --norc
    --external-sources --check-sourced --source-path: --color? --rcfile:r --wiki-link-count: --list-optional
yamllint hadolint => r*
    -c:r -d: -f: -t: -s --format: --strict --no-warnings --config-file:r --config:r --ignore: --no-fail
bat batcat => r*
    -l: -H: -r: -m: -pnAfuSP --pager:x --style: --theme: --language: --line-range: --map-syntax: --paging:
    --color: --wrap: --tabs: --terminal-width: --decorations: --diff --plain --number --show-all --list-themes
    --list-languages --file-name: --italic-text: --highlight-line: --force-colorization
history => -*
    -# -c! -d:! -a! -w! -rnp
fc => -*
    -# -lnr -e:! -s!
bind =>
    -lpPsSvVX -q:
hash => -*
    -lrtd
stty => -*
    -a -g --all --save -F: --file:
dmesg =>
    -HTwLxkurPS -l: -f: --*
journalctl => -*
    -u: -n: -p: -S: -U: -g: -t: -o: --unit: --lines: --since: --until: --priority: --output: --grep:
    --identifier: --vacuum-size:! --vacuum-time:! --vacuum-files:! --rotate! --flush! --sync!
    --relinquish-var! --setup-keys! --update-catalog! --no-pager --follow --boot --reverse --catalog --quiet
    --all --full --user --system --dmesg --facility: --disk-usage --list-boots --utc --no-hostname -*
"""

GREPS = (
    "grep",
    "egrep",
    "fgrep",
    "zgrep",
    "zegrep",
    "zfgrep",
    "bzgrep",
    "xzgrep",
    "ag",
    "ack",
    "rg",
    "ugrep",
)
WALKERS = frozenset({"rg", "ugrep", "ag", "ack"})
"""Those that search the folder when nothing else is given."""
GREP_OPTIONS = """
    -# -A|--after-context: -B|--before-context: -C|--context: -D: -d: -e|--regexp: -f|--file:r -m|--max-count:
    --color? --colour? --include: --exclude: --exclude-from:r --exclude-dir: --label: --binary-files:
    --pager:x --devices: --directories: -G: -* --*
"""
RG_OPTIONS = """
    -# -A|--after-context: -B|--before-context: -C|--context: -e|--regexp: -f|--file:r -m|--max-count:
    -g|--glob: --iglob: -t|--type: -T|--type-not: -j|--threads: -M|--max-columns: -d|--max-depth:
    -r|--replace: -E|--encoding: --sort: --sortr: --type-add: --ignore-file:r --pre:! --hostname-bin:!
    --color: --colors: --engine: --files -* --*
"""
PAGER_OPTIONS = "-# -o|--log-file:w -O|--LOG-FILE:w -k|--lesskey-file:! -p: -P: -t: -x: -y: -z: -* --*"
JQ_OPTIONS = (
    "-f|--from-file:r -L:r --indent: --arg:: --argjson:: --slurpfile::r --rawfile::r -i|--in-place -* --*"
)


def grep(call: Call) -> Iterator[AnyEffect]:
    """The first operand is a pattern, unless an option gives it; the others are read."""
    parsed = parse(RG_OPTIONS if call.name in {"rg", "ugrep"} else GREP_OPTIONS, call.arguments)
    yield from options(call, parsed)
    given = parsed.has("regexp", "file", "files", "type-list")
    searched = parsed.operands[0 if given else 1 :]
    walks = call.name in WALKERS and not call.input - {"input"} and call.input_text is None
    if not searched and (walks or parsed.has("r", "R", "recursive", "dereference-recursive")):
        searched = [HERE]
    yield from operands(call, "r*", searched)


def pager(call: Call) -> Iterator[AnyEffect]:
    """Reads files; a ``+`` argument holds commands of the pager's own."""
    parsed = parse(PAGER_OPTIONS, call.arguments)
    yield from options(call, parsed)
    for word in parsed.operands:
        text = word.text or ""
        if not text.startswith("+"):
            yield from role(call, "r", word)
        elif set(text) & set("!|#sv"):
            yield Unknown(why=f"{call.name} is given a command of its own")


def printenv(call: Call) -> Iterator[AnyEffect]:
    """Shows variables: all of them without an operand."""
    parsed = parse("-0 --null", call.arguments)
    yield from options(call, parsed)
    for name in [word.text or "*" for word in parsed.operands] or ["*"]:
        yield Environment(action="show", name=name)


def jq(call: Call) -> Iterator[AnyEffect]:
    """A filter and the files it reads. A filter may show the environment."""
    parsed = parse(JQ_OPTIONS, call.arguments)
    yield from options(call, parsed)
    words = parsed.operands
    if call.name == "yq" and words and words[0].text in {"e", "eval", "ea", "eval-all"}:
        words = words[1:]
    filters = [] if parsed.has("from-file") else words[:1]
    for text in (text for word in filters for text in word.values):
        for match in re.finditer(r"(?:\$ENV|(?<![\w.$\"])env\b)(?:\.(\w+))?", text):
            yield Environment(action="show", name=match[1] or "*")
    if not parsed.has("args", "jsonargs"):
        yield from operands(call, "e*" if parsed.has("in-place") else "r*", words[len(filters) :])


def ps(call: Call) -> Iterator[AnyEffect]:
    """Lists processes; a letter ``e`` without a dash, or ``-E``, shows their environment too."""
    parsed = parse(
        "-o: -O: -p: -u: -U: -C: -t: -g: -G: -q: -s: -N: --sort: --pid: --format: -* --*", call.arguments
    )
    letters = [word.text or "" for word in parsed.operands if (word.text or "").isalpha()]
    if parsed.has("E") or any("e" in text for text in letters):
        yield Environment(action="show", name="*")


def enable(call: Call) -> Iterator[AnyEffect]:
    """Turns builtins on and off, which makes names mean something else."""
    parsed = parse("-ap", call.arguments)
    if parsed.strange or parsed.operands:
        yield Unknown(why="enable changes what a name means")


TABLE: Table = {
    **table(ROWS),
    **dict.fromkeys(GREPS, grep),
    **dict.fromkeys(("less", "more", "most", "zless"), pager),
    **dict.fromkeys(("jq", "yq", "gojq", "jaq"), jq),
    "printenv": printenv,
    "ps": ps,
    "enable": enable,
}
