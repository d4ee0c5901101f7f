"""All that the project is made of beside its own code: known vulnerabilities (``make audit``), an
SBOM (``make sbom``), and the pinned jars that tests, demo and benchmarks start.

pip-audit and cyclonedx-bom run from an environment of their own, pinned in
``requirements-supply-chain.lock``; the project itself does not depend on them.
"""
