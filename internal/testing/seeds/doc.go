// Package seeds says in how many random worlds a test plays.
package seeds
