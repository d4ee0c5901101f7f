package bench.job;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;

/** What the tasks of one run did. They share this JVM with the program that started them. */
final class Tally {
    private static final AtomicLong FIRST_READ = new AtomicLong();
    private static final LongAdder EVENTS = new LongAdder();
    private static final LongAdder MATCHES = new LongAdder();
    private static final LongAdder TIMEOUTS = new LongAdder();
    private static volatile long lastOutput;

    private Tally() {}

    static void reset() {
        FIRST_READ.set(0);
        EVENTS.reset();
        MATCHES.reset();
        TIMEOUTS.reset();
        lastOutput = 0;
    }

    static void read() {
        if (FIRST_READ.get() == 0) {
            FIRST_READ.compareAndSet(0, System.nanoTime());
        }
        EVENTS.increment();
    }

    static void matched() {
        MATCHES.increment();
        lastOutput = System.nanoTime();
    }

    static void timedOut() {
        TIMEOUTS.increment();
        lastOutput = System.nanoTime();
    }

    static long firstRead() {
        return FIRST_READ.get();
    }

    /** When the last match or timeout went to the sink; 0 when there was none. */
    static long lastOutput() {
        return lastOutput;
    }

    static long events() {
        return EVENTS.sum();
    }

    static long matches() {
        return MATCHES.sum();
    }

    static long timeouts() {
        return TIMEOUTS.sum();
    }
}
