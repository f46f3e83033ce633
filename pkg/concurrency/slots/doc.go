// Package slots counts what one process has in flight: a table of slots below a
// ceiling that may change at any time, with parts of it kept for some requests and a
// bounded queue for those that find none free.
//
// The table is pure: time and the ceiling are arguments, and there is no timer,
// goroutine or lock. Its owner calls Next after everything that may have freed a slot
// or raised the ceiling, and Expire when Deadline has come.
//
// Keys are the counts of a ceiling that is of every key by itself.
//
// These hold:
//   - Nothing is admitted at or over the ceiling. When it falls, what is in flight
//     stays and drains.
//   - While the ceiling stands still, a partition that has less in flight than its
//     guarantee is admitted, whatever the others do.
//   - Among the requests that may be admitted, the one that waited longest is.
//   - A ticket gives its slot back once, however often it is copied and released.
package slots
