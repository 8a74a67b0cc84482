-- An empty round trip.
select 1
