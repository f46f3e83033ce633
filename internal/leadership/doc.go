// Package leadership tells whether this process surely leads. Leader election
// notices a lost lease late in a process that was suspended; whoever grants
// something that two leaders must not both grant asks here at every grant.
package leadership
