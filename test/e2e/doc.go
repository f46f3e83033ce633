// Package e2e proves the promises of the whole system on processes of this
// machine: `make e2e`. What was admitted is counted at the application.
package e2e
