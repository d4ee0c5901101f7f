package bench;

import java.time.Duration;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;

/** The rules of {@code scenarios.py} in Flink's terms, under the same names. */
final class Patterns {
    private static final Duration MINUTE = Duration.ofMinutes(1);

    private Patterns() {}

    static Pattern<Event, ?> named(String name) {
        return switch (name) {
            case "sequence" -> Pattern.<Event>begin("a").where(kind('a'))
                    .followedBy("b").where(kind('b'))
                    .followedBy("c").where(kind('c'))
                    .within(MINUTE);
            case "times" -> Pattern.<Event>begin("a", AfterMatchSkipStrategy.skipPastLastEvent())
                    .where(kind('a')).times(3)
                    .within(Duration.ofSeconds(30));
            case "strict" -> Pattern.<Event>begin("a").where(kind('a')).times(3).consecutive()
                    .next("b").where(kind('b'))
                    .within(MINUTE);
            case "sum" -> Pattern.<Event>begin("a").where(kind('a')).times(3)
                    .followedBy("b").where(new MoreThanHalfTheSum())
                    .within(MINUTE);
            case "greedy" -> Pattern.<Event>begin("a", AfterMatchSkipStrategy.skipPastLastEvent())
                    .where(kind('a')).timesOrMore(3).greedy()
                    .followedBy("b").where(kind('b'))
                    .within(MINUTE);
            default -> throw new IllegalArgumentException("no pattern is named " + name);
        };
    }

    private static SimpleCondition<Event> kind(char kind) {
        return SimpleCondition.of(event -> event.kind == kind);
    }

    /** {@code kind = 'b' AND 2 * amount > SUM(a.amount)}. */
    private static final class MoreThanHalfTheSum extends IterativeCondition<Event> {
        private static final long serialVersionUID = 1L;

        @Override
        public boolean filter(Event event, Context<Event> taken) throws Exception {
            // Asking for the events taken is dear, so the event itself is tested first.
            if (event.kind != 'b') {
                return false;
            }
            double sum = 0;
            for (Event before : taken.getEventsForPattern("a")) {
                sum += before.amount;
            }
            return 2 * event.amount > sum;
        }
    }
}
