// Package servers runs the stores that a policy may name, Redis and Postgres, as
// processes of this machine, for the demo and the end-to-end tests. They forget
// everything when they are killed.
package servers
