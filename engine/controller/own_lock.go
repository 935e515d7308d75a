package controller

import (
	"context"
	"errors"
	"sync"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// ownLock returns the lock of a Lease, which releases the Lease only if this process holds it.
func (e *shardElection) ownLock(name string) resourcelock.Interface {
	return &ownLock{Interface: e.lock(name)}
}

// errNotHeld says that there is nothing to release.
var errNotHeld = errors.New("the Lease is not given back, because another process holds it by now")

// An ownLock is a lock that never releases a Lease that another process holds. The library reads a Lease again before
// it releases it, but does not check the holder: a process that was cut off from the API server would release a Lease
// that another process has taken in the meantime.
type ownLock struct {
	resourcelock.Interface

	mu     sync.Mutex
	holder string
}

// Get implements resourcelock.Interface.
func (l *ownLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.noteHolder(r.HolderIdentity)
	}
	return r, raw, err
}

// Create implements resourcelock.Interface.
func (l *ownLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Create(ctx, r)
	if err == nil {
		l.noteHolder(r.HolderIdentity)
	}
	return err
}

// Update implements resourcelock.Interface.
func (l *ownLock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if r.HolderIdentity != l.Identity() && !l.isHeld() {
		return errNotHeld
	}
	err := l.Interface.Update(ctx, r)
	if err == nil {
		l.noteHolder(r.HolderIdentity)
	}
	return err
}

func (l *ownLock) noteHolder(holder string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holder = holder
}

func (l *ownLock) isHeld() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holder == l.Identity()
}
