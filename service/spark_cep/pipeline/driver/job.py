"""The job on Spark, from taking over checkpoint and output to the end of its queries."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

from pyspark.sql import SparkSession

from spark_cep.observability.start_clock import Phase
from spark_cep.pipeline.driver.checkpoint.clock_resets import newest_reset
from spark_cep.pipeline.driver.checkpoint.files import CheckpointFiles, check_position
from spark_cep.pipeline.driver.checkpoint.partly_written import partly_written
from spark_cep.pipeline.driver.dataflow import Dataflow
from spark_cep.pipeline.driver.input.batch_limit import BatchLimit
from spark_cep.pipeline.driver.input.offsets import InputOffsets
from spark_cep.pipeline.driver.kafka.topic_ids import TopicIds
from spark_cep.pipeline.driver.kafka.watch import KafkaWatch
from spark_cep.pipeline.driver.lifecycle.background import Background
from spark_cep.pipeline.driver.lifecycle.run import Run
from spark_cep.pipeline.driver.observer import Observer
from spark_cep.pipeline.driver.output_setup import start_delivery
from spark_cep.pipeline.driver.rules.rule_topics import RuleTopics
from spark_cep.pipeline.driver.rules.rule_watch import RuleWatch
from spark_cep.pipeline.driver.start_plan import StartPlan
from spark_cep.pipeline.driver.supervisor import Supervisor


def run_job(
    run: Run, plan: StartPlan, spark: SparkSession, observer: Observer, *, planned_batch_only: bool
) -> None:
    """Run until the input ends, or the job is told to stop; ``planned_batch_only``: only the batch
    that the checkpoint has planned and not done. Raises what
    :meth:`Service.run <spark_cep.pipeline.driver.service.Service.run>` says, and
    StopRequestedError."""
    settings, retry = run.settings, run.retries.at_start
    with ExitStack() as stack:

        def beside(thread: Background) -> None:
            thread.start()
            stack.callback(thread.stop)

        checkpoint = CheckpointFiles(spark, str(settings.state.checkpoint))
        position = checkpoint.position()
        check_position(position, settings, plan.topics, plan.topic_ids)
        if position is not None:
            start, key_groups = position.start, position.key_groups
            reset = newest_reset(checkpoint, position)
            if reset is not None:
                plan.time.reset_clock(reset, position.batch)
        else:
            # A new job decides where its first batch begins, and has that logged.
            key_groups = settings.state.state_partitions
            start = InputOffsets(settings).initial()
            plan.time.start_at(start)
        beside(observer.position)
        beside(KafkaWatch(settings, plan.topics, observer.lag, run.outage, run.id))
        delivery = start_delivery(settings, run.id, checkpoint, plan.cluster, retry)
        begun = partial(partly_written, delivery, settings.state.state_partitions, checkpoint)
        rule_topics = RuleTopics(settings, observer.rules.listing, run.id)
        rules = plan.rules.decide(checkpoint, retry(begun), plan.overrides, rule_topics.decided)
        beside(rule_topics)
        run.start_clock.done(Phase.TAKEOVER)
        flow = Dataflow(
            settings, rules, plan.schemas, plan.encoder, plan.files, delivery,
            BatchLimit(settings, plan.record_size.result()), key_groups, start, planned_batch_only,
        )  # fmt: skip
        if settings.trigger.mode == "continuous" and not planned_batch_only:
            found = plan.rules.files, plan.rules.overrides
            beside(
                RuleWatch(
                    settings, plan.rules.source, plan.overrides, found, rules,
                    lambda: flow.packing, observer.rules, plan.time.rules_changed, run.id,
                )
            )  # fmt: skip
        supervisor = Supervisor(
            run,
            spark,
            flow,
            observer=observer,
            time=plan.time,
            topics=TopicIds(settings, plan.topic_ids),
            partly_written=begun,
        )
        with rules.attempts_counted():
            supervisor.run()
            if planned_batch_only:
                return
            if settings.trigger.ends:
                plan.time.end_of_input()
                supervisor.run()
            done: int | None = None
            while rules.pauses_wait and done != observer.last_batch:
                # A pause is written down with the batch that begins with it.
                done = observer.last_batch
                supervisor.run()
