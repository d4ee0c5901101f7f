package spark_cep;

import java.io.ByteArrayOutputStream;
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
   * IllegalStateException for a task that gives two: Spark uses its row again for the second.
   */
  public byte[] run(Dataset batch) {
    Object[] rows = (Object[]) ((LogicalRDD) batch.queryExecution().logical()).rdd().collect();
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

  private static Object of(Object owner, String name) throws Exception {
    return owner.getClass().getMethod(name, new Class[0]).invoke(owner, new Object[0]);
  }
}
