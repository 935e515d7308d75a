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

// Mark returns the point that the audit log has reached.
func Mark(t *testing.T) controlplane.AuditMark {
	t.Helper()
	m, err := World.ControlPlane.MarkAudit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Requests are recorded requests.
type Requests []controlplane.AuditEvent

// OperatorRequests returns what the site's operator has asked of the API server
// since a mark. What is about no resource (discovery, version, and the question who asks)
// is left out.
func (s *Site) OperatorRequests(since controlplane.AuditMark) Requests {
	s.T.Helper()
	return s.RequestsOf(since, s.User)
}

// RequestsOf returns what users have asked about resources since a mark.
func (s *Site) RequestsOf(since controlplane.AuditMark, users ...string) Requests {
	s.T.Helper()
	events, err := World.ControlPlane.AuditEvents(s.T.Context(), since, users...)
	if err != nil {
		s.T.Fatal(err)
	}
	return Requests(events).Only(func(e controlplane.AuditEvent) bool { return e.Resource != "" && e.Resource != "selfsubjectreviews" })
}

// Only returns the requests that are to be kept.
func (r Requests) Only(keep func(controlplane.AuditEvent) bool) Requests {
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
	return r.Only(func(e controlplane.AuditEvent) bool { return isMutating(e) && !IsEvent(e) })
}

// Writes are the mutating requests that are no dry runs.
func (r Requests) Writes() Requests {
	return r.Mutating().Only(func(e controlplane.AuditEvent) bool { return !strings.Contains(e.RequestURI, "dryRun=") })
}

// Unlisted are the requests without those that watch, keep a lease, or list: the
// definitions of other tests come and go, and each time the operator looks for resources
// that nobody serves any more.
func (r Requests) Unlisted() Requests {
	return r.Only(func(e controlplane.AuditEvent) bool {
		return e.Verb != "watch" && e.Verb != "list" && e.Resource != "leases"
	})
}

// Events are the requests that record Events.
func (r Requests) Events() Requests {
	return r.Only(func(e controlplane.AuditEvent) bool { return isMutating(e) && IsEvent(e) })
}

// Verbs are the requests of some verbs.
func (r Requests) Verbs(verbs ...string) Requests {
	return r.Only(func(e controlplane.AuditEvent) bool { return slices.Contains(verbs, e.Verb) })
}

// About are the requests about a resource, such as deployments.
func (r Requests) About(resource string) Requests {
	return r.Only(func(e controlplane.AuditEvent) bool { return e.Resource == resource })
}

func isMutating(e controlplane.AuditEvent) bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, e.Verb)
}

// IsEvent reports whether a request is about an Event.
func IsEvent(e controlplane.AuditEvent) bool { return e.Resource == "events" }

// String lists the requests with how often each was made, for people.
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

// calm is how long an operator has to be quiet to be settled: longer than
// progress of a status may be held back.
const calm = 3500 * time.Millisecond

// Settle waits until the site's operator has asked for nothing but watches and its
// lease for a while, so that what it asks for afterwards has a cause of its own.
func (s *Site) Settle() {
	s.T.Helper()
	began, from := time.Now(), Mark(s.T)
	quiet := time.Now()
	Eventually(s.T, "the operator to be quiet", func() error {
		at := Mark(s.T)
		busy := s.OperatorRequests(from).Only(func(e controlplane.AuditEvent) bool { return e.Verb != "watch" && e.Resource != "leases" })
		if len(busy) > 0 {
			quiet, from = time.Now(), at
			return fmt.Errorf("it was busy: %s", busy)
		}
		if time.Since(quiet) < calm {
			return fmt.Errorf("it is quiet for %s", Since(quiet))
		}
		return nil
	})
	s.T.Logf("settled after %s", Since(began))
}
