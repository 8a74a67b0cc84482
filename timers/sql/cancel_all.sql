-- See tocsin.cancel_all in the migrations.
select tocsin.cancel_all(%s, %s)
