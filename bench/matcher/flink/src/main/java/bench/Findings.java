package bench;

import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.functions.TimedOutPartialMatchHandler;
import org.apache.flink.util.Collector;

/**
 * Counts matches and timeouts and emits nothing.
 *
 * <p>On request it also counts the distinct ones, by a hash of the events under each step, since
 * Flink may emit one twice. That is left to a run that is not timed.
 */
final class Findings extends PatternProcessFunction<Event, Void>
        implements TimedOutPartialMatchHandler<Event> {
    private static final long serialVersionUID = 1L;

    private final boolean distinct;
    private final Set<Long> knownMatches = new HashSet<>();
    private final Set<Long> knownTimeouts = new HashSet<>();
    private long matches;
    private long timeouts;

    Findings(boolean distinct) {
        this.distinct = distinct;
    }

    @Override
    public void processMatch(Map<String, List<Event>> match, Context context, Collector<Void> out) {
        matches++;
        if (distinct) {
            knownMatches.add(hash(match));
        }
    }

    @Override
    public void processTimedOutMatch(Map<String, List<Event>> timeout, Context context) {
        timeouts++;
        if (distinct) {
            knownTimeouts.add(hash(timeout));
        }
    }

    long matches() {
        return matches;
    }

    long timeouts() {
        return timeouts;
    }

    long distinctMatches() {
        return knownMatches.size();
    }

    long distinctTimeouts() {
        return knownTimeouts.size();
    }

    private static long hash(Map<String, List<Event>> steps) {
        long sum = 0;
        for (Map.Entry<String, List<Event>> step : steps.entrySet()) {
            long hash = step.getKey().hashCode();
            for (Event event : step.getValue()) {
                hash = (hash ^ (event.offset + 1)) * 0x9E3779B97F4A7C15L;
                hash ^= hash >>> 29;
            }
            sum += hash;
        }
        return sum;
    }
}
