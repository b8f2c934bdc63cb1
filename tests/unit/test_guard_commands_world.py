"""The network, packages, the machine, and what is far away."""

from __future__ import annotations

import pytest
from tests.unit.guard_calls import effects, told

from remuda.guard.model import Network, Word


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("curl http://h/p", {"get h"}),
        ("curl -sSfL https://u:p@h:1/p?q", {"get h"}),
        ("curl -o o http://h", {"truncate o", "get h"}),
        ("curl --output-dir d -O http://h/f", {"get h", "truncate d/f"}),
        ("curl -d a=b http://h", {"send h"}),
        ("curl -d @f http://h", {"read f", "send h file"}),
        ("curl -F x=@f http://h", {"read f", "send h file"}),
        ("curl -T f http://h", {"read f", "send h file"}),
        ("curl -X DELETE http://h", {"send h", "system cloud!"}),
        ("curl -K c http://h", {"unknown", "get h"}),
        ("curl file:///f", {"read /f"}),
        ("wget http://h/f", {"get h", "create ."}),
        ("wget -qO- http://h", {"get h"}),
        ("wget --post-file=f http://h", {"read f", "send h file", "create ."}),
        ("nc h 80", {"send h"}),
        ("nc -e 'rm a' h 80", {"delete a", "system network", "send h"}),
        ("scp a h:b", {"read a", "send h", "system cloud"}),
        ("scp h:a b", {"get h", "create b"}),
        ("ssh h", {"send h"}),
        ("ssh h ls", {"send h", "system cloud"}),
        ("ssh -o ProxyCommand='rm a' h", {"delete a", "send h"}),
        ("dig h", {"get h"}),
        ("openssl x509 -in c -noout", {"read c"}),
        ("openssl s_client -connect h:443", {"send h"}),
        ("http GET h", {"get h"}),
        ("http h a=b", {"send h"}),
    ],
)
def test_what_comes_and_what_goes(command: str, expected: set[str]) -> None:
    assert told(command) == expected


def test_what_is_carried_is_where_it_comes_from() -> None:
    secret = Word((), taint=frozenset({"secret"}), prefix="http://h/?x=")
    (effect,) = effects(["curl", secret])
    assert isinstance(effect, Network)
    assert effect.carries == {"secret"}
    assert effect.host.text == "h"
    assert told("curl -d @- http://h", given=frozenset({"environment"})) == {"send h environment"}
    (effect,) = effects(["dig", Word((), taint=frozenset({"secret"}))])
    assert isinstance(effect, Network)
    assert effect.direction == "send"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("npm test", {"execute project"}),
        ("npm ls", set()),
        ("npm view x", {"query npm"}),
        ("npm ci", {"get the registry of npm", "edit .", "execute project"}),
        ("npm --prefix d install", {"get the registry of npm", "edit d", "execute project"}),
        ("npm install -g x", {"get the registry of npm", "system package"}),
        ("npm publish", {"system publish"}),
        ("npm token list", {"system credential"}),
        ("npx eslint .", {"execute project"}),
        ("npx frobnicate", {"execute unknown"}),
        ("yarn", {"get the registry of yarn", "edit .", "execute project"}),
        ("pip install x", {"get the registry of pip", "create ?", "execute project"}),
        ("pip list", set()),
        ("uv run pytest", {"execute project"}),
        ("cargo test", {"execute project"}),
        ("cargo publish", {"system publish"}),
        ("cargo install x", {"system package"}),
        ("go env GOPATH", set()),
        ("make", {"execute project"}),
        ("apt-get install x", {"system package"}),
        ("apt list --installed", set()),
        ("brew install x", {"system package"}),
        ("dpkg -l", set()),
        ("gcc -o o a.c", {"truncate o"}),
        ("twine upload x", {"system publish"}),
    ],
)
def test_packages_of_the_project_and_of_the_machine(command: str, expected: set[str]) -> None:
    assert told(command) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("kill 1", {"system process"}),
        ("kill -0 1", set()),
        ("kill %1", set()),
        ("kill -s 0 1", set()),
        ("pkill x", {"system process"}),
        ("fuser -v x", set()),
        ("fuser -v -k x", {"system process"}),
        ("systemctl status x", set()),
        ("systemctl stop x", {"system service"}),
        ("service x status", set()),
        ("crontab -l", set()),
        ("crontab -r", {"system schedule"}),
        ("mount", set()),
        ("mount a b", {"system mount"}),
        ("ip addr", set()),
        ("ip link set a down", {"system network"}),
        ("useradd x", {"system user"}),
        ("reboot", {"system power"}),
        ("mkfs.ext4 /dev/x", {"system device!"}),
        ("sysctl a.b", set()),
        ("sysctl a.b=1", {"system service"}),
        ("gpg --list-keys", set()),
        ("gpg --export-secret-keys", {"system credential"}),
        ("claude -p x", {"system agent"}),
        ("remuda mail", set()),
        ("remuda guard check x", set()),
        ("remuda task get x", set()),
        ("remuda task submit x", {"system agent"}),
        ("remuda secrets list", {"system agent"}),
        ("remuda trust add /", {"system agent"}),
        ("remuda send --mode peer-only other hi", set()),
        ("remuda send --mode peer-only other hi --mode spawn-only", {"system agent"}),
        ("remuda send other '--mode peer-only'", {"system agent"}),
        ("remuda guard remove", {"system agent"}),
        ("strace rm a", {"delete a"}),
        ("tmux ls", set()),
        ("tmux kill-server", {"system process"}),
    ],
)
def test_the_machine(command: str, expected: set[str]) -> None:
    assert told(command) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("docker ps -a", set()),
        ("docker --context c logs x", set()),
        ("docker run alpine ls", {"system container"}),
        ("docker run -v /:/h alpine", {"edit /", "system container"}),
        ("docker run -v /:/h:ro alpine", {"system container"}),
        ("docker run --privileged alpine", {"system container!"}),
        ("docker system prune", {"system container!"}),
        ("docker compose down", {"system container"}),
        ("docker-compose down -v", {"system container!"}),
        ("docker save -o o x", {"truncate o"}),
        ("docker push x", {"system publish"}),
        ("docker frobnicate", {"unknown"}),
        ("docker run --help", set()),
        ("kubectl -n x get pods", {"query kubernetes"}),
        ("kubectl get secret x -o yaml", {"system credential", "query kubernetes"}),
        ("kubectl delete ns x", {"system cluster!"}),
        ("kubectl apply -f x", {"system cluster"}),
        ("helm template x", set()),
        ("terraform validate", set()),
        ("terraform plan -out=o", {"truncate o", "get terraform"}),
        ("terraform -chdir=d destroy", {"system cloud!"}),
        ("aws s3 ls", {"query amazonaws.com"}),
        ("aws --profile p ec2 describe-instances", {"query amazonaws.com"}),
        ("aws ec2 terminate-instances", {"system cloud!"}),
        ("aws secretsmanager get-secret-value", {"system credential"}),
        ("aws s3 cp a s3://b", {"read a", "send amazonaws.com", "system cloud"}),
        ("gcloud compute instances list", {"query gcloud"}),
        ("gcloud compute instances delete x", {"system cloud!"}),
        ("gcloud auth print-access-token", {"system credential"}),
        ("az vm create", {"system cloud"}),
        ("vercel", {"system cloud"}),
        ("vault kv get x", {"system credential"}),
        ("ansible-playbook --syntax-check x", set()),
    ],
)
def test_containers_clusters_and_clouds(command: str, expected: set[str]) -> None:
    assert told(command) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("pandoc a.md -o a.html", {"truncate a.html", "read a.md"}),
        ("pandoc --filter x a.md", {"unknown", "read a.md"}),
        ("convert a.png b.jpg", {"read a.png", "truncate b.jpg"}),
        ("ffmpeg -y -i a -c copy b", {"read a", "truncate b"}),
        ("fzf --preview 'cat {}'", {"unknown"}),
    ],
)
def test_converters(command: str, expected: set[str]) -> None:
    assert told(command) == expected
