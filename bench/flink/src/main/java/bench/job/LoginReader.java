package bench.job;

import java.io.IOException;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/**
 * Reads the Avro body field by field behind the registry's five bytes of framing: the cheapest way
 * there is, without generic records.
 */
final class LoginReader implements KafkaRecordDeserializationSchema<Login> {
    private static final long serialVersionUID = 1L;
    private static final int FRAMING = 5;

    private transient BinaryDecoder decoder;

    @Override
    public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<Login> out)
            throws IOException {
        Tally.read();
        byte[] value = record.value();
        decoder =
                DecoderFactory.get()
                        .binaryDecoder(value, FRAMING, value.length - FRAMING, decoder);
        Login login = new Login();
        login.userId = decoder.readString();
        login.eventType = decoder.readString();
        login.amount = decoder.readDouble();
        login.ts = decoder.readLong();
        login.ip = decoder.readString();
        login.session = decoder.readString();
        login.partition = record.partition();
        login.offset = record.offset();
        out.collect(login);
    }

    @Override
    public TypeInformation<Login> getProducedType() {
        return TypeInformation.of(Login.class);
    }
}
