// Package journal decides what a leader may grant of counters that have to survive it.
//
// A leader grants from its memory. It keeps a Record of each policy where it survives the
// process, and sets units aside there before it grants: for some keys the state of the
// counter and how much may be granted since, for all others one allowance. A successor
// takes all that was set aside for granted. So a crash forfeits what was set aside and not
// granted yet, and nothing is granted twice.
//
// The package is the pure part: its user owns the counters, carries records to and
// fro, and follows these rules.
//
//   - A term begins with New from the last record. Nothing is granted until a record of
//     this term is acknowledged, which fences off the terms before: a write has to fail when
//     the record is not the one that was read, or written, last.
//   - The clock at New is not before any instant that a term before has served or will.
//   - One write at a time. One whose result is not known is sent again as it is, until it
//     is known: meanwhile what may be granted is bounded by both records.
//   - A key's state comes from Journal.State when nothing is in memory, every grant is at
//     most Left and entered with Spend, and the state and the account of a key change
//     together.
package journal
