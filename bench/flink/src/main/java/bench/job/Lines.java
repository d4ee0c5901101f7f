package bench.job;

import java.io.Serializable;
import java.util.List;
import java.util.Map;

/** What a line says before the steps, and behind them. */
interface Lines<E extends Event> extends Serializable {
    /** Tells the key, and whatever else. */
    void head(StringBuilder line, boolean complete, Map<String, List<E>> steps);

    /** Tells the measures of a match: {@code |name=value}, for each. */
    default void measures(StringBuilder line, Map<String, List<E>> steps) {}
}
