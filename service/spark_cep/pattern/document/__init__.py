"""Rule documents: YAML, JSON, SQL files and Python data in, rules and canonical text out."""
