package bench.job;

import static org.apache.flink.table.api.Expressions.$;

import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;

/**
 * A statement of Flink SQL over log-ins, which are the table {@code events}, with the columns that
 * the statements read alone: as an expert would have it, since a MATCH_RECOGNIZE keeps whole rows.
 */
final class SqlStatement {
    private SqlStatement() {}

    /**
     * The rows that {@code statement} finds, each as a line: {@code m}, its first column, which is
     * the key, and {@code name=value} of the others; a double is the number that its bits are.
     */
    static DataStream<String> over(
            StreamExecutionEnvironment environment, DataStream<Login> logins, String statement) {
        StreamTableEnvironment tables = StreamTableEnvironment.create(environment);
        Schema schema =
                Schema.newBuilder()
                        .column("userId", "STRING")
                        .column("eventType", "STRING")
                        .column("amount", "DOUBLE")
                        .column("offset", "BIGINT")
                        .columnByMetadata("rowtime", "TIMESTAMP_LTZ(3)")
                        .watermark("rowtime", "SOURCE_WATERMARK()")
                        .build();
        tables.createTemporaryView(
                "events",
                tables.fromDataStream(logins, schema)
                        .select(
                                $("userId").as("user_id"),
                                $("eventType").as("event_type"),
                                $("amount"),
                                $("offset").as("kafka_offset"),
                                $("rowtime").as("ts")));
        return tables.toDataStream(tables.sqlQuery(statement))
                .map(SqlStatement::line)
                .returns(Types.STRING);
    }

    private static String line(Row row) {
        Tally.matched();
        StringBuilder line = new StringBuilder(96).append("m");
        for (String name : row.getFieldNames(true)) {
            boolean key = line.length() == 1;
            line.append('|').append(key ? "" : name + "=").append(text(row.getField(name)));
        }
        return line.toString();
    }

    private static Object text(Object value) {
        return value instanceof Double number ? Double.doubleToLongBits(number) : value;
    }
}
