"""The health check of the image: exit code 0 when ``/livez`` says that the service is alive.

The port is that of ``SPARK_CEP__OBSERVABILITY__METRICS_PORT``, or 9108; where the file of settings
says otherwise, ``SPARK_CEP_LIVEZ`` gives the whole address. It needs nothing but Python itself.
"""

from __future__ import annotations

import os
import ssl
import sys
import urllib.error
import urllib.request

PORT = os.environ.get("SPARK_CEP__OBSERVABILITY__METRICS_PORT", "9108")
URL = os.environ.get("SPARK_CEP_LIVEZ", f"http://127.0.0.1:{PORT}/livez")
SECONDS = 5


def main() -> int:
    """Ask once."""
    # Of this machine, whose certificate names another host.
    context = ssl._create_unverified_context()  # noqa: S323, SLF001
    try:
        with urllib.request.urlopen(URL, timeout=SECONDS, context=context) as answer:  # noqa: S310
            answer.read()
    except urllib.error.HTTPError as error:
        with error:
            print(f"{URL}: {error.code} {error.read(500).decode(errors='replace')}")
        return 1
    except (OSError, ValueError) as error:
        print(f"{URL}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
