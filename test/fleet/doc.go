// Package fleet proves the promises of the whole system on processes of this
// machine: `make test-fleet`, or `make test-fleet-more` with those that have a
// counterpart on a real cluster in test/e2e or among the faults of test/torture.
// `make test-upgrade` has two versions of the system follow each other, and `make
// test-autoscaling` scales an app by Weir's metrics.
// Admissions are counted at the application.
package fleet
