"""``python -m examples.demo``. Signals are taken care of before the slow imports."""

from __future__ import annotations

from examples.demo.interruption import Interruption


def main() -> None:
    """Entry point."""
    interruption = Interruption()
    interruption.install()
    from examples.demo.cli import start

    start(interruption)


if __name__ == "__main__":
    main()
