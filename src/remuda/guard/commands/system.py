"""Programs that change the machine: processes, services, users, disks, networks, keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import get_args

from remuda.guard.commands.contract import Call, Table
from remuda.guard.commands.operands import names, texts, written
from remuda.guard.commands.options import parse
from remuda.guard.commands.rows import operands, options, role
from remuda.guard.commands.verbs import kinds
from remuda.guard.model import AnyEffect, Environment, Network, System, SystemKind, Unknown, literal

ALWAYS = """\
power shutdown reboot halt poweroff init telinit pm-suspend pm-hibernate
user useradd userdel usermod groupadd groupdel groupmod adduser deluser addgroup delgroup passwd chpasswd chsh
    chfn visudo gpasswd vipw vigr newusers dscl sysadminctl
mount umount fusermount fusermount3 mount.cifs mount.nfs pivot_root swapoff mkswap cryptsetup lvm
    lvcreate lvremove vgcreate vgremove pvcreate pvremove nbd-client
device mkfs mke2fs mkfs.ext4 mkfs.ext3 mkfs.xfs mkfs.btrfs mkfs.vfat mkfs.fat mkdosfs wipefs blkdiscard hdparm
    sgdisk gdisk cfdisk sfdisk badblocks e2fsck fsck tune2fs resize2fs xfs_repair debugfs nvme efibootmgr
    grub-install update-grub flashrom insmod rmmod modprobe depmod kexec nvram csrutil ddrescue wodim cdrecord
process pkill killall killall5 skill snice renice reptyr xkill
schedule at batch atrm anacron run-parts systemd-run
service invoke-rc.d update-rc.d chkconfig rc-update sv s6-svc supervisorctl pm2 apachectl httpd a2enmod
    a2ensite sshd dockerd containerd logger wall write mesg setenforce aa-enforce aa-disable auditctl
    apparmor_parser spctl tccutil pmset tmutil softwareupdate systemsetup kextload kextunload
network tc brctl ovs-vsctl wg wg-quick openvpn tcpdump tshark dhclient dhcpcd iwconfig wpa_supplicant
    rfkill ethtool networksetup arp-scan nmap masscan ngrok cloudflared localtunnel lt tailscale zerotier-cli
    nsupdate dnsmasq hping3 arpspoof ettercap socks5 sslh stunnel chisel frpc frps gost
publish twine vsce ovsx goreleaser semantic-release np release-it flit
privilege setcap pkexec polkit newgrp sg chpst
credential pass op lpass bw keyring secret-tool security gopass gnome-keyring-daemon kwallet-query age sops
    aws-vault saml2aws ssh-agent doppler infisical chamber berglas teller
"""
"""Programs that do this whatever their arguments are, but for their help."""

QUERIES = """\
systemctl service status show cat list-units list-unit-files is-active is-enabled is-failed list-timers
    list-sockets list-dependencies list-jobs get-default help is-system-running list-machines
service service status --status-all
rc-service service status --list
launchctl service list print print-disabled blame dumpstate version help
loginctl service list-sessions list-users list-seats session-status user-status show-session show-user
machinectl container list status show list-images
hostnamectl service status hostname
timedatectl service status show list-timezones
localectl service status list-locales list-keymaps
crontab schedule -l
atq schedule
iptables network -L -S -nL -vL -nvL -vnL -C --list --list-rules -V
ip6tables network -L -S -nL -vL -nvL -vnL -C --list --list-rules -V
nft network list monitor describe
ufw network status show version app
firewall-cmd network --list-all --state --list-services --list-ports --get-zones --get-active-zones
nmcli network status show list monitor
iw network list info scan-dump
fdisk device -l --list
parted device -l --list print
nginx service -t -T -v -V -h
haproxy service -c -v -vv -h
zfs mount list get diff version
zpool mount list status get iostat history version
mdadm mount --detail -D --examine -E --query -Q --detail-platform
btrfs mount list show df usage version
dmsetup mount ls info status table deps version
losetup mount -l -a --list --all
diskutil device list info activity
defaults user read read-type domains find help
scutil network --dns --proxy --nwi --get
smartctl device -a -i -H -A -x --all --info --health --scan
vagrant container status global-status version ssh-config port
virsh container list info dominfo domstate nodeinfo version
lxc container list info version
multipass container list info version find
"""
"""Programs with what they change, and the first words or options by which they only show something."""

BY_ANY_WORD = names("btrfs")
BY_LAST_WORD = names("service rc-service parted nmcli")
"""Those of them whose last word tells."""

AGENTS = names(
    """
    claude codex copilot gemini opencode aider hermes openclaw amplifier pi goose cursor-agent crush droid
    qwen amp cline cody auggie kiro-cli q plandex gptme llm sgpt amplihack overstory
    """
)


def always(kind: SystemKind) -> Callable[[Call], Iterator[AnyEffect]]:
    """A program that does this, but for its help."""

    def effects(call: Call) -> Iterator[AnyEffect]:
        first = texts(call.arguments[:1])
        if first not in (["--help"], ["--version"]):
            destroys = kind in {"device", "power"} and bool(call.arguments)
            yield System(kind=kind, detail=call.name, destroys=destroys)

    return effects


def queries(call: Call) -> Iterator[AnyEffect]:
    """A program that shows or changes, by its first word or an option."""
    kind, shown = shows()[call.name]
    words = [text for text in texts(call.arguments) if text]
    first = next((word for word in words if word[:1] != "-"), "")
    last = words[-1] if words and call.name in BY_LAST_WORD else ""
    pure = first in shown or last in shown or (call.name in BY_ANY_WORD and not shown.isdisjoint(words[:2]))
    pure = pure or any(word in shown for word in words if word[:1] == "-")
    if (words and not pure and words not in (["--help"], ["--version"])) or not (
        words or call.name != "crontab"
    ):
        yield System(kind=kind, detail=f"{call.name} {first}".strip())


@cache
def shows() -> dict[str, tuple[SystemKind, frozenset[str]]]:
    """The kind and the words of each program in the table of queries."""
    rows = QUERIES.replace("\n    ", " ").splitlines()
    found: dict[str, tuple[SystemKind, frozenset[str]]] = {}
    for name, kind, *words in (row.split() for row in rows):
        found[name] = (_kind(kind), frozenset(words))
    return found


def _kind(text: str) -> SystemKind:
    return next(kind for kind in get_args(SystemKind) if kind == text)


def fuser(call: Call) -> Iterator[AnyEffect]:
    """``fuser``: shows who uses a file, or kills them."""
    if any(text[:2] == "--" or (text[:1] == "-" and "k" in text) for text in texts(call.arguments)):
        yield System(kind="process", detail="fuser -k")


def kill(call: Call) -> Iterator[AnyEffect]:
    """``kill``: jobs of this shell are its own, signal 0 only asks."""
    words = list(call.arguments)
    if words and words[0].text in {"-l", "-L", "--list", "--table"}:
        return
    signal = ""
    if words and (words[0].text or "")[:1] == "-":
        signal = (words.pop(0).text or "").lstrip("-")
        if signal in {"s", "n", "signal"} and words:
            signal = words.pop(0).text or ""
    if signal == "0" or all((word.text or "").startswith("%") for word in words):
        return
    yield System(kind="process", detail="kill")


def mount(call: Call) -> Iterator[AnyEffect]:
    """``mount``, ``swapon``, ``ifconfig`` and ``ip``: nothing or a mere flag only lists."""
    words = [text for text in texts(call.arguments) if text]
    shown = {"show", "list", "ls", "get", "-l", "-s", "--show", "-a", "-V", "-h"}
    verbs = {
        "add",
        "del",
        "delete",
        "set",
        "change",
        "replace",
        "flush",
        "up",
        "down",
        "append",
        "netns",
        "exec",
    }
    if call.name == "ip":
        changes = bool(set(words) & verbs)
    elif call.name == "ifconfig":
        changes = len(words) > 1
    else:
        changes = any(word not in shown for word in words)
    if changes:
        kind: SystemKind = "network" if call.name in {"ip", "ifconfig"} else "mount"
        yield System(kind=kind, detail=" ".join([call.name, *words][:3]))


def route(call: Call) -> Iterator[AnyEffect]:
    """``route``: shows, unless it has a verb."""
    if any(text in {"add", "del", "delete", "change", "flush", "replace"} for text in texts(call.arguments)):
        yield System(kind="network", detail="route")


def sysctl(call: Call) -> Iterator[AnyEffect]:
    """``sysctl``: shows, unless it sets."""
    parsed = parse(
        "-aAnNebqX --all --values --names --ignore -r: --pattern: -w -p --system --load --write",
        call.arguments,
    )
    yield from options(call, parsed)
    assigns = any("=" in value for word in parsed.operands for value in word.values)
    if assigns or parsed.has("w", "p", "system", "load", "write"):
        yield System(kind="service", detail="sysctl")


def gpg(call: Call) -> Iterator[AnyEffect]:
    """``gpg``: shows public keys; secret ones are not for showing."""
    parsed = parse(
        "-o|--output:w -r: -u: -k|--list-keys -K|--list-secret-keys -d|--decrypt -e|--encrypt -s|--sign"
        " -a|--armor -b -c|--symmetric --export --export-secret-keys --export-secret-subkeys --import"
        " --delete-keys --verify --delete-secret-keys --gen-key --full-generate-key --edit-key --recipient:"
        " --local-user: --batch --yes --homedir: --passphrase: --list-packets --fingerprint --print-md:"
        " --dearmor --with-colons --keyid-format: -q -v --recv-keys --send-keys --keyserver: --clearsign"
        " --detach-sign --quiet --verbose --no-tty --list-sigs --*",
        call.arguments,
    )
    yield from options(call, parsed)
    changes = (
        "export-secret-keys",
        "export-secret-subkeys",
        "delete-keys",
        "delete-secret-keys",
        "gen-key",
        "edit-key",
    )
    if parsed.has(*changes, "import", "full-generate-key", "recv-keys"):
        yield System(kind="credential", detail="gpg")
    if parsed.has("send-keys"):
        yield Network(direction="send", host=literal("keyserver"))
    yield from operands(
        call, "r*", parsed.operands if parsed.has("decrypt", "encrypt", "sign", "verify") else []
    )


def ssh_keys(call: Call) -> Iterator[AnyEffect]:
    """``ssh-keygen``, ``ssh-add``, ``ssh-keyscan``, ``ssh-copy-id``."""
    words = texts(call.arguments)
    shows = {"ssh-keygen": {"-l", "-lf", "-F", "-lv"}, "ssh-add": {"-l", "-L"}}.get(call.name, set())
    if shows & set(words):
        return
    if call.name in {"ssh-keyscan", "ssh-copy-id"}:
        direction = "get" if call.name == "ssh-keyscan" else "send"
        yield Network(
            direction="get" if direction == "get" else "send", host=literal(words[-1] if words else "")
        )
        return
    parsed = parse("-f: -t: -b: -C: -N: -P: -a: -q -y -* --*", call.arguments)
    if (file := parsed.value("f")) is not None and not parsed.has("y"):
        yield from written(file, "create")
    else:
        yield System(kind="credential", detail=call.name)


def tracer(call: Call) -> Iterator[AnyEffect]:
    """``strace`` and its kin run a command and look at it; attached, they look at others."""
    parsed = parse(
        "+ -o:w -e: -p: -s: -a: -E: -O: -S: -u: -P: -b: -I: -X: --output:w --pid: -* --*", call.arguments
    )
    yield from options(call, parsed)
    if parsed.has("p", "pid"):
        yield System(kind="process", detail=call.name)
    elif parsed.operands:
        yield from call.again(tuple(parsed.operands))


def terminals(call: Call) -> Iterator[AnyEffect]:
    """``tmux`` and ``screen``: commands may be given to another terminal."""
    words = texts(call.arguments)
    shows = names(
        "ls list-sessions list-windows list-panes lsw lsp info display-message display show-options -ls"
        " -list -V"
    )
    parsed = parse("+ -L: -S: -f: -c: -T: -* --*", call.arguments)
    verb = parsed.operands[0].text if parsed.operands else ""
    if verb in {"capture-pane", "capturep"} or verb in shows or (set(words) & {"-ls", "-list", "-V"}):
        return
    if verb in {
        "kill-server",
        "kill-session",
        "kill-window",
        "kill-pane",
        "send-keys",
        "send",
        "pipe-pane",
        "paste-buffer",
    }:
        yield System(kind="process", detail=f"{call.name} {verb}")
        return
    inner = parse(
        "+ -s: -n: -t: -c: -x: -y: -F: -e: -S: -* --*", parsed.operands[1:] if verb in OPENING else []
    )
    if inner.operands or call.name == "screen":
        given = inner.operands or parsed.operands
        yield from call.shell(" ".join(texts(given))) if all(word.text for word in given) else ()
    yield Unknown(why=f"{call.name} runs commands in a terminal of its own")


OPENING = names(
    "new new-session neww new-window split-window splitw respawn-pane respawn-window run run-shell"
)


def clipboard(call: Call) -> Iterator[AnyEffect]:
    """The clipboard belongs to the person."""
    if call.name in {"pbpaste", "wl-paste"} or set(texts(call.arguments)) & {"-o", "--output"}:
        return
    yield System(kind="user", detail="the clipboard")


def agent(call: Call) -> Iterator[AnyEffect]:
    """Another coding agent."""
    words = texts(call.arguments)
    if words[:1] in (["--version"], ["--help"], ["-v"], ["-h"], ["-V"]):
        return
    yield System(kind="agent", detail=call.name)


def remuda(call: Call) -> Iterator[AnyEffect]:
    """Remuda itself: working together is fine, starting agents and changing the guard is not."""
    words = [text for text in texts(call.arguments) if text[:1] != "-"]
    free = names(
        "mail claim release claims ps which runtimes agents doctor usage peer version completion spawn"
    )
    nested = names(
        "guard/check guard/explain guard/status guard/log session/list session/show worktree/list"
        " task/get task/wait task/list task/watch"
    )
    verb = words[0] if words else ""
    if not verb or verb in free or "/".join(words[:2]) in nested or _speaks(call):
        return
    yield System(kind="agent", detail=f"remuda {verb}")


def _speaks(call: Call) -> bool:
    """A message that goes to a session that is there, or nowhere: no agent is started for it."""
    words = [word.text for word in call.arguments]
    known = [text for text in words if text is not None]
    only = ["send", "--mode", "peer-only"]
    return words[:3] == only and known == words and not any(text[:6] == "--mode" for text in known[3:])


def environment_file(call: Call) -> Iterator[AnyEffect]:
    """``direnv`` and its kin load variables that a file sets."""
    words = texts(call.arguments)
    if words[:1] in (["status"], ["version"], ["help"], ["--version"]):
        return
    yield Environment(action="set", name="*")
    yield from role(call, "!", literal(call.name))


_ALWAYS = {name: always(_kind(kind)) for name, kind in kinds(ALWAYS).items()}
TABLE: Table = {
    **_ALWAYS,
    **dict.fromkeys(shows(), queries),
    "fuser": fuser,
    **dict.fromkeys(AGENTS, agent),
    "remuda": remuda,
    "kill": kill,
    **dict.fromkeys(("mount", "swapon", "ip", "ifconfig"), mount),
    "sysctl": sysctl,
    "route": route,
    **dict.fromkeys(("gpg", "gpg2"), gpg),
    **dict.fromkeys(("ssh-keygen", "ssh-add", "ssh-keyscan", "ssh-copy-id"), ssh_keys),
    **dict.fromkeys(("strace", "ltrace", "dtruss"), tracer),
    **dict.fromkeys(("tmux", "screen", "zellij", "byobu"), terminals),
    **dict.fromkeys(("pbcopy", "pbpaste", "xclip", "xsel", "wl-copy", "wl-paste", "clip.exe"), clipboard),
    "direnv": environment_file,
}
