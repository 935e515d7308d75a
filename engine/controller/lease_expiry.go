package controller

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"operetta.dev/engine/object"
)

// A LeaseExpiredError is returned for a write that was not sent because this process may lead no more.
type LeaseExpiredError struct {
	// Since is how long the Lease was not renewed.
	Since time.Duration
}

// Error says how long the Lease was not renewed.
func (e *LeaseExpiredError) Error() string {
	return fmt.Sprintf("not sent: the Lease of this process was not renewed for %s, so another one may lead", e.Since.Round(time.Second))
}

// StopWritesWithoutLease makes the clients of a configuration refuse to write once the Lease of this process was not
// renewed for its renew deadline. It does nothing without leader election.
//
// Client-go ends a process whose Lease expires, but not at once: one that was stopped by its machine for a while
// continues with the writes that it was about to send, and with the events that have waited for it, until its own timer
// has run. Another process takes over after the lease duration, which is longer than the deadline. A request that was on
// its way before the deadline may still arrive after it.
func StopWritesWithoutLease(config *rest.Config, o Options) {
	if !o.LeaderElection {
		return
	}
	l := newLeaseExpiry(object.ShardLease(cmp.Or(o.LeaderElectionID, DefaultLeaderElectionID), o.Shard.Index), time.Now)
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return leaseTransport{rt, l} })
}

// A leaseExpiry knows when a Lease was renewed last.
type leaseExpiry struct {
	name string
	now  func() time.Time

	mu sync.Mutex
	// renewed is when the last renewal that succeeded was sent. It is zero for a process that has not led yet, which is
	// kept from writing by what waits for the election.
	renewed time.Time
}

func newLeaseExpiry(name string, now func() time.Time) *leaseExpiry {
	return &leaseExpiry{name: name, now: now}
}

// note notes a renewal by when it was sent.
func (l *leaseExpiry) note(sent time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed = sent
}

// check errors with a LeaseExpiredError if the Lease was not renewed for the deadline.
func (l *leaseExpiry) check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.renewed.IsZero() {
		return nil
	}
	// The monotonic clock stands still while a machine is suspended, and the other one may be set back.
	now := l.now()
	since := max(now.Sub(l.renewed), now.Round(0).Sub(l.renewed.Round(0)))
	if since < renewDeadline {
		return nil
	}
	return &LeaseExpiredError{Since: since}
}

// isRenewal reports whether a request acquires or renews the Lease.
func (l *leaseExpiry) isRenewal(req *http.Request) bool {
	// A creation has the name in its body. An operator makes others only as long as it does not lead, and just when it begins to.
	return isElection(req) && (req.Method == http.MethodPost || strings.HasSuffix(req.URL.Path, "/"+l.name))
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

	lease *leaseExpiry
}

// RoundTrip implements http.RoundTripper.
func (t leaseTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.lease.isRenewal(req) {
		sent := t.lease.now()
		out, err := t.RoundTripper.RoundTrip(req)
		if err == nil && out.StatusCode < http.StatusMultipleChoices {
			t.lease.note(sent)
		}
		return out, err
	}
	if writes(req) && !isElection(req) { // such a write of a Lease has the version that it is about: it cannot come too late
		if err := t.lease.check(); err != nil {
			if req.Body != nil {
				_ = req.Body.Close() // a RoundTripper has to, and nobody reads the error
			}
			return nil, err
		}
	}
	return t.RoundTripper.RoundTrip(req)
}

// WrappedRoundTripper implements net.RoundTripperWrapper.
func (t leaseTransport) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }

// questions are the groups of kinds that an API server answers and does not store.
var questions = []string{"/apis/authentication.k8s.io/", "/apis/authorization.k8s.io/"}

// writes reports whether a request stores something.
func writes(req *http.Request) bool {
	if !slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}, req.Method) {
		return false
	}
	return !req.URL.Query().Has("dryRun") && !slices.ContainsFunc(questions, func(group string) bool { return strings.Contains(req.URL.Path, group) })
}
