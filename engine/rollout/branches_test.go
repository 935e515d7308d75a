package rollout_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/status"
)

// branch is an app that uses a database only if the spec says so.
const branch = `components: {
	db: {objects: cm: ` + `{apiVersion: "v1", kind: "ConfigMap", metadata: name: "db"}` + `, verify: up: cr.spec.name == "up"}
	gate: verify: open: cr.spec.size < 5
	app: {
		dependsOn: gate: {}
		objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "app", data: {if cr.spec.on {uid: live.db.cm.metadata.uid}, size: "\(cr.spec.size)"}}
	}
}`

// TestAnAppWithoutADatabaseDoesNotWaitForIt: what is in a branch that is not taken for
// this resource is no dependency.
func TestAnAppWithoutADatabaseDoesNotWaitForIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, branch)
	w.spec = map[string]any{"on": false}
	expectStates(t, w.mustRun(), "db: Applied NotReady", "gate: Verified Verified", "app: Verified Verified")
	w.spec = map[string]any{"on": true}
	expectStates(t, w.mustRun(), "db: Applied NotReady", "gate: Verified Verified", "app: Waiting WaitingForDependency")
}

// TestAnEdgeThatDisappearsStaysUntilTheComponentWasApplied: as long as the objects are
// those that used the other component, they are deleted before it.
func TestAnEdgeThatDisappearsStaysUntilTheComponentWasApplied(t *testing.T) {
	t.Parallel()
	w := newWorld(t, branch)
	w.spec = map[string]any{"name": "up"}
	if result := w.mustRun(); !result.Completion.Ready() {
		t.Fatal(states(result))
	}
	expectEdges(t, "it uses the database", w.inventory, "db <- app")
	w.spec = map[string]any{"name": "up", "on": false, "size": int64(7)}
	expectStates(t, w.mustRun(), "db: Verified Verified", "gate: Applied NotReady", "app: Waiting WaitingForDependency")
	expectEdges(t, "its objects still do", w.inventory, "db <- app")
	w.spec = map[string]any{"name": "up", "on": false, "size": int64(2)}
	if result := w.mustRun(); !result.Completion.Ready() {
		t.Fatal(states(result))
	}
	expectEdges(t, "they do no more", w.inventory)
	w.protects, _ = 0, w.wrote()
	if result := w.mustRun(); !result.Completion.Ready() || w.protects > 0 {
		t.Errorf("at rest: %v, stored %d times", states(result), w.protects)
	}
	w.expectWrites("at rest")
}

// expectEdges compares the edges of an inventory, as "what <- who depends on it".
func expectEdges(t *testing.T, reason string, inventory ownership.Inventory, want ...string) {
	t.Helper()
	var got []string
	for _, g := range inventory {
		for _, to := range g.DependsOn {
			got = append(got, to+" <- "+g.Component)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", reason, diff)
	}
}

// TestWhoeverMadeACircleIsToldSo: one that comes from data is the resource's, one that
// is written is the package's, and each edge is named with its line.
func TestWhoeverMadeACircleIsToldSo(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		body, reason, message string
	}{
		"from data": {`
components: {for name, to in {a: cr.spec.name, b: "a"} {
	"app-\(name)": {
		dependsOn: "app-\(to)": {}
		objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: name}
	}
}}`, "InvalidSpec", "cycle: app-a -> app-b (shop/body.cue:5) -> app-a (shop/body.cue:5)"},
		"from a branch": {`
components: {
	a: dependsOn: {if cr.spec.on {b: {}}}
	b: dependsOn: a: {}
}`, "InvalidSpec", "cycle: a -> b (shop/body.cue:4) -> a (shop/body.cue:5)"},
		"written": {`
components: {
	a: dependsOn: b: {}
	b: dependsOn: a: {}
}`, "InvalidPackage", "cycle: a -> b (shop/body.cue:4) -> a (shop/body.cue:5)"},
		"with itself, from data": {`
components: {for name in [cr.spec.name] {
	"app-\(name)": dependsOn: "app-\(cr.spec.name)": {}
}}`, "InvalidSpec", "cycle: app-b -> app-b (shop/body.cue:4)"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.body)
			w.spec = map[string]any{"name": "b"}
			result, err := w.run()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{c.reason, c.message}, []string{string(result.Completion.Fault.Reason), result.Completion.Fault.Message}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnUnknownNameFromDataIsTheResources: the package is right, whoever wrote the
// resource is to change it, and what has nothing to do with it goes on.
func TestAnUnknownNameFromDataIsTheResources(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
components: {
	web: {
		dependsOn: (cr.spec.name): {}
		objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web"}
	}
	other: objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "other"}
}`)
	w.spec = map[string]any{"name": "nobody"}
	result := w.mustRun()
	expectStates(t, result, "web: Failed InvalidSpec", "other: Verified Verified")
	i := slices.IndexFunc(result.Completion.Components, func(c status.Component) bool { return c.Name == "web" })
	if got, want := result.Completion.Components[i].Message, "it depends on nobody, which is not a component (shop/body.cue:5)"; !strings.Contains(got, want) {
		t.Errorf("says %q, want %q", got, want)
	}
}
