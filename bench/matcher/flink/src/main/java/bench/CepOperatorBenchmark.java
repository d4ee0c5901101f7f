package bench;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.Locale;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.cep.nfa.compiler.NFACompiler;
import org.apache.flink.cep.operator.CepOperator;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.runtime.state.hashmap.HashMapStateBackend;
import org.apache.flink.streaming.util.KeyedOneInputStreamOperatorTestHarness;

/**
 * Times Flink's CEP operator alone over a file of events: one thread, state on the heap, no
 * network, no checkpoints. Arguments: the pattern's name, the file. Prints one line of JSON.
 *
 * <p>The events are objects before the time starts. The passes before the timed one let the JVM
 * compile; the first of them counts the distinct matches and timeouts.
 */
public final class CepOperatorBenchmark {
    private static final int LEAST_WARM_UPS = 2;
    private static final int LEAST_WARM_UP_EVENTS = 1_000_000;
    // Flink's own default.
    private static final int KEY_GROUPS = 128;

    private CepOperatorBenchmark() {}

    public static void main(String[] arguments) throws Exception {
        Pattern<Event, ?> pattern = Patterns.named(arguments[0]);
        EventFile file = EventFile.read(Path.of(arguments[1]));
        Findings distinct = new Findings(true);
        pass(pattern, file, distinct);
        int warmUps = LEAST_WARM_UP_EVENTS / file.events().length;
        for (int warmUp = 1; warmUp < Math.max(LEAST_WARM_UPS, warmUps); warmUp++) {
            pass(pattern, file, new Findings(false));
        }
        System.gc();
        Findings findings = new Findings(false);
        Seconds seconds = pass(pattern, file, findings);
        System.out.printf(
                Locale.ROOT,
                "{\"processor_seconds\": %.6f, \"passed_seconds\": %.6f,"
                        + " \"matches\": %d, \"timeouts\": %d,"
                        + " \"distinct_matches\": %d, \"distinct_timeouts\": %d}%n",
                seconds.processor(),
                seconds.passed(),
                findings.matches(),
                findings.timeouts(),
                distinct.distinctMatches(),
                distinct.distinctTimeouts());
    }

    /** Runs all batches through a new operator; returns what that took. */
    private static Seconds pass(Pattern<Event, ?> pattern, EventFile file, Findings findings)
            throws Exception {
        TypeInformation<Event> type = Types.POJO(Event.class);
        CepOperator<Event, String, Void> operator =
                new CepOperator<>(
                        type.createSerializer(new SerializerConfigImpl()),
                        false,
                        NFACompiler.compileFactory(pattern, true),
                        null,
                        pattern.getAfterMatchSkipStrategy(),
                        findings,
                        null);
        try (var harness =
                new KeyedOneInputStreamOperatorTestHarness<String, Event, Void>(
                        operator, event -> event.key, Types.STRING, KEY_GROUPS, 1, 0)) {
            harness.setStateBackend(new HashMapStateBackend());
            harness.open();
            Seconds began = Seconds.now();
            int next = 0;
            for (int batch = 0; batch < file.ends().length; batch++) {
                for (; next < file.ends()[batch]; next++) {
                    Event event = file.events()[next];
                    harness.processElement(event, event.time);
                }
                harness.processWatermark(file.watermarks()[batch]);
            }
            return Seconds.now().since(began);
        }
    }

    /** Processor time of the whole JVM, and time that passed. */
    private record Seconds(double processor, double passed) {

        static Seconds now() {
            var system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
            return new Seconds(system.getProcessCpuTime() / 1e9, System.nanoTime() / 1e9);
        }

        Seconds since(Seconds began) {
            return new Seconds(processor - began.processor, passed - began.passed);
        }
    }
}
