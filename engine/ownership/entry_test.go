package ownership

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/program"
)

func TestWhatAnEntryMustHave(t *testing.T) {
	t.Parallel()
	complete := Entry{Object: "o", APIVersion: "v1", Kind: "ConfigMap", Name: "web"}
	rows := []struct {
		reason, field, problem string
		change                 func(*Entry)
	}{
		{"all that is required is there", "", "", func(*Entry) {}},
		{"without it nothing can be read", "apiVersion", "is missing", func(e *Entry) { e.APIVersion = "" }},
		{"the same", "kind", "is missing", func(e *Entry) { e.Kind = "" }},
		{"the same", "name", "is missing", func(e *Entry) { e.Name = "" }},
	}
	for _, row := range rows {
		e := complete
		row.change(&e)
		if field, problem := e.fault(); field != row.field || problem != row.problem {
			t.Errorf("%s: %q %q, want %q %q", row.reason, field, problem, row.field, row.problem)
		}
	}
}

func TestTheNamespaceOfARenderedObject(t *testing.T) {
	t.Parallel()
	rows := []struct {
		reason, own string
		scope       cluster.Scope
		want        string
	}{
		{"it is that of the owner", "", cluster.Namespaced, "shop"},
		{"unless the object says another one", "other", cluster.Namespaced, "other"},
		{"an object of the cluster has none", "", cluster.ClusterScoped, ""},
		{"whatever it says", "other", cluster.ClusterScoped, ""},
	}
	for _, row := range rows {
		o := program.Object{Identity: cluster.Ref{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Thing"}, Namespace: row.own, Name: "n"}}
		if got := RefOf(o, "shop", row.scope).Namespace; got != row.want {
			t.Errorf("%s: namespace %q, want %q", row.reason, got, row.want)
		}
	}
}
