"""What the project is made of: known vulnerabilities (``make audit``) and an SBOM (``make sbom``).

pip-audit and cyclonedx-bom run from an environment of their own, pinned in
``requirements-supply-chain.lock``; the project itself does not depend on them.
"""
