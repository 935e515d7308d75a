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
	"operetta.dev/engine/object"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestARefusedRequestTellsWhichPermissionsItMayLack(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason       string
		method, path string
		want         []permission
	}{
		"Apply":         {"an apply that creates needs create", http.MethodPatch, "/api/v1/namespaces/a/services/web", []permission{{"patch", "", "services", "", "a", "web", object.Account{}}, {"create", "", "services", "", "a", "web", object.Account{}}}},
		"Status":        {"a subresource has permissions of its own", http.MethodPatch, "/apis/example.com/v1/namespaces/a/shops/x/status", []permission{{"patch", "example.com", "shops", "status", "a", "x", object.Account{}}, {"create", "example.com", "shops", "status", "a", "x", object.Account{}}}},
		"ClusterScoped": {"a namespace is an object like others", http.MethodDelete, "/api/v1/namespaces/a", []permission{{"delete", "", "namespaces", "", "", "a", object.Account{}}}},
		"Get":           {"a path with a name is a get", http.MethodGet, "/apis/apps/v1/namespaces/a/deployments/web", []permission{{"get", "apps", "deployments", "", "a", "web", object.Account{}}}},
		"List":          {"a path without a name is a list", http.MethodGet, "/api/v1/namespaces/a/pods", []permission{{"list", "", "pods", "", "a", "", object.Account{}}}},
		"Prefix":        {"the API server may be behind a path", http.MethodPut, "/clusters/one/api/v1/namespaces/a/services/web", []permission{{"update", "", "services", "", "a", "web", object.Account{}}}},
		"NoResource":    {"discovery is about no resource", http.MethodGet, "/apis/apps/v1", nil},
		"Nothing":       {"another server is not understood", http.MethodGet, "/healthz", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := permissionsFor(&http.Request{Method: tc.method, URL: &url.URL{Path: tc.path}}, object.Account{})
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(permission{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// reviews answers questions about permissions, and counts them.
type reviews struct {
	allowed bool
	// only is the permission that is there, in place of allowed.
	only  *permission
	err   error
	asked int
	// questions are all that were asked.
	questions []permission
}

func (r *reviews) ask(_ context.Context, p permission) (bool, error) {
	r.asked++
	r.questions = append(r.questions, p)
	if r.only != nil {
		return p == *r.only, r.err
	}
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
	refused, now, _, _ := refusals(r)
	forge := func(namespace string) {
		for i := range 10 * maxRefusals {
			*now = now.Add(time.Nanosecond)
			key := waiterKey{"shop", ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "a"}}}
			refused.note([]permission{{verb: "create", namespace: time.Duration(i).String() + namespace}}, waiter{key, func() {}})
		}
	}
	forge("hostile")
	if len(refused.by) != maxRefusalsOfOne {
		t.Errorf("%d permissions are remembered for one namespace, want %d", len(refused.by), maxRefusalsOfOne)
	}
	for i := range 2 * maxRefusals / maxRefusalsOfOne {
		forge(time.Duration(i).String())
	}
	refused.askDue(t.Context())
	if len(refused.by) != maxRefusals || r.asked != refusalsAtOnce+1 {
		t.Errorf("%d permissions are remembered and %d asked about, want %d and %d", len(refused.by), r.asked, maxRefusals, refusalsAtOnce+1)
	}
}

func TestWhatWaitedForAPermissionAndIsGoneIsForgotten(t *testing.T) {
	t.Parallel()
	r := &reviews{}
	refused, now, note, _ := refusals(r)
	note("gone", permission{verb: "create"})
	note("stays", permission{verb: "delete"})
	for range int(forgetRefusal/maxRetry) + 1 {
		*now = now.Add(maxRetry)
		note("stays", permission{verb: "delete"}) // its reconcile is retried
		refused.askDue(t.Context())
	}
	if _, kept := refused.by[permission{verb: "create"}]; kept {
		t.Error("a permission is asked about for a resource that is gone")
	}
	if _, kept := refused.by[permission{verb: "delete"}]; !kept {
		t.Error("a permission is forgotten that a resource waits for")
	}
}

func TestAPermissionForANameIsAskedAboutByIt(t *testing.T) {
	t.Parallel()
	byName := permission{verb: "patch", resource: "services", namespace: "a", name: "web"}
	for name, tc := range map[string]struct {
		reason string
		// grantedAt is the round before which the permission is granted; 0 is before the refusal.
		grantedAt int
		want      map[string]int
	}{
		"Granted": {"a role may name the object", 1, map[string]int{"web": 1}},
		"Denied":  {"who has the permission was refused by admission", 0, map[string]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &reviews{only: &permission{}}
			refused, now, note, enqueued := refusals(r)
			note("web", byName)
			*now = now.Add(time.Second)
			note("other", byName.of("other")) // it is asked about after the one that was refused before it
			for round := range 4 * askByNameEvery {
				if round == tc.grantedAt {
					r.only = &byName
				}
				refused.askDue(t.Context())
				*now = now.Add(refusedInterval)
			}
			if diff := cmp.Diff(tc.want, enqueued); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if perRound := float64(r.asked) / float64(4*askByNameEvery); perRound > 1+1.0/askByNameEvery {
				t.Errorf("%v questions in a round", perRound)
			}
		})
	}
}

func TestAPermissionThatManyNamespacesLackIsAskedAboutOnce(t *testing.T) {
	t.Parallel()
	everywhere := permission{verb: "create", resource: "services"}
	r := &reviews{only: &permission{}}
	refused, now, note, enqueued := refusals(r)
	want := map[string]int{}
	for i := range maxRefusalsOfOne {
		name := time.Duration(i).String()
		p := everywhere
		p.namespace = name
		note(name, p)
		want[name] = 1
	}
	refused.askDue(t.Context())
	refused.askDue(t.Context()) // all of them were asked about once
	*now = now.Add(refusedInterval)
	r.only, r.questions = &everywhere, nil
	refused.askDue(t.Context())
	if diff := cmp.Diff([]permission{everywhere}, r.questions, cmp.AllowUnexported(permission{})); diff != "" {
		t.Errorf("questions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, enqueued); diff != "" {
		t.Errorf("enqueued (-want +got):\n%s", diff)
	}
}
