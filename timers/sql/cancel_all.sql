-- Cancel all timers of one entity. The function tocsin.cancel_all is in the migrations.
select tocsin.cancel_all(%s, %s)
