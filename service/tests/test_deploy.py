"""The files by which the service is installed: each is read by the tool that will read it."""

import asyncio
import contextlib
import datetime
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from service.tests.torture import proxy
from service.tests.torture.replicas import Replica
from service.tests.torture.serving import Client, Process, application, folder
from tests.tools import need
from tests.without_clocks import until

from evenhand_service import Settings
from evenhand_service.app import make_api

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent


def run(*words):
    done = subprocess.run(
        [str(w) for w in words], capture_output=True, text=True, check=False, cwd=ROOT
    )
    return done.returncode, done.stdout + done.stderr


def test_hadolint_finds_nothing_in_the_dockerfile(tmp_path):
    assert run(BIN / "hadolint", "Dockerfile") == (0, "")
    bad = tmp_path / "Dockerfile"
    bad.write_text("FROM python\nRUN cd /tmp && pip install evenhand\n")
    assert run(BIN / "hadolint", bad)[0] == 1, "the linter must be able to fail"


def test_the_image_is_not_root_and_installs_from_the_checkout():
    text = (ROOT / "Dockerfile").read_text()
    users = re.findall(r"^USER (\S+)", text, re.M)
    assert users[-1].split(":")[0] not in ("root", "0")
    assert "pip install -c constraints.txt '.[models]' ./service" in text
    assert not re.search(r"pip install (?:\S+ )*'?evenhand", text)


def test_kubernetes_manifests_are_valid(tmp_path):
    manifest = ROOT / "deploy/kubernetes/evenhand.yaml"
    code, said = run(BIN / "kubernetes-validate", "--strict", manifest)
    assert code == 0, said
    bad = tmp_path / "bad.yaml"
    bad.write_text(manifest.read_text().replace("replicas: 3", "replicas: three"))
    assert run(BIN / "kubernetes-validate", "--strict", bad)[0] != 0


def containers(document):
    """Every container of the manifests, with the specification of its pod."""
    for part in document:
        spec = part.get("spec", {})
        template = spec.get("jobTemplate", {}).get("spec", spec).get("template")
        if template:
            yield from ((template["spec"], one) for one in template["spec"]["containers"])


def test_pods_cannot_write_their_root_nor_gain_rights():
    document = list(yaml.safe_load_all((ROOT / "deploy/kubernetes/evenhand.yaml").read_text()))
    pods = list(containers(document))
    assert len(pods) == 2
    for pod, container in pods:
        assert pod["securityContext"]["runAsNonRoot"]
        rights = container["securityContext"]
        assert rights["readOnlyRootFilesystem"]
        assert rights["allowPrivilegeEscalation"] is False
        assert rights["capabilities"] == {"drop": ["ALL"]}


def test_each_replica_keeps_its_mark_and_its_witness(tmp_path):
    """The mark is written beside the keyring, the heads where the settings say; both outlive the
    pod.
    """
    from evenhand_service import load_settings
    from evenhand_service.opening import mark_of

    document = list(yaml.safe_load_all((ROOT / "deploy/kubernetes/evenhand.yaml").read_text()))
    (replicas,) = (part["spec"] for part in document if part["kind"] == "StatefulSet")
    path = tmp_path / "service.toml"
    path.write_text(document[0]["data"]["service.toml"])
    settings = load_settings(path)
    lasting = {one["metadata"]["name"] for one in replicas["volumeClaimTemplates"]}
    (container,) = replicas["template"]["spec"]["containers"]
    mounted = {
        one["mountPath"]: one["name"]
        for one in container["volumeMounts"]
        if not one.get("readOnly")
    }
    written = [mark_of(settings), *(Path(one["path"]) for one in settings.witnesses)]
    assert len(written) == 2
    for file in written:
        assert mounted[str(file.parent)] in lasting


def test_settings_in_the_deployment_files_are_settings(tmp_path):
    from evenhand_service import load_settings

    document = list(yaml.safe_load_all((ROOT / "deploy/kubernetes/evenhand.yaml").read_text()))
    settings = [(ROOT / "deploy/service.toml").read_text(), document[0]["data"]["service.toml"]]
    for number, text in enumerate(settings):
        path = tmp_path / f"{number}.toml"
        path.write_text(text)
        assert load_settings(path).products[0].name == "loan"
        assert tomllib.loads(text)["service"]["ledger"].startswith("postgresql://")


def test_commands_in_the_deployment_files_exist():
    """Every option that a container or the unit passes is one of the command's."""
    from evenhand.cli import LazyCommands

    commands = LazyCommands()
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())
    document = list(yaml.safe_load_all((ROOT / "deploy/kubernetes/evenhand.yaml").read_text()))
    unit = (ROOT / "deploy/systemd/evenhand.service").read_text()
    mine = [one for name, one in compose["services"].items() if name.startswith("decide")]
    calls = [one["command"] for one in mine]
    calls += [container["args"] for _, container in containers(document)]
    calls += [line.split("bin/evenhand ")[1].split() for line in re.findall(r"ExecStart.*", unit)]
    assert len(calls) == 6
    for name, *words in calls:
        command = commands.get_command(None, name)
        options = {option for given in command.params for option in given.opts}
        assert {word for word in words if word.startswith("--")} <= options, (name, words)


def test_the_systemd_unit_is_valid_and_hardened(tmp_path):
    tool = need("systemd-analyze")
    unit = (ROOT / "deploy/systemd/evenhand.service").read_text()
    here = tmp_path / "evenhand.service"
    here.write_text(unit.replace("/opt/evenhand/bin/evenhand", "/bin/true"))
    assert run(tool, "verify", here) == (0, "")
    here.write_text(unit.replace("/opt/evenhand/bin/evenhand", "/bin/true") + "\nNonsense=1\n")
    assert "Nonsense" in run(tool, "verify", here)[1], "the check must be able to fail"
    _, said = run(tool, "security", "--offline=true", ROOT / "deploy/systemd/evenhand.service")
    assert float(re.findall(r"exposure level for \S+: ([\d.]+)", said)[0]) <= 1.5


def test_every_alert_fires_when_it_should_and_not_before():
    tool = need("promtool")
    code, said = run(tool, "test", "rules", "deploy/prometheus/alerts_test.yml")
    assert code == 0, said
    rules = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text())["groups"][0][
        "rules"
    ]
    cases = yaml.safe_load((ROOT / "deploy/prometheus/alerts_test.yml").read_text())["tests"]
    fired = {one["alertname"] for one in cases[1]["alert_rule_test"] if one.get("exp_alerts")}
    calm = {one["alertname"] for one in cases[0]["alert_rule_test"]}
    assert {rule["alert"] for rule in rules} == fired == calm


def test_the_metrics_of_alerts_and_dashboard_exist():
    """Every name in an expression is one that the service exposes."""
    from evenhand_service.monitoring import GAUGES, Metrics

    alerts = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text())
    board = json.loads((ROOT / "deploy/grafana/evenhand.json").read_text())
    asked = [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]
    asked += [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    named = {name for text in asked for name in re.findall(r"evenhand_\w+", text)}
    exposed = {
        sample
        for metric in Metrics(None).registry.collect()
        for sample in (f"{metric.name}_total", f"{metric.name}_bucket")
    } | {f"evenhand_{name}" for name in GAUGES}
    assert len(named) > 10
    assert named <= exposed


@pytest.fixture
def certificate(tmp_path):
    """(certificate, key) of localhost."""
    key, who = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")]),
    )
    made = (
        x509.CertificateBuilder(who, who, key.public_key(), x509.random_serial_number())
        .not_valid_before(datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC))
        .not_valid_after(datetime.datetime(2120, 1, 1, tzinfo=datetime.UTC))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (tmp_path / "tls.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    text = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (tmp_path / "tls.key").write_bytes(text)
    return tmp_path / "tls.pem", tmp_path / "tls.key"


def test_nginx_ends_tls_with_the_configuration_that_is_shipped(certificate):
    need("nginx")
    public, private = certificate
    with Process(folder()).running() as process:
        told = (
            ("ssl_certificate /etc/evenhand/tls.pem;", f"ssl_certificate {public};"),
            ("ssl_certificate_key /etc/evenhand/tls.key;", f"ssl_certificate_key {private};"),
        )
        with proxy.nginx(process.port, change=told, secure=True) as port:
            trusting = ssl.create_default_context(cafile=str(public))
            with urllib.request.urlopen(
                f"https://localhost:{port}/health/live", context=trusting
            ) as answer:
                assert answer.status == 200
            with pytest.raises(urllib.error.URLError):  # nobody who does not know the certificate
                urllib.request.urlopen(f"https://localhost:{port}/health/live")


def locations(text):
    """{how a location is written: its text} of a configuration of nginx."""
    return {
        place: text[text.index(f"location {place} {{") :].split("}")[0]
        for place in re.findall(r"location (.+?) \{", text)
    }


def test_only_what_stays_the_same_is_sent_again():
    """nginx repeats a POST where the shipped file says so, and nowhere else: decisions and
    outcomes, for whose answer it does not wait for more than 5 s.
    """
    text = (ROOT / "deploy/nginx.conf").read_text()
    found = locations(text)
    (repeated,) = [place for place, inside in found.items() if "non_idempotent" in inside]
    assert text.count(" non_idempotent;") == found[repeated].count(" non_idempotent;") == 1
    matched = re.compile(repeated.removeprefix("~ "))
    again = [f"/v1/{what}{many}" for what in ("decisions", "outcomes") for many in ("", "/batch")]
    for path in make_api().openapi()["paths"]:
        assert bool(matched.search(path)) == (path in again), path
    waits = {
        place: float(re.search(r"proxy_read_timeout (\d+)s;", inside)[1])
        for place, inside in found.items()
    }
    # a replica that hangs in a transaction holds up the others for so long: they are not to be
    # taken for hanging, too
    idle = Settings.__dataclass_fields__["idle_transaction_seconds"].default
    assert idle + 1 < waits[repeated] <= 5


def state_of(pid):
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


@pytest.fixture
def two(postgres_url):
    """Two replicas on one PostgreSQL; the first may be stopped."""
    need("nginx")
    shared = folder()
    with contextlib.ExitStack() as stack:
        made = [stack.enter_context(Replica(shared, postgres_url).running()) for _ in range(2)]
        yield made
        os.kill(made[0].pid, signal.SIGCONT)


async def asked_at_once(port, token, asked):
    """(status, body) of each (path, body), from as many clients."""

    async def ask(path, body):
        client = Client(port, token)
        found = await client.post(path, body)
        client.close()
        return found

    return await asyncio.gather(*(ask(path, body) for path, body in asked))


def test_behind_a_paused_replica_decisions_and_outcomes_are_answered_by_the_other(two):
    paused, awake = two
    with proxy.nginx(paused.port, awake.port) as port:
        before = [("/v1/decisions", application(f"before-{i}")) for i in range(12)]
        first = asyncio.run(asked_at_once(port, awake.token, before))
        os.kill(paused.pid, signal.SIGSTOP)
        until(lambda: state_of(paused.pid) == "T", "the pause")
        asked = [("/v1/decisions", application(f"new-{i}")) for i in range(4)]
        asked += before
        drawn = [json.loads(body) for _, body in first]
        accepted = [answer["key"] for answer in drawn if answer["accept"]]  # by a coin
        assert accepted
        asked += [("/v1/outcomes", {"key": key, "label": 1}) for key in accepted]
        asked += [("/v1/decisions/batch", {"decisions": [application("new-0"), application("b")]})]
        asked += [("/v1/outcomes/batch", {"outcomes": [{"key": accepted[0], "label": 1}]})]
        found = asyncio.run(asked_at_once(port, awake.token, asked))
        assert state_of(paused.pid) == "T"  # nobody waited for it to wake
    assert [status for status, _ in found] == [200] * len(asked)
    assert found[4:16] == first
    os.kill(paused.pid, signal.SIGCONT)
    for replica in two:
        again = asyncio.run(asked_at_once(replica.port, awake.token, asked[:16]))
        assert again == found[:16]


def test_a_paused_replica_makes_no_key_that_nobody_is_shown(two):
    """Six people ask for a key; those who are sent to the paused replica get none, not from the
    other one in secret, and not when the paused one wakes either.
    """
    paused, awake = two
    shorter = [("proxy_read_timeout 60s;", "proxy_read_timeout 2s;")]
    with proxy.nginx(paused.port, awake.port, change=shorter) as port:
        os.kill(paused.pid, signal.SIGSTOP)
        until(lambda: state_of(paused.pid) == "T", "the pause")
        asked = [("/v1/keys", {"scopes": ["audit"], "name": f"asked-{i}"}) for i in range(6)]
        found = asyncio.run(asked_at_once(port, awake.token, asked))
        assert state_of(paused.pid) == "T"
    os.kill(paused.pid, signal.SIGCONT)
    # what it had been sent comes before what it is sent now, and two threads work on it
    later = [("/v1/keys", {"scopes": ["audit"], "name": "later"})]
    for _ in range(3):
        assert asyncio.run(asked_at_once(paused.port, awake.token, later))[0][0] == 201
    shown = sorted(
        body["name"] for (status, _), (_, body) in zip(found, asked, strict=True) if status == 201
    )
    assert len(shown) < 6, "nobody was sent to the paused replica"
    listed = asyncio.run(keys_of(awake))
    assert sorted(name for name in listed if name.startswith("asked")) == shown


async def keys_of(replica):
    client = replica.client()
    _, told = await client.get("/v1/keys")
    client.close()
    return [key["name"] for key in json.loads(told)["keys"]]


def test_the_proxy_takes_no_larger_body_than_the_service():
    text = (ROOT / "deploy/nginx.conf").read_text()
    megabytes = int(re.search(r"client_max_body_size (\d+)m;", text)[1])
    assert megabytes * 2**20 == Settings.__dataclass_fields__["max_body"].default
