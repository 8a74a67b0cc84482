"""Commands about rules: `check`, `plan`, `apply`, `test`, `schema`, `rules`, `channels`,
`backtest`, `export`."""
