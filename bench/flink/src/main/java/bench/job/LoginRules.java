package bench.job;

import java.time.Duration;
import org.apache.flink.api.common.functions.FilterFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;

/** The rules of {@code bench/rules.py} in Flink's terms, under the same names. */
final class LoginRules {
    private LoginRules() {}

    /** {@code share}: the end of the user ids that the rule is for; empty: all users. */
    static Rule<Login, String> named(String name, String share, Duration within) {
        AfterMatchSkipStrategy skip = AfterMatchSkipStrategy.skipPastLastEvent();
        return switch (name) {
            case "fails" -> rule(
                    Pattern.<Login>begin("fail", skip).where(type("login_fail", share)).timesOrMore(3)
                            .followedBy("ok").where(type("login_ok", share))
                            .within(within),
                    login -> (login.eventType.equals("login_fail")
                            || login.eventType.equals("login_ok")) && login.userId.endsWith(share));
            // No event can be left out: every one is low or high, and what comes between counts.
            case "relevant" -> rule(
                    Pattern.<Login>begin("low", skip).where(amount(false)).times(5).consecutive()
                            .next("high").where(amount(true))
                            .within(within),
                    login -> true);
            case "look_back" -> rule(
                    Pattern.<Login>begin("bought", AfterMatchSkipStrategy.noSkip()).where(type("purchase", share))
                            .followedBy("seen").where(new ViewAbove("bought"))
                            .followedBy("more").where(new ViewAbove("seen"))
                            .within(within),
                    login -> login.eventType.equals("purchase") || login.eventType.equals("view"));
            case "open" -> rule(
                    Pattern.<Login>begin("fail", skip).where(type("login_fail", share))
                            .followedBy("ok").where(type("login_ok", share))
                            .within(within),
                    login -> login.eventType.equals("login_fail")
                            || login.eventType.equals("login_ok"));
            default -> throw new IllegalArgumentException("no rule is named " + name);
        };
    }

    private static Rule<Login, String> rule(
            Pattern<Login, ?> pattern, FilterFunction<Login> relevant) {
        return new Rule<>(
                pattern,
                relevant,
                login -> login.userId,
                Types.STRING,
                (line, complete, steps) ->
                        line.append(steps.values().iterator().next().get(0).userId));
    }

    private static SimpleCondition<Login> type(String type, String share) {
        return share.isEmpty()
                ? SimpleCondition.of(login -> login.eventType.equals(type))
                : SimpleCondition.of(
                        login -> login.eventType.equals(type) && login.userId.endsWith(share));
    }

    private static SimpleCondition<Login> amount(boolean high) {
        return SimpleCondition.of(login -> login.amount >= 250 == high);
    }

    /** {@code event_type = 'view' AND amount > LAST(<step>.amount)}. */
    private static final class ViewAbove extends IterativeCondition<Login> {
        private static final long serialVersionUID = 1L;

        private final String step;

        ViewAbove(String step) {
            this.step = step;
        }

        @Override
        public boolean filter(Login login, Context<Login> taken) throws Exception {
            // Asking for the events taken is dear, so the event itself is tested first.
            if (!login.eventType.equals("view")) {
                return false;
            }
            double last = Double.NaN;
            for (Login before : taken.getEventsForPattern(step)) {
                last = before.amount;
            }
            return login.amount > last;
        }
    }
}
