package bench.job;

/** What rules need of a payment. A POJO to Flink; how amounts are kept is up to its kinds. */
public abstract class Payment extends Event {
    /** May be null. */
    public String status;
    public String cardId;
    public String merchantId;
    /** May be null, as may be the city: the merchant is. */
    public String country;
    public String city;
    public String os;

    abstract boolean isBelow2();

    abstract boolean isAbove180();

    abstract boolean isAbove100();

    /** Whether more is paid here than there. */
    abstract boolean isAbove(Payment other);

    /** The sum of two amounts, as text; of doubles the number that the sum's bits are. */
    abstract String plus(Payment other);
}
