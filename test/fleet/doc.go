// Package fleet proves the promises of the whole system on processes of this
// machine: `make test-fleet`, or `make test-fleet-more` with those that test/e2e also
// shows the like of on a real cluster. What was admitted is counted at the application.
package fleet
