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
			"two packages of the same kind are noticed before either acts", map[string]time.Duration{"b": time.Second, "a": 2 * time.Second},
			[]string{"a", "b"}, 2 * time.Second,
		},
		"Late": {
			"a package whose check never ends does not delay the others until its timeout", map[string]time.Duration{"a": time.Second, "b": examineTime},
			[]string{"a"}, startupGrace,
		},
		"None": {"startup goes on without any package", map[string]time.Duration{"a": examineTime}, nil, startupGrace},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				loads := make(chan firstLoad, len(c.takes))
				for dir, d := range c.takes {
					time.AfterFunc(d, func() { loads <- firstLoad{dir: dir} })
				}
				began := time.Now()
				var got []string
				for _, a := range collectLoads(loads, len(c.takes)) {
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
		"Taken":        {"another package already serves its kind", &controller.TakenError{Kind: kind}, true},
		"InvalidCRD":   {"the API server rejects the definition", apierrors.NewInvalid(kind, "shops.example.com", nil), true},
		"Forbidden":    {"the operator may not install the definition of any package", apierrors.NewForbidden(schema.GroupResource{}, "shops.example.com", nil), false},
		"AnythingElse": {"the cause is unknown", errors.New("what"), false},
	} {
		if got := isPackageFault(c.err); got != c.want {
			t.Errorf("%s: %s: got %v", name, c.reason, got)
		}
	}
}

// hangingPackage is a package whose compilation never ends.
const hangingPackage = `package shop

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

// terminatingPackage is hangingPackage without the endless loop.
var terminatingPackage = strings.ReplaceAll(strings.ReplaceAll(hangingPackage, `template.Execute("{{range $i := 9223372036854775807}}{{end}}", {})`, `"y"`), `	"text/template"

`, "")

func TestWhatRunsIsWhatWasExamined(t *testing.T) {
	file := filepath.Join(t.TempDir(), "shop.cue")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(hangingPackage)
	e := newTestExaminer("operetta")
	e.limits.Time = time.Second
	wrong, err := readPackage(filepath.Dir(file))
	if err != nil {
		t.Fatal(err)
	}
	write(terminatingPackage)
	if _, err := e.checkAndCompile(t.Context(), wrong, examineAll); err == nil {
		t.Error("the package in the folder was examined, not the one that was read")
	}
	right, err := readPackage(filepath.Dir(file))
	if err != nil {
		t.Fatal(err)
	}
	write(hangingPackage) // must not be read while the snapshot is checked and compiled
	e.limits.Time = time.Minute
	got, err := e.checkAndCompile(t.Context(), right, examineAll)
	if err != nil || got.program.Digest() != right.Digest() || got.snapshot != right || got.crd == nil {
		t.Errorf("got %v", err)
	}
}

// A Service must not lead to a process that knows no Package yet.
func TestAProcessWithWebhooksIsReadyOnceItsPackagesHaveBeenTried(t *testing.T) {
	t.Parallel()
	open, closed := make(chan struct{}), make(chan struct{})
	close(closed)
	for name, row := range map[string]struct {
		reason  string
		begun   <-chan struct{}
		broken  map[string]bool
		waiting int
		ready   bool
	}{
		"none":      {"without webhooks, nobody asks it about Packages", nil, nil, 0, true},
		"begins":    {"it would answer with an error", open, nil, 0, false},
		"has them":  {"it knows each Package", closed, nil, 0, true},
		"a folder":  {"folders are needed as well", closed, map[string]bool{"./shop": true}, 0, false},
		"a shard":   {"shard 0 is replaced only once this one is ready", open, map[string]bool{"./shop": true}, 1, true},
		"a standby": {"the leader does not know the engine's own kind that it waits for, and ends once this one is ready", open, nil, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &operator{begun: row.begun, broken: row.broken, waiting: row.waiting}
			if err := o.ready(); (err == nil) != row.ready {
				t.Errorf("%s: %v", row.reason, err)
			}
		})
	}
}
