"""`tocsin cdc status | verify | adopt | rebuild`: the record log and the record stream."""
