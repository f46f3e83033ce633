// Package meter averages how much was admitted and refused lately, for the audits of
// limits, pools and budgets. It is pure: time is an argument.
package meter
