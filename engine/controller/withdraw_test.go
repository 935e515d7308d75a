package controller

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
	"operetta.dev/test/machine"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

func newStoppable(run func(context.Context) error) *stoppable {
	return &stoppable{runnable: manager.RunnableFunc(run), done: make(chan struct{})}
}

func TestPartOfAControllerEndsBeforeItsManager(t *testing.T) {
	t.Parallel()
	began := make(chan struct{})
	s := newStoppable(func(ctx context.Context) error {
		close(began)
		<-ctx.Done()
		return errors.New("its context has ended")
	})
	ended := make(chan error, 1)
	go func() { ended <- s.Start(t.Context()) }()
	<-began
	for range 2 { // a withdrawal that has failed is tried again
		if err := s.stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-ended; err != nil {
		t.Errorf("the manager would end with it: %v", err)
	}
}

func TestPartThatHasNotBegunNeverBegins(t *testing.T) {
	t.Parallel()
	s := newStoppable(func(context.Context) error { return errors.New("it has begun") })
	if err := s.stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Errorf("a manager that is elected later starts it: %v", err)
	}
}

func TestPartThatFailsEndsTheManager(t *testing.T) {
	t.Parallel()
	want := errors.New("the cache did not sync")
	s := newStoppable(func(context.Context) error { return want })
	if err := s.Start(t.Context()); !errors.Is(err, want) {
		t.Errorf("the error is %v", err)
	}
}

func TestWaitForAPartThatDoesNotEndEnds(t *testing.T) {
	t.Parallel()
	began, release := make(chan struct{}), make(chan struct{})
	s := newStoppable(func(context.Context) error { close(began); <-release; return nil })
	ended := make(chan error, 1)
	go func() { ended <- s.Start(context.WithoutCancel(t.Context())) }()
	<-began
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.stop(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	close(release)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// While a process takes over, a Package may be deleted before or after what is missing has been looked for.
func TestAKindThatIsWithdrawnIsTornDownUnlessItIsLookedForLater(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason              string
		held, tried, leaves bool
		watched             bool
		failures            int32
	}{
		"it has run":              {"its resources may have objects", false, false, false, true, 0},
		"it has run, all tried":   {"nobody looks for it any more", false, true, false, true, 0},
		"it is held":              {"its Package may be served anew, and it is looked for once all have been tried", true, false, false, false, 0},
		"it is held, all tried":   {"the process before has reconciled it, and nobody looks for it any more", true, true, false, true, 0},
		"left to other processes": {"a person has said so", true, true, true, false, 0},
		"the first look fails":    {"its resources would hang in their deletion until the next start", false, false, false, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := load(t, "leaving", "Leaving")
			options := Options{InProcess: true}
			if row.leaves {
				options.PackageMissing = LeaveWithoutPackage
			}
			m, err := New(&rest.Config{Host: failingLooks(t, serverOf(t, p, "one"), row.failures)}, options)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(m.packageMissing.watching.Wait) // the context of the test has ended by then
			kind := p.GroupVersionKind().GroupKind()
			m.packageMissing.ctx = t.Context()
			if row.held {
				m.held.Hold(kind)
			}
			if err := m.Serve(p); err != nil {
				t.Fatal(err)
			}
			if row.tried {
				m.PackagesLoaded()
			}
			if err := m.Withdraw(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			isWatched := func() bool {
				m.packageMissing.mu.Lock()
				defer m.packageMissing.mu.Unlock()
				return m.packageMissing.watched[kind] != nil
			}
			if row.failures > 0 {
				machine.Eventually(t, "the watch of the kind", isWatched)
			}
			if watched := isWatched(); watched != row.watched || m.held.holds(kind) {
				t.Errorf("%s: watched: %t, held: %t", row.reason, watched, m.held.holds(kind))
			}
		})
	}
}

// failingLooks returns a server that passes requests on, but fails the first lists of resources that have objects.
func failingLooks(t *testing.T, server string, failures int32) string {
	t.Helper()
	to, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	var left atomic.Int32
	left.Store(failures)
	pass := httputil.NewSingleHostReverseProxy(to)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("limit") == strconv.Itoa(page) && left.Add(-1) >= 0 {
			http.Error(w, "not now", http.StatusInternalServerError)
			return
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { proxy.CloseClientConnections(); proxy.Close() })
	return proxy.URL
}
