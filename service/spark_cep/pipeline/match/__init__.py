"""The second stage: packets of a key group through the matcher, to output records."""
