package controller

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// A LeaseExpiredError is returned for a write that was not sent because this process may no longer be the leader.
type LeaseExpiredError struct {
	// Since is how long the Lease was not renewed; 0 if this process has given it back.
	Since time.Duration
}

// Error says how long the Lease was not renewed.
func (e *LeaseExpiredError) Error() string {
	if e.Since == 0 {
		return "not sent: this process has given its Lease back, so another one may lead"
	}
	return fmt.Sprintf("not sent: the Lease of this process was not renewed for %s, so another one may lead", e.Since.Round(time.Second))
}

// StopWritesWithoutLease makes the clients of a configuration refuse to write once the Lease of this process was not
// renewed for its renew deadline. It does nothing without leader election.
//
// Client-go ends a process whose Lease expires, but not at once: a process that was suspended for a while continues
// with the writes that it was about to send, and with the events that have queued up, until its own timer fires.
// Another process takes over after the lease duration, which is longer than the deadline. The Lease is looked at
// before a write, and again before each piece of it goes to the network. A request that the system has taken before
// the deadline may still arrive after it.
func StopWritesWithoutLease(config *rest.Config, o Options) {
	if !o.LeaderElection {
		return
	}
	newLeaseExpiry(time.Now).guard(config)
}

// guard makes the clients of a configuration refuse to write once the Lease has expired.
func (l *leaseExpiry) guard(config *rest.Config) {
	connections := &leaseConnections{lease: l, open: map[string]*leaseConnection{}}
	connections.dial(config)
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return leaseTransport{rt, connections} })
}

// A leaseExpiry knows when a Lease was renewed last.
type leaseExpiry struct {
	now func() time.Time

	mu sync.Mutex
	// renewed is when the last renewal that succeeded began. It is zero for a process that has not led yet, which is
	// kept from writing by what waits for the election.
	renewed time.Time
	// givenBack says that the Lease was given back since.
	givenBack bool
}

func newLeaseExpiry(now func() time.Time) *leaseExpiry { return &leaseExpiry{now: now} }

// note notes a renewal by when it began.
func (l *leaseExpiry) note(began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed, l.givenBack = began, false
}

// giveBack notes that the Lease is about to be given back.
func (l *leaseExpiry) giveBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.givenBack = true
}

// check errors with a LeaseExpiredError if the Lease was not renewed for the deadline, or was given back.
func (l *leaseExpiry) check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.renewed.IsZero():
		return nil
	case l.givenBack:
		return &LeaseExpiredError{}
	}
	// The monotonic clock stands still while a machine is suspended, and the other one may be set back.
	now := l.now()
	since := max(now.Sub(l.renewed), now.Round(0).Sub(l.renewed.Round(0)))
	if since < renewDeadline {
		return nil
	}
	return &LeaseExpiredError{Since: since}
}

// A leaseWrite is what a request does with the Lease of this process. The lock says it in the context of the request: neither the
// name nor the body of a Lease would tell what it is for.
type leaseWrite struct {
	// began is when the renewal began, or zero if the Lease is given back.
	began time.Time
}

// leaseWriteKey is the key of a leaseWrite in the context of a request.
type leaseWriteKey struct{}

// withRenewal returns a context for the request that takes or renews the Lease of this process, and began at a time.
func withRenewal(ctx context.Context, began time.Time) context.Context {
	return context.WithValue(ctx, leaseWriteKey{}, leaseWrite{began})
}

// withReturn returns a context for the request that gives the Lease of this process back.
func withReturn(ctx context.Context) context.Context {
	return context.WithValue(ctx, leaseWriteKey{}, leaseWrite{})
}

// isElection reports whether a request writes a Lease as the election does: it creates or replaces one. Leases that packages
// render are applied and deleted, and are objects like any other.
func isElection(req *http.Request) bool {
	before, _, is := strings.Cut(req.URL.Path, "/leases")
	return is && strings.Contains(before, "/coordination.k8s.io/") && writes(req) && (req.Method == http.MethodPost || req.Method == http.MethodPut)
}

// A leaseTransport sends no write of a process whose Lease has expired.
type leaseTransport struct {
	http.RoundTripper

	connections *leaseConnections
}

// RoundTrip implements http.RoundTripper.
func (t leaseTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	switch w, is := req.Context().Value(leaseWriteKey{}).(leaseWrite); {
	case is && w.began.IsZero():
		t.connections.lease.giveBack() // whatever the answer is: it may be lost
		return t.RoundTripper.RoundTrip(req)
	case is:
		out, err := t.RoundTripper.RoundTrip(req)
		if err == nil && out.StatusCode < http.StatusMultipleChoices {
			t.connections.lease.note(w.began)
		}
		return out, err
	}
	if writes(req) && !isElection(req) { // such a write of a Lease has the version that it is about: it cannot come too late
		if err := t.connections.lease.check(); err != nil {
			if req.Body != nil {
				_ = req.Body.Close() // a RoundTripper has to, and no caller reads the error
			}
			return nil, err
		}
		sent := leaseRequest{connections: t.connections}
		return sent.roundTrip(t.RoundTripper, req)
	}
	return t.RoundTripper.RoundTrip(req)
}

// WrappedRoundTripper implements net.RoundTripperWrapper.
func (t leaseTransport) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }

// reviewGroups are the groups of kinds that an API server answers and does not store.
var reviewGroups = []string{"/apis/authentication.k8s.io/", "/apis/authorization.k8s.io/"}

// writes reports whether a request stores something.
func writes(req *http.Request) bool {
	if !slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}, req.Method) {
		return false
	}
	return !req.URL.Query().Has("dryRun") && !slices.ContainsFunc(reviewGroups, func(group string) bool { return strings.Contains(req.URL.Path, group) })
}
