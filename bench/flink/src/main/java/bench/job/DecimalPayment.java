package bench.job;

import java.math.BigDecimal;

/** A payment of an exact amount. */
public final class DecimalPayment extends Payment {
    private static final BigDecimal TWO = BigDecimal.valueOf(2);
    private static final BigDecimal HUNDRED = BigDecimal.valueOf(100);
    private static final BigDecimal HUNDRED_EIGHTY = BigDecimal.valueOf(180);

    public BigDecimal amount;

    @Override
    boolean isBelow2() {
        return amount.compareTo(TWO) < 0;
    }

    @Override
    boolean isAbove180() {
        return amount.compareTo(HUNDRED_EIGHTY) > 0;
    }

    @Override
    boolean isAbove100() {
        return amount.compareTo(HUNDRED) > 0;
    }

    @Override
    boolean isAbove(Payment other) {
        return amount.compareTo(((DecimalPayment) other).amount) > 0;
    }

    @Override
    String plus(Payment other) {
        return amount.add(((DecimalPayment) other).amount).toPlainString();
    }
}
