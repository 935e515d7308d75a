package watch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/object"
	"operetta.dev/engine/program"
)

func TestAForgedInventoryOpensAtMostSomeWatches(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	logs := funcr.New(func(_, line string) { log.WriteString(line + "\n") }, funcr.Options{})
	c := (&Caches{log: logs}).cluster(Owner{GroupKind: schema.GroupKind{Group: "example.com", Kind: "Shop"}}, nil, nil)
	kind := func(name string) schema.GroupKind { return schema.GroupKind{Group: "example.org", Kind: name} }
	ctx := WithRequest(t.Context(), request("shop"))
	rendered := func(name string) program.Component {
		return program.Component{Objects: []program.Object{{Identity: object.Ref{GroupVersionKind: kind(name).WithVersion("v1")}}}}
	}
	c.NoteRendered(program.Rollout{Components: []program.Component{rendered("Rendered")}, Hooks: []program.Hook{{Component: rendered("Hook")}}})
	watched := 0
	for i := range 100 {
		if c.mayWatch(ctx, kind(fmt.Sprint("Forged", i))) {
			watched++
		}
	}
	if watched != maxOtherKinds {
		t.Errorf("%d kinds that the package does not render are watched, want %d", watched, maxOtherKinds)
	}
	for _, name := range []string{"Rendered", "Hook", "Forged0"} {
		if !c.mayWatch(ctx, kind(name)) {
			t.Errorf("%s is not watched", name)
		}
	}
	if n := strings.Count(log.String(), fmt.Sprintf(`"limit"=%d`, maxOtherKinds)); n != 1 {
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
	c.mayWatch(ctx, kind("Forged99"))
	if got := c.Requeue(request("shop"), time.Second); got != time.Second {
		t.Errorf("it is reconciled again after %s, and asked for 1s", got)
	}
	c.NoteRendered(program.Rollout{Components: []program.Component{rendered("Forged99")}})
	if !c.mayWatch(ctx, kind("Forged99")) {
		t.Error("a kind is not watched although the package renders it now")
	}
	c.NoteRendered(program.Rollout{Components: []program.Component{rendered("Forged0")}})
	if !c.mayWatch(ctx, kind("Forged98")) || c.mayWatch(ctx, kind("Forged97")) {
		t.Error("a kind that is rendered only now counts as another one")
	}
}
