"""The state of many keys, and waiting events, as blocks of packed columns and back."""
