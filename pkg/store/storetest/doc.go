// Package storetest is the suite that every store passes. It sees a store only
// through Apply and a few hooks, runs by the store's own clock, and holds every
// single answer to limiter.Params.Step. Porcupine checks that the answers to
// concurrent callers are one order of such answers: it searches for that order.
//
// A store that grants by a rule of its own is a Strategy. RunStrategy holds it to what
// twotier.Limiter relies on, and to nothing else.
//
// A store whose decisions are written in another language compares it with Step on
// a Timeline, and tests on a Link that a lost reply is not asked for again.
package storetest
