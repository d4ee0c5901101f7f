"""Settings of waiting, for a service that is unavailable, and of stopping."""

from __future__ import annotations

from pydantic import model_validator

from spark_cep.config.quantities import PositiveDuration, SettingsSection, setting
from spark_cep.documents.values import contradiction


class Lifecycle(SettingsSection):
    """Waiting for Kafka and the registry, and stopping."""

    startup_limit: PositiveDuration = setting(
        300_000,
        "How long the start waits for Kafka, for the registry, and, if it is the first, for the "
        "source of the rules, while they do not answer.",
    )
    outage_limit: PositiveDuration = setting(
        900_000,
        "How long a running job waits for Kafka or the registry to answer again; for Kafka, from "
        "the first failure until a batch is done.",
    )
    backoff: PositiveDuration = setting(
        500,
        "Longest wait before the second attempt; it doubles each time.",
    )
    max_backoff: PositiveDuration = setting(10_000, "Longest wait between attempts.")
    stop_grace: PositiveDuration = setting(
        20_000,
        "How long a batch may run on after SIGTERM; then it is given up, and repeated at the "
        "next start. Five seconds more are left for closing, so have whatever stops the process "
        "wait longer (Kubernetes: 30 s).",
    )

    @model_validator(mode="after")
    def _growing(self) -> Lifecycle:
        if self.backoff > self.max_backoff:
            raise contradiction("the first wait is longer than the longest", "backoff")
        return self
