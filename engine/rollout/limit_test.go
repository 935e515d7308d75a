package rollout_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
	"operetta.dev/test/machine"
)

// fanout renders as many objects as the size says, with names that are so long.
const fanout = `
import "strings"
limits: {objects: 2000}
_name: strings.Repeat("x", 200)
components: one: objects: {for i, _ in strings.Split(strings.Repeat("x", cr.spec.size - 1), "") {"o\(i)": {apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(_name)-\(i)"}}}
`

func TestAnInventoryThatTheStatusHasNoRoomForIsJudgedBeforeAnythingIsWritten(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	w := newWorld(t, fanout)
	w.spec["size"] = int64(3)
	w.mustRun()
	w.wrote()
	protects, had := w.protects, w.inventory
	w.spec["size"] = int64(1900)
	for range 2 {
		result := w.mustRun()
		if got := result.Completion.Fault; got.Reason != status.ReasonStatusTooLarge || !strings.Contains(got.Message, "524288 are the limit") {
			t.Errorf("the fault is %+v", got)
		}
		w.expectWrites("nothing is written, and nothing pruned")
	}
	if w.protects != protects || !w.inventory.Equal(had) {
		t.Error("the inventory was stored all the same")
	}
	w.spec["size"] = int64(2)
	if result := w.mustRun(); !result.Completion.Ready() {
		t.Errorf("it does not go on: %+v", result.Completion)
	}
}

func TestAPreviewSaysThatTheStatusHasNoRoom(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	w := newWorld(t, fanout)
	w.spec["size"] = int64(1900)
	e := &rollout.Engine{Package: w.program, Cluster: w.cluster, Reach: w.program.Reach()}
	d, err := e.Preview(t.Context(), rollout.Input{Owner: w.owner, CR: w.cr()})
	if err != nil || d.Fault.Reason != status.ReasonStatusTooLarge || len(d.Components) > 0 {
		t.Errorf("it previews %d components, with the fault %+v (%v)", len(d.Components), d.Fault, err)
	}
	w.expectWrites("nothing is written")
}

func TestAStatusFieldThatIsTooLargeHoldsNothingBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
import "strings"
components: one: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "o"}
status: {all: strings.Repeat("x", 200_000), one: "1"}
`)
	result := w.mustRun()
	w.expectWrites("the status has nothing to do with it", "create ConfigMap o")
	if got := result.Completion; got.Fault.Reason != status.ReasonStatusTooLarge || got.Own["one"] != "1" || got.Own["all"] != nil {
		t.Errorf("got %+v with %d status fields", got.Fault, len(got.Own))
	}
}

// etcd is a cluster whose store takes objects of so many bytes.
type etcd struct {
	cluster.Cluster
	takes, refused int
}

// Apply implements cluster.Cluster.
func (e *etcd) Apply(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if cluster.SizeOf(o.Object) > e.takes {
		e.refused++
		return nil, fmt.Errorf("%s: applying: %w", cluster.RefOf(o), &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: "etcdserver: request is too large",
		}})
	}
	return e.Cluster.Apply(ctx, o)
}

func TestAnObjectThatIsTooLargeForTheStoreIsRejected(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
import "strings"
components: large: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "large", data: {x: _half, y: _half}}
_half: strings.Repeat("x", 800_000)
components: beside: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "beside"}
`)
	store := &etcd{Cluster: w.cluster, takes: 1_500_000}
	w.cluster = store
	result, err := w.run()
	if err != nil {
		t.Errorf("it is to be tried again at once: %v", err)
	}
	expectStates(t, result, "large: Failed ObjectRejected", "beside: Verified Verified")
	if text := message(result, "large"); !strings.Contains(text, "which is too large") {
		t.Errorf("it says %q", text)
	}
	if result.RequeueAfter != rollout.RejectedRetryAfter {
		t.Errorf("it is offered again after %s", result.RequeueAfter)
	}
}

// What the store says of a small object may pass.
func TestAnInternalErrorAboutASmallObjectIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `components: one: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "o"}`)
	w.cluster = &etcd{Cluster: w.cluster}
	result, err := w.run()
	if err == nil {
		t.Error("it is not tried again")
	}
	expectStates(t, result, "one: Retrying ApplyFailed")
}
