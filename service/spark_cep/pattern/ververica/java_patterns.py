r"""Java's regular expressions as those of RE2, which the rule language has.

Both read the same language as far as it is let through here. Aviator's ``=~`` asks for the whole
text, RLIKE for a part of it, so the pattern is anchored at both ends. Refused is what RE2 refuses
(look-around, back-references, possessive quantifiers) and what the two read differently: sets in
sets, ``\v``, ``\0``, and flags other than ``i`` and ``s``.
"""

from __future__ import annotations

import re

from spark_cep.pattern.expressions.values.regular import compiled

_PIECE = re.compile(r"\\(?P<escape>[\s\S])|\(\?(?P<flags>[a-zA-Z-]+)[:)]|(?P<other>[\s\S])")


def whole_text_pattern(java: str) -> str:
    """The RE2 pattern that is found in a text where Java's matches the whole of it; ``ValueError``
    with a sentence where there is none."""
    in_set = False
    for piece in _PIECE.finditer(java):
        if piece["escape"] is not None:
            if piece["escape"] in "v0":
                raise ValueError(f"`\\{piece['escape']}` means something else in RE2")
        elif piece["flags"] is not None and not in_set:
            if set(piece["flags"]) - set("is-"):
                raise ValueError(
                    f"the flags `{piece['flags']}` are not supported, only `i` and `s`"
                )
        elif in_set and (piece["other"] == "[" or java.startswith("&&", piece.start())):
            raise ValueError("sets in sets (`[a-z[0-9]]`, `[a-z&&[^b]]`) are not supported")
        elif piece["other"] in ("[", "]"):
            in_set = piece["other"] == "["
    pattern = rf"\A(?:{java})\z"
    compiled(pattern)
    return pattern
