"""What programs do: tables of commands, by name. A module is loaded when one of its names is called."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from remuda.guard.commands.contract import Call, Handler, Table
from remuda.guard.model import AnyEffect

MODULES = {
    "text": """
        : [ [[ ack acpi actionlint addr2line ag apropos arch arp b2sum b3sum banner base32 base64
        basename basenc bat batcat bc bg bind blkid break btm bzcat bzgrep bzless c++filt cal caller
        cat cheat choose cksum clear cloc cmp col colordiff colrm column comm compgen complete compopt
        continue cowsay cowthink cpuid crc32 csvcut csvgrep csvjson csvlook csvsort csvstat cut datamash
        date delta df diff diff3 diffstat difft dir dirname dirs disown dmesg dmidecode du duf dust
        dwarfdump echo egrep enable errno espeak exa exit expand expr eza factor false fastfetch fc
        ffprobe fg fgrep figlet file findmnt finger fmt fold fortune free getconf getent getfacl
        getfattr getopts glances glow gojq gping grep gron groups gzcat hadolint hash hd head help
        hexdump hexyl history hostname htmlq htop hwinfo icdiff iconv id identify in2csv info infocmp
        inxi iostat ipcs jaq jc jless jobs join jot journalctl jq last lastb lastlog ldd less let
        locale locate logname logout lolcat look lpstat ls lsattr lsblk lscpu lsd lshw lsipc lsmem
        lsmod lsns lsof lspci lsusb lzcat man md5 md5sum mdcat mdfind mdls mediainfo mlocate more
        most mountpoint mpstat namei ncal neofetch netstat nl nm notify-send nproc numfmt nvidia-smi
        objdump od otool paste pathchk pdffonts pdfinfo pgrep pidof pidstat pinky plocate plutil pmap
        pr printenv printf procs ps pstree ptx pup pv pwd pwdx readelf readlink realpath return rev rg
        rga sar say scc sdiff sensors seq set sha1sum sha224sum sha256sum sha384sum sha512sum shasum
        shellcheck shift shopt shuf size slabtop sleep sort ss stat strings stty sum sw_vers
        system_profiler tac tail test times tldr tload toe tokei tomlq top tput tr tree true ts tsort
        tty type ugrep ulimit umask uname unexpand uniq units unset uptime users usleep uuidgen vdir
        vm_stat vmstat w wait wc wdiff whatis whereis which who whoami xattr xmllint xq xsltproc xsv
        xxd xzcat xzgrep xzless yamllint yes yj yq zcat zegrep zfgrep zgrep zless zmore zoxide zstdcat
        zstdless
    """,
    "files": """
        autoflake autopep8 chattr chgrp chmod chown code cp cpp csplit cursor dd ditto dos2unix
        fallocate fromdos gio-trash htpasswd indent install ipcrm link ln lp lpr mac2unix mkdir
        mkfifo mknod mktemp mv objcopy open prename pyupgrade ranlib rename rm rmdir rsync sd setfacl
        setfattr shar shred split sponge srm strip subl sync tee tidy todos touch trash trash-put
        truncate unix2dos unlink xdg-open zed
    """,
    "find": """
        bfs fd fdfind find gfind
    """,
    "sed": """
        gsed sed
    """,
    "awk": """
        awk gawk mawk nawk original-awk
    """,
    "filters": """
        dasel dc fx m4 mlr
    """,
    "archives": """
        7z 7za 7zr ar brotli bsdtar bunzip2 bzip2 compress cpio gtar gunzip gzip jar lz4 lzma lzop
        pbzip2 pigz pixz rar tar unbrotli uncompress unlz4 unlzma unpigz unrar unxz unzip unzstd xz
        zip zipinfo zstd
    """,
    "editors": """
        apply_patch applypatch ed elvis emacs emacsclient ex gedit gvim helix hx joe kak kate mcedit
        micro nano nvi nvim patch pico red vi view vim vimdiff
    """,
    "git": """
        git
    """,
    "hosting": """
        gh glab hub tea
    """,
    "interpreters": """
        R Rscript clisp deno elixir erl expect gdb ghci gnuplot groovy guile ipython jruby julia
        kotlin lldb lua lua5.1 lua5.3 lua5.4 luajit maxima node nodejs octave osascript perl php
        powershell pwsh pypy pypy3 python python2 python3 python3.10 python3.11 python3.12 python3.13
        python3.14 python3.15 python3.6 python3.7 python3.8 python3.9 racket ruby sbcl scala swipl
        tclsh wish
    """,
    "network": """
        autossh dig dog drill elinks ftp host kdig lftp links lynx mail mailx mosh msmtp mtr mutt nc
        ncat ncftp netcat nslookup openssl ping ping6 resolvectl scp sendmail sftp slogin socat ssh
        swaks telnet tftp tracepath traceroute w3m whois
    """,
    "transfer": """
        aria2c axel curl gdown http https wget xh xhs youtube-dl yt-dlp
    """,
    "packages": """
        alembic ant apk apt apt-cache apt-get aptitude artisan as asdf astro ava bandit bazel bazelisk
        behave biome bison black brew buck2 bun bundle bundler bunx c++ cabal cargo cargo-nextest cc
        celery changeset choco clang clang++ clang-format clang-tidy cmake commitlint composer conda
        corepack coverage cppcheck crystal ctest cypress dart depcheck django-admin dnf dotnet dpkg
        dpkg-query dpkg-reconfigure dune elm emerge esbuild eslint flake8 flask flatpak flex flutter
        g++ gcc gem gfortran ghc gleam gmake go gofmt gofumpt golangci-lint gradle gradlew grunt gulp
        gunicorn hatch husky hypothesis import-linter invoke isort javac jekyll jest jupyter just
        karma knip ld ldconfig lein lerna lex lint-imports lint-staged make mamba mas meson micromamba
        mill minitest mise mix mkdocs mocha msbuild mvn mvnw mypy nasm next ng nim ninja nix nix-env
        nodemon nose2 nox npm npx nuxt nvm nx oxlint pacman pants parcel pdm pest phpstan phpunit pip
        pip3 pipenv pipx playwright pnpm pnpx poetry port pre-commit prettier psalm purs py.test
        pycodestyle pydocstyle pyenv pyflakes pylint pyright pytest rails rake rbenv rebar3 robot
        rollup rpm rspec rubocop ruff rustc rustfmt rustup rye sbt scons shfmt snap sphinx-build stack
        staticcheck storybook streamlit stylelint svelte-kit swift syncpack task tcc terraform-docs
        tox ts-node tsc tsup tsx turbo typedoc unittest update-alternatives uv uvicorn uvx valgrind
        vite vitest volta vulture webpack winget xcodebuild yacc yarn yarnpkg yasm yum zig zypper
    """,
    "system": """
        a2enmod a2ensite aa-disable aa-enforce addgroup adduser age aider amp amplifier amplihack
        anacron apachectl apparmor_parser arp-scan arpspoof at atq atrm auditctl auggie aws-vault
        badblocks batch berglas blkdiscard brctl btrfs bw byobu cdrecord cfdisk chamber chfn chisel
        chkconfig chpasswd chpst chsh claude cline clip.exe cloudflared codex cody containerd copilot
        crontab crush cryptsetup csrutil cursor-agent ddrescue debugfs defaults delgroup deluser
        depmod dhclient dhcpcd direnv diskutil dmsetup dnsmasq dockerd doppler droid dscl dtruss e2fsck
        efibootmgr ethtool ettercap fdisk firewall-cmd flashrom flit frpc frps fsck fuser fusermount
        fusermount3 gdisk gemini gnome-keyring-daemon goose gopass goreleaser gost gpasswd gpg gpg2
        gptme groupadd groupdel groupmod grub-install halt haproxy hdparm hermes hostnamectl hping3 httpd
        ifconfig infisical init insmod invoke-rc.d ip ip6tables iptables iw iwconfig kexec kextload
        kextunload keyring kill killall killall5 kiro-cli kwallet-query launchctl llm localectl
        localtunnel logger loginctl losetup lpass lt ltrace lvcreate lvm lvremove lxc machinectl
        masscan mdadm mesg mkdosfs mke2fs mkfs mkfs.btrfs mkfs.ext3 mkfs.ext4 mkfs.fat mkfs.vfat mkfs.xfs
        mkswap modprobe mount mount.cifs mount.nfs multipass nbd-client networksetup newgrp newusers nft nginx
        ngrok nmap nmcli np nsupdate nvme nvram op openclaw opencode openvpn overstory ovs-vsctl ovsx parted
        pass passwd pbcopy pbpaste pi pivot_root pkexec pkill plandex pm-hibernate pm-suspend pm2
        pmset polkit poweroff pvcreate pvremove q qwen rc-service rc-update reboot release-it remuda
        renice reptyr resize2fs rfkill rmmod route run-parts s6-svc saml2aws screen scutil secret-tool
        security semantic-release service setcap setenforce sfdisk sg sgdisk sgpt shutdown skill
        smartctl snice socks5 softwareupdate sops spctl ssh-add ssh-agent ssh-copy-id ssh-keygen
        ssh-keyscan sshd sslh strace stunnel supervisorctl sv swapoff swapon sysadminctl sysctl
        systemctl systemd-run systemsetup tailscale tc tccutil tcpdump telinit teller timedatectl
        tmutil tmux tshark tune2fs twine ufw umount update-grub update-rc.d useradd userdel usermod
        vagrant vgcreate vgremove vigr vipw virsh visudo vsce wall wg wg-quick wipefs wl-copy wl-paste
        wodim wpa_supplicant write xclip xfs_repair xkill xsel zellij zerotier-cli zfs zpool
    """,
    "far": """
        algolia ansible ansible-playbook ansible-pull apigeecli argocd aws az azcopy b2 borg bq cdk
        chef-client circleci consul datadog-ci docker docker-compose doctl eksctl etcdctl fastly
        firebase flux fly flyctl gcloud gitlab-runner gsutil hcloud helm heroku ibmcloud istioctl
        jenkins-cli k3d k3s kind kops kubectl ldcli linode-cli mc microk8s minikube nats nerdctl
        netlify newrelic nomad now oc oci podman podman-compose pulumi puppet rabbitmqadmin
        rabbitmqctl railway rclone render restic rpk s3cmd s5cmd salt sam scw serverless sls stripe
        supabase surge terraform terragrunt tofu vault velero vercel wrangler
    """,
    "databases": """
        clickhouse-client clusterdb cockroach cqlsh createdb createuser dropdb dropuser duckdb influx
        initdb keydb-cli litecli mariadb mariadb-dump mongo mongodump mongoexport mongoimport
        mongorestore mongosh mycli mysql mysqladmin mysqldump mysqlimport pg_ctl pg_dump pg_dumpall
        pg_restore pgbench pgcli psql redis-cli reindexdb snowsql sqlcmd sqlite sqlite3 usql vacuumdb
        valkey-cli
    """,
    "media": """
        asciidoctor circo cmark composite convert d2 dot exiftool fdp ffmpeg fzf gum jpegoptim
        libreoffice magick markdown mmark mmdc mogrify montage neato optipng pandoc pdftohtml pdftoppm
        pdftotext peco plantuml pngquant protoc qpdf rst2html rst2html5 sfdp sk soffice svgo twopi
    """,
}
"""Each module with the names in its table; a test holds them equal."""

_WHERE = {name: module for module, listed in MODULES.items() for name in listed.split()}


def lookup(name: str) -> Handler | None:
    """The handler of a program, or None for one that nobody knows. Capitals do not matter where file systems
    do not mind them, so they do not matter here."""
    module = _WHERE.get(name) or _WHERE.get(name.lower())
    if module is None:
        return None
    table: Table = import_module(f"remuda.guard.commands.{module}").TABLE
    return _but_for_help(table.get(name) or table[name.lower()])


def _but_for_help(handler: Handler) -> Handler:
    """A call that only asks for help or the version does nothing, whatever the program."""

    def effects(call: Call) -> Iterable[AnyEffect]:
        if len(call.arguments) == 1 and call.arguments[0].text in {"--help", "--version"}:
            return ()
        return handler(call)

    return effects


__all__ = ["MODULES", "lookup"]
