// Package process runs child processes that never outlive their parent: each
// has a process group of its own, which is killed with the parent.
package process
