package rollout_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestNothingGoesOutBeforeItIsKnownWhatAResourceIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
components: child: objects: o: {apiVersion: _own, kind: "Child", metadata: name: "main"}
components: after: {dependsOn: child: {}, objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "after"}}
`)
	kind := w.site.Kind("Child")
	w.site.Serve(kind)
	unknown := errors.New("the API server is away")
	answer := unknown
	w.subsystem = func(_ context.Context, k schema.GroupKind) (bool, error) {
		return k == kind.GroupKind(), answer
	}

	result, err := w.run()
	if !errors.Is(err, unknown) {
		t.Errorf("the error is %v, want that of the question, so that it is asked again", err)
	}
	expectStates(t, result, "child: Applied NotReady", "after: Waiting WaitingForDependency")
	if diff := cmp.Diff("Child "+w.owner.Namespace+"/main: it is not known whether its kind belongs to a package: the API server is away", message(result, "child")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.expectWrites("a resource without a status looks ready", "create Child main")

	answer = nil
	expectStates(t, w.mustRun(), "child: Applied NotReady", "after: Waiting WaitingForDependency")
	w.expectWrites("its operator has not reported")

	w.change("Child", "main", func(u *unstructured.Unstructured) {
		u.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True", "observedGeneration": u.GetGeneration()}}}
	})
	expectStates(t, w.mustRun(), "child: Verified Verified", "after: Verified Verified")
	w.expectWrites("now it has", "create ConfigMap after")
}
