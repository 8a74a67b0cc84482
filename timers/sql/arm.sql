-- Arm a timer, or move it if it is armed. The function tocsin.arm is in the migrations.
select tocsin.arm(%s, %s, %s, %s, %s, %s)
