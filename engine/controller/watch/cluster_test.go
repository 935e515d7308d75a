package watch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/object"
	"operetta.dev/engine/program"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestAForgedInventoryOpensAtMostSomeWatches(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	logs := funcr.New(func(_, line string) { log.WriteString(line + "\n") }, funcr.Options{})
	c := (&Caches{log: logs}).cluster(OwnerKind{GroupKind: schema.GroupKind{Group: "example.com", Kind: "Shop"}}, nil, nil)
	kind := func(name string) schema.GroupKind { return schema.GroupKind{Group: "example.org", Kind: name} }
	ctx := WithRequest(t.Context(), request("shop"))
	rendered := func(name string) program.Component {
		return program.Component{Objects: []program.Object{{Identity: object.Ref{GroupVersionKind: kind(name).WithVersion("v1")}}}}
	}
	c.NoteRendered(program.Rollout{Components: []program.Component{rendered("Rendered")}, Hooks: []program.Hook{{Component: rendered("Hook")}}})
	may := func(name string) bool {
		return c.mayWatch(ctx, object.Ref{GroupVersionKind: kind(name).WithVersion("v1"), Namespace: "far", Name: "x"})
	}
	watched := 0
	for i := range 100 {
		if may(fmt.Sprint("Forged", i)) {
			watched++
		}
	}
	if watched != maxOther {
		t.Errorf("%d kinds that the package does not render are watched, want %d", watched, maxOther)
	}
	for _, name := range []string{"Rendered", "Hook", "Forged0"} {
		if !may(name) {
			t.Errorf("%s is not watched", name)
		}
	}
	if n := strings.Count(log.String(), fmt.Sprintf(`"limit"=%d`, maxOther)); n != 1 {
		t.Errorf("the log names the limit %d times, want once:\n%s", n, &log)
	}
	for _, row := range []struct {
		reason      string
		after, want time.Duration
	}{
		{"no event tells of what is not watched", 0, unwatchedInterval},
		{"the reconcile after that has read nothing of the kind", 0, 0},
	} {
		if got := c.Requeue(request("shop"), row.after); got != row.want {
			t.Errorf("%s: again after %s, want %s", row.reason, got, row.want)
		}
	}
	may("Forged99")
	if got := c.Requeue(request("shop"), time.Second); got != time.Second {
		t.Errorf("it is reconciled again after %s, and asked for 1s", got)
	}
	c.NoteRendered(program.Rollout{Components: []program.Component{rendered("Forged99")}})
	if !may("Forged99") {
		t.Error("a kind is not watched although the package renders it now")
	}
	c.NoteRendered(program.Rollout{Components: []program.Component{rendered("Forged0")}})
	if !may("Forged98") || may("Forged97") {
		t.Error("a kind that is rendered only now counts as another one")
	}
}

func TestKindsThatAreNotServedTakeNoWatchesFromOthers(t *testing.T) {
	t.Parallel()
	c := (&Caches{log: logr.Discard()}).cluster(OwnerKind{}, nil, nil)
	c.Live = &cluster.Live{Client: fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithRESTMapper(meta.NewDefaultRESTMapper(nil)).Build()}
	c.parts[nil] = c.Live // of the primary cache
	ctx := WithRequest(t.Context(), request("shop"))
	ref := func(kind string) object.Ref {
		return object.Ref{GroupVersionKind: schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: kind}, Namespace: "default", Name: "x"}
	}
	for i := range 100 {
		if _, err := c.GetCached(ctx, ref(fmt.Sprint("Forged", i))); !cluster.IsKindNotServed(err) {
			t.Fatalf("the error is %v", err)
		}
	}
	if !c.mayWatch(ctx, ref("Served")) {
		t.Error("kinds that nobody serves have taken all watches")
	}
	if got := c.Requeue(request("shop"), 0); got != 0 {
		t.Errorf("again after %s for objects that cannot exist", got)
	}
}

// TestAForgedInventoryOpensCachesOfAtMostSomeNamespaces: a manager of some namespaces has a cache for
// each other one, which it never closes.
func TestAForgedInventoryOpensCachesOfAtMostSomeNamespaces(t *testing.T) {
	t.Parallel()
	c := (&Caches{namespaces: object.Namespaces{"also", "home"}, log: logr.Discard()}).cluster(OwnerKind{}, nil, nil)
	ctx := WithRequest(t.Context(), request("shop"))
	in := func(namespace string) object.Ref {
		return object.Ref{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: namespace, Name: "x"}
	}
	c.NoteRendered(program.Rollout{Components: []program.Component{{Objects: []program.Object{{Identity: in("rendered")}}}}})
	watched := 0
	for i := range 100 {
		if c.mayWatch(ctx, in(fmt.Sprint("forged", i))) {
			watched++
		}
	}
	if watched != maxOther {
		t.Errorf("%d namespaces are watched where the package renders nothing, want %d", watched, maxOther)
	}
	for _, namespace := range []string{"", "home", "also", "rendered", "forged0"} {
		if !c.mayWatch(ctx, in(namespace)) {
			t.Errorf("namespace %q is not watched", namespace)
		}
	}
	if got := c.Requeue(request("shop"), 0); got != unwatchedInterval {
		t.Errorf("again after %s, want %s", got, unwatchedInterval)
	}
}
