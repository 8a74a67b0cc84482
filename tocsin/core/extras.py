"""Names the optional parts of an installation, and how to install one.

Why a lock file and not the name of the package: the file has hashes, and the name `tocsin` in a
public registry may belong to another project.
"""

from __future__ import annotations

from typing import Literal

Extra = Literal["apprise", "embedded", "import", "nkeys", "parquet"]


def install_remedy(extra: Extra) -> str:
    return (
        f"install the extra '{extra}' from a checkout of tocsin: "
        f"pip install --require-hashes -r requirements/{extra}.txt"
    )
