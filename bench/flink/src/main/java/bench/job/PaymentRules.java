package bench.job;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;

/** The rules of {@code bench/payments.yaml} in Flink's terms, under the same names. */
final class PaymentRules {
    private static final String SMALL = "small";
    private static final String BIG = "big";

    private PaymentRules() {}

    static List<Rule<Payment, ?>> all() {
        return List.of(cardTest(), declines(), rising());
    }

    private static Rule<Payment, String> cardTest() {
        return new Rule<>(
                Pattern.<Payment>begin("small", skip()).where(SimpleCondition.of(PaymentRules::isSmall))
                        .followedBy("big").where(new BigElsewhere())
                        .within(Duration.ofMinutes(10)),
                payment -> isSmall(payment) || payment.isAbove180(),
                payment -> payment.cardId,
                Types.STRING,
                new CardTestLines());
    }

    private static Rule<Payment, String> declines() {
        return new Rule<>(
                Pattern.<Payment>begin("d", skip()).where(SimpleCondition.of(PaymentRules::isDeclined))
                        .times(5)
                        .within(Duration.ofMinutes(1)),
                PaymentRules::isDeclined,
                payment -> payment.merchantId,
                Types.STRING,
                new DeclinesLines());
    }

    private static Rule<Payment, Tuple2<String, String>> rising() {
        return new Rule<>(
                Pattern.<Payment>begin("a", skip()).where(SimpleCondition.of(Payment::isAbove100))
                        .followedBy("b").where(new Higher()).times(3)
                        .within(Duration.ofMinutes(5)),
                // What is above one that is above 100 is so, too.
                Payment::isAbove100,
                payment -> Tuple2.of(payment.cardId, payment.os),
                Types.TUPLE(Types.STRING, Types.STRING),
                new RisingLines());
    }

    private static AfterMatchSkipStrategy skip() {
        return AfterMatchSkipStrategy.skipPastLastEvent();
    }

    private static boolean isSmall(Payment payment) {
        return "approved".equals(payment.status) && payment.isBelow2();
    }

    private static boolean isDeclined(Payment payment) {
        return "declined".equals(payment.status)
                && ("DE".equalsIgnoreCase(payment.country)
                        || "FR".equalsIgnoreCase(payment.country));
    }

    private static Payment last(Iterable<Payment> taken) {
        Payment last = null;
        for (Payment payment : taken) {
            last = payment;
        }
        return last;
    }

    /** {@code amount > 180 AND merchant.country <> LAST(small.merchant.country)}. */
    private static final class BigElsewhere extends IterativeCondition<Payment> {
        private static final long serialVersionUID = 1L;

        @Override
        public boolean filter(Payment payment, Context<Payment> taken) throws Exception {
            // Asking for the events taken is dear, so the event itself is tested first.
            if (!payment.isAbove180() || payment.country == null) {
                return false;
            }
            String before = last(taken.getEventsForPattern(SMALL)).country;
            return before != null && !before.equals(payment.country);
        }
    }

    /** {@code amount > COALESCE(LAST(b.amount), LAST(a.amount))}. */
    private static final class Higher extends IterativeCondition<Payment> {
        private static final long serialVersionUID = 1L;

        @Override
        public boolean filter(Payment payment, Context<Payment> taken) throws Exception {
            Payment before = last(taken.getEventsForPattern("b"));
            return payment.isAbove(before != null ? before : last(taken.getEventsForPattern("a")));
        }
    }

    /** Rule, key, start, and of a match its end, separated by commas. */
    private static void head(
            StringBuilder line, String rule, String key, boolean complete, Payment first, Payment last) {
        line.append(rule).append(',').append(key).append(',').append(first.ts).append(',');
        if (complete) {
            line.append(last.ts);
        }
    }

    private static Payment first(Map<String, List<Payment>> steps, String name) {
        return steps.get(name).get(0);
    }

    /** {@code SUM(small.amount) + SUM(big.amount)} and {@code LAST(big.merchant.city)}. */
    private static final class CardTestLines implements Lines<Payment> {
        private static final long serialVersionUID = 1L;

        @Override
        public void head(StringBuilder line, boolean complete, Map<String, List<Payment>> steps) {
            Payment small = first(steps, SMALL);
            Payment last = complete ? first(steps, BIG) : null;
            PaymentRules.head(line, "card-test", small.cardId, complete, small, last);
        }

        @Override
        public void measures(StringBuilder line, Map<String, List<Payment>> steps) {
            Payment big = first(steps, BIG);
            line.append("|total=").append(first(steps, SMALL).plus(big));
            line.append("|city=").append(big.city);
        }
    }

    /** {@code COUNT(d.*)} and {@code MAX(d.card.id)}. */
    private static final class DeclinesLines implements Lines<Payment> {
        private static final long serialVersionUID = 1L;

        @Override
        public void head(StringBuilder line, boolean complete, Map<String, List<Payment>> steps) {
            List<Payment> declined = steps.get("d");
            Payment first = declined.get(0);
            Payment last = declined.get(declined.size() - 1);
            PaymentRules.head(line, "declines", first.merchantId, complete, first, last);
        }

        @Override
        public void measures(StringBuilder line, Map<String, List<Payment>> steps) {
            List<Payment> declined = steps.get("d");
            String highest = "";
            for (Payment payment : declined) {
                if (payment.cardId.compareTo(highest) > 0) {
                    highest = payment.cardId;
                }
            }
            line.append("|n=").append(declined.size()).append("|cards=").append(highest);
        }
    }

    /** No measures. */
    private static final class RisingLines implements Lines<Payment> {
        private static final long serialVersionUID = 1L;

        @Override
        public void head(StringBuilder line, boolean complete, Map<String, List<Payment>> steps) {
            Payment first = first(steps, "a");
            List<Payment> higher = steps.get("b");
            Payment last = complete ? higher.get(higher.size() - 1) : null;
            String key = first.cardId + ',' + first.os;
            PaymentRules.head(line, "rising", key, complete, first, last);
        }
    }
}
