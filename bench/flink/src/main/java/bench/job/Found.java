package bench.job;

import java.util.List;
import java.util.Map;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.functions.TimedOutPartialMatchHandler;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/**
 * Writes each match and timeout as one line of text, the least that tells which it is: {@code m} or
 * {@code t}, the head of its {@link Lines}, for each step its name and the partition and offset of
 * its events, and measures.
 */
final class Found<E extends Event> extends PatternProcessFunction<E, String>
        implements TimedOutPartialMatchHandler<E> {
    private static final long serialVersionUID = 1L;

    private final OutputTag<String> timeouts;
    private final Lines<E> lines;

    Found(OutputTag<String> timeouts, Lines<E> lines) {
        this.timeouts = timeouts;
        this.lines = lines;
    }

    @Override
    public void processMatch(Map<String, List<E>> match, Context context, Collector<String> out) {
        Tally.matched();
        StringBuilder line = line(true, match);
        lines.measures(line, match);
        out.collect(line.toString());
    }

    @Override
    public void processTimedOutMatch(Map<String, List<E>> match, Context context) {
        Tally.timedOut();
        context.output(timeouts, line(false, match).toString());
    }

    private StringBuilder line(boolean complete, Map<String, List<E>> steps) {
        StringBuilder line = new StringBuilder(96).append(complete ? "m|" : "t|");
        lines.head(line, complete, steps);
        for (Map.Entry<String, List<E>> step : steps.entrySet()) {
            char before = '=';
            line.append('|').append(step.getKey());
            for (E event : step.getValue()) {
                line.append(before).append(event.partition).append(':').append(event.offset);
                before = ',';
            }
        }
        return line;
    }
}
