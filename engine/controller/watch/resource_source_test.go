package watch

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/object"
	"operetta.dev/test/machine"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// refusesDeployments is an API server as listsByWatch that allows nobody to list Deployments.
func refusesDeployments(t *testing.T) *httptest.Server {
	t.Helper()
	others := listsByWatch(t, func(*http.Request) {}).Config.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/deployments") {
			answers(http.StatusForbidden, refusal(http.StatusForbidden, "Forbidden"))(w, r)
			return
		}
		others.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server
}

// A resourcesBench has the resources of two kinds, of which Deployments may not be listed.
type resourcesBench struct {
	*Resources

	t                    *testing.T
	deployments, allowed *KindResources
	queue                workqueue.TypedRateLimitingInterface[ctrl.Request]
}

func newResourcesBench(t *testing.T, namespaces object.Namespaces) *resourcesBench {
	t.Helper()
	r, err := NewResources(connectionTo{server: refusesDeployments(t)}, namespaces, cache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := &resourcesBench{Resources: r, t: t, deployments: r.Of(deploymentKind, cluster.Namespaced), allowed: r.Of(namespaceKind, cluster.ClusterScoped)}
	b.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	t.Cleanup(b.queue.ShutDown)
	go func() { _ = r.Start(t.Context()) }()
	return b
}

// begin starts the sources of a kind as a controller does, and returns a channel that gets what it has waited for.
func (b *resourcesBench) begin(of *KindResources) <-chan error {
	b.t.Helper()
	out := make(chan error, 1)
	sources := of.Sources(&handler.EnqueueRequestForObject{})
	for _, s := range sources {
		if err := s.Start(b.t.Context(), b.queue); err != nil {
			b.t.Fatal(err)
		}
	}
	go func() {
		var all []error
		for _, s := range sources {
			all = append(all, s.(source.SyncingSource).WaitForSync(b.t.Context()))
		}
		out <- errors.Join(all...)
	}()
	return out
}

// ready returns what a probe is told.
func (b *resourcesBench) ready() error {
	ctx, cancel := context.WithTimeout(b.t.Context(), 3*syncPoll)
	defer cancel()
	return b.Check(ctx)
}

func TestAKindThatMayNotBeListedKeepsNoOtherFromBeginning(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason     string
		namespaces object.Namespaces
		// begins says that the controller of the refused kind begins, which waits for nothing that may not come soon.
		begins bool
	}{
		"all namespaces":     {"the caches of all kinds are one", nil, false},
		"one namespace":      {"the same", object.Namespaces{"town"}, false},
		"several namespaces": {"each has a cache of all kinds", object.Namespaces{"city", "town"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newResourcesBench(t, row.namespaces)
			refused := b.begin(b.deployments)
			machine.Eventually(t, "the list to be refused", func() bool { return len(b.deployments.Refused()) > 0 })
			select {
			case err := <-b.begin(b.allowed):
				if err != nil {
					t.Fatal(err)
				}
			case <-time.After(SyncTimeout / 2):
				t.Fatalf("%s, and the controller of a kind that may be listed waits for another one", row.reason)
			}
			if b.queue.Len() == 0 {
				t.Error("the resources of the kind that may be listed are not enqueued")
			}
			if begins := func() bool { return len(refused) > 0 }; row.begins {
				machine.Eventually(t, "the controller of the refused kind to begin", begins)
			} else if begins() {
				t.Errorf("the controller of a kind that may not be listed begins: %v", <-refused)
			}
			b.expectRefused(row.reason)
		})
	}
}

// expectRefused expects the refused kind to be named, until nobody serves it any more.
func (b *resourcesBench) expectRefused(reason string) {
	b.t.Helper()
	err := b.ready()
	if text := text(err); !strings.Contains(text, "Deployment.apps") || !strings.Contains(text, "no") {
		b.t.Errorf("%s: a probe is told %q", reason, text)
	}
	if len(b.deployments.places) == 1 {
		began := time.Now()
		_, err := b.deployments.List(b.t.Context())
		if _, is := errors.AsType[*cluster.KindUnreadableError](err); !is || time.Since(began) > SyncTimeout/2 {
			b.t.Errorf("%s: who lists it waits for %s, error %v", reason, time.Since(began), err)
		}
	}
	b.deployments.End()
	if err := b.ready(); err != nil {
		b.t.Errorf("%s: nobody serves it any more, and a probe is told %q", reason, err)
	}
}

func TestAProcessThatStandsByIsReadyOnceItsCachesAre(t *testing.T) {
	t.Parallel()
	b := newResourcesBench(t, nil)
	for of, want := range map[*KindResources]string{b.allowed: "", b.deployments: "Deployment.apps: the caches are not synced yet: no"} {
		of.Warm()
		of.Sources(&handler.EnqueueRequestForObject{}) // its controller begins when the process leads
		machine.Eventually(t, "a probe to be told: "+want, func() bool { return text(b.ready()) == want })
		of.End()
	}
}
