package bench;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * The stream that {@code write_stream} of {@code flink_operator.py} wrote: events in order of
 * arrival, and for each batch the position where it ends and the watermark that follows it.
 */
record EventFile(Event[] events, int[] ends, long[] watermarks) {

    static EventFile read(Path path) throws IOException {
        ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(path)).order(ByteOrder.LITTLE_ENDIAN);
        Event[] events = new Event[Math.toIntExact(bytes.getLong())];
        int[] ends = new int[Math.toIntExact(bytes.getLong())];
        long[] watermarks = new long[ends.length];
        for (int batch = 0; batch < ends.length; batch++) {
            ends[batch] = Math.toIntExact(bytes.getLong());
        }
        for (int batch = 0; batch < ends.length; batch++) {
            watermarks[batch] = bytes.getLong();
        }
        for (int offset = 0; offset < events.length; offset++) {
            events[offset] = new Event();
            events[offset].offset = offset;
            events[offset].time = bytes.getLong();
        }
        for (Event event : events) {
            event.amount = bytes.getDouble();
        }
        List<String> keys = new ArrayList<>();
        for (Event event : events) {
            int number = bytes.getInt();
            while (keys.size() <= number) {
                keys.add(String.format("user-%07d", keys.size()));
            }
            event.key = keys.get(number);
        }
        for (Event event : events) {
            event.kind = (char) bytes.get();
        }
        if (bytes.hasRemaining()) {
            throw new IOException(path + " holds more than its header says");
        }
        return new EventFile(events, ends, watermarks);
    }
}
