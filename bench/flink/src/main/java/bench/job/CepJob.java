package bench.job;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * Runs Flink CEP, or Flink SQL, over a topic, as often as asked: one line of JSON on standard input is a {@link
 * Request}, one on standard output the answer. All runs share the JVM, so that the first ones warm
 * it up. The end of the input ends the program.
 *
 * <p>The clock starts when the first record is read. {@code seconds} is up to the end of the job,
 * when all output is committed; {@code seconds_to_last_output} is up to the last output that went
 * to the sink, which leaves out that a job that has ended waits for its last checkpoint.
 */
public final class CepJob {
    private static final long CHECKPOINT_MS = 600_000;

    private CepJob() {}

    public static void main(String[] arguments) throws Exception {
        // Whatever else is printed must not be taken for an answer.
        PrintStream answers = System.out;
        System.setOut(System.err);
        ObjectMapper json = new ObjectMapper();
        BufferedReader requests =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        answers.println(json.writeValueAsString(Map.of("ready", true)));
        answers.flush();
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            Request request = json.readValue(line, Request.class);
            answers.println(json.writeValueAsString(run(request, requests)));
            answers.flush();
        }
        System.exit(0);
    }

    private static Map<String, Object> run(Request request, BufferedReader requests)
            throws Exception {
        Tally.reset();
        StreamExecutionEnvironment environment =
                StreamExecutionEnvironment.createLocalEnvironment(
                        request.parallelism(), configuration(request));
        plan(environment, request);
        JobClient job = environment.executeAsync();
        Map<String, Object> answer = new LinkedHashMap<>();
        if (request.untilCheckpoint() > 0) {
            while (Tally.events() < request.untilCheckpoint()) {
                if (job.getJobStatus().get().isGloballyTerminalState()) {
                    job.getJobExecutionResult().get();
                }
                Thread.sleep(100);
            }
            Path folder = Path.of(request.checkpointFolder());
            answer.put("checkpoint_bytes", CheckpointSize.ofNext(folder, CHECKPOINT_MS));
            answer.put("seconds", (System.nanoTime() - Tally.firstRead()) / 1e9);
            job.cancel().get();
        } else if (request.untilAsked()) {
            requests.readLine();
            job.cancel().get();
            answer.put("seconds", (System.nanoTime() - Tally.firstRead()) / 1e9);
        } else {
            job.getJobExecutionResult().get();
            answer.put("seconds", (System.nanoTime() - Tally.firstRead()) / 1e9);
        }
        if (Tally.lastOutput() != 0) {
            answer.put("seconds_to_last_output", (Tally.lastOutput() - Tally.firstRead()) / 1e9);
        }
        answer.put("events", Tally.events());
        answer.put("matches", Tally.matches());
        answer.put("timeouts", Tally.timeouts());
        return answer;
    }

    private static Configuration configuration(Request request) {
        Configuration configuration = new Configuration();
        configuration.setString("state.backend.type", request.state());
        configuration.setString("execution.checkpointing.dir", Path.of(request.checkpointFolder()).toUri().toString());
        configuration.setString("execution.checkpointing.interval", request.checkpointMs() + "ms");
        configuration.setString("execution.checkpointing.incremental", "true");
        configuration.setString("restart-strategy.type", "none");
        configuration.setString("taskmanager.memory.managed.size", "1g");
        configuration.setString("taskmanager.memory.task.heap.size", "2g");
        // Each operator of each rule has buffers of its own.
        configuration.setString("taskmanager.memory.network.min", "512m");
        configuration.setString("taskmanager.memory.network.max", "512m");
        configuration.setString("taskmanager.numberOfTaskSlots", Integer.toString(request.parallelism()));
        configuration.setString("pipeline.object-reuse", "true");
        configuration.setString("rest.bind-port", "0");
        request.options().forEach(configuration::setString);
        return configuration;
    }

    private static void plan(StreamExecutionEnvironment environment, Request request) {
        DataStream<String> found =
                switch (request.rule()) {
                    case "payments_decimal", "payments_double" -> payments(environment, request);
                    default -> logins(environment, request);
                };
        found.sinkTo(sink(request));
    }

    private static DataStream<String> payments(
            StreamExecutionEnvironment environment, Request request) {
        boolean exact = request.rule().equals("payments_decimal");
        return found(
                events(environment, request, new PaymentReader(exact)),
                PaymentRules.all(),
                request);
    }

    private static DataStream<String> logins(
            StreamExecutionEnvironment environment, Request request) {
        DataStream<Login> logins = events(environment, request, new LoginReader());
        if (!request.statement().isEmpty()) {
            return SqlStatement.over(environment, logins, request.statement());
        }
        Duration within = Duration.ofMillis(request.withinMs());
        List<Rule<Login, ?>> rules = new ArrayList<>();
        for (String share : request.shares()) {
            rules.add(LoginRules.named(request.rule(), share, within));
        }
        return found(logins, rules, request);
    }

    private static <E extends Event> DataStream<E> events(
            StreamExecutionEnvironment environment,
            Request request,
            KafkaRecordDeserializationSchema<E> reader) {
        boolean bounded = request.untilCheckpoint() == 0 && !request.untilAsked();
        var builder =
                KafkaSource.<E>builder()
                        .setBootstrapServers(request.bootstrap())
                        .setTopics(request.topic())
                        .setProperty("max.poll.records", "10000")
                        .setProperty("max.partition.fetch.bytes", "16777216")
                        .setProperty("fetch.max.bytes", "67108864")
                        .setProperty("receive.buffer.bytes", "4194304")
                        .setStartingOffsets(OffsetsInitializer.earliest())
                        .setDeserializer(reader);
        if (bounded) {
            builder.setBounded(OffsetsInitializer.latest());
        }
        return environment.fromSource(
                builder.build(),
                WatermarkStrategy.<E>forBoundedOutOfOrderness(
                                Duration.ofMillis(request.disorderMs()))
                        .withTimestampAssigner((event, time) -> event.ts),
                "events");
    }

    /** Flink CEP has one pattern an operator, so each rule has its own, and its copy of the stream. */
    private static <E extends Event> DataStream<String> found(
            DataStream<E> events, List<Rule<E, ?>> rules, Request request) {
        DataStream<String> found = null;
        for (Rule<E, ?> rule : rules) {
            DataStream<String> ofRule = rule.over(events, request.filter().equals("pre"));
            found = found == null ? ofRule : found.union(ofRule);
        }
        return found;
    }

    private static KafkaSink<String> sink(Request request) {
        boolean once = request.delivery().equals("exactly_once");
        var builder =
                KafkaSink.<String>builder()
                        .setBootstrapServers(request.bootstrap())
                        .setProperty("linger.ms", "5")
                        .setProperty("compression.type", "lz4")
                        .setProperty("transaction.timeout.ms", "600000")
                        .setRecordSerializer(
                                KafkaRecordSerializationSchema.builder()
                                        .setTopic(request.output())
                                        .setValueSerializationSchema(new SimpleStringSchema())
                                        .build());
        if (once) {
            builder.setTransactionalIdPrefix(request.prefix());
        }
        return builder.setDeliveryGuarantee(
                        once ? DeliveryGuarantee.EXACTLY_ONCE : DeliveryGuarantee.AT_LEAST_ONCE)
                .build();
    }
}
