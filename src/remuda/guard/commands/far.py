"""Containers, clusters and infrastructure: programs with verbs, most of which change something elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from remuda.guard.commands.clouds import aws, by_words
from remuda.guard.commands.contract import Call, Handler, Table
from remuda.guard.commands.operands import texts, written
from remuda.guard.commands.options import parse
from remuda.guard.commands.rows import operands
from remuda.guard.commands.verbs import Found, Tool, handler
from remuda.guard.model import AnyEffect, Network, Read, System, literal

COMPOSE = "ps,logs,config,ls,images,top,port,version,events,stats,volumes"
DOCKER = f"""\
read ps images logs inspect info version top port stats diff history search events help
    image/{{ls,list,inspect,history}} container/{{ls,list,ps,inspect,logs,stats,top,port,diff}}
    volume/{{ls,list,inspect}} network/{{ls,list,inspect}} system/{{df,info,events}}
    context/{{ls,show,inspect}} compose/{{{COMPOSE}}} buildx/{{ls,inspect,version,du}} manifest/inspect
    plugin/{{ls,inspect}} node/{{ls,inspect,ps}} service/{{ls,inspect,logs,ps}}
    stack/{{ls,ps,services,config}} secret/ls config/ls scout machine/{{list,info}} pod/{{ps,inspect}}
start run create container/{{run,create}}
publish push image/push buildx/imagetools manifest/push compose/push
secret login logout
change exec build pull start stop restart pause unpause rename tag commit update attach wait cp export save
    load import image/{{build,pull,tag,load,import,save}}
    container/{{exec,start,stop,restart,cp,attach,commit,export,rename,pause,unpause,update,wait}}
    volume/create network/{{create,connect,disconnect}}
    compose/{{up,start,stop,restart,build,pull,run,exec,create,pause,unpause,cp,watch,attach,scale,wait,down}}
    buildx/{{build,bake,create,use,stop}} context/{{create,use,update,import,export}}
    swarm/{{init,join,leave,update}} service/{{create,update,scale,rollback}} stack/deploy secret/create
    config/create plugin/{{install,enable,disable}} node/update builder/build trust/sign
destroy rm rmi kill image/{{rm,remove,prune}} container/{{rm,remove,kill,prune}} volume/{{rm,remove,prune}}
    network/{{rm,remove,prune}} system/prune compose/{{rm,kill}} buildx/{{rm,prune}} builder/prune context/rm
    service/rm stack/{{rm,down}} secret/rm config/rm plugin/rm node/rm pod/rm
"""
RUN_OPTIONS = """
    + -v|--volume: --mount: --privileged --pid: --ipc: --network: --net: --uts: --userns: --cap-add: --device:
    --security-opt: -e|--env: --env-file:r -w|--workdir: -u|--user: -p|--publish: --name: -h|--hostname:
    -l|--label: -m|--memory: --cpus: --entrypoint: --restart: --add-host: --dns: --expose: --link:
    --log-driver: --log-opt: --platform: --pull: --shm-size: --tmpfs: --ulimit: --volumes-from: --gpus:
    --health-cmd: --cidfile:w --stop-signal: --annotation: -a: -c: -* --*
"""
KUBECTL = """\
get get describe logs top explain version cluster-info api-resources api-versions auth/{can-i,whoami} diff
    events wait rollout/{status,history} options plugin completion
read config/{view,get-contexts,current-context,get-clusters,get-users} kustomize help
change apply create edit patch replace scale set label annotate expose run exec cp port-forward proxy attach
    cordon uncordon taint autoscale debug rollout/{restart,undo,pause,resume} certificate auth/reconcile
    config/{use-context,set-context,set-cluster,set-credentials,set,unset,rename-context}
destroy delete drain config/{delete-context,delete-cluster,delete-user}
"""
KUBECTL_BEFORE = """
    -n: --namespace: --context: --cluster: --user: --kubeconfig: -s: --server: --token: --as: --as-group:
    --cache-dir: --request-timeout: -v: --tls-server-name: -l: -o: -f: -* --*
"""
HELM = """\
read version env template lint repo/list dependency/{list,ls} verify help completion plugin/list show inspect
get list ls status history get search
change install upgrade rollback repo/{add,update,remove} dependency/{build,update} test plugin registry pull
    fetch package create
publish push
destroy uninstall delete del un
"""
TERRAFORM = """\
read version validate graph providers workspace/{list,show} help metadata
get show output plan state/{list,show,pull} refresh-only test console
here fmt init get modules
change apply import taint untaint refresh state/{mv,push,replace-provider} workspace/{new,select} force-unlock
destroy destroy state/rm workspace/delete
secret login logout
"""
PULUMI = """\
read version about help plugin/ls whoami
get preview stack/{ls,output,history,graph} config/get logs
change up update refresh import new stack/{init,select,rename,tag} config/{set,rm} state plugin policy cancel
    watch
destroy destroy stack/rm
secret login logout
"""
FLY = """\
get status logs apps/list list info releases regions machine/{list,status} ps open version doctor config/show
    volumes/list ips/list checks/list projects ls inspect domains/ls env/ls deployments tail whoami
    functions/list kv/list pages/list d1/list
change deploy launch scale restart start stop machine/{run,start,stop,update,clone} ssh volumes/create ips
    config regions/set resume suspend dev link env alias promote rollback redeploy build functions kv pages d1
    apps/create
destroy destroy apps/destroy delete rm remove machine/{destroy,remove} volumes/{delete,destroy} sites:delete
secret auth login logout secrets tokens token secret
publish publish
"""
VAULT = """\
get status list version path-help audit/list auth/list policy/{list,read} secrets/list operator/raft
    kv/{list,metadata}
secret read kv/get login token unwrap print
change write kv/{put,patch} policy/write auth/enable secrets/enable audit/enable operator lease/renew
destroy delete kv/{delete,destroy} policy/delete auth/disable secrets/disable lease/revoke audit/disable
"""


def start_container(call: Call, found: Found) -> Iterator[AnyEffect]:
    """``docker run``: what it mounts from here is in its hands; some options give it the whole machine."""
    parsed = parse(RUN_OPTIONS, found.words)
    open_wide = parsed.has("privileged", "cap-add", "device", "security-opt") or any(
        value.text == "host" for value in parsed.values("pid", "ipc", "userns", "uts", "network", "net")
    )
    for mount in parsed.values("volume"):
        path, colon, rest = (mount.text or mount.prefix).partition(":")
        if colon and path[:1] in {"/", ".", "~"} and not rest.endswith(":ro"):
            yield from written(literal(path), "edit")
    for mount in parsed.values("mount"):
        parts = dict(part.partition("=")[::2] for part in (mount.text or "").split(","))
        source = parts.get("source") or parts.get("src") or ""
        if source[:1] in {"/", ".", "~"} and not {"readonly", "ro"} & set(parts):
            yield from written(literal(source), "edit")
    yield System(kind="container", detail=f"{call.name} run", destroys=open_wide)


def docker_change(call: Call, found: Found) -> Iterator[AnyEffect]:
    """Other verbs: files that are written here, volumes that are lost."""
    words = texts(found.words)
    lost = found.verb == "compose/down" and bool({"-v", "--volumes", "--rmi"} & set(words))
    parsed = parse("-o|--output:w -i|--input:r -* --*", found.words)
    if found.verb in {"save", "export", "image/save", "container/export"}:
        yield from (effect for value in parsed.values("output") for effect in written(value, "truncate"))
        return
    if found.verb in {"cp", "container/cp", "compose/cp"} and len(parsed.operands) == 2:
        source, target = parsed.operands
        yield from operands(call, "r", [source] if ":" not in (source.text or ":") else [])
        yield from written(target, "create") if ":" not in (target.text or ":") else ()
    yield System(
        kind="container",
        detail=f"{call.name} {found.verb.replace('/', ' ')}",
        destroys=lost or found.verb == "exec",
    )


def kubectl_get(_: Call, found: Found) -> Iterator[AnyEffect]:
    """``kubectl get``: secrets are shown when their content is asked for."""
    words = texts(found.words)
    kinds = {part.partition("/")[0] for word in words if word[:1] != "-" for part in word.split(",")}
    wide = any(word.startswith(("-o", "--output", "--template")) for word in words)
    if found.verb == "get" and kinds & {"secret", "secrets"} and wide:
        yield System(kind="credential", detail="kubectl get secret")
    yield Network(direction="get", host=literal("kubernetes"))


def config_view(_: Call, found: Found) -> Iterator[AnyEffect]:
    """The settings of the cluster's client, with its keys only when told so."""
    if "--raw" in texts(found.words):
        yield System(kind="credential", detail="kubectl config view --raw")


def ansible(call: Call) -> Iterator[AnyEffect]:
    """``ansible-playbook``: only lists or checks when told so."""
    words = set(texts(call.arguments))
    if words & {"--list-hosts", "--list-tasks", "--list-tags", "--syntax-check", "--version", "--help"}:
        return
    checks = words & {"--check", "-C"}
    yield System(kind="cluster", detail=f"{call.name} --check" if checks else call.name)


def rclone(call: Call) -> Iterator[AnyEffect]:
    """``rclone``: remotes have a colon."""
    words = [word for word in call.arguments if (word.text or "")[:1] != "-"]
    verb = words[0].text if words else "version"
    if verb in {
        "ls",
        "lsl",
        "lsd",
        "lsf",
        "lsjson",
        "size",
        "about",
        "check",
        "cat",
        "md5sum",
        "tree",
        "ncdu",
    }:
        yield Network(direction="get", host=literal("rclone"))
        return
    if verb in {"version", "help", "listremotes"}:
        return
    if verb in {"copy", "copyto", "sync", "move", "moveto", "bisync"}:
        for word in words[1:2]:
            if ":" not in (word.text or ":"):
                yield Read(path=word)
                yield Network(direction="send", host=words[-1], carries=frozenset({"file"}))
        if len(words) > 2 and ":" not in (words[2].text or ":"):
            yield from written(words[2], "create")
    yield System(
        kind="cloud",
        detail=f"rclone {verb}",
        destroys=verb in {"sync", "delete", "purge", "deletefile", "cleanup"},
    )


_DOCKER = Tool(
    verbs=DOCKER,
    before="-H: --host: -c: --context: --config: -l: --log-level: -f: --file: -p: --project-name: --profile:"
    " --env-file: --project-directory: -* --*",
    changes="container",
    special={"start": start_container, "change": docker_change},
)
_KUBECTL = Tool(
    verbs=KUBECTL,
    before=KUBECTL_BEFORE,
    changes="cluster",
    host="kubernetes",
    outputs="--output-directory:w",
    special={"get": kubectl_get, "config/view": config_view},
)
_TERRAFORM = Tool(verbs=TERRAFORM, before="~ --chdir: --*", changes="cloud", outputs="~ --out:w")
_DOCKERS: dict[str, Handler] = dict.fromkeys(("docker", "podman", "nerdctl"), handler(_DOCKER))


def compose(call: Call) -> Iterator[AnyEffect]:
    """``docker-compose`` is ``docker compose``."""
    yield from call.again((literal("docker"), literal("compose"), *call.arguments))


TABLE: Table = {
    **_DOCKERS,
    **dict.fromkeys(("docker-compose", "podman-compose"), compose),
    **dict.fromkeys(("kubectl", "oc", "k3s", "microk8s"), handler(_KUBECTL)),
    "helm": handler(
        Tool(
            verbs=HELM, before=KUBECTL_BEFORE, changes="cluster", host="kubernetes", outputs="--output-dir:w"
        )
    ),
    **dict.fromkeys(("terraform", "tofu", "terragrunt"), handler(_TERRAFORM)),
    "pulumi": handler(Tool(verbs=PULUMI, before="-C: --cwd: -s: --stack: -* --*", host="pulumi.com")),
    **dict.fromkeys(
        ("ansible-playbook", "ansible", "ansible-pull", "salt", "puppet", "chef-client"), ansible
    ),
    **dict.fromkeys(
        ("fly", "flyctl", "netlify", "wrangler", "railway", "render", "firebase", "supabase"),
        handler(Tool(verbs=FLY, changes="cloud")),
    ),
    **dict.fromkeys(("vercel", "now", "surge"), handler(Tool(verbs=FLY, changes="cloud", bare="change"))),
    "vault": handler(Tool(verbs=VAULT, changes="cloud", host="vault")),
    "aws": aws,
    **dict.fromkeys(
        (
            "gcloud",
            "az",
            "gsutil",
            "bq",
            "doctl",
            "linode-cli",
            "hcloud",
            "oci",
            "ibmcloud",
            "scw",
            "eksctl",
            "kops",
        ),
        by_words,
    ),
    **dict.fromkeys(
        ("minikube", "kind", "k3d", "consul", "nomad", "etcdctl", "istioctl", "argocd", "flux", "velero"),
        by_words,
    ),
    "rclone": rclone,
    **dict.fromkeys(("s3cmd", "s5cmd", "mc", "b2", "azcopy", "heroku"), by_words),
}
