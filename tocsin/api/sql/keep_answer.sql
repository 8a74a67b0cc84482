-- Stores the answer under an Idempotency-Key, in the transaction of its effect.
select tocsin.keep_answer(%(caller)s, %(key)s, %(digest)s, %(status)s, %(headers)s::jsonb, %(body)s)
