package bench.job;

import java.util.List;
import java.util.Map;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.functions.TimedOutPartialMatchHandler;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/**
 * Writes each match and timeout as one line of text, the least that tells which it is: {@code m} or
 * {@code t}, key, and for each step its name and the partition and offset of its events.
 */
final class Found extends PatternProcessFunction<Login, String>
        implements TimedOutPartialMatchHandler<Login> {
    private static final long serialVersionUID = 1L;

    private final OutputTag<String> timeouts;

    Found(OutputTag<String> timeouts) {
        this.timeouts = timeouts;
    }

    @Override
    public void processMatch(Map<String, List<Login>> match, Context context, Collector<String> out) {
        Tally.matched();
        out.collect(line('m', match));
    }

    @Override
    public void processTimedOutMatch(Map<String, List<Login>> match, Context context) {
        Tally.timedOut();
        context.output(timeouts, line('t', match));
    }

    private static String line(char kind, Map<String, List<Login>> steps) {
        StringBuilder line = new StringBuilder(96).append(kind);
        line.append('|').append(steps.values().iterator().next().get(0).userId);
        for (Map.Entry<String, List<Login>> step : steps.entrySet()) {
            char before = '=';
            line.append('|').append(step.getKey());
            for (Login login : step.getValue()) {
                line.append(before).append(login.partition).append(':').append(login.offset);
                before = ',';
            }
        }
        return line.toString();
    }
}
