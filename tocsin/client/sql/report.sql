-- Report the outcome of a dispatched step; TS002 if no such step was reached.
select tocsin.report(%(action_id)s, %(step)s, %(state)s, %(result)s, %(error)s, %(attempt)s,
                     %(token)s::text)
