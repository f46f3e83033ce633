// Package processors fits the number of threads that run Go code to what a program needs.
//
// By default it is the number of the machine's processors, or the limit of the container. A
// sidecar mostly needs a part of one. Each further thread is then woken for work that is about to be
// done anyway, looks for more in vain, and takes calls away from those that would travel
// together. On a machine that is busy all of that comes off the time of others.
package processors
