package bench;

/**
 * One event that passed the filter.
 *
 * <p>A POJO to Flink. {@code kind} is one character, so that testing a condition costs Flink next
 * to nothing: on the other side conditions were evaluated before the matcher.
 */
public final class Event {
    /** What the stream is keyed by. */
    public String key;

    /** Event time in milliseconds. */
    public long time;

    /** Position in the stream. */
    public long offset;

    /** What the steps' conditions ask for. */
    public char kind;

    /** What look-back conditions sum up. */
    public double amount;
}
