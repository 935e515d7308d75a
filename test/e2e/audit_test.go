package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"operetta.dev/test/controlplane"
)

// mark returns the point that the audit log has reached.
func mark(t *testing.T) controlplane.AuditMark {
	t.Helper()
	m, err := world.cp.MarkAudit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// requests are recorded requests.
type requests []controlplane.AuditEvent

// operatorRequests returns what the site's operator has asked of the API server
// since a mark. What is about no resource (discovery, version, and the question who asks)
// is left out.
func (s *site) operatorRequests(since controlplane.AuditMark) requests {
	s.t.Helper()
	return s.requestsOf(since, s.user)
}

// requestsOf returns what users have asked about resources since a mark.
func (s *site) requestsOf(since controlplane.AuditMark, users ...string) requests {
	s.t.Helper()
	events, err := world.cp.AuditEvents(s.t.Context(), since, users...)
	if err != nil {
		s.t.Fatal(err)
	}
	return requests(events).only(func(e controlplane.AuditEvent) bool { return e.Resource != "" && e.Resource != "selfsubjectreviews" })
}

func (r requests) only(keep func(controlplane.AuditEvent) bool) requests {
	var out requests
	for _, e := range r {
		if keep(e) {
			out = append(out, e)
		}
	}
	return out
}

// mutating are the requests that can change something, without Events.
func (r requests) mutating() requests {
	return r.only(func(e controlplane.AuditEvent) bool { return isMutating(e) && !isEvent(e) })
}

// writes are the mutating requests that are no dry runs.
func (r requests) writes() requests {
	return r.mutating().only(func(e controlplane.AuditEvent) bool { return !strings.Contains(e.RequestURI, "dryRun=") })
}

// unlisted are the requests without those that watch, keep a lease, or list: the
// definitions of other tests come and go, and each time the operator looks for resources
// that nobody serves any more.
func (r requests) unlisted() requests {
	return r.only(func(e controlplane.AuditEvent) bool {
		return e.Verb != "watch" && e.Verb != "list" && e.Resource != "leases"
	})
}

// events are the requests that record Events.
func (r requests) events() requests {
	return r.only(func(e controlplane.AuditEvent) bool { return isMutating(e) && isEvent(e) })
}

// verbs are the requests of some verbs.
func (r requests) verbs(verbs ...string) requests {
	return r.only(func(e controlplane.AuditEvent) bool { return slices.Contains(verbs, e.Verb) })
}

// about are the requests about a resource, such as deployments.
func (r requests) about(resource string) requests {
	return r.only(func(e controlplane.AuditEvent) bool { return e.Resource == resource })
}

func isMutating(e controlplane.AuditEvent) bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, e.Verb)
}

func isEvent(e controlplane.AuditEvent) bool { return e.Resource == "events" }

// String lists the requests with how often each was made, for people.
func (r requests) String() string {
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

// settle waits until the site's operator has asked for nothing but watches and its
// lease for a while, so that what it asks for afterwards has a cause of its own.
func (s *site) settle() {
	s.t.Helper()
	began, from := time.Now(), mark(s.t)
	quiet := time.Now()
	eventually(s.t, "the operator to be quiet", func() error {
		at := mark(s.t)
		busy := s.operatorRequests(from).only(func(e controlplane.AuditEvent) bool { return e.Verb != "watch" && e.Resource != "leases" })
		if len(busy) > 0 {
			quiet, from = time.Now(), at
			return fmt.Errorf("it was busy: %s", busy)
		}
		if time.Since(quiet) < calm {
			return fmt.Errorf("it is quiet for %s", since(quiet))
		}
		return nil
	})
	s.t.Logf("settled after %s", since(began))
}
