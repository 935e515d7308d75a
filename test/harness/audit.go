package harness

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"operetta.dev/test/controlplane"
)

// MarkAudit returns the current end of the audit log.
func MarkAudit(t *testing.T) controlplane.AuditMark {
	t.Helper()
	m, err := Suite.ControlPlane.MarkAudit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Requests are recorded requests.
type Requests []controlplane.AuditEvent

// OperatorRequests returns the requests of the test's operator to the API server since a mark. It
// leaves out requests for no resource: discovery, the version and the user's own identity.
func (s *Env) OperatorRequests(since controlplane.AuditMark) Requests {
	s.T.Helper()
	return s.RequestsOf(since, s.User)
}

// RequestsOf returns the requests of users for resources since a mark.
func (s *Env) RequestsOf(since controlplane.AuditMark, users ...string) Requests {
	s.T.Helper()
	events, err := Suite.ControlPlane.AuditEvents(s.T.Context(), since, users...)
	if err != nil {
		s.T.Fatal(err)
	}
	return Requests(events).Filter(func(e controlplane.AuditEvent) bool { return e.Resource != "" && e.Resource != "selfsubjectreviews" })
}

// Filter returns the requests for which a function is true.
func (r Requests) Filter(keep func(controlplane.AuditEvent) bool) Requests {
	var out Requests
	for _, e := range r {
		if keep(e) {
			out = append(out, e)
		}
	}
	return out
}

// Mutating are the requests that can change something, without Events.
func (r Requests) Mutating() Requests {
	return r.Filter(func(e controlplane.AuditEvent) bool { return isMutating(e) && !IsEvent(e) })
}

// Writes are the mutating requests that are no dry runs.
func (r Requests) Writes() Requests {
	return r.Mutating().Filter(func(e controlplane.AuditEvent) bool { return !strings.Contains(e.RequestURI, "dryRun=") })
}

// WithoutListsAndWatches are the requests that do not list, watch, or renew a lease. Tests that count
// requests leave out lists because other tests add and remove CustomResourceDefinitions, and each time
// the operator lists the resources of kinds that are not served.
func (r Requests) WithoutListsAndWatches() Requests {
	return r.Filter(func(e controlplane.AuditEvent) bool {
		return e.Verb != "watch" && e.Verb != "list" && e.Resource != "leases"
	})
}

// Events are the requests that record Events.
func (r Requests) Events() Requests {
	return r.Filter(func(e controlplane.AuditEvent) bool { return isMutating(e) && IsEvent(e) })
}

// WithVerbs are the requests with one of the verbs.
func (r Requests) WithVerbs(verbs ...string) Requests {
	return r.Filter(func(e controlplane.AuditEvent) bool { return slices.Contains(verbs, e.Verb) })
}

// OfResource are the requests for a resource, such as deployments.
func (r Requests) OfResource(resource string) Requests {
	return r.Filter(func(e controlplane.AuditEvent) bool { return e.Resource == resource })
}

func isMutating(e controlplane.AuditEvent) bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, e.Verb)
}

// IsEvent reports whether a request is about an Event.
func IsEvent(e controlplane.AuditEvent) bool { return e.Resource == "events" }

// String lists the requests and how often each was made.
func (r Requests) String() string {
	count := map[string]int{}
	for _, e := range r {
		resource := e.Resource
		if e.Subresource != "" {
			resource += "/" + e.Subresource
		}
		count[e.Verb+" "+resource]++
	}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(count)) {
		out = append(out, fmt.Sprintf("%d× %s", count[k], k))
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}

// idleTime is how long an operator must send no request to count as idle. It is longer than the
// interval by which progress in a status may be delayed.
const idleTime = 3500 * time.Millisecond

// WaitUntilIdle waits until the test's operator has sent no request for idleTime, except for watches
// and its lease. Every later request then has a cause in the test. It looks only when the operator can have been
// idle for that long: a look costs two requests, and many tests wait.
func (s *Env) WaitUntilIdle() {
	s.T.Helper()
	began, from := time.Now(), MarkAudit(s.T)
	quiet := time.Now()
	Eventually(s.T, "the operator to be quiet", func() error {
		if time.Since(quiet) < idleTime {
			return fmt.Errorf("it is quiet for %s", Elapsed(quiet))
		}
		at := MarkAudit(s.T)
		busy := s.OperatorRequests(from).Filter(func(e controlplane.AuditEvent) bool { return e.Verb != "watch" && e.Resource != "leases" })
		if len(busy) == 0 {
			return nil
		}
		quiet, from = busy[0].Time, at
		for _, e := range busy {
			if e.Time.After(quiet) {
				quiet = e.Time
			}
		}
		return fmt.Errorf("it was busy: %s", busy)
	})
	s.T.Logf("settled after %s", Elapsed(began))
}
