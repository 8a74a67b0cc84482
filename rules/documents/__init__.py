"""Documents: `load` reads YAML into models, `rule_book` reads stored versions from Postgres."""
