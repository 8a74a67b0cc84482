"""Commands on rule files: check, plan, apply, test, schema; and on channels."""
