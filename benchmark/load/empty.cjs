// What every require costs.
