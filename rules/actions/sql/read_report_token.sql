-- The token of the reports about a step.
select tocsin.report_token(%(action_id)s, %(step)s)
