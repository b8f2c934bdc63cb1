"""The verbs of package managers, and the programs that run a project's code."""

from __future__ import annotations

from remuda.guard.commands.operands import names

PROJECT_TOOLS = names(
    """
    make gmake cmake ctest ninja meson bazel bazelisk buck2 pants scons rake gradle gradlew mvn mvnw ant sbt
    lein mill just task invoke nox tox pytest py.test unittest nose2 coverage hypothesis behave robot mypy
    pyright pylint flake8 ruff black isort bandit pyflakes pycodestyle pydocstyle pre-commit sphinx-build
    mkdocs jupyter alembic django-admin flask uvicorn gunicorn streamlit celery tsc tsx ts-node eslint
    prettier jest vitest mocha ava karma cypress playwright webpack vite rollup esbuild parcel next nuxt astro
    svelte-kit ng nx turbo lerna gulp grunt biome oxlint stylelint typedoc storybook nodemon rspec rubocop
    rails jekyll minitest phpunit phpstan psalm pest artisan cargo-nextest golangci-lint gofumpt staticcheck
    swift xcodebuild dotnet msbuild mix rebar3 stack cabal dune zig flutter dart gleam crystal nim elm purs
    clang-tidy clang-format cppcheck valgrind gofmt rustfmt shfmt terraform-docs lint-imports import-linter
    vulture tsup knip depcheck syncpack changeset husky lint-staged commitlint
    """
)

PUBLISHING = {
    "mvn": names("deploy release:perform release:prepare deploy:deploy-file"),
    "gradle": names("publish uploadArchives publishPlugins publishToMavenCentral"),
    "sbt": names("publish publishSigned"),
    "dotnet": names("push"),
    "mix": names("hex.publish"),
    "rake": names("release"),
    "dart": names("publish"),
    "flutter": names("publish"),
    "lerna": names("publish"),
    "changeset": names("publish"),
    "nx": names("release"),
    "stack": names("upload"),
    "cabal": names("upload"),
}
"""Words by which a build tool publishes."""

GLOBAL = names("-g --global --user --break-system-packages --system --root-user-action")

BEFORE = {
    "npm": "-C: --prefix: -w: --workspace: --registry: --userconfig: -* --*",
    "pnpm": "-C: --dir: --filter: -F: -* --*",
    "yarn": "--cwd: -* --*",
    "cargo": "--manifest-path: --color: -C: -Z: --config: -* --*",
    "go": "-C: -* --*",
    "uv": "--directory: --project: --python: --cache-dir: --config-file: -* --*",
    "pip": "--python: --proxy: --log: --cache-dir: -* --*",
    "poetry": "-C: --directory: -P: -* --*",
}

VERBS = {
    "npm": """\
read ls list ll la root bin prefix config/{get,list,ls} get help help-search explain why query fund pkg/get
    completion doctor
get view info show v search outdated audit ping whoami stars
project run run-script test t tst start stop restart rum urn it install-test cit
install install i in ins add ci clean-install uninstall un remove rm r unlink update up upgrade dedupe ddp
    prune rebuild rb audit/fix install-clean link ln
run exec x
here init create innit version pack shrinkwrap pkg/{set,delete,fix}
publish publish unpublish deprecate undeprecate dist-tag dist-tags owner access team org hook stage
secret login logout adduser add-user token profile trust
system config/{set,delete,edit,fix} set cache
""",
    "pnpm": """\
read ls list ll la root bin why licenses help config/{get,list} store/{path,status} env/list
get view info outdated audit search
project run test t start build lint dev
install install i add remove rm uninstall un update up upgrade dedupe prune rebuild rb fetch import link
    unlink audit/fix
run exec dlx
here init create version pack patch patch-commit deploy
publish publish
secret login logout token
system setup store/{prune,add} env/{use,add,remove} config/{set,delete} self-update
""",
    "yarn": """\
read list why licenses bin versions help config/{get,list} cache/{dir,list} workspaces/{info,list}
    global/{list,bin,dir} constraints/query
get info outdated audit npm/{info,audit} owner/list tag/list
project run test start build lint dev workspace workspaces/{run,foreach}
install install add remove upgrade upgrade-interactive up import dedupe link unlink rebuild autoclean check
run exec dlx node
here init create version pack policies set plugin patch
publish publish npm/{publish,tag} owner tag team
secret login logout npm/{login,logout,whoami}
system global cache/clean config/{set,delete}
""",
    "bun": """\
read pm/{ls,bin,hash,cache} help why
get outdated info audit
project run test build dev start
install install i add a remove rm update link unlink patch ci
run x exec
here init create pm/{trust,version,pack}
publish publish
system upgrade
""",
    "pip": """\
read list show freeze check config/{list,get,debug} debug help hash inspect cache/{dir,info,list} completion
get index search
install install uninstall wheel download lock
system config/{set,unset,edit} cache/{purge,remove}
""",
    "uv": """\
read tree version pip/{list,show,freeze,check,tree} python/{list,find,dir} tool/{list,dir} cache/{dir,size}
    help
install add remove sync lock pip/{install,uninstall,sync,compile} export
run run tool/run
here init venv build format
publish publish
secret auth
system tool/{install,upgrade,uninstall,update-shell} python/{install,uninstall,pin,upgrade} self
    cache/{clean,prune}
""",
    "poetry": """\
read show check version env/{info,list,activate} about list help search licenses
run run
project build test lint
install install add remove update lock sync export
here init new shell
publish publish
system self config cache env/{use,remove}
""",
    "pipx": """\
read list environment help
run run
system install uninstall upgrade upgrade-all reinstall inject ensurepath install-all uninstall-all
""",
    "conda": """\
read list info search env/list help
get search
run run
install install update upgrade remove uninstall create env/{create,update,remove}
system config clean init
""",
    "cargo": """\
read metadata tree version locate-project pkgid read-manifest verify-project help config/get
get search info audit outdated
project build b check c test t run r bench doc d clippy fix fmt clean nextest miri expand llvm-cov rustc
    rustdoc tarpaulin watch make flamegraph deny machete udeps geiger hack
install add remove rm update fetch vendor generate-lockfile
here init new package
publish publish yank owner
secret login logout
system install uninstall binstall
""",
    "go": """\
read version list doc help mod/{graph,why,verify} bug
project build test run vet generate tool fix clean
settings env
here fmt work/{init,use,edit,sync} mod/{init,edit}
install get mod/{tidy,download,vendor}
system install telemetry
""",
    "gem": """\
read list query specification contents dependency environment help which info lock
get search outdated
install update pristine
here build fetch
publish push yank owner
secret signin signout
system install uninstall cleanup sources cert
""",
    "bundle": """\
read list show info outdated check config/{get,list} platform env version licenses
run exec
project console
install install update add remove lock package cache pristine clean
here init gem binstubs
system config plugin
""",
    "composer": """\
read show info validate licenses depends why prohibits why-not check-platform-reqs status help about diagnose
    list
get search outdated audit
project run run-script exec test
install install i update u upgrade require remove reinstall create-project dump-autoload dumpautoload bump
here init archive
system global self-update selfupdate config clear-cache clearcache
""",
}

SYSTEM_QUERIES = {
    "apt": "list show search policy depends rdepends showsrc help changelog",
    "apt-get": "changelog check indextargets",
    "apt-cache": "show search policy depends rdepends pkgnames stats showpkg madison dump unmet",
    "aptitude": "search show versions why why-not",
    "dpkg": "-l -L -s -S -p -I -c --list --listfiles --status --search --info --contents --get-selections"
    " --print-architecture --audit --verify --version -C -V",
    "dpkg-query": "-l -L -s -S -W -f --list --show --status --search",
    "yum": "list info search repolist provides deplist history check-update",
    "dnf": "list info search repolist provides deplist history check-update repoquery",
    "rpm": "-q -V --query --verify",
    "pacman": "-Q -Ss -Si -Sl -F -T",
    "zypper": "search se info if list-updates repos lr packages",
    "apk": "info list search policy version stats",
    "brew": "list ls info search deps uses outdated config doctor leaves desc home cat log options --prefix"
    " --cellar --version --repository shellenv formulae casks commands missing",
    "snap": "list info find changes version connections",
    "flatpak": "list info search remotes history",
    "port": "list info search installed outdated contents",
    "nix": "search show-config",
    "nix-env": "-q --query",
    "emerge": "-s -p --search --pretend",
    "winget": "list search show",
    "choco": "list search info",
    "mas": "list search info outdated",
    "rustup": "show which toolchain-list doc --version",
    "nvm": "ls list current which version ls-remote",
    "pyenv": "versions version which root commands prefix",
    "rbenv": "versions version which root",
    "asdf": "list current where which info",
    "mise": "ls list current where which doctor env",
    "volta": "list which",
    "update-alternatives": "--list --display --query",
    "dpkg-reconfigure": "",
    "corepack": "",
}
