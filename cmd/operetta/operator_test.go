package main

import (
	"errors"
	"os"
	"path/filepath"
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

// hangs is a package that is never compiled to its end.
const hangs = `package shop

import (
	"text/template"

	"operetta.dev/schemas/operator"
)

operator.#Controller

group: "shop.example"
kind:  "Shop"
versions: v1: spec: {}
components: shop: objects: config: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: "x"
	data: x: template.Execute("{{range $i := 9223372036854775807}}{{end}}", {})
}
`

// It is the same package without that.
var comesToAnEnd = strings.ReplaceAll(strings.ReplaceAll(hangs, `template.Execute("{{range $i := 9223372036854775807}}{{end}}", {})`, `"y"`), `	"text/template"

`, "")

func TestWhatRunsIsWhatWasExamined(t *testing.T) {
	file := filepath.Join(t.TempDir(), "shop.cue")
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(hangs)
	e := examinerOf("operetta")
	e.timeout = 5 * time.Second
	o := &operator{examiner: e}
	wrong, err := readPackage(filepath.Dir(file))
	if err != nil {
		t.Fatal(err)
	}
	put(comesToAnEnd)
	if _, err := o.understand(t.Context(), wrong); err == nil {
		t.Error("the package in the folder was examined, not the one that was read")
	}
	right, err := readPackage(filepath.Dir(file))
	if err != nil {
		t.Fatal(err)
	}
	put(hangs) // it is there while the other one is examined and compiled
	e.timeout = time.Minute
	got, err := o.understand(t.Context(), right)
	if err != nil || got.program.Digest() != right.Digest() || got.snapshot != right || got.crd == nil {
		t.Errorf("got %v", err)
	}
}
