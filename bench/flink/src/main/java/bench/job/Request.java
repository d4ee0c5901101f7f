package bench.job;

import com.fasterxml.jackson.annotation.JsonProperty;
import java.util.Map;

/**
 * One run, as the benchmark asks for it.
 *
 * @param rule a name of {@link LoginRules}; or {@code payments_decimal} or {@code
 *     payments_double}: all of {@link PaymentRules}, over amounts of that type
 * @param statement of Flink SQL over log-ins, see {@link SqlStatement}; empty: {@code rule} counts
 * @param shares ends of user ids, one operator for each; one that is empty: all users
 * @param state {@code hashmap} or {@code rocksdb}
 * @param filter {@code pre}: only relevant events reach keyBy, as an expert would have it;
 *     {@code all}: all of them do
 * @param delivery {@code exactly_once} or {@code at_least_once}
 * @param prefix of transactional ids
 * @param untilCheckpoint when not 0: so many events are read, then the run ends at the next
 *     checkpoint and tells its size; nothing is decided early. Otherwise: to the end of the topic
 * @param untilAsked the run goes on until another line comes, and waits for events meanwhile
 * @param disorderMs how far events may be out of order
 * @param options of Flink's configuration, by name
 */
record Request(
        String bootstrap,
        String topic,
        String output,
        String rule,
        String statement,
        String[] shares,
        String state,
        String filter,
        int parallelism,
        @JsonProperty("within_ms") long withinMs,
        String delivery,
        String prefix,
        @JsonProperty("checkpoint_folder") String checkpointFolder,
        @JsonProperty("checkpoint_ms") long checkpointMs,
        @JsonProperty("until_checkpoint") long untilCheckpoint,
        @JsonProperty("until_asked") boolean untilAsked,
        @JsonProperty("disorder_ms") long disorderMs,
        Map<String, String> options) {}
