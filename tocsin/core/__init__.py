"""The foundation of every package: settings, Postgres, NATS, supervised services, errors, logs.

Nothing in here knows about timers, events or rules, and nothing in here reads the wall clock.

Entry points: `settings.Settings` reads the environment. `db.open_service_session` and `bus.open_bus`
connect a service, `service.Service` runs it and starts it again. `db.fetch_one`, `db.fetch_all` and
`db.statement` run the SQL files. Every writer of the log calls `record_log.append_records` or
`append_events`, and commands of operators call `audit.record_audit`.
"""
