// Package heap fits the garbage collector to the container that a program runs in.
package heap
