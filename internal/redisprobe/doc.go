// Package redisprobe lets the controller ask the Redis servers that policies
// name how firmly they keep counters, without asking one more often than needed.
package redisprobe
