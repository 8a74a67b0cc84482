-- See tocsin.cancel in the migrations.
select tocsin.cancel(%s, %s, %s)
