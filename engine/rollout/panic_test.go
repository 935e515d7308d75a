package rollout_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/rollout"
)

// fragile is a cluster that panics when an object of one name is applied or read.
type fragile struct {
	cluster.Cluster
	applied, read string
}

func (f fragile) Apply(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if u.GetName() == f.applied {
		panic("value of " + f.applied)
	}
	return f.Cluster.Apply(ctx, u)
}

func (f fragile) GetCached(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	if ref.Name == f.read {
		panic("value of " + f.read)
	}
	return f.Cluster.GetCached(ctx, ref)
}

func TestAPanicStopsTheComponentThatItIsIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
components: a: objects: o: `+configMap("a", "")+`
components: b: objects: o: `+configMap("b", "")+`
components: c: {dependsOn: a: {}, objects: o: `+configMap("c", "")+`}
components: d: {dependsOn: b: {}, objects: o: `+configMap("d", "")+`}
`)
	w.cluster = fragile{Cluster: w.site, applied: "b"}
	result, err := w.run()
	expectStates(t, result, "a: Verified Verified", "b: Failed InternalError", "c: Verified Verified", "d: Waiting WaitingForDependency")
	var fault *rollout.PanicError
	if !errors.As(err, &fault) || len(result.Panics) != 1 || result.Panics[0].Cause != "value of b" || !slices.Contains(strings.Fields(string(fault.Stack)), "goroutine") {
		t.Errorf("the panic cannot be told from the log: %v, %v", err, result.Panics)
	}
	if text := message(result, "b") + err.Error(); strings.Contains(text, "value of") || strings.Contains(text, "goroutine") {
		t.Errorf("it says more than it should: %s", text)
	}
	w.cluster = w.site
	result = w.mustRun()
	expectStates(t, result, "a: Verified Verified", "b: Verified Verified", "c: Verified Verified", "d: Verified Verified")
}

func TestAPanicInARead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `components: a: objects: o: `+configMap("a", ""))
	w.mustRun()
	w.wrote()
	w.cluster = fragile{Cluster: w.site, read: "a"}
	was := w.inventory
	result, err := w.run()
	if err == nil || result.Completion.Fault.Reason != "InternalError" || !result.Inventory.Equal(was) {
		t.Errorf("error %v, fault %+v, inventory %v", err, result.Completion.Fault, result.Inventory)
	}
	w.expectWrites("nothing is done in the dark")
}
