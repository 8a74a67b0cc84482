"""Commands that read records, messages and the audit: `events`, `tail`, `explain`, `audit`,
`dead-letters`."""
