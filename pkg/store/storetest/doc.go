// Package storetest is the suite that every store passes. It sees a store only
// through Apply and a few hooks, runs by the store's own clock, and holds every
// single answer to FixedWindow.Step.
package storetest
