-- A new database for a test. `{}` is its name, as an identifier.
create database {}
