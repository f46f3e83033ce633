// Package fleet proves the promises of the whole system on processes of this
// machine: `make test-fleet`. What was admitted is counted at the application.
package fleet
