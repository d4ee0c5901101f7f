"""The chart on a real API server: what it makes is taken, admitted and changed, and its accounts
may do what the job needs and no more."""

from __future__ import annotations

import re
import shlex
import uuid

import pytest
import yaml

from tests.kubernetes.cluster import CHART, Cluster, RefusedError
from tests.kubernetes.releases import (
    EXECUTORS,
    LOCAL,
    driver_pod,
    installed,
    needs_control_plane,
    stateful_set,
)

pytestmark = [needs_control_plane, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def local(api: Cluster) -> str:
    """A release in one pod, in a namespace that admits restricted pods alone."""
    return installed(api, "local", LOCAL)


@pytest.mark.parametrize("release", ["local", "executors"])
def test_the_pod_is_admitted(api: Cluster, release: str, request: pytest.FixtureRequest) -> None:
    """By Pod Security's profile ``restricted``, with the account that the chart makes."""
    namespace = request.getfixturevalue(release)
    pod = driver_pod(api, namespace)
    accounts = api.request(f"/api/v1/namespaces/{namespace}/serviceaccounts")["items"]
    assert pod["spec"]["serviceAccountName"] in {each["metadata"]["name"] for each in accounts}
    # Nobody starts it; it was not refused.
    assert pod["status"]["phase"] == "Pending"


def test_the_pod_of_helm_test_is_admitted(api: Cluster, local: str) -> None:
    """By the same profile, and with it the objects of the release that it mounts are there."""
    made = api.helm(
        "template", "cep", CHART, "--namespace", local, "--values", LOCAL,
        "--show-only", "templates/tests/connection.yaml",
    ).stdout  # fmt: skip
    pod = api.request(f"/api/v1/namespaces/{local}/pods?dryRun=All", yaml.safe_load(made))
    assert [each["name"] for each in pod["spec"]["containers"]] == ["rules", "ready", "match"]
    for volume in pod["spec"]["volumes"]:
        if "configMap" in volume:
            api.request(f"/api/v1/namespaces/{local}/configmaps/{volume['configMap']['name']}")


def test_the_commands_of_the_pages(api: Cluster) -> None:
    """Those of the pages on Kubernetes that install, upgrade and roll back a release, in order;
    but for the one with monitors, whose kinds are not installed here."""
    docs = CHART.parent / "docs"
    pages = [docs / "kubernetes.md", docs / "kubernetes" / "release.md"]
    page = "".join(each.read_text("utf-8") for each in pages).replace("\\\n", "")
    commands = [
        shlex.split(line)[1:]
        for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
        for line in block.splitlines()
        if re.match(r"helm (install|upgrade|history|rollback) ", line)
    ]
    ran = [command for command in commands if not any("metrics." in word for word in command)]
    assert [command[0] for command in ran] == [
        "install", "upgrade", "upgrade", "history", "rollback",
    ]  # fmt: skip
    for command in ran:
        api.helm(*command, cwd=CHART.parent)
        if command[0] == "install":
            before = stateful_set(api, "cep")["spec"]["template"]
        if "image.tag=0.1.1" in command:
            (container,) = stateful_set(api, "cep")["spec"]["template"]["spec"]["containers"]
            assert container["image"] == "spark-cep:0.1.1"
    assert stateful_set(api, "cep")["spec"]["template"] == before
    registry = (CHART.parent / "examples" / "kubernetes" / "registry.yaml").read_text("utf-8")
    api.namespace("kafka")
    for made in yaml.safe_load_all(registry):
        group = "/api/v1" if made["apiVersion"] == "v1" else f"/apis/{made['apiVersion']}"
        api.request(f"{group}/namespaces/kafka/{made['kind'].lower()}s?dryRun=All", made)


def test_the_checkpoint_has_a_claim(api: Cluster, local: str) -> None:
    """Made by the controller from the template, and used by the pod."""
    pod = driver_pod(api, local)
    claims = [
        volume["persistentVolumeClaim"]["claimName"]
        for volume in pod["spec"]["volumes"]
        if "persistentVolumeClaim" in volume
    ]
    assert len(claims) == 1
    api.request(f"/api/v1/namespaces/{local}/persistentvolumeclaims/{claims[0]}")


def test_the_drivers_account_may_have_pods_and_nothing_else(api: Cluster, executors: str) -> None:
    """In its own namespace; that of executors may do nothing at all."""
    account = driver_pod(api, executors)["spec"]["serviceAccountName"]
    driver, executor = api.token(executors, account), api.token(executors, f"{account}-executor")
    for verb in ("get", "list", "watch", "create", "patch", "delete", "deletecollection"):
        assert api.may(driver, verb, "pods", executors)
        assert not api.may(driver, verb, "pods", "default")
        assert not api.may(executor, verb, "pods", executors)
        for resource in ("secrets", "configmaps", "services", "persistentvolumeclaims"):
            assert not api.may(driver, verb, resource, executors)
            assert not api.may(executor, verb, resource, executors)
        assert not api.may(driver, verb, "statefulsets", executors, "apps")
        assert not api.may(driver, verb, "roles", executors, "rbac.authorization.k8s.io")
    assert not api.may(driver, "create", "pods/exec", executors)


def test_executors_pods_are_admitted(api: Cluster, executors: str) -> None:
    """The template that Spark completes, created by the driver's account."""
    account = driver_pod(api, executors)["spec"]["serviceAccountName"]
    templates = [
        each["data"]["pod.yaml"]
        for each in api.request(f"/api/v1/namespaces/{executors}/configmaps")["items"]
        if "pod.yaml" in each.get("data", {})
    ]
    pod = yaml.safe_load(templates[0])
    # What Spark adds, and the API cannot do without.
    pod["metadata"]["name"] = "cep-exec-1"
    pod["spec"]["containers"][0] |= {"image": "registry.example/spark-cep:0.1.0"}
    pod["spec"]["containers"][0].setdefault("name", "executor")
    path = f"/api/v1/namespaces/{executors}/pods?dryRun=All"
    taken = api.request(path, pod, token=api.token(executors, account))
    assert taken["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] is False
    pod["spec"]["hostNetwork"] = True
    with pytest.raises(RefusedError, match="violates PodSecurity"):
        api.request(path, pod, token=api.token(executors, account))


def test_upgrade_and_rollback(api: Cluster, local: str) -> None:
    """New rules leave the pod as it is, new resources make another one; a rollback brings back what
    was; the claim stays."""
    before = stateful_set(api, local)
    (mounted,) = (
        volume["configMap"]["name"]
        for volume in before["spec"]["template"]["spec"]["volumes"]
        if volume["name"] == "rules"
    )
    rules = f"/api/v1/namespaces/{local}/configmaps/{mounted}"
    rule = "rules.files.other\\.yaml=id: other\nkey: user_id\npattern: [{step: a\\, where: 'TRUE'}]"
    upgrade = (
        "upgrade", "cep", CHART, "--namespace", local, "--values", LOCAL, "--set", rule,
    )  # fmt: skip
    api.helm(*upgrade)
    assert "other.yaml" in api.request(rules)["data"]
    changed = stateful_set(api, local)
    assert changed["metadata"]["generation"] == before["metadata"]["generation"]
    assert changed["spec"]["template"] == before["spec"]["template"]
    api.helm(*upgrade, "--set", "driver.resources.requests.cpu=700m")
    after = stateful_set(api, local)
    assert after["spec"]["template"] != before["spec"]["template"]
    container = after["spec"]["template"]["spec"]["containers"][0]
    assert container["resources"]["requests"]["cpu"] == "700m"
    api.helm("rollback", "cep", "1", "--namespace", local)
    assert stateful_set(api, local)["spec"]["template"] == before["spec"]["template"]
    assert "other.yaml" not in api.request(rules)["data"]
    history = api.helm("history", "cep", "--namespace", local, "--output", "json").stdout
    assert [each["status"] for each in yaml.safe_load(history)] == [
        "superseded", "superseded", "superseded", "deployed",
    ]  # fmt: skip


def test_a_change_of_the_claim_is_refused(api: Cluster, local: str) -> None:
    """The chart says so before the API server does, and the release stays as it was."""
    before = stateful_set(api, local)["spec"]
    done = api.helm(
        "upgrade", "cep", CHART, "--namespace", local, "--values", LOCAL,
        "--set", "checkpoint.persistence.size=99Gi", check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "checkpoint.persistence.size is 99Gi, and was 10Gi" in done.stderr
    assert stateful_set(api, local)["spec"] == before


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("driver.resources.requests.cpu=lots", "does not match pattern"),
        ("driver.resources.requests.memory=5Gi", "driver.resources.limits.memory"),
        ("driver.podLabels.x=a b", "a valid label must be"),
        ("podDisruptionBudget.maxUnavailable=-1", "maxUnavailable"),
        ("executor.instances=-1", "instances"),
        ("imagee.tag=1", "imagee"),
    ],
)
def test_values_that_cannot_be_are_refused(api: Cluster, setting: str, message: str) -> None:
    """By the chart or by the API server, before anything is there."""
    namespace = api.namespace(f"refused-{uuid.uuid4().hex[:8]}")
    done = api.helm(
        "install", "cep", CHART, "--namespace", namespace, "--values", EXECUTORS,
        "--set", "metrics.serviceMonitor.enabled=false", "--set", setting, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert message in done.stderr
    assert api.request(f"/apis/apps/v1/namespaces/{namespace}/statefulsets")["items"] == []
