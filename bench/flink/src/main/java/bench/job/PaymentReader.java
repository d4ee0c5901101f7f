package bench.job;

import java.io.IOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/**
 * Reads what the rules need of the Avro body, field by field, behind the registry's five bytes of
 * framing; the rest is skipped, and what comes last is not looked at.
 */
final class PaymentReader implements KafkaRecordDeserializationSchema<Payment> {
    private static final long serialVersionUID = 1L;
    private static final int FRAMING = 5;
    private static final int SCALE = 2;

    private final boolean exact;
    private transient BinaryDecoder decoder;
    private transient ByteBuffer digits;

    PaymentReader(boolean exact) {
        this.exact = exact;
    }

    @Override
    public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<Payment> out)
            throws IOException {
        Tally.read();
        byte[] value = record.value();
        decoder =
                DecoderFactory.get()
                        .binaryDecoder(value, FRAMING, value.length - FRAMING, decoder);
        decoder.skipString(); // id
        long micros = decoder.readLong();
        Payment payment = amount();
        payment.ts = Math.floorDiv(micros, 1000L);
        decoder.readEnum(); // currency
        payment.status = decoder.readIndex() == 0 ? null : decoder.readString();
        payment.cardId = decoder.readString();
        decoder.readInt(); // bin
        for (long left = decoder.skipArray(); left > 0; left = decoder.skipArray()) {
            for (; left > 0; left--) {
                decoder.skipString(); // tags
            }
        }
        if (decoder.readIndex() == 1) {
            payment.merchantId = decoder.readString();
            payment.country = decoder.readString();
            payment.city = decoder.readIndex() == 0 ? null : decoder.readString();
            decoder.readInt(); // mcc
        }
        payment.os = decoder.readString();
        payment.partition = record.partition();
        payment.offset = record.offset();
        out.collect(payment);
    }

    private Payment amount() throws IOException {
        if (exact) {
            DecimalPayment payment = new DecimalPayment();
            digits = decoder.readBytes(digits);
            payment.amount = decimal(digits);
            return payment;
        }
        DoublePayment payment = new DoublePayment();
        payment.amount = decoder.readDouble();
        return payment;
    }

    /** Without a BigInteger where a long will do. */
    private static BigDecimal decimal(ByteBuffer bytes) {
        int length = bytes.remaining();
        if (length > Long.BYTES || length == 0) {
            byte[] copy = new byte[length];
            bytes.get(copy);
            return new BigDecimal(new BigInteger(copy), SCALE);
        }
        long unscaled = bytes.get();
        for (int left = length - 1; left > 0; left--) {
            unscaled = unscaled << 8 | bytes.get() & 0xFF;
        }
        return BigDecimal.valueOf(unscaled, SCALE);
    }

    @Override
    @SuppressWarnings("unchecked") // all events of a run are of one kind
    public TypeInformation<Payment> getProducedType() {
        Class<? extends Payment> kind = exact ? DecimalPayment.class : DoublePayment.class;
        return (TypeInformation<Payment>) TypeInformation.of(kind);
    }
}
