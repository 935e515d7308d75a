package rollout_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// blocks returns "component: what waits for it" for each component that blocks others.
func blocks(r rollout.Result) []string {
	list, _ := status.Build(status.Input{Completion: r.Completion})["components"].([]any)
	var out []string
	for _, c := range list {
		if m, _ := c.(map[string]any); m["blocks"] != nil {
			out = append(out, fmt.Sprintf("%s: %s", m["name"], m["blocks"]))
		}
	}
	return out
}

// slow returns a component with a Deployment, which does not become available by itself.
func slow(name string) string {
	return fmt.Sprintf("components: %s: objects: o: _deployment & {metadata: name: %q, spec: replicas: cr.spec.size}\n", name, name)
}

// quick returns a component with a ConfigMap, and what else it says.
func quick(name, more string) string {
	return fmt.Sprintf("components: %s: {objects: o: %s\n%s}\n", name, configMap(name, ""), more)
}

func TestAComponentThatIsNotReadySaysWhatItBlocks(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		reason, body string
		want         []string
	}{
		"directly and behind one another": {
			"in the author's order, whatever the edges",
			quick("ingress", "dependsOn: front: {}") + quick("front", "dependsOn: web: {}") + slow("web") + quick("aside", ""),
			[]string{"front: ingress", "web: ingress and front"},
		},
		"one of several": {
			"it is needed like the other, also if the other is named first",
			slow("a") + slow("b") + quick("c", "dependsOn: {a: {}, b: {}}"),
			[]string{"a: c", "b: c"},
		},
		"order alone": {
			"applied is enough for after",
			slow("web") + quick("after", `dependsOn: web: until: "applied"`) + quick("front", "dependsOn: web: {}"),
			[]string{"web: front"},
		},
		"a reference": {
			"a derived edge waits like a declared one",
			slow("web") + quick("front", `objects: o: data: of: live.web.o.metadata.name`),
			[]string{"web: front"},
		},
		"what waits for something else": {
			"front is wrong by itself, and broken would be without web",
			slow("web") + quick("front", "dependsOn: web: {}\nwhen: live.web.o.status.nothing") + quick("broken", "dependsOn: web: {}\nobjects: o: data: n: cr.spec.size & 5"),
			nil,
		},
		"what is not there": {
			"an excluded one waits for nobody",
			slow("web") + quick("front", "dependsOn: web: {}\nwhen: false"),
			nil,
		},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, row.body)
			w.spec["size"] = int64(2)
			w.mustRun()
			if diff := cmp.Diff(row.want, blocks(w.mustRun())); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

func TestWhatIsReadyBlocksNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, slow("web")+quick("front", "dependsOn: web: {}"))
	w.mustRun()
	w.available("web")
	if got := blocks(w.mustRun()); got != nil {
		t.Errorf("got %v", got)
	}
}

// edgesSaid returns "component: what it depends on" for each component of which the status says that.
func edgesSaid(r rollout.Result) []string {
	list, _ := status.Build(status.Input{Completion: r.Completion})["components"].([]any)
	var out []string
	for _, c := range list {
		if m, _ := c.(map[string]any); m["dependsOn"] != nil {
			out = append(out, fmt.Sprintf("%s: %s", m["name"], m["dependsOn"]))
		}
	}
	return out
}

func TestTheStatusSaysTheEdgesOfComponentsWithoutObjects(t *testing.T) {
	t.Parallel()
	const gate = "components: gate: {dependsOn: web: {}, outputs: size: cr.spec.size}\n"
	rows := map[string]struct {
		reason, body string
		want         []string
	}{
		"all have objects": {"the inventory says that", quick("web", "") + quick("front", "dependsOn: web: {}"), nil},
		"one between others": {
			"all dependencies of who depends on it are said, as the inventory lists the objects behind it",
			quick("web", "") + gate + quick("front", "dependsOn: {gate: {}, web: {}}"), []string{"gate: [web]", "front: [gate web]"},
		},
		"a reference":              {"it is an edge", quick("web", "") + gate + quick("front", `objects: o: data: n: "\(components.gate.outputs.size)"`), []string{"gate: [web]", "front: [gate]"}},
		"one that is not there":    {"nobody waits for it", quick("web", "") + gate + quick("front", "dependsOn: {gate: optional: true, web: {}}") + "components: gate: when: false\n", nil},
		"who is not there himself": {"it waits for nobody", quick("web", "") + gate + quick("front", "dependsOn: gate: {}") + "components: front: when: false\n", []string{"gate: [web]"}},
		"all without objects": {
			"nothing is written for them at all",
			"components: {a: outputs: n: 1, b: {dependsOn: a: {}, outputs: n: 2}}\n" + quick("web", ""), []string{"b: [a]"},
		},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, row.body)
			w.mustRun()
			if diff := cmp.Diff(row.want, edgesSaid(w.mustRun())); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}
