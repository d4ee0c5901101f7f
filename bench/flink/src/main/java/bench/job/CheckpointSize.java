package bench.job;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/** The size of what a checkpoint refers to, on disk. */
final class CheckpointSize {
    private CheckpointSize() {}

    /** Waits for a checkpoint that began after now, among those below {@code folder}. */
    static long ofNext(Path folder, long atMostMs) throws IOException, InterruptedException {
        long deadline = System.currentTimeMillis() + atMostMs;
        // The one in flight may have begun before.
        long second = newest(folder) + 2;
        while (newest(folder) < second) {
            if (System.currentTimeMillis() > deadline) {
                throw new IOException("no checkpoint was complete within " + atMostMs + " ms");
            }
            Thread.sleep(100);
        }
        try (Stream<Path> files = Files.walk(folder)) {
            // Incremental ones keep what they share with earlier ones beside them.
            return files.filter(Files::isRegularFile)
                    .filter(file -> number(file.getParent()) < 0 || number(file.getParent()) >= second)
                    .mapToLong(file -> file.toFile().length())
                    .sum();
        }
    }

    private static long newest(Path folder) throws IOException {
        try (Stream<Path> files = Files.walk(folder)) {
            return files.filter(file -> file.endsWith("_metadata"))
                    .mapToLong(file -> number(file.getParent()))
                    .max()
                    .orElse(0);
        }
    }

    private static long number(Path folder) {
        String name = folder.getFileName().toString();
        return name.startsWith("chk-") ? Long.parseLong(name.substring(4)) : -1;
    }
}
