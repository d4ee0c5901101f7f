"""Ask the page of health until it says yes: ``ready.py URL SECONDS``.

Exit code 1 when it never does.
"""

import ssl
import sys
import time
import urllib.request


def main(url: str, seconds: float) -> int:
    """Whether the page answered 200 in time, as an exit code."""
    # The certificate names a host that clients use, which a service inside the cluster need not be.
    trusting = ssl._create_unverified_context()  # noqa: S323, SLF001
    end = time.monotonic() + seconds
    said = "nothing"
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(url, timeout=5, context=trusting) as answer:  # noqa: S310
                print(url, answer.status, answer.read().decode())
                return 0
        except OSError as error:
            said = str(error)
            time.sleep(2)
    print(f"{url} was not ready within {seconds:.0f} s: {said}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2])))
