package watch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"operetta.dev/engine/cluster"
	ctrl "sigs.k8s.io/controller-runtime"
)

var secretKind = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}

func request(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: name}}
}

func forbidden(text string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New(text))
}

func TestAKindIsWaitedForOnceAndThenNoMore(t *testing.T) {
	t.Parallel()
	const s = time.Second
	broken := apierrors.NewInternalError(errors.New("conversion webhook failed"))
	for name, row := range map[string]struct {
		reason string
		// trouble is what the API server says after some time, and begins is when the
		// watch begins; 0 is never.
		trouble map[time.Duration]error
		begins  time.Duration
		// tries are when it is asked for, and waits how long that takes.
		tries, waits []time.Duration
		want         string
	}{
		"it begins": {
			"whoever is the first waits, and nobody later", nil, 3 * s,
			[]time.Duration{0, 1 * s, 5 * s}, []time.Duration{3 * s, 2 * s, 0}, "",
		},
		"no answer": {
			"it holds workers for one time, and not for each try", nil, 0,
			[]time.Duration{0, 15 * s, 30 * s, 60 * s}, []time.Duration{20 * s, 5 * s, 0, 0},
			"v1 Secret cannot be read: the API server has not listed it within 20s",
		},
		"it is not allowed": {
			"nothing but a permission changes that", map[time.Duration]error{1 * s: forbidden("no")}, 0,
			[]time.Duration{0, 5 * s}, []time.Duration{1 * s, 0}, `v1 Secret cannot be read: secrets is forbidden: no`,
		},
		"an error that may pass": {
			"the first waits whether it does", map[time.Duration]error{1 * s: broken}, 0,
			[]time.Duration{0, 30 * s}, []time.Duration{20 * s, 0}, "v1 Secret cannot be read: Internal error occurred: conversion webhook failed",
		},
		"an error that has passed": {
			"nobody is told of it", map[time.Duration]error{1 * s: broken}, 4 * s,
			[]time.Duration{0, 30 * s}, []time.Duration{4 * s, 0}, "",
		},
		"errors of one kind with other words": {
			"a status must not change for a port", map[time.Duration]error{1 * s: forbidden("from port 1"), 2 * s: forbidden("from port 2")}, 0,
			[]time.Duration{0, 5 * s}, []time.Duration{1 * s, 0}, `v1 Secret cannot be read: secrets is forbidden: from port 1`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began, trouble := time.Now(), &watchErrors{}
				for after, err := range row.trouble {
					time.AfterFunc(after, func() { trouble.note(secretKind.String(), err) })
				}
				synced := make(chan struct{})
				if row.begins > 0 {
					time.AfterFunc(row.begins, func() { close(synced) })
				}
				o := newPendingWatch(secretKind, synced, trouble)
				var tries sync.WaitGroup
				for i, at := range row.tries {
					tries.Go(func() {
						<-time.After(at)
						err := o.await(t.Context())
						// It looks now and then.
						if waits := time.Since(began) - at; waits < row.waits[i] || waits > row.waits[i]+syncPoll {
							t.Errorf("%s: asked after %s it waits for %s, not %s", row.reason, at, waits, row.waits[i])
						}
						if got := text(err); got != row.want {
							t.Errorf("%s: it says %q, want %q", row.reason, got, row.want)
						}
					})
				}
				tries.Wait()
			})
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestWhoCouldNotReadAKindIsReconciledOnceItCanBeRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		trouble, synced := &watchErrors{}, make(chan struct{})
		trouble.note(secretKind.String(), forbidden("no"))
		o := newPendingWatch(secretKind, synced, trouble)
		var added []ctrl.Request
		woken := make(chan struct{})
		go func() {
			o.enqueueWaiters(t.Context(), func(r ctrl.Request) { added = append(added, r) })
			close(woken)
		}()
		read := func(req ctrl.Request) error {
			if req.Name == "plain" {
				return nil
			}
			return o.await(WithRequest(t.Context(), req))
		}
		var unreadable *cluster.KindUnreadableError
		for _, name := range []string{"one", "two", "one", "plain"} {
			err := read(request(name))
			if errors.As(err, &unreadable) == (name == "plain") {
				t.Errorf("%s: error %v", name, err)
			}
		}
		close(synced)
		<-woken
		slices.SortFunc(added, func(a, b ctrl.Request) int { return strings.Compare(a.String(), b.String()) })
		if diff := cmp.Diff([]ctrl.Request{request("one"), request("two")}, added); diff != "" {
			t.Errorf("reconciled again (-want +got):\n%s", diff)
		}
		if err := o.await(t.Context()); err != nil {
			t.Errorf("it can be read, and says %v", err)
		}
	})
}

func TestTheErrorOfAWatchIsKnownByItsKind(t *testing.T) {
	t.Parallel()
	trouble, other := &watchErrors{}, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	store := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
	r := toolscache.NewReflectorWithOptions(&toolscache.ListWatch{}, NewObject(other), store, toolscache.ReflectorOptions{})
	trouble.handle(t.Context(), r, fmt.Errorf("failed to list %v: %w", other, forbidden("no")))
	if got := text(trouble.last(other)); got != "secrets is forbidden: no" || trouble.last(secretKind) != nil {
		t.Errorf("what is known is %v and %v", trouble.last(other), trouble.last(secretKind))
	}
}
