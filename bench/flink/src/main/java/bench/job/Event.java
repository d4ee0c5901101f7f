package bench.job;

/** What every event has: its time and its place in Kafka. */
public abstract class Event {
    /** Event time in milliseconds. */
    public long ts;
    public int partition;
    public long offset;
}
