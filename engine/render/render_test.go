package render_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"operetta.dev/engine/render"
)

func TestDependenciesComeFirstAndThenTheAuthorsOrder(t *testing.T) {
	p := load(t, `
components: {
	web: {
		dependsOn: db: {}
		objects: {
			zeta:  #CM & {metadata: name: "zeta"}
			alpha: #CM & {metadata: name: "alpha"}
		}
	}
	cache: objects: c: #CM & {metadata: name: "cache"}
	db: objects: d: #CM & {metadata: name: "db"}
}`)
	want := []string{"cache.c", "db.d", "web.zeta", "web.alpha"}
	if diff := cmp.Diff(want, paths(mustRender(t, p, render.Input{}))); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestObjectsEnterTheNamespaceOfTheResource(t *testing.T) {
	p := load(t, `reach: {ConfigMap: namespaces: other: true, Namespace: {}, "ClusterRole.rbac.authorization.k8s.io": {}}
components: web: objects: {
	silent: #CM & {metadata: name: "silent"}
	says: #CM & {metadata: {name: "says", namespace: "other"}}
	cluster: {apiVersion: "v1", kind: "Namespace", metadata: name: "cluster"}
	role: {apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: name: "role"}
	impostor: {apiVersion: "example.com/v1", kind: "ClusterRole", metadata: name: "impostor"}
	seen: #CM & {metadata: name: cr.metadata.namespace}
}`)
	named := site()
	named["metadata"] = map[string]any{"name": "a", "namespace": "own"}
	for name, c := range map[string]struct {
		reason string
		in     render.Input
		want   string
	}{
		"Default":  {"without a word it is the namespace that kubectl would take", render.Input{CR: site()}, "default"},
		"Flag":     {"the caller decides for a resource that does not", render.Input{CR: site(), Namespace: "flag"}, "flag"},
		"Resource": {"a resource that names its namespace is right", render.Input{CR: named, Namespace: "flag"}, "own"},
	} {
		t.Run(name, func(t *testing.T) {
			c.in.Manifests = []map[string]any{definition("example.com", "ClusterRole", "Namespaced")}
			var got []string
			for _, o := range mustRender(t, p, c.in).Objects() {
				got = append(got, identity(o.Manifest))
			}
			want := []string{
				"Namespace cluster",
				"ConfigMap " + c.want + "/silent",
				"ConfigMap other/says",
				"ClusterRole.rbac.authorization.k8s.io role",
				"ClusterRole.example.com " + c.want + "/impostor",
				"ConfigMap " + c.want + "/" + c.want,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestAClusterScopedResourceHasNoNamespaceToGive(t *testing.T) {
	p := load(t, `
scope: "Cluster"
components: web: objects: c: {apiVersion: "v1", kind: "Namespace", metadata: name: "c"}`)
	cr := site()
	cr["metadata"] = map[string]any{"name": "a", "namespace": "mistaken"}
	out := mustRender(t, p, render.Input{CR: cr, Namespace: "flag"})
	if got := metadata(out.Objects()[0].Manifest)["namespace"]; got != nil {
		t.Errorf("the object is in namespace %v, want none", got)
	}
	if got := out.CR["metadata"].(map[string]any)["namespace"]; got != nil {
		t.Errorf("the resource is in namespace %v, want none", got)
	}
}

func metadata(object map[string]any) map[string]any {
	meta, _ := object["metadata"].(map[string]any)
	return meta
}

func TestAnInvalidResourceRendersNothing(t *testing.T) {
	p := load(t, `components: web: objects: c: #CM & {metadata: name: "c"}`)
	cr := site()
	cr["spec"] = map[string]any{"on": true, "size": int64(10)}
	out, err := render.Render(t.Context(), p, render.Input{CR: cr})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Invalid) != 1 || out.Invalid[0].Path != "spec.size" {
		t.Errorf("invalid: %v, want one fault at spec.size", out.Invalid)
	}
	if len(out.Components) > 0 {
		t.Errorf("%d components, want none", len(out.Components))
	}
}

func TestTheInputStaysAsItIs(t *testing.T) {
	p := load(t, `
components: web: objects: c: #CM & {metadata: name: "c"}`)
	live := configMap("c", nil)
	delete(live["metadata"].(map[string]any), "namespace")
	in := render.Input{CR: site(), Manifests: []map[string]any{live}, Live: map[string]map[string]map[string]any{}}
	first := mustRender(t, p, in)
	if diff := cmp.Diff(site(), in.CR); diff != "" {
		t.Errorf("the resource was changed (-want +got):\n%s", diff)
	}
	if live["metadata"].(map[string]any)["namespace"] != nil || len(in.Live) > 0 {
		t.Error("the live objects were changed")
	}
	// Who manages a field says since when: each rendering is one of another moment, which may be in the next second.
	moment := cmpopts.IgnoreMapEntries(func(key string, _ any) bool { return key == "time" })
	if diff := cmp.Diff(first, mustRender(t, p, in), cmpopts.IgnoreFields(render.Output{}, "Redactor"), moment); diff != "" {
		t.Errorf("the same input gave another output (-first +second):\n%s", diff)
	}
}

func TestAnObjectBeyondTheNamespaceIsRefusedAsACluster(t *testing.T) {
	const body = `components: {
	far: objects: o: #CM & {metadata: {name: "far", namespace: "monitoring"}}
	role: objects: o: {apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: name: "role"}
	near: objects: o: #CM & {metadata: name: "near"}
	away: {when: false, objects: o: #CM & {metadata: {name: "away", namespace: "elsewhere"}}}
}
`
	for reach, want := range map[string]string{
		"": "far: Failed, near: Applied, role: Failed, away: Excluded",
		`reach: ConfigMap: namespaces: logging: true`:                                                   "far: Failed, near: Applied, role: Failed, away: Excluded",
		`reach: {ConfigMap: namespaces: monitoring: true, "ClusterRole.rbac.authorization.k8s.io": {}}`: "far: Applied, near: Applied, role: Applied, away: Excluded",
		`scope: "Cluster"`: "far: Applied, near: Failed, role: Applied, away: Excluded",
	} {
		out := mustRender(t, load(t, body+reach), render.Input{})
		got := states(out)
		if text := fmt.Sprintf("far: %s, near: %s, role: %s, away: %s", got["far"], got["near"], got["role"], got["away"]); text != want {
			t.Errorf("%s: got %s, want %s\n%v", reach, text, want, out.Faults)
		}
	}
}

func TestTheSameObjectTwiceIsAFault(t *testing.T) {
	p := load(t, `reach: ConfigMap: namespaces: elsewhere: true, components: {
	a: objects: one: #CM & {metadata: name: "same"}
	b: objects: two: #CM & {metadata: {name: "same", namespace: "default"}}
	c: objects: three: #CM & {metadata: {name: "same", namespace: "elsewhere"}}
	d: {when: false, objects: four: #CM & {metadata: name: "same"}}
}`)
	out := mustRender(t, p, render.Input{})
	want := `components.a.objects.one (site/site.cue:11) and components.b.objects.two (site/site.cue:12) are the same object, ConfigMap default/same; give one of them another name
components.b.objects.two (site/site.cue:12) and components.a.objects.one (site/site.cue:11) are the same object, ConfigMap default/same; give one of them another name`
	if got := out.Faults.Error(); got != want {
		t.Errorf("faults:\n%s\nwant:\n%s", got, want)
	}
}

func TestABrokenEdgeIsAFaultAndTheRestIsRendered(t *testing.T) {
	p := load(t, `components: {
	a: {dependsOn: databse: {}, objects: o: #CM & {metadata: name: "a"}}
	database: objects: o: #CM & {metadata: name: "b"}
}`)
	out := mustRender(t, p, render.Input{})
	if got, want := out.Faults.Error(), "components.a: it depends on databse, which is not a component (site/site.cue:11)"; got != want {
		t.Errorf("faults:\n%s\nwant:\n%s", got, want)
	}
	if diff := cmp.Diff([]string{"database.o"}, paths(out)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestNothingIsRenderedWithoutAnOrder(t *testing.T) {
	p := load(t, `components: {
	a: objects: o: #CM & {metadata: name: "a"}
	x: dependsOn: y: {}
	y: dependsOn: x: {}
}`)
	out := mustRender(t, p, render.Input{})
	if got, want := out.Faults.Error(), "site/site.cue:12: cycle: x -> y (site/site.cue:12) -> x (site/site.cue:13)"; got != want {
		t.Errorf("faults:\n%s\nwant:\n%s", got, want)
	}
	if got := paths(out); len(got) > 0 {
		t.Errorf("objects: %q, want none, as on a cluster", got)
	}
}

func TestAReferenceOfAnotherVersionIsNoFault(t *testing.T) {
	p := load(t, `
if cr.spec.size == 1 {
	components: web: objects: c: #CM & {metadata: name: "web"}
}
if cr.spec.size == 2 {
	components: {
		cache: {objects: c: #CM & {metadata: name: "cache"}, outputs: name: "cache"}
		web: objects: c: #CM & {metadata: name: "web", data: cache: components.cache.outputs.name}
	}
}`)
	for size, want := range map[int64][]string{1: {"web.c"}, 2: {"cache.c", "web.c"}} {
		cr := site()
		cr["spec"] = map[string]any{"on": true, "size": size}
		out := mustRender(t, p, render.Input{CR: cr})
		if len(out.Faults) > 0 {
			t.Errorf("size %d: %v", size, out.Faults)
		}
		if diff := cmp.Diff(want, paths(out)); diff != "" {
			t.Errorf("size %d: objects (-want +got):\n%s", size, diff)
		}
	}
}
