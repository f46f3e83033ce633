// Package check is the API through which the app itself asks, on loopback: POST /v1/check
// whether to go on, with one limit, one key and a cost; /v1/peek what is left, and /v1/forecast
// when it will be enough, of several limits. docs/check.md describes it.
package check
