package bench.job;

/** One log-in event. A POJO to Flink. */
public final class Login extends Event {
    public String userId;
    public String eventType;
    public double amount;
    public String ip;
    public String session;
}
