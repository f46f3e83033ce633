// Package check is the API through which the app itself asks whether to go on:
// POST /v1/check on loopback, with one limit, one key and a cost.
package check
