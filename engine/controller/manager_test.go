package controller

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
)

// away is a cluster that nothing is asked of before the manager starts.
var away = &rest.Config{Host: "https://127.0.0.1:1"}

// load returns a package of a name that serves a kind.
func load(t *testing.T, name, kind string) *program.Program {
	t.Helper()
	snapshot, err := source.Loader{}.Module(name, "", name, fstest.MapFS{name + "/x.cue": &fstest.MapFile{Data: []byte(`package x

import "operetta.dev/schemas/operator"

operator.#Controller

group: "example.com"
kind:  "` + kind + `"
versions: v1: spec: {}
cr: spec: {}
components: a: objects: a: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "a"}
`)}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := program.Load(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestKindIsServedByOnePackage(t *testing.T) {
	t.Parallel()
	m, err := New(away, Options{InProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Serve(load(t, "first", "Only")); err != nil {
		t.Fatal(err)
	}
	var taken *TakenError
	if err := m.Serve(load(t, "second", "Only")); !errors.As(err, &taken) {
		t.Fatalf("the error is %v", err)
	}
	if diff := cmp.Diff(&TakenError{Kind: schema.GroupKind{Group: "example.com", Kind: "Only"}, By: "first", Package: "second"}, taken); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPackageCannotBeSwappedForOneOfAnotherKind(t *testing.T) {
	t.Parallel()
	m, err := New(away, Options{InProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	first, second := load(t, "first", "Mine"), load(t, "second", "Yours")
	for _, p := range []*program.Program{first, second} {
		if err := m.Serve(p); err != nil {
			t.Fatal(err)
		}
	}
	was := m.controllers[second.GroupVersionKind().GroupKind()].program.Load()
	err = m.Swap(t.Context(), first, load(t, "first", "Yours"))
	if err == nil || !strings.Contains(err.Error(), "start the operator anew") {
		t.Errorf("the error is %v", err)
	}
	if m.controllers[second.GroupVersionKind().GroupKind()].program.Load() != was {
		t.Error("the controller of another package was taken over")
	}
}

func TestServingAKindEndsTheTeardownOfItsDeletedResourcesFirst(t *testing.T) {
	t.Parallel()
	m, err := New(away, Options{InProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	p := load(t, "back", "Back")
	var acting atomic.Bool
	acting.Store(true)
	m.packageMissing.run(t.Context(), p.GroupVersionKind().GroupKind(), func(ctx context.Context) {
		<-ctx.Done()
		runtime.Gosched() // a step that is under way
		acting.Store(false)
	})
	if err := m.Serve(p); err != nil {
		t.Fatal(err)
	}
	if acting.Load() {
		t.Error("two would act on one resource")
	}
	// Nor does it begin again.
	m.packageMissing.start(t.Context(), packageMissingKind{GroupVersionKind: p.GroupVersionKind()})
	if len(m.packageMissing.watched) != 0 {
		t.Error("a kind is watched whose package is served")
	}
}

// The race detector looks on.
func TestPackagesAreServedAndAskedForSideBySide(t *testing.T) {
	t.Parallel()
	m, err := New(away, Options{InProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 4 {
		p := load(t, fmt.Sprintf("beside%d", i), fmt.Sprintf("Beside%d", i))
		all.Go(func() {
			if err := m.Serve(p); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			m.Serves(p.GroupVersionKind().GroupKind())
			m.packageMissing.release(p.GroupVersionKind().GroupKind())
		})
	}
	all.Wait()
	if len(m.controllers) != 4 {
		t.Errorf("%d controllers, not 4", len(m.controllers))
	}
}
