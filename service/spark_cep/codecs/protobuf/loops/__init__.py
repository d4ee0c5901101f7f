"""The compiled loops of Protobuf."""
