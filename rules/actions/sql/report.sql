-- Record the report about a dispatched step; TS002 if it names no step that was reached.
select tocsin.report(%(action_id)s, %(step)s, %(state)s, %(result)s, %(error)s, %(attempt)s,
                     %(token)s::text)
