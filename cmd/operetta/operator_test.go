package main

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/controller"
)

// The clock is synctest's.
func TestPackagesWaitForEachOtherButNotForLong(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		takes  map[string]time.Duration
		want   []string
		after  time.Duration
	}{
		"All": {
			"two of the same kind are noticed before either acts", map[string]time.Duration{"b": time.Second, "a": 2 * time.Second},
			[]string{"a", "b"}, 2 * time.Second,
		},
		"Late": {
			"one that asks for endless work holds nobody up for as long as that", map[string]time.Duration{"a": time.Second, "b": examineTimeout},
			[]string{"a"}, prompt,
		},
		"None": {"nothing else is there to do", map[string]time.Duration{"a": examineTimeout}, nil, prompt},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tried := make(chan attempt, len(c.takes))
				for dir, d := range c.takes {
					time.AfterFunc(d, func() { tried <- attempt{dir: dir} })
				}
				began := time.Now()
				var got []string
				for _, a := range gather(tried, len(c.takes)) {
					got = append(got, a.dir)
				}
				if diff := cmp.Diff(c.want, got); diff != "" || time.Since(began) != c.after {
					t.Errorf("%s: after %s (-want +got):\n%s", c.reason, time.Since(began), diff)
				}
			})
		})
	}
}

func TestReadyMeansThatEveryPackageWasRightOnce(t *testing.T) {
	o := &operator{broken: map[string]bool{"./shop": true, "./cart": true}}
	if err := o.ready(); err == nil || !strings.Contains(err.Error(), "./cart, ./shop") {
		t.Errorf("the error is %v", err)
	}
	o.broken = map[string]bool{}
	if err := o.ready(); err != nil {
		t.Error(err)
	}
}

func TestFaultOfOnePackageDoesNotEndTheOthers(t *testing.T) {
	kind := schema.GroupKind{Group: "example.com", Kind: "Shop"}
	for name, c := range map[string]struct {
		reason string
		err    error
		want   bool
	}{
		"Taken":        {"it came late, and somebody else has its kind", &controller.TakenError{Kind: kind}, true},
		"InvalidCRD":   {"the API server says that the definition is wrong", apierrors.NewInvalid(kind, "shops.example.com", nil), true},
		"Forbidden":    {"no package may be installed", apierrors.NewForbidden(schema.GroupResource{}, "shops.example.com", nil), false},
		"AnythingElse": {"nobody knows what it is", errors.New("what"), false},
	} {
		if got := ownFault(c.err); got != c.want {
			t.Errorf("%s: %s: got %v", name, c.reason, got)
		}
	}
}
