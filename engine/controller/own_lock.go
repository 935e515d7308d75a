package controller

import (
	"context"
	"errors"
	"sync"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// ownLock returns the lock of a Lease, which gives back nothing but what this process holds.
func (e *shardElection) ownLock(name string) resourcelock.Interface {
	return &ownLock{Interface: e.lock(name)}
}

// errNotHeld says that there is nothing to give back.
var errNotHeld = errors.New("the Lease is not given back, because another process holds it by now")

// An ownLock is a lock that gives back no Lease that another process holds. The library reads a Lease again before it gives it back,
// and does not look whose it is: a process that was cut off from the API server would end what another one has taken since.
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
