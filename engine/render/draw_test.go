package render_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/render"
)

const drawn = `components: {
	config: objects: cm: #CM & {metadata: name: cr.metadata.name}
	web: {dependsOn: config: {}, objects: {
		cm: #CM & {metadata: name: "web"}
		late: #CM & {metadata: name: "late", data: x: live.config.cm.data.x}
	}}
	extra: {dependsOn: web: {}, when: !cr.spec.on}
}`

func TestTheTreeShowsStatesAndObjects(t *testing.T) {
	tree, err := mustRender(t, load(t, drawn), render.Input{}).Tree()
	if err != nil {
		t.Fatal(err)
	}
	want := `
config
│ · ConfigMap/a
└─ web
   │ · ConfigMap/web
   │ · ConfigMap/late
   └─ extra [Excluded]
`
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), tree); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

func TestWithoutAResourceTheTreeShowsNames(t *testing.T) {
	tree, err := render.Static(load(t, drawn)).Tree()
	if err != nil {
		t.Fatal(err)
	}
	want := `
config
│ · ConfigMap (cm)
└─ web
   │ · ConfigMap/web
   │ · ConfigMap/late
   └─ extra
`
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), tree); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

func TestMermaidDrawsEvenACycle(t *testing.T) {
	out := render.Static(load(t, `components: {
	a: dependsOn: b: {}
	b: dependsOn: a: {}
}`))
	if len(out.Faults) != 1 {
		t.Errorf("faults: %v, want the cycle", out.Faults)
	}
	if _, err := out.Tree(); err == nil {
		t.Error("a cycle has a tree, want an error")
	}
	want := "flowchart TD\n  n0[\"a\"]\n  n1[\"b\"]\n  n0 --> n1\n  n1 --> n0\n"
	if diff := cmp.Diff(want, out.Mermaid()); diff != "" {
		t.Errorf("mermaid (-want +got):\n%s", diff)
	}
}
