// Package servers runs Redis, its Sentinels and Postgres as processes on this machine. Tests have them by
// way of redistest and postgrestest, the development cluster and the measuring programs by themselves. They
// have to be installed.
package servers
