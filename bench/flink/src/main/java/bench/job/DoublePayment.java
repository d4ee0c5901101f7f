package bench.job;

/** A payment of a binary floating-point amount. */
public final class DoublePayment extends Payment {
    public double amount;

    @Override
    boolean isBelow2() {
        return amount < 2;
    }

    @Override
    boolean isAbove180() {
        return amount > 180;
    }

    @Override
    boolean isAbove100() {
        return amount > 100;
    }

    @Override
    boolean isAbove(Payment other) {
        return amount > ((DoublePayment) other).amount;
    }

    @Override
    String plus(Payment other) {
        return Long.toString(Double.doubleToLongBits(amount + ((DoublePayment) other).amount));
    }
}
