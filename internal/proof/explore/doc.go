// Package explore searches state machines exhaustively: every state that can be
// reached is visited. So a rule that no search breaks holds in all histories of the model,
// for any length.
//
// The machines it is for are the production code: limiter.Params.Step, which
// decides what a store grants, and the credits of pkg/twotier, which decide what
// a holder spends. A model adds only what surrounds them: how many holders there
// are, which messages are under way, what the store's clock reads, and an auditor that
// counts admissions without looking at the machines' states. The modules in spec/ state the
// same machines in TLA+.
package explore
