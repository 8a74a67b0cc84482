-- The stored answer under an Idempotency-Key. Locks the key until the transaction ends; does not wait for it.
select outcome, status, headers, body from tocsin.find_answer(%(caller)s, %(key)s, %(digest)s)
