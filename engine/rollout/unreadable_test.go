package rollout_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/status"
	"operetta.dev/test/clustertest"
)

// blind is a cluster that cannot read some kinds.
type blind struct {
	cluster.Cluster

	kinds []string
}

// GetCached implements cluster.Cluster.
func (b blind) GetCached(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	if slices.Contains(b.kinds, ref.Kind) {
		return nil, &cluster.KindUnreadableError{Kind: ref.GroupVersionKind, Cause: errors.New("it is forbidden")}
	}
	return b.Cluster.GetCached(ctx, ref)
}

// leaning has components that look different when an object of another is not there.
const leaning = `
components: db: objects: o: {apiVersion: "v1", kind: "Secret", metadata: name: "db", stringData: host: "h\(cr.spec.size)"}
components: text: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "text", data: uid: *live.db.o.metadata.uid | "none"}
components: extra: {
	when: (*live.db.o.metadata.name | "") == "db"
	objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "extra"}
}
components: alone: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "alone", data: size: "\(cr.spec.size)"}
components: account: objects: o: {apiVersion: "v1", kind: "ServiceAccount", metadata: name: "account"}
`

func TestAKindThatCannotBeReadHoldsTheWholeResource(t *testing.T) {
	t.Parallel()
	w := newWorld(t, leaning)
	w.mustRun()
	w.mustRun()
	if w.object("ConfigMap", "extra") == nil {
		t.Fatal("the package does not look at what it has made")
	}
	w.wrote()
	w.spec["size"] = int64(2)
	w.cluster = blind{w.site, []string{"Secret"}}
	result, err := w.run()
	var unreadable *cluster.KindUnreadableError
	if !errors.As(err, &unreadable) || unreadable.Kind.Kind != "Secret" {
		t.Errorf("the error is %v; whoever runs it has to know the kind", err)
	}
	w.expectWrites("an object that cannot be read would look like one that is not there, and others would be changed or deleted for it")
	if f := result.Completion.Fault; f.Reason != status.ReasonKindUnreadable || f.State != status.Retrying || f.Message != "v1 Secret cannot be read: it is forbidden" {
		t.Errorf("it says %+v", f)
	}
	w.cluster = w.site
	w.mustRun()
	w.expectWrites("it can be read again", "update Secret db", "update ConfigMap alone")
}

func TestEachKindThatCannotBeReadIsNamedInTheSameOrder(t *testing.T) {
	t.Parallel()
	for range clustertest.Often(20) {
		w := newWorld(t, leaning)
		w.cluster = blind{w.site, []string{"Secret", "ServiceAccount"}}
		result, err := w.run()
		want := "v1 Secret cannot be read: it is forbidden; v1 ServiceAccount cannot be read: it is forbidden"
		if err == nil || result.Completion.Fault.Message != want {
			t.Fatalf("it says %q, want %q", result.Completion.Fault.Message, want)
		}
		if writes := w.wrote(); len(writes) > 0 {
			t.Fatalf("it wrote %s", strings.Join(writes, ", "))
		}
	}
}

func TestAKindThatCannotBeReadIsNamedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, leaning)
	w.cluster = blind{w.site, []string{"ConfigMap"}}
	result, err := w.run()
	if want := "v1 ConfigMap cannot be read: it is forbidden"; err == nil || result.Completion.Fault.Message != want {
		t.Errorf("of three objects it says %q (%v), want %q", result.Completion.Fault.Message, err, want)
	}
}
