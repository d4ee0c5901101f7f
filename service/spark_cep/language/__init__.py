"""Answers about a text that is being written: its problems, what may stand at the cursor, and what
a word means.

Pure functions over an :class:`~spark_cep.language.documents.OpenDocument`, for any editor: the
language server (``spark-cep lsp``) and the page on which rules are tried ask the same ones.

- :func:`spark_cep.language.diagnostics.diagnostics`: what is wrong, as ``spark-cep check`` says it;
- :func:`spark_cep.language.completions.completions`: what may stand at a position;
- :func:`spark_cep.language.hover.hover`: what stands at a position;
- :func:`spark_cep.language.actions.actions`: changes that settle a problem;
- :func:`spark_cep.language.symbols.symbols`: the rules, steps and cases of the text.

None of them raises for a text, whatever stands in it. Positions count lines and characters from 0;
a character is a code point (LSP's ``utf-32``).
"""
