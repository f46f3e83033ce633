// Package quality shows what clients and a backend get out of a limit on concurrency,
// in virtual time.
//
// The scenario is that of failsafe-go's tripwire: a backend with twelve threads and a
// queue without end serves a request in 50 ms, then in 150 ms, then in 50 ms again,
// while clients send requests at a steady mean rate, whatever the backend's state. In
// front of it are processes that each limit the requests that they forward.
//
// Runs take place in a bubble of testing/synctest, which is for tests only. So the
// test of this package writes the runs that the command bench shows, to the file that
// its flag -runs names.
package quality
