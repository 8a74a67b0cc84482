-- The Nats-Msg-Id of the message of a step.
select tocsin.message_token(%(action_id)s, %(step)s)
