"""Writes roles as configuration of a NATS server.

`accounts` gives each isolated role an account of its own, which imports the subjects of its role from
the account of the streams. `users` puts all of them into one account, with permissions only: for the
embedded server, whose users all belong to one person.

In an isolated account the JetStream API has the prefix `api_prefix`, which TOCSIN_NATS_API names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tocsin.nats_access.roles import JETSTREAM_API, USER_INFO, NatsRole, api_prefix

_PULL = f"{JETSTREAM_API}.CONSUMER.MSG.NEXT."


def accounts(
    namespace: str, roles: Sequence[NatsRole], password: Callable[[str], str], published: Sequence[str] = ()
) -> str:
    """The block `accounts`. `password` gives the text behind `password:` for a user.

    `published` are subjects that workers publish for services in other accounts.
    """
    main = namespace.upper().replace("-", "_")
    inside = [role for role in roles if not role.is_isolated]
    isolated = [role for role in roles if role.is_isolated]
    lines = [
        "accounts {",
        "  # The streams, and the users that write them.",
        f"  {main} {{",
        "    jetstream: enabled",
        "    users: [",
        *(line for role in inside for line in _user(role, password, JETSTREAM_API)),
        "    ]",
        "    exports: [",
        *(f"      {line}" for line in _exports(isolated, published)),
        "    ]",
        "  }",
    ]
    for role in isolated:
        lines += ["", f"  {main}_{role.name.upper().replace('-', '_')} {{", "    users: ["]
        lines += _user(role, password, api_prefix(namespace))
        lines += ["    ]", "    imports: ["]
        lines += [f"      {line}" for line in _imports(role, main, namespace)]
        lines += ["    ]", "  }"]
    return "\n".join([*lines, "}", ""])


def user_lines(
    name: str,
    secret: str,
    publish: Sequence[str],
    subscribe: Sequence[str],
    deny_publish: Sequence[str] = (),
    deny_subscribe: Sequence[str] = (),
) -> list[str]:
    """One user with permissions."""
    return [
        "      {",
        f"        user: {name}",
        f"        password: {secret}",
        "        permissions: {",
        *_rights("publish", publish, deny_publish),
        *_rights("subscribe", subscribe, deny_subscribe),
        "        }",
        "      }",
    ]


def _user(role: NatsRole, password: Callable[[str], str], prefix: str) -> list[str]:
    publish = [local_subject(subject, prefix) for subject in role.publish]
    return [
        *(f"      # {line}" for line in _wrapped(role.purpose)),
        *user_lines(role.name, password(role.name), publish, [f"{role.inbox}.>", *role.subscribe]),
    ]


def _rights(verb: str, allow: Sequence[str], deny: Sequence[str]) -> list[str]:
    lines = [f"          {verb}: {{", "            allow: ["]
    lines += [f'              "{subject}"' for subject in allow]
    lines.append("            ]")
    if deny:
        lines += ["            deny: [", *(f'              "{subject}"' for subject in deny), "            ]"]
    return [*lines, "          }"]


def local_subject(subject: str, prefix: str) -> str:
    """The subject as an account with this prefix of the API has it."""
    if subject.startswith(f"{JETSTREAM_API}."):
        return prefix + subject.removeprefix(JETSTREAM_API)
    return subject


def _exports(roles: Sequence[NatsRole], published: Sequence[str]) -> list[str]:
    services = sorted({subject for role in roles for subject in role.publish if subject != USER_INFO})
    streams = sorted({*published, *(subject for role in roles for subject in role.subscribe)})
    return [
        *(
            f'{{service: "{subject}"{", response: stream" if subject.startswith(_PULL) else ""}}}'
            for subject in services
        ),
        *(f'{{stream: "{subject}"}}' for subject in streams),
    ]


def _imports(role: NatsRole, main: str, namespace: str) -> list[str]:
    lines = []
    for subject in role.publish:
        if subject == USER_INFO:
            continue
        local = local_subject(subject, api_prefix(namespace))
        to = "" if local == subject else f', to: "{local}"'
        lines.append(f'{{service: {{account: {main}, subject: "{subject}"}}{to}}}')
    lines += [f'{{stream: {{account: {main}, subject: "{subject}"}}}}' for subject in role.subscribe]
    return lines


def _wrapped(text: str, width: int = 92) -> list[str]:
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) + 1 > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines
