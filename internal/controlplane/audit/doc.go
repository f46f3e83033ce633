// Package audit measures what a fleet let through against what its limits
// promise, independently of the path that grants credits: its only input is what
// holders count by themselves.
//
// For one window of a limit L, with A units admitted and D = A + refused offered,
// the overshoot is Δ = max(0, A − L) and the under-utilization is
// U = max(0, min(D, L) − A) / L. U is demand refused although the budget was there. A limit
// with a key has one Δ and one U for each value; the largest is shown.
//
// A window is measured when every holder has accounted for it. No clocks are
// compared: a window is over when a report proves it, or when its length has
// passed since it was first heard of. A holder that vanished before it accounted
// for a window leaves the window unknown, never zero.
//
// The figures of a limit with a key are exact although holders name few keys. Over
// N holders a key can only exceed L if one of them admitted more than L/N of it,
// and holders name those; the audit then asks every other holder for exactly these
// keys. Holders come and go, so the audit does not rely on their N: each holder
// reports the most that a key it does not name was admitted. When the sum of those
// could exceed L, the window is unknown.
//
// Packages poolaudit and budgetaudit below measure pools and budgets in the same words.
//
// The package is pure: time is an argument, and nothing here starts a goroutine.
package audit
