-- See tocsin.arm in the migrations.
select tocsin.arm(%s, %s, %s, %s, %s, %s)
