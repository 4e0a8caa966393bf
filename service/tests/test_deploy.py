"""The files by which the service is installed: each is read by the tool that will read it."""

import datetime
import json
import re
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
from service.tests.torture.serving import Process, folder
from tests.tools import need

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


def test_the_proxy_takes_no_larger_body_than_the_service():
    from evenhand_service import Settings

    text = (ROOT / "deploy/nginx.conf").read_text()
    megabytes = int(re.search(r"client_max_body_size (\d+)m;", text)[1])
    assert megabytes * 2**20 == Settings.__dataclass_fields__["max_body"].default
