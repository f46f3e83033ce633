package leadership

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Timing says how fast leadership changes hands. A leader that stops in order is followed
// at once, one that crashes after a lease. While the API server cannot be reached, or does
// not let the others watch, it takes up to 2.2 retries more. client-go stretches a retry at
// random by up to 1.2 times.
type Timing struct {
	Lease time.Duration // how long the others wait for a silent leader
	Renew time.Duration // how long the leader tries to renew before it steps down
	Retry time.Duration // pause between tries
}

// Elect has a manager elect its leader by the lock. The lease is given back only after
// everything that needs it has stopped, however long that takes: the coordinator seals
// its ledger before it returns, and the next leader relies on that.
func Elect(options *manager.Options, lock *Lock, t Timing) {
	forever := time.Duration(-1)
	options.LeaderElection = true
	options.LeaderElectionResourceLockInterface = lock
	options.LeaseDuration, options.RenewDeadline, options.RetryPeriod = &t.Lease, &t.Renew, &t.Retry
	options.LeaderElectionReleaseOnCancel = true
	options.GracefulShutdownTimeout = &forever
}
