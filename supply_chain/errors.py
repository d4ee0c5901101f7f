"""The error of what is pinned and not there."""

from __future__ import annotations


class DependencyError(Exception):
    """A pinned jar, Java or a package of the tools is missing, or is not the pinned one."""
