package spark_cep;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.lang.reflect.Field;
import java.util.Iterator;
import java.util.Set;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.LogicalRDD;

/** Asks Spark of a batch, each question in one call from Python. */
public class Batches {
  /**
   * The time of a batch's entry in an offset log, in milliseconds since 1970, and the JSON of its
   * one source's offset; null where there is no entry. Spark's classes of the log move between its versions.
   */
  public Object[] planned(Object log, long batch) throws Exception {
    Object entry = log.getClass().getMethod("get", new Class[] {long.class}).invoke(log, new Object[] {batch});
    if (!((Boolean) of(entry, "isDefined")).booleanValue()) {
      return null;
    }
    Object plan = of(entry, "get");
    Object time = of(of(of(plan, "metadataOpt"), "get"), "batchTimestampMs");
    return new Object[] {time, of(of(of(of(plan, "offsets"), "head"), "get"), "json")};
  }

  /**
   * Runs a batch; the first column, of bytes, of the one row that each task may give, one after the other.
   * IllegalStateException for a task that gives two: Spark uses its row again for the second. Executors
   * that are processes of their own have the classes of this file.
   */
  public byte[] run(Dataset batch) throws Exception {
    RDD tasks = ((LogicalRDD) batch.queryExecution().logical()).rdd();
    boolean local = tasks.sparkContext().isLocal();
    if (!local) {
      tasks = tasks.toJavaRDD().mapPartitions(new SocketsForgotten()).rdd();
    }
    Object[] rows = (Object[]) tasks.collect();
    if (local) {
      forgetSockets();
    }
    ByteArrayOutputStream joined = new ByteArrayOutputStream();
    for (int number = 0; number < rows.length; number++) {
      if (number > 0 && rows[number] == rows[number - 1]) {
        throw new IllegalStateException("a task of the batch gave more than one row");
      }
      byte[] bytes = ((InternalRow) rows[number]).getBinary(0);
      joined.write(bytes, 0, bytes.length);
    }
    return joined.toByteArray();
  }

  /**
   * Lets this process forget the sockets of tasks that have ended. Spark deletes the socket of a stateful task with the
   * task, and has Java do so at its exit, too (File.deleteOnExit), for which Java keeps the path for good: 170 bytes of
   * each task.
   */
  private static void forgetSockets() throws IllegalAccessException {
    Class hook;
    Field field;
    try {
      hook = Class.forName("java.io.DeleteOnExitHook");
      field = hook.getDeclaredField("files");
      field.setAccessible(true);
    } catch (Exception another) {
      return; // Another Java keeps them in another way, or to itself: no reason to stop a job.
    }
    synchronized (hook) {
      Set paths = (Set) field.get(null);
      if (paths == null) {
        return; // Java is ending.
      }
      for (Iterator each = paths.iterator(); each.hasNext();) {
        String path = (String) each.next();
        if (path.endsWith(".sock") && !new File(path).exists()) {
          each.remove();
        }
      }
    }
  }

  private static Object of(Object owner, String name) throws Exception {
    return owner.getClass().getMethod(name, new Class[0]).invoke(owner, new Object[0]);
  }

  /** The rows of a task, after the sockets of earlier tasks of its executor are forgotten. */
  public static class SocketsForgotten implements FlatMapFunction {
    public Iterator call(Object rows) throws Exception {
      forgetSockets();
      return (Iterator) rows;
    }
  }
}
