// Package replay decides the requests of an access log by the limits of a policy, in the times of
// the log, and measures how many requests came at once. It is pure but for the reader that
// a log comes from: the production core (pkg/limiter) decides, and no clock is read.
package replay
