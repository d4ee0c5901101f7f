package bench.job;

/** One log-in event with its place in Kafka. A POJO to Flink. */
public final class Login {
    public String userId;
    public String eventType;
    public double amount;
    /** Event time in milliseconds. */
    public long ts;
    public String ip;
    public String session;
    public int partition;
    public long offset;
}
