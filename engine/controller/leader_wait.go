package controller

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// leaderCheck is the name of the check that says whose Lease a process waits for.
const leaderCheck = "leader"

// A leaderWait knows which other process has the Lease that this one waits for. An operator of other packages may have
// it, because all have one name by default: the log has to say which one, or the packages seem to be served.
type leaderWait struct {
	log logr.Logger
	// lease is the name and namespace of the Lease, and identity that of this process.
	lease, identity string

	mu sync.Mutex
	// holder is the other process that has the Lease, or "", and since is when it took it.
	holder string
	since  time.Time
}

// note notes who has the Lease, and logs each other process once.
func (w *leaderWait) note(r resourcelock.LeaderElectionRecord) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.HolderIdentity == w.identity || r.HolderIdentity == "" {
		w.holder = ""
		return
	}
	if w.holder == r.HolderIdentity && w.since.Equal(r.AcquireTime.Time) {
		return
	}
	w.holder, w.since = r.HolderIdentity, r.AcquireTime.Time
	w.log.Info("another process leads; this one writes nothing until it has the Lease. If that is an operator of other packages, give one of both another --leader-election-id",
		"lease", w.lease, "holder", w.holder, "since", sinceText(w.since))
}

// sinceText returns a time as log and probes have it.
func sinceText(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// check is a check of /readyz. A process that stands by is ready: a rolling update ends the leader only then. So it errors only for those
// who ask for the check by its name.
func (w *leaderWait) check(req *http.Request) error {
	if strings.Trim(req.URL.Path, "/") != leaderCheck {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holder == "" {
		return nil
	}
	return fmt.Errorf("this process stands by: %s has the Lease %s since %s", w.holder, w.lease, sinceText(w.since))
}

// A notedLock is a lock that tells a leaderWait who has its Lease.
type notedLock struct {
	observedLock

	wait *leaderWait
}

// notedLock returns the lock of the shard, which notes who has it.
func (e *shardElection) notedLock() *notedLock {
	lock := e.agreedLock()
	wait := &leaderWait{log: e.log, lease: lock.Describe(), identity: e.identity}
	return &notedLock{observedLock{lock, wait.note}, wait}
}

// An observedLock is a lock that calls a function with each record that it has read or written.
type observedLock struct {
	resourcelock.Interface

	observe func(resourcelock.LeaderElectionRecord)
}

// Get implements resourcelock.Interface.
func (l observedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.observe(*r)
	}
	return r, raw, err
}

// Create implements resourcelock.Interface.
func (l observedLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Create(ctx, r)
	if err == nil {
		l.observe(r)
	}
	return err
}

// Update implements resourcelock.Interface.
func (l observedLock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Update(ctx, r)
	if err == nil {
		l.observe(r)
	}
	return err
}
