package controller

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestARefusedRequestTellsWhichPermissionsItMayLack(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason       string
		method, path string
		want         []permission
	}{
		"Apply":         {"an apply that creates needs create", http.MethodPatch, "/api/v1/namespaces/a/services/web", []permission{{"patch", "", "services", "", "a"}, {"create", "", "services", "", "a"}}},
		"Status":        {"a subresource has permissions of its own", http.MethodPatch, "/apis/example.com/v1/namespaces/a/shops/x/status", []permission{{"patch", "example.com", "shops", "status", "a"}, {"create", "example.com", "shops", "status", "a"}}},
		"ClusterScoped": {"a namespace is an object like others", http.MethodDelete, "/api/v1/namespaces/a", []permission{{"delete", "", "namespaces", "", ""}}},
		"Get":           {"a path with a name is a get", http.MethodGet, "/apis/apps/v1/namespaces/a/deployments/web", []permission{{"get", "apps", "deployments", "", "a"}}},
		"List":          {"a path without a name is a list", http.MethodGet, "/api/v1/namespaces/a/pods", []permission{{"list", "", "pods", "", "a"}}},
		"Prefix":        {"the API server may be behind a path", http.MethodPut, "/clusters/one/api/v1/namespaces/a/services/web", []permission{{"update", "", "services", "", "a"}}},
		"NoResource":    {"discovery is about no resource", http.MethodGet, "/apis/apps/v1", nil},
		"Nothing":       {"another server is not understood", http.MethodGet, "/healthz", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := permissionsFor(&http.Request{Method: tc.method, URL: &url.URL{Path: tc.path}})
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(permission{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// reviews answers questions about permissions, and counts them.
type reviews struct {
	allowed bool
	err     error
	asked   int
}

func (r *reviews) ask(context.Context, permission) (bool, error) {
	r.asked++
	return r.allowed, r.err
}

// refusals returns a memory of refusals with a clock, and a waiter that counts how often it is enqueued.
func refusals(r *reviews) (*refusedRequests, *time.Time, func(name string, lacked permission), map[string]int) {
	now, enqueued := time.Unix(0, 0), map[string]int{}
	out := newRefusedRequests()
	out.allowed, out.now = r.ask, func() time.Time { return now }
	note := func(name string, lacked permission) {
		key := waiterKey{"shop", ctrl.Request{NamespacedName: types.NamespacedName{Name: name}}}
		out.note([]permission{lacked}, waiter{key, func() { enqueued[name]++ }})
	}
	return out, &now, note, enqueued
}

func TestResourcesWaitTogetherForAPermission(t *testing.T) {
	t.Parallel()
	r := &reviews{}
	refused, now, note, enqueued := refusals(r)
	for _, name := range []string{"a", "b", "a"} {
		note(name, permission{verb: "create"})
	}
	for range 5 {
		refused.askDue(t.Context())
		refused.askDue(t.Context()) // a second time within the interval asks nothing
		*now = now.Add(refusedInterval)
	}
	if r.asked != 5 {
		t.Errorf("asked %d times for two resources in five intervals, want 5", r.asked)
	}
	r.allowed, r.err = true, errors.New("no answer")
	refused.askDue(t.Context())
	if len(enqueued) > 0 {
		t.Errorf("enqueued without an answer: %v", enqueued)
	}
	*now = now.Add(refusedInterval)
	r.err = nil
	refused.askDue(t.Context())
	if diff := cmp.Diff(map[string]int{"a": 1, "b": 1}, enqueued); diff != "" {
		t.Errorf("enqueued (-want +got):\n%s", diff)
	}
	*now = now.Add(refusedInterval)
	asked := r.asked
	refused.askDue(t.Context())
	if r.asked != asked {
		t.Error("a permission that is there was asked about again")
	}
}

func TestADenialByAdmissionIsNoMissingPermission(t *testing.T) {
	t.Parallel()
	r := &reviews{allowed: true}
	refused, now, note, enqueued := refusals(r)
	for range 10 {
		note("a", permission{verb: "create"})
		refused.askDue(t.Context())
		*now = now.Add(refusedInterval)
	}
	if r.asked != 1 || len(enqueued) > 0 {
		t.Errorf("asked %d times and enqueued %v within %s, want once and nothing", r.asked, enqueued, 10*refusedInterval)
	}
	*now = now.Add(deniedInterval)
	note("a", permission{verb: "create"})
	refused.askDue(t.Context())
	if r.asked != 2 {
		t.Errorf("asked %d times after a minute, want 2: the permission may be gone by now", r.asked)
	}
}

func TestForgedNamespacesDoNotFillTheMemoryOfRefusals(t *testing.T) {
	t.Parallel()
	r := &reviews{}
	refused, _, note, _ := refusals(r)
	for i := range 10 * maxRefusals {
		note("a", permission{verb: "create", namespace: time.Duration(i).String()})
	}
	refused.askDue(t.Context())
	if len(refused.by) != maxRefusals || r.asked != refusalsAtOnce {
		t.Errorf("%d permissions are remembered and %d asked about, want %d and %d", len(refused.by), r.asked, maxRefusals, refusalsAtOnce)
	}
}
