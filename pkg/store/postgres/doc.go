// Package postgres is the store that keeps counters in Postgres.
package postgres
