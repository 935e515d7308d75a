package render_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/render"
	"operetta.dev/engine/status"
)

func TestWhatBecomesOfAComponent(t *testing.T) {
	for name, c := range map[string]struct {
		reason     string
		components string
		want       map[string]status.State
		because    map[string]string
	}{
		"ExcludedWithItsDependents": {
			reason: "what needs an excluded component cannot exist either, unless it says that it can",
			components: `
	a: {when: !cr.spec.on, objects: o: #CM & {metadata: name: "a"}}
	b: {dependsOn: a: {}, objects: o: #CM & {metadata: name: "b"}}
	c: {dependsOn: b: {}, objects: o: #CM & {metadata: name: "c"}}
	d: {dependsOn: a: optional: true, objects: o: #CM & {metadata: name: "d"}}`,
			want: map[string]status.State{"a": status.Excluded, "b": status.Excluded, "c": status.Excluded, "d": status.Applied},
			because: map[string]string{
				"a": "disabled: !cr.spec.on is false (site/site.cue:11)",
				"b": "it depends on a, which is excluded (site/site.cue:12)",
			},
		},
		"HeldWhileUndecided": {
			reason: "excluding a component that may be wanted would delete it",
			components: `
	a: objects: o: #CM & {metadata: name: "a"}
	b: {when: live.a.o.data.on == "yes", objects: o: #CM & {metadata: name: "b"}}
	c: {dependsOn: b: {}, objects: o: #CM & {metadata: name: "c"}}`,
			want:    map[string]status.State{"a": status.Applied, "b": status.Held, "c": status.Waiting},
			because: map[string]string{"b": "when: ", "c": "waiting for b to be verified: when: "},
		},
		"ExclusionWinsOverHolding": {
			reason: "what is excluded for one reason is excluded",
			components: `
	a: objects: o: #CM & {metadata: name: "a"}
	b: {when: live.a.o.data.on == "yes", objects: o: #CM & {metadata: name: "b"}}
	c: {when: false, objects: o: #CM & {metadata: name: "c"}}
	d: {dependsOn: {b: {}, c: {}}, objects: o: #CM & {metadata: name: "d"}}`,
			want:    map[string]status.State{"a": status.Applied, "b": status.Held, "c": status.Excluded, "d": status.Excluded},
			because: map[string]string{"d": "it depends on c, which is excluded"},
		},
		"IncompleteAsAWhole": {
			reason: "a component is applied whole or not at all",
			components: `
	a: objects: o: #CM & {metadata: name: "a"}
	b: objects: {
		ready: #CM & {metadata: name: "ready"}
		waits: #CM & {metadata: name: "waits", data: x: live.a.o.data.x}
	}`,
			want:    map[string]status.State{"a": status.Applied, "b": status.Waiting},
			because: map[string]string{"b": "waiting for a to be verified: being applied"},
		},
		"ExcludedBeforeAnythingElse": {
			reason: "what nobody asked for need not be complete",
			components: `
	a: objects: o: #CM & {metadata: name: "a"}
	b: {when: false, objects: waits: #CM & {metadata: name: "waits", data: x: live.a.o.data.x}}`,
			want: map[string]status.State{"a": status.Applied, "b": status.Excluded},
		},
	} {
		t.Run(name, func(t *testing.T) {
			out := mustRender(t, load(t, "components: {"+c.components+"\n}"), render.Input{})
			if diff := cmp.Diff(c.want, states(out)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			for name, want := range c.because {
				if got := component(t, out, name).Message; !strings.Contains(got, want) {
					t.Errorf("%s says %q, want %q", name, got, want)
				}
			}
			if len(out.Faults) > 0 {
				t.Errorf("faults: %v, want none", out.Faults)
			}
		})
	}
}

func TestAnInvalidObjectFailsItsComponentAlone(t *testing.T) {
	p := load(t, `components: {
	good: objects: o: #CM & {metadata: name: "good"}
	bad: objects: {
		fine:  #CM & {metadata: name: "fine"}
		wrong: #CM & {metadata: name: "wrong", data: n: [if cr.spec.on {1}, "1"][0]}
	}
}`)
	out := mustRender(t, p, render.Input{})
	if got := component(t, out, "bad").State; got != status.Failed {
		t.Errorf("bad is %s, want %s", got, status.Failed)
	}
	if diff := cmp.Diff([]string{"good.o"}, paths(out)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if got := out.Faults.Error(); !strings.Contains(got, "components.bad.objects.wrong.data.n") || !strings.Contains(got, "site/site.cue:") {
		t.Errorf("faults: %s, want the path and the place of data.n", got)
	}
}

func TestAWhenThatCanNeverBeDecidedFailsItsComponentAlone(t *testing.T) {
	out := mustRender(t, load(t, `components: {
	a: {when: [true][len(cr.metadata.name)], objects: o: #CM & {metadata: name: "a"}}
	b: objects: o: #CM & {metadata: name: "b"}
}`), render.Input{})
	want := map[string]status.State{"a": status.Failed, "b": status.Applied}
	if diff := cmp.Diff(want, states(out)); diff != "" {
		t.Errorf("it is a fault of the package, and nothing to wait for (-want +got):\n%s", diff)
	}
	if got := out.Faults.Error(); !strings.Contains(got, "components.a.when") || !strings.Contains(got, "site/site.cue:") {
		t.Errorf("faults: %s, want the path and the place of when", got)
	}
}

func TestAComponentSaysWhatTheStatusWould(t *testing.T) {
	p := load(t, `components: {
	db: {
		objects: o: #CM & {metadata: name: "db"}
		verify: ready: live.db.o.data.ready == "yes"
	}
	web: {
		dependsOn: db: check: live.db.o.data.schema == "2"
		requires: on: !cr.spec.on
		objects: o: #CM & {metadata: name: "web"}
		verify: serves: live.web.o.data.serves == "yes"
		failed: crashed: live.web.o.data.crashed == "yes"
	}
	after: {
		dependsOn: db: until: "applied"
		objects: o: #CM & {metadata: name: "after"}
	}
}`)
	checkSays(t, "before anything is live", mustRender(t, p, render.Input{}), map[string]string{
		"db":    "Applied: being applied",
		"web":   "Waiting: waiting for db to be verified: being applied",
		"after": "Applied: being applied",
	})
	checkSays(t, "while the database is not ready", mustRender(t, p, render.Input{Manifests: []map[string]any{
		configMap("db", map[string]any{"ready": "no", "schema": "2"}),
	}}), map[string]string{
		"db":    `Applied: verify.ready: live.db.o.data.ready == "yes": is "no", wanted == "yes" (site/site.cue:13)`,
		"web":   "Waiting: waiting for db to be verified: verify.ready",
		"after": "Applied: being applied",
	})
	checkSays(t, "when the database is ready", mustRender(t, p, render.Input{Manifests: []map[string]any{
		configMap("db", map[string]any{"ready": "yes", "schema": "2"}), configMap("after", nil),
	}}), map[string]string{"db": "Verified: ", "web": "Waiting: waiting for requires.on: !cr.spec.on", "after": "Verified: "})
}

// checkSays compares what is said of components by the beginnings.
func checkSays(t *testing.T, moment string, out render.Output, want map[string]string) {
	t.Helper()
	for name, begins := range want {
		c := component(t, out, name)
		if got := string(c.State) + ": " + c.Message; !strings.HasPrefix(got, begins) {
			t.Errorf("%s, of %s it says %q, want %q", moment, name, got, begins)
		}
	}
}

func TestAPredicateThatCannotBeDecidedIsAFault(t *testing.T) {
	p := load(t, `components: {
	a: {
		objects: o: #CM & {metadata: name: "a"}
		verify: never: [if cr.spec.on {1}, true][0] && cr.spec.on
	}
	b: {when: false, verify: never: [if cr.spec.on {1}, true][0] && cr.spec.on}
}`)
	out := mustRender(t, p, render.Input{})
	if len(out.Faults) != 1 || out.Faults[0].Path != "components.a.verify.never" {
		t.Errorf("faults: %v, want one, of the component that is not excluded", out.Faults)
	}
}
