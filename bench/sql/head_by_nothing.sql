-- A round trip and nothing else.
select 1
