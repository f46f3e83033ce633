// Package handover orders what a leader that ends says to the holders it serves, and what it
// waits for. It knows neither streams nor messages.
package handover
