package bench.job;

import org.apache.flink.api.common.functions.FilterFunction;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.util.OutputTag;

/**
 * One rule.
 *
 * @param relevant the filter that an expert puts before {@code keyBy}
 */
record Rule<E extends Event, K>(
        Pattern<E, ?> pattern,
        FilterFunction<E> relevant,
        KeySelector<E, K> key,
        TypeInformation<K> keyType,
        Lines<E> lines) {

    /** Matches and timeouts in {@code events}. */
    DataStream<String> over(DataStream<E> events, boolean filtered) {
        DataStream<E> used = filtered ? events.filter(relevant) : events;
        OutputTag<String> timeouts = new OutputTag<>("timeouts") {};
        SingleOutputStreamOperator<String> matches =
                CEP.pattern(used.keyBy(key, keyType), pattern).process(new Found<>(timeouts, lines));
        return matches.union(matches.getSideOutput(timeouts));
    }
}
