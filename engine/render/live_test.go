package render_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/render"
	"operetta.dev/engine/status"
)

// chain is a package in which each object needs the one before it to be live.
const chain = `components: {
	a: objects: o: #CM & {metadata: name: "a"}
	b: objects: o: #CM & {metadata: name: live.a.o.data.next}
	c: objects: o: #CM & {metadata: name: live.b.o.data.next}
}`

func TestManifestsAreMatchedUntilNothingNewMatches(t *testing.T) {
	p := load(t, chain)
	out := mustRender(t, p, render.Input{Manifests: []map[string]any{
		configMap("c1", nil),
		configMap("b1", map[string]any{"next": "c1"}),
		configMap("a", map[string]any{"next": "b1"}),
	}})
	if diff := cmp.Diff([]string{"a.o", "b.o", "c.o"}, paths(out)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if len(out.Unmatched) > 0 {
		t.Errorf("unmatched: %q, want none", out.Unmatched)
	}
}

func TestLiveObjectsAreGivenByName(t *testing.T) {
	p := load(t, chain)
	out := mustRender(t, p, render.Input{
		Live: map[string]map[string]map[string]any{
			"a":  {"o": configMap("whatever", map[string]any{"next": "b1"})},
			"aa": {"o": configMap("stranger", nil)},
			"b":  {"p": configMap("stranger", nil)},
		},
		// What was given by name stays; a manifest of the same object does not replace it.
		Manifests: []map[string]any{configMap("a", map[string]any{"next": "b2"})},
	})
	if got := component(t, out, "b").Objects[0].Manifest.GetName(); got != "b1" {
		t.Errorf("b is %v, want the name from the live object", got)
	}
	want := []string{"aa.o", "b.p"}
	if diff := cmp.Diff(want, out.Unmatched); diff != "" {
		t.Errorf("unmatched (-want +got):\n%s", diff)
	}
}

func TestManifestsAreMatchedByGroupKindNamespaceAndName(t *testing.T) {
	p := load(t, `components: web: objects: {
	d: {apiVersion: "apps/v1", kind: "Deployment", metadata: name: "web"}
	n: {apiVersion: "v1", kind: "Namespace", metadata: name: "web"}
}`)
	object := func(apiVersion, kind, namespace string) map[string]any {
		meta := map[string]any{"name": "web"}
		if namespace != "" {
			meta["namespace"] = namespace
		}
		return map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": meta}
	}
	cr := site()
	cr["metadata"] = map[string]any{"name": "web"}
	for name, c := range map[string]struct {
		reason string
		live   map[string]any
		want   []string
	}{
		"Same":             {"this is the object", object("apps/v1", "Deployment", "default"), nil},
		"OtherVersion":     {"a version is a view of the same object", object("apps/v1beta1", "Deployment", "default"), nil},
		"NoNamespace":      {"a manifest without a namespace is in that of the resource", object("apps/v1", "Deployment", ""), nil},
		"ClusterScoped":    {"a namespace means nothing to a Namespace", object("v1", "Namespace", "default"), nil},
		"TheResource":      {"a dump of a namespace holds the custom resource", object("example.com/v1", "Site", "default"), nil},
		"OtherNamespace":   {"it is somebody else's", object("apps/v1", "Deployment", "other"), []string{"Deployment.apps other/web"}},
		"OtherGroup":       {"it is another kind", object("other.dev/v1", "Deployment", "default"), []string{"Deployment.other.dev default/web"}},
		"MalformedVersion": {"it is not taken for a known group", object("a/b/c", "Deployment", "default"), []string{`Deployment web of "a/b/c"`}},
	} {
		t.Run(name, func(t *testing.T) {
			out := mustRender(t, p, render.Input{CR: cr, Manifests: []map[string]any{c.live}})
			if diff := cmp.Diff(c.want, out.Unmatched); diff != "" {
				t.Errorf("%s: unmatched (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestAnObjectIsObservedBeforeItIsComplete(t *testing.T) {
	p := load(t, `components: a: objects: o: #CM & {metadata: name: "a", data: next: live.a.o.data.x}`)
	out := mustRender(t, p, render.Input{Manifests: []map[string]any{configMap("a", map[string]any{"x": "1"})}})
	if diff := cmp.Diff([]string{"a.o"}, paths(out)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestWhatKubectlPrintedIsTakenWithWhoseItIs(t *testing.T) {
	p := load(t, `components: a: objects: o: #CM & {metadata: name: "a"}`)
	foreign := configMap("a", nil)
	foreign["metadata"].(map[string]any)["resourceVersion"] = "7"
	for name, c := range map[string]struct {
		reason string
		live   map[string]any
		want   status.State
	}{
		"ByHand":       {"who writes a state by hand asks what follows from it", configMap("a", nil), status.Verified},
		"SomebodyElse": {"a cluster would not let it be seized", foreign, status.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			if got := component(t, mustRender(t, p, render.Input{Manifests: []map[string]any{c.live}}), "a"); got.State != c.want {
				t.Errorf("%s: a is %s (%s), want %s", c.reason, got.State, got.Message, c.want)
			}
		})
	}
}

func TestInputsAreReadFromManifests(t *testing.T) {
	p := load(t, `reach: ConfigMap: {access: "read", namespaces: other: true}
inputs: {
	settings: {apiVersion: "v1", kind: "ConfigMap", name: "settings"}
	nodes: {apiVersion: "v1", kind: "Node", selector: role: "edge"}
	chained: {apiVersion: "v1", kind: "ConfigMap", name: inputs.settings.object.data.next, namespace: "other"}
}
components: web: objects: o: #CM & {
	metadata: name: "web"
	data: {
		color: inputs.settings.object.data.color
		last:  inputs.chained.object.data.x
		for n, _ in inputs.nodes.objects {(n): "yes"}
	}
}`)
	node := func(name, role string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{
			"name": name, "labels": map[string]any{"role": role},
		}}
	}
	chained := configMap("chained", map[string]any{"x": "y"})
	chained["metadata"] = map[string]any{"name": "chained", "namespace": "other"}
	out := mustRender(t, p, render.Input{Manifests: []map[string]any{
		configMap("settings", map[string]any{"color": "red", "next": "chained"}),
		node("n1", "edge"), node("n2", "core"), node("n3", "edge"),
		chained,
	}})
	want := map[string]any{"color": "red", "last": "y", "n1": "yes", "n3": "yes"}
	if diff := cmp.Diff(want, component(t, out, "web").Objects[0].Manifest.Object["data"]); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Node n2"}, out.Unmatched); diff != "" {
		t.Errorf("unmatched (-want +got):\n%s", diff)
	}
}

func TestInputsThatAreNotThereAreNamed(t *testing.T) {
	p := load(t, `
inputs: {
	settings: {apiVersion: "v1", kind: "ConfigMap", name: "settings"}
	nodes: {apiVersion: "v1", kind: "Node", selector: role: "edge"}
	chained: {apiVersion: "v1", kind: "ConfigMap", name: inputs.settings.object.data.next}
}
inputs: off: {apiVersion: "v1", kind: "ConfigMap", name: "off"}
components: off: {when: false, outputs: x: inputs.off.object.data.x}`)
	got := mustRender(t, p, render.Input{}).Absent
	want := []string{
		"inputs.chained: its name is not known yet: inputs.settings.object is optional, and not set (site/site.cue:14)",
		"inputs.nodes: Node role=edge (site/site.cue:13) was not found; give it with --live",
		"inputs.settings: ConfigMap default/settings (site/site.cue:12) was not found; give it with --live",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("absent (-want +got):\n%s", diff)
	}
}

func TestNothingCountsOnWhatIsSwitchedOff(t *testing.T) {
	p := load(t, `components: {
	may: objects: c: #CM & {metadata: name: "may", data: cache: [if live.cache.c != _|_ {"there"}, "gone"][0]}
	cache: {when: cr.spec.size > 1, objects: c: #CM & {metadata: name: "cache", data: address: string}, outputs: address: live.cache.c.data.address}
	web: objects: c: #CM & {metadata: name: "web", data: address: components.cache.outputs.address}
}`)
	for size, want := range map[int64]struct {
		web status.State
		may string
	}{1: {status.Excluded, "gone"}, 2: {status.Waiting, "there"}} {
		cr := site()
		cr["spec"] = map[string]any{"on": true, "size": size}
		out := mustRender(t, p, render.Input{CR: cr, Manifests: []map[string]any{configMap("cache", map[string]any{"address": "here"})}})
		if got := component(t, out, "web").State; got != want.web {
			t.Errorf("size %d: web is %s, want %s", size, got, want.web)
		}
		if diff := cmp.Diff(map[string]any{"cache": want.may}, component(t, out, "may").Objects[0].Manifest.Object["data"]); diff != "" {
			t.Errorf("size %d: data of may (-want +got):\n%s", size, diff)
		}
	}
}
