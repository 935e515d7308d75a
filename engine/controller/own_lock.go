package controller

import (
	"context"
	"errors"
	"sync"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// ownLock returns the lock of a Lease, which releases the Lease only if this process holds it.
func (e *shardElection) ownLock(name string) resourcelock.Interface {
	out := &ownLock{}
	out.observedLock = observedLock{e.lock(name), out.noteHolder}
	return out
}

// errNotHeld says that there is nothing to release.
var errNotHeld = errors.New("the Lease is not given back, because another process holds it by now")

// An ownLock is a lock that never releases a Lease that another process holds. The library reads a Lease again before
// it releases it, but does not check the holder: a process that was cut off from the API server would release a Lease
// that another process has taken in the meantime.
type ownLock struct {
	observedLock

	mu     sync.Mutex
	holder string
}

// Update implements resourcelock.Interface.
func (l *ownLock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if r.HolderIdentity != l.Identity() && !l.isHeld() {
		return errNotHeld
	}
	return l.observedLock.Update(ctx, r)
}

func (l *ownLock) noteHolder(r resourcelock.LeaderElectionRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holder = r.HolderIdentity
}

func (l *ownLock) isHeld() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holder == l.Identity()
}
