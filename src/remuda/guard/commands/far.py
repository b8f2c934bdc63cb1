"""Containers, clusters and infrastructure: programs with verbs, most of which change something elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from remuda.guard.commands.clouds import aws, big_query, by_words, of_project
from remuda.guard.commands.contract import Call, Handler, Table
from remuda.guard.commands.fleets import ansible, rclone
from remuda.guard.commands.operands import texts, written
from remuda.guard.commands.options import parse
from remuda.guard.commands.rows import operands
from remuda.guard.commands.verbs import Found, Tool, dry, handler, query, remotely
from remuda.guard.model import AnyEffect, System, SystemKind, literal

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
inside exec container/exec compose/exec
change build pull start stop restart pause unpause rename tag commit update attach wait cp export save
    load import image/{{build,pull,tag,load,import,save}}
    container/{{start,stop,restart,cp,attach,commit,export,rename,pause,unpause,update,wait}}
    volume/create network/{{create,connect,disconnect}}
    compose/{{up,start,stop,restart,build,pull,run,create,pause,unpause,cp,watch,attach,scale,wait,down}}
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
inside exec
add apply create label annotate expose run cp port-forward proxy attach uncordon autoscale
    rollout/{restart,resume} config/{use-context,set-context,rename-context}
change edit patch replace scale set cordon taint debug rollout/{undo,pause} certificate auth/reconcile
    config/{set-cluster,set-credentials,set,unset}
destroy delete drain config/{delete-context,delete-cluster,delete-user}
"""
KUBECTL_BEFORE = """
    -n: --namespace: --context: --cluster: --user: --kubeconfig: -s: --server: --token: --as: --as-group:
    --cache-dir: --request-timeout: -v: --tls-server-name: -l: -o: -f: -* --*
"""
HELM = """\
read version env template lint repo/list dependency/{list,ls} verify help completion plugin/list show inspect
get list ls status history get search
add install upgrade repo/{add,update,remove} dependency/{build,update} test plugin registry pull fetch package
    create
change rollback
publish push
destroy uninstall delete del un
"""
TERRAFORM = """\
read version validate graph providers workspace/{list,show} help metadata
get show output state/{list,show,pull}
look plan refresh-only test console
here fmt init get modules
add apply import untaint workspace/{new,select}
change taint refresh state/{mv,push,replace-provider} force-unlock
destroy destroy state/rm workspace/delete
secret login logout
"""
PULUMI = """\
read version about help plugin/ls whoami
get stack/{ls,output,history,graph} config/get logs
look preview
add up update import new stack/{init,select,rename,tag} config/set plugin policy watch
change refresh config/rm state cancel
destroy destroy stack/rm state/delete
secret login logout
"""
FLY = """\
get status logs apps/list list info releases regions machine/{list,status} ps open version doctor config/show
    volumes/list ips/list checks/list projects ls inspect domains/ls env/ls deployments tail whoami
    functions/list kv/{list,get} pages/list d1/{list,info} kv:key/{list,get} kv:namespace/list
    r2/bucket/{list,info} r2/object/get queues/{list,info} deployments/{list,view,status} secret/list types
    projects/list orgs/list sites:list apps:list functions:list hosting:sites:list
add deploy launch start machine/{run,start,clone} volumes/create config regions/set resume dev link env alias
    promote redeploy build apps/create init serve emulators:start pages/{dev,deploy} d1/create kv:key/put
    kv:namespace/create r2/bucket/create r2/object/put queues/create
change scale restart stop machine/{stop,update} ssh ips suspend rollback deployments/rollback functions kv
    pages d1
destroy destroy apps/destroy delete rm remove machine/{destroy,remove} volumes/{delete,destroy} sites:delete
secret auth login logout secrets tokens token secret
publish publish
"""
VAULT = """\
get status list version path-help audit/list auth/list policy/{list,read} secrets/list
    operator/raft/list-peers
    kv/list kv/metadata/get
secret read kv/get login token unwrap print
add write kv/{put,patch,rollback,undelete} kv/metadata/put policy/write auth/enable secrets/enable
    audit/enable
    lease/renew
change operator
destroy delete kv/{delete,destroy} kv/metadata/delete policy/delete auth/disable secrets/disable
    lease/revoke audit/disable
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


def inside(call: Call, found: Found) -> Iterator[AnyEffect]:
    """``docker exec`` and ``kubectl exec``: a command in a container."""
    parsed = parse(
        "+ -e: --env: -u: --user: -w: --workdir: -n: --namespace: -c: --container: --context: --index: -*"
        " --*",
        found.words,
    )
    words = [word for word in parsed.operands[1:] if word.text != "--"]
    kind: SystemKind = "cluster" if call.name in _CLUSTERS else "container"
    yield remotely(call, words, kind, f"{call.name} exec")


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
        destroys=lost,
    )


def kubectl_get(call: Call, found: Found) -> Iterator[AnyEffect]:
    """``kubectl get``: secrets are shown when their content is asked for."""
    words = texts(found.words)
    kinds = {part.partition("/")[0] for word in words if word[:1] != "-" for part in word.split(",")}
    wide = any(word.startswith(("-o", "--output", "--template")) for word in words)
    if found.verb == "get" and kinds & {"secret", "secrets"} and wide:
        yield System(kind="credential", detail="kubectl get secret")
    yield query(call, "kubernetes")


def config_view(_: Call, found: Found) -> Iterator[AnyEffect]:
    """The settings of the cluster's client, with its keys only when told so."""
    if "--raw" in texts(found.words):
        yield System(kind="credential", detail="kubectl config view --raw")


def applies(call: Call, found: Found) -> Iterator[AnyEffect]:
    """``terraform apply`` and ``pulumi up`` ask a person first, unless they are told not to; others only add,
    unless they are told to replace or to prune."""
    words = set(texts(found.words))
    if call.name in _CLUSTERS | {"helm"}:
        kind: SystemKind = "cluster"
        adds = not words & {"--prune", "--force", "--reset-values"}
    else:
        kind = "cloud"
        adds = not words & _UNASKED
    adds = adds or dry(found.words)
    yield System(kind=kind, detail=f"{call.name} {found.verb}", destroys=not adds, adds=adds)


_UNASKED = frozenset(
    ("-auto-approve", "--auto-approve", "-y", "--yes", "-f", "-destroy", "--destroy", "--non-interactive")
)
_CLUSTERS = frozenset(("kubectl", "oc", "k3s", "microk8s"))


def formats(_: Call, found: Found) -> Iterator[AnyEffect]:
    """``terraform fmt``: changes files, unless it only checks or prints."""
    words = set(texts(found.words))
    if not words & {"-check", "--check", "-write=false", "--write=false", "-"}:
        yield from written(literal("."), "edit")


_DOCKER = Tool(
    verbs=DOCKER,
    before="-H: --host: -c: --context: --config: -l: --log-level: -f: --file: -p: --project-name: --profile:"
    " --env-file: --project-directory: -* --*",
    changes="container",
    special={"start": start_container, "change": docker_change, "inside": inside},
)
_KUBECTL = Tool(
    verbs=KUBECTL,
    before=KUBECTL_BEFORE,
    changes="cluster",
    host="kubernetes",
    outputs="--output-directory:w",
    special={"get": kubectl_get, "apply": applies, "config/view": config_view, "inside": inside},
)
_TERRAFORM = Tool(
    verbs=TERRAFORM,
    before="~ --chdir: --*",
    changes="cloud",
    outputs="~ --out:w",
    special={"apply": applies, "fmt": formats},
)
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
            verbs=HELM,
            before=KUBECTL_BEFORE,
            changes="cluster",
            host="kubernetes",
            outputs="--output-dir:w",
            special={"upgrade": applies},
        )
    ),
    **dict.fromkeys(("terraform", "tofu", "terragrunt"), handler(_TERRAFORM)),
    "pulumi": handler(
        Tool(
            verbs=PULUMI,
            before="-C: --cwd: -s: --stack: -* --*",
            host="pulumi.com",
            special={"up": applies, "update": applies},
        )
    ),
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
    **dict.fromkeys(("cdk", "serverless", "sls", "sam"), of_project),
    **dict.fromkeys(("ldcli", "nats", "rpk", "gitlab-runner"), by_words),
    "bq": big_query,
    **dict.fromkeys(
        ("circleci", "fastly", "newrelic", "algolia", "stripe", "apigeecli", "datadog-ci"), by_words
    ),
    **dict.fromkeys(("jenkins-cli", "rabbitmqctl", "rabbitmqadmin", "borg", "restic"), by_words),
    **dict.fromkeys(("s3cmd", "s5cmd", "mc", "b2", "azcopy", "heroku"), by_words),
}
