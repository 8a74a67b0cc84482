"""The checks of the doctor about rights: who the services are, what every role may do, and the audit.

Red: a service that runs as a superuser or as the owner of the schema, rights of PUBLIC, a database whose
time a session can set, and a changed audit. The newest links of the chain are checked, so that the cost
is bounded; `tocsin audit verify` checks all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from migrations.roles.check import check_public
from tocsin.core.audit_chain import ChainReport, verify_chain
from tocsin.core.db import Connection, fetch_all, fetch_value
from tocsin.doctor.checks import Finding

_SHOWN = 5
_NEWEST_LINKS = 10_000


async def check_rights(connection: Connection) -> list[Finding]:
    strong = await fetch_all(connection, "tocsin.doctor/list_strong_services")
    public = await check_public(connection)
    movable = bool(await fetch_value(connection, "tocsin.doctor/has_movable_time"))
    return [
        *rights_findings(strong, public, movable),
        audit_finding(await verify_chain(connection, newest=_NEWEST_LINKS)),
    ]


def rights_findings(
    strong: Sequence[tuple[str, str, str]], public: Sequence[str], movable: bool
) -> list[Finding]:
    findings = [
        Finding(
            "red",
            "roles",
            f"the {service} runs as {role!r}, which is {what}",
            f"`tocsin roles create`, then let it log in as tocsin_{service} (TOCSIN_POSTGRES_ROLES=1)",
        )
        for service, role, what in strong
    ]
    if public:
        more = f" and {len(public) - _SHOWN} more" if len(public) > _SHOWN else ""
        findings.append(
            Finding(
                "red",
                "roles",
                f"every role of the server has rights: {', '.join(public[:_SHOWN])}{more}",
                "`tocsin roles create` revokes them",
            )
        )
    if movable:
        findings.append(
            Finding(
                "red",
                "time",
                "any session can set the time of this database: it was made for tests",
                "use a database that `tocsin migrate` created",
            )
        )
    return findings or [Finding("ok", "roles", "no service runs as owner or superuser")]


def audit_finding(report: ChainReport) -> Finding:
    if report.problems:
        more = f" and {len(report.problems) - 1} more problems" if len(report.problems) > 1 else ""
        return Finding(
            "red",
            "audit",
            f"{report.problems[0]}{more}",
            "`tocsin audit verify` lists them; compare the rows with a backup",
        )
    return Finding("ok", "audit", f"{report.checked} rows unchanged, {report.unsealed} not chained yet")
