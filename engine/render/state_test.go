package render_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/render"
)

func TestWhatBecomesOfAComponent(t *testing.T) {
	for name, c := range map[string]struct {
		reason     string
		components string
		want       map[string]render.State
		because    map[string]string
	}{
		"ExcludedWithItsDependents": {
			reason: "what needs an excluded component cannot exist either, unless it says that it can",
			components: `
	a: {when: !cr.spec.on, objects: o: #CM & {metadata: name: "a"}}
	b: {dependsOn: a: {}, objects: o: #CM & {metadata: name: "b"}}
	c: {dependsOn: b: {}, objects: o: #CM & {metadata: name: "c"}}
	d: {dependsOn: a: optional: true, objects: o: #CM & {metadata: name: "d"}}`,
			want: map[string]render.State{"a": render.Excluded, "b": render.Excluded, "c": render.Excluded, "d": render.Rendered},
			because: map[string]string{
				"a": "when is false: !cr.spec.on (site/site.cue:11)",
				"b": "it depends on a, which is excluded (site/site.cue:12)",
			},
		},
		"HeldWhileUndecided": {
			reason: "excluding a component that may be wanted would delete it",
			components: `
	a: objects: o: #CM & {metadata: name: "a"}
	b: {when: live.a.o.data.on == "yes", objects: o: #CM & {metadata: name: "b"}}
	c: {dependsOn: b: {}, objects: o: #CM & {metadata: name: "c"}}`,
			want:    map[string]render.State{"a": render.Rendered, "b": render.Held, "c": render.Held},
			because: map[string]string{"b": "when cannot be decided", "c": "it depends on b, which is held"},
		},
		"ExclusionWinsOverHolding": {
			reason: "what is excluded for one reason is excluded",
			components: `
	a: objects: o: #CM & {metadata: name: "a"}
	b: {when: live.a.o.data.on == "yes", objects: o: #CM & {metadata: name: "b"}}
	c: {when: false, objects: o: #CM & {metadata: name: "c"}}
	d: {dependsOn: {b: {}, c: {}}, objects: o: #CM & {metadata: name: "d"}}`,
			want:    map[string]render.State{"a": render.Rendered, "b": render.Held, "c": render.Excluded, "d": render.Excluded},
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
			want:    map[string]render.State{"a": render.Rendered, "b": render.Incomplete},
			because: map[string]string{"b": "site/site.cue:14"},
		},
		"ExcludedBeforeAnythingElse": {
			reason: "what nobody asked for need not be complete",
			components: `
	a: objects: o: #CM & {metadata: name: "a"}
	b: {when: false, objects: waits: #CM & {metadata: name: "waits", data: x: live.a.o.data.x}}`,
			want: map[string]render.State{"a": render.Rendered, "b": render.Excluded},
		},
	} {
		t.Run(name, func(t *testing.T) {
			out := mustRender(t, load(t, "components: {"+c.components+"\n}"), render.Input{})
			if diff := cmp.Diff(c.want, states(out)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			for name, want := range c.because {
				if got := strings.Join(component(t, out, name).Because, "\n"); !strings.Contains(got, want) {
					t.Errorf("%s is not rendered because %q, want %q", name, got, want)
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
	if got := component(t, out, "bad").State; got != render.Invalid {
		t.Errorf("bad is %s, want %s", got, render.Invalid)
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
	want := map[string]render.State{"a": render.Invalid, "b": render.Rendered}
	if diff := cmp.Diff(want, states(out)); diff != "" {
		t.Errorf("it is a fault of the package, and nothing to wait for (-want +got):\n%s", diff)
	}
	if got := out.Faults.Error(); !strings.Contains(got, "components.a.when") || !strings.Contains(got, "site/site.cue:") {
		t.Errorf("faults: %s, want the path and the place of when", got)
	}
}

func TestWhatARenderedComponentWaitsFor(t *testing.T) {
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
	nothing := mustRender(t, p, render.Input{})
	want := map[string][]string{
		"db": nil,
		"web": {
			"for db to be verified (site/site.cue:16)",
			`for components.web.dependsOn.db.check: live.db.o.data.schema == "2"`,
			"for requires.on: !cr.spec.on",
		},
		"after": {"for db to be applied (site/site.cue:23)"},
	}
	checkWaits(t, "before anything is live", want, nothing)

	started := mustRender(t, p, render.Input{Manifests: []map[string]any{
		configMap("db", map[string]any{"ready": "no", "schema": "2"}),
		configMap("web", map[string]any{"serves": "no", "crashed": "yes"}),
	}})
	want = map[string][]string{
		"db": {`for verify.ready: live.db.o.data.ready == "yes": is "no", wanted == "yes" (site/site.cue:13)`},
		"web": {
			"for db to be verified (site/site.cue:16)",
			"for requires.on: !cr.spec.on",
			"for verify.serves: ",
			"no more: failed.crashed is true",
		},
		"after": nil,
	}
	checkWaits(t, "while the database is not ready", want, started)

	ready := mustRender(t, p, render.Input{
		Manifests: []map[string]any{configMap("db", map[string]any{"ready": "yes", "schema": "2"})},
	})
	want = map[string][]string{"db": nil, "web": {"for requires.on: !cr.spec.on"}, "after": nil}
	checkWaits(t, "when the database is ready", want, ready)
}

// checkWaits compares what components wait for by the beginnings of the lines.
func checkWaits(t *testing.T, moment string, want map[string][]string, out render.Output) {
	t.Helper()
	for name, lines := range want {
		got := component(t, out, name).Waits
		if len(got) != len(lines) {
			t.Errorf("%s, %s waits for %q, want %q", moment, name, got, lines)
			continue
		}
		for i := range lines {
			if !strings.HasPrefix(got[i], lines[i]) {
				t.Errorf("%s, %s waits %q, want %q", moment, name, got[i], lines[i])
			}
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
