package rollout_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
	"operetta.dev/test/clustertest"
	"operetta.dev/test/machine"
)

func configMap(name, more string) string {
	return fmt.Sprintf(`{apiVersion: "v1", kind: "ConfigMap", metadata: name: %q%s}`, name, more)
}

func TestDepthDoesNotMultiplyRollouts(t *testing.T) {
	t.Parallel()
	chains := map[string]func(i int) string{
		"order only": func(i int) string {
			return fmt.Sprintf("components: c%d: dependsOn: c%d: until: \"applied\"\n", i, i-1)
		},
		"verified at once": func(i int) string {
			return fmt.Sprintf("components: c%d: dependsOn: c%d: {}\n", i, i-1)
		},
		"outputs that an apply returns": func(i int) string {
			return fmt.Sprintf("components: c%d: objects: o: data: uid: components.c%d.outputs.uid\n", i, i-1)
		},
	}
	for name, link := range chains {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var body strings.Builder
			for i := range 10 {
				fmt.Fprintf(&body, "components: c%d: {objects: o: %s, outputs: uid: live.c%d.o.metadata.uid}\n", i, configMap(fmt.Sprintf("c%d", i), ", ..."), i)
				if i > 0 {
					body.WriteString(link(i))
				}
			}
			w := newWorld(t, body.String())
			if result := w.mustRun(); !result.Completion.Ready() {
				t.Errorf("after one rollout: %v", states(result))
			}
			var order []string
			for _, s := range w.wrote() {
				order = append(order, s[strings.LastIndex(s, " ")+1:])
			}
			if diff := cmp.Diff([]string{"c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9"}, order); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
			if w.protects != 1 {
				t.Errorf("the inventory was stored %d times, want once", w.protects)
			}
		})
	}
}

// TestTheResultDoesNotDependOnChance is the other half of F3, whose shuffles are those
// of the graph's tests: the order of components, messages and the inventory is the
// author's, however goroutines and maps fall.
func TestTheResultDoesNotDependOnChance(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	var body strings.Builder
	names := rand.New(rand.NewPCG(1, 2)).Perm(8)
	for _, n := range names {
		fmt.Fprintf(&body, "components: c%d: objects: {b: %s, a: %s}\n", n, configMap(fmt.Sprintf("b%d", n), ""), configMap(fmt.Sprintf("a%d", n), ""))
	}
	body.WriteString("components: last: {dependsOn: {c3: {}, c1: {}}, objects: o: " + configMap("o", "") + "}\n")
	w := newWorld(t, body.String())
	var first string
	for range clustertest.Often(50) {
		result := w.mustRun()
		got := fmt.Sprint(states(result), withoutUIDs(result.Inventory), result.Events)
		if first == "" {
			first = got
		}
		if got != first {
			t.Fatalf("two runs differ:\n%s\n%s", first, got)
		}
		if left := w.mustTeardown().Inventory; left.Len() > 0 {
			t.Fatalf("left in the inventory: %v", left)
		}
	}
}

// withoutUIDs returns an inventory without what each run has anew.
func withoutUIDs(inventory ownership.Inventory) ownership.Inventory {
	var out ownership.Inventory
	for _, g := range inventory {
		g.Objects = slices.Clone(g.Objects)
		for i := range g.Objects {
			g.Objects[i].UIDPrefix = ""
		}
		out = append(out, g)
	}
	return out
}

func TestACheckOnAnEdgeHoldsTheDependent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
components: a: objects: o: `+configMap("a", "")+`
components: b: {
	dependsOn: a: check: live.a.o.data.ready == "yes"
	objects: o: `+configMap("b", "")+`
}`)
	result := w.mustRun()
	expectStates(t, result, "a: Verified Verified", "b: Waiting WaitingForDependency")
	if got := message(result, "b"); !strings.Contains(got, "waiting for the check on a") || !strings.Contains(got, "live.a.o.data.ready") {
		t.Errorf("it says %q, want the check", got)
	}
	w.change("ConfigMap", "a", func(u *unstructured.Unstructured) { u.Object["data"] = map[string]any{"ready": "no"} })
	expectStates(t, w.mustRun(), "a: Verified Verified", "b: Waiting WaitingForDependency")
	w.change("ConfigMap", "a", func(u *unstructured.Unstructured) { u.Object["data"] = map[string]any{"ready": "yes"} })
	expectStates(t, w.mustRun(), "a: Verified Verified", "b: Verified Verified")
}

// A name that is computed has no place in the text by itself.
func TestTheCheckOnAComputedEdgeIsShownWithTheAuthorsLine(t *testing.T) {
	t.Parallel()
	const a = "components: a: objects: o: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"a\"}\n"
	const data = `live.a.o.data.ready == "yes"`
	for name, row := range map[string]struct {
		reason, body string
		want         string
	}{
		"a name of a field": {
			"the line of the check", `
_on: "a"
components: b: {
	dependsOn: "\(_on)": check: ` + data + `
}
`, `(shop/body.cue:6)`,
		},
		"a name of the resource": {
			"the line of the check, and not that of the name", `
components: b: {
	dependsOn: "\(cr.spec.name)": {
		check: ` + data + `
	}
}
`, `(shop/body.cue:6)`,
		},
		"a name of a loop": {
			"the line in the loop", `
components: b: dependsOn: {
	for on in ["a"] {
		(on): check: ` + data + `
	}
}
`, `(shop/body.cue:6)`,
		},
		"a template with a name": {
			"the line of the condition, and that of the component that uses it", `
#Behind: {
	#on: string
	dependsOn: "\(#on)": {check: ` + data + `, ...}
	...
}
components: b: #Behind & {#on: "a"}
`, `(shop/body.cue:6, used at shop/body.cue:9)`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, a+row.body)
			w.spec["name"] = "a"
			result := w.mustRun()
			expectStates(t, result, "a: Verified Verified", "b: Waiting WaitingForDependency")
			if got := message(result, "b"); !strings.HasPrefix(got, "waiting for the check on a: ") || !strings.HasSuffix(got, row.want) {
				t.Errorf("%s: it says %q, want %q at the end", row.reason, got, row.want)
			}
		})
	}
}

func TestRequirementsHoldAndNeverDelete(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
components: a: {
	requires: big: cr.spec.size > 1
	objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "a", data: size: "\(cr.spec.size)"}
}
components: b: {dependsOn: a: {}, objects: o: `+configMap("b", "")+`}
`)
	result := w.mustRun()
	w.expectWrites("it may not be applied yet")
	expectStates(t, result, "a: Waiting WaitingForRequirement", "b: Waiting WaitingForDependency")
	if got := message(result, "a"); !strings.Contains(got, "requires.big: cr.spec.size > 1") || !strings.Contains(got, "body.cue:") {
		t.Errorf("it says %q, want the requirement and its place", got)
	}
	w.spec["size"] = int64(2)
	w.mustRun()
	w.wrote()
	w.spec["size"] = int64(1)
	w.mustRun()
	w.expectWrites("what is there stays as it is")
}

// An adoption is more than a repair.
func TestAComponentThatWaitsAdoptsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
components: a: {
	requires: big: cr.spec.size > 1
	objects: {o: `+configMap("o", "")+`, p: `+configMap("p", `, data: a: "b"`)+`}
	policy: o: adopt: true
}
`)
	w.spec["size"] = int64(2)
	w.mustRun()
	w.delete(w.object("ConfigMap", "o"))
	w.put("somebody", object(kinds["ConfigMap"], w.owner.Namespace, "o"))
	w.change("ConfigMap", "p", func(u *unstructured.Unstructured) { u.Object["data"] = map[string]any{} })
	w.spec["size"] = int64(1)
	expectStates(t, w.mustRun(), "a: Waiting WaitingForRequirement")
	w.expectWrites("what is its own is repaired, and no more", "update ConfigMap p")
	w.spec["size"] = int64(2)
	expectStates(t, w.mustRun(), "a: Verified Verified")
	w.expectWrites("it waits no more", "update ConfigMap o")
}

func TestAChangeOfNothingButReplicasIsScaling(t *testing.T) {
	t.Parallel()
	const body = `
components: {
	a: objects: o: _deployment & {metadata: name: "a", spec: replicas: cr.spec.size}
	b: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "b", data: name: cr.spec.name}
}
`
	for name, row := range map[string]struct {
		reason string
		spec   map[string]any
		want   status.Change
	}{
		"nothing":               {"it is as it was", map[string]any{}, status.Unchanged},
		"replicas":              {"the phase says that it scales", map[string]any{"size": int64(2)}, status.Rescaled},
		"something else":        {"the phase says that it is rolled out", map[string]any{"name": "other"}, status.Changed},
		"replicas and the rest": {"scaling is the least of it", map[string]any{"size": int64(2), "name": "other"}, status.Changed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, body)
			w.mustRun()
			w.available("a")
			w.spec = row.spec
			if got := w.mustRun().Completion.Change; got != row.want {
				t.Errorf("%s: the change is %s, want %s", row.reason, got, row.want)
			}
		})
	}
}

// forgetful is a cluster whose cache does not have the objects of a name, as that of a process which has just started.
type forgetful struct {
	cluster.Cluster
	name string
}

func (c forgetful) GetCached(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	if ref.Name == c.name {
		return nil, nil
	}
	return c.Cluster.GetCached(ctx, ref)
}

func TestWhatTheCacheLacksIsSeenByTheOthersInTheSameRollout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
components: a: {objects: o: `+configMap("a", "")+`, outputs: uid: live.a.o.metadata.uid}
components: b: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "b", data: uid: components.a.outputs.uid}
`)
	w.mustRun()
	w.wrote()
	w.cluster = forgetful{w.site, "a"}
	expectStates(t, w.mustRun(), "a: Verified Verified", "b: Verified Verified")
	w.expectWrites("all of it is there")
}

func TestEveryFailureIsReportedAndOthersGoOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
components: wrong: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "wrong", data: x: cr.spec.name & "shop"}
components: taken: objects: o: `+configMap("taken", "")+`
components: broken: {objects: o: `+configMap("broken", "")+`, verify: never: live.broken.o.data.n > 5}
components: after: {dependsOn: wrong: {}, objects: o: `+configMap("after", "")+`}
components: fine: objects: o: `+configMap("fine", "")+`
components: finer: {dependsOn: fine: {}, objects: o: `+configMap("finer", "")+`}
`)
	w.spec["name"] = "other"
	w.put("kubectl", object(kinds["ConfigMap"], w.owner.Namespace, "taken"))
	result := w.mustRun()
	w.expectWrites("F4: independent branches go on, and of a failed component nothing is written",
		"create ConfigMap broken", "create ConfigMap fine", "create ConfigMap finer")
	expectStates(t, result, "wrong: Failed InvalidObject", "taken: Failed OwnedByAnother", "broken: Applied NotReady",
		"after: Waiting WaitingForDependency", "fine: Verified Verified", "finer: Verified Verified")
	for component, part := range map[string]string{"wrong": "objects.o.data.x", "taken": "ConfigMap " + w.owner.Namespace + "/taken", "after": "waiting for wrong"} {
		if got := message(result, component); !strings.Contains(got, part) {
			t.Errorf("%s says %q, want %q in it", component, got, part)
		}
	}
	w.change("ConfigMap", "broken", func(u *unstructured.Unstructured) { u.Object["data"] = map[string]any{"n": "text"} })
	if result := w.mustRun(); states(result)[2] != "broken: Failed PredicateBroken" {
		t.Errorf("a predicate that can never be decided: %v", states(result))
	}
}

func TestSwitchingOffGoesBackwardsAndWaitsForAbsence(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
components: a: objects: o: `+configMap("a", "")+`
components: b: {when: cr.spec.on, dependsOn: a: {}, objects: o: `+configMap("b", "")+`}
components: c: {dependsOn: b: {}, objects: o: `+configMap("c", "")+`}
components: d: {dependsOn: c: {}, objects: o: `+configMap("d", "")+`}
`)
	w.mustRun()
	w.change("ConfigMap", "c", func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"example.com/held"}) })
	w.spec["on"] = false
	result := w.mustRun()
	if diff := cmp.Diff([]string{"delete ConfigMap d", "update ConfigMap c"}, w.wrote()); diff != "" {
		t.Errorf("G1: what c depends on stays until c is gone (-want +got):\n%s", diff)
	}
	expectStates(t, result, "a: Verified Verified", "b: Excluded Excluded", "c: Excluded Excluded", "d: Excluded Excluded")
	if result.Completion.Ready() || !strings.Contains(result.Completion.Pruning, "example.com/held") {
		t.Errorf("it does not say what holds the deletion: %+v", result.Completion.Pruning)
	}
	w.change("ConfigMap", "c", func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
	if done := w.mustRun(); !done.Completion.Ready() {
		t.Errorf("states %v", states(done))
	}
	w.expectWrites("then the rest goes", "delete ConfigMap b")
}

func TestAComponentOfAnUnservedKindCanBeSkipped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
components: monitor: {unserved: "skip", objects: probe: {apiVersion: _own, kind: "Probe", metadata: name: "p"}}
components: after: {dependsOn: monitor: {}, objects: o: `+configMap("after", "")+`}
`)
	result := w.mustRun()
	w.expectWrites("it counts as not being there", "create ConfigMap after")
	expectStates(t, result, "monitor: Excluded KindNotServed", "after: Verified Verified")
	if !result.Completion.Ready() || result.RequeueAfter == 0 {
		t.Errorf("ready %v, again after %s; want it ready, and the kind looked for", result.Completion.Ready(), result.RequeueAfter)
	}
	w.site.Serve(w.site.Kind("Probe"))
	w.mustRun()
	w.expectWrites("H1: it has appeared", "create Probe p")
}

func TestNobodyDeletesOrRollsOutBehindWhatRegressed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, chain)
	w.mustRun()
	w.available("shop")
	w.mustRun()
	w.change("Deployment", "shop", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, int64(0), "status", "availableReplicas")
	})
	w.load(strings.Replace(chain, `ports: [{port: 80}]`, `ports: [{port: 81}]`, 1))
	w.mustRun()
	w.expectWrites("F1: the front is neither deleted nor rolled out anew")
	w.available("shop")
	w.mustRun()
	w.expectWrites("F1: now it is", "update Service shop")
}

// What is held was asked for once, and may not be wanted any more.
func TestDriftOfAHeldComponentIsNotRepaired(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
components: web: objects: deployment: _deployment & {metadata: name: "web", spec: replicas: 1}
components: front: {
	when: live.web.deployment.status.availableReplicas > 0
	objects: page: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "front", data: text: "page"}
}
`)
	w.mustRun()
	w.available("web")
	expectStates(t, w.mustRun(), "web: Verified Verified", "front: Verified Verified")
	w.wrote()
	w.change("Deployment", "web", func(u *unstructured.Unstructured) { delete(u.Object, "status") })
	w.change("ConfigMap", "front", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "theirs", "data", "text")
	})
	expectStates(t, w.mustRun(), "web: Applied NotReady", "front: Held Undecided")
	w.expectWrites("neither created nor deleted nor repaired")
}

func TestAComponentSaysWhichDependenciesItWaitsFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
components: web: objects: deployment: _deployment & {metadata: name: "web", spec: replicas: 1}
components: config: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "config"}
components: early: objects: deployment: _deployment & {metadata: name: "early", spec: replicas: 1}
components: front: {
	dependsOn: {web: {}, config: {}, early: until: "applied"}
	objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "front", data: of: live.web.deployment.metadata.name}
}
`)
	for _, c := range w.mustRun().Completion.Components {
		want := map[string][]string{"front": {"web"}}[c.Name]
		if diff := cmp.Diff(want, c.WaitsFor); diff != "" {
			t.Errorf("%s waits for other components (-want +got):\n%s", c.Name, diff)
		}
	}
}

// The cache of inputs does not have yet what the same rollout has written.
func TestAnInputThatTheRolloutItselfHasWrittenIsThereAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
inputs: made: {apiVersion: "v1", kind: "ConfigMap", name: "made"}
components: first: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "made", data: size: "\(cr.spec.size)"}
components: second: {
	dependsOn: first: {}
	objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "second", data: size: inputs.made.object.data.size}
}
`)
	expectStates(t, w.mustRun(), "first: Verified Verified", "second: Verified Verified")
	w.expectWrites("one rollout is enough", "create ConfigMap made", "create ConfigMap second")
}

// countedEvaluations counts how often a package is evaluated.
type countedEvaluations struct {
	*program.Program
	n atomic.Int64
}

// Evaluate implements rollout.Evaluator.
func (c *countedEvaluations) Evaluate(s program.Session) (program.Rollout, error) {
	c.n.Add(1)
	return c.Program.Evaluate(s)
}

// Evaluations are most of what a resource costs that needs nothing.
func TestARolloutAtRestEvaluatesOnceWhateverItsDepth(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
components: a: objects: o: `+configMap("a", "")+`
components: b: {dependsOn: a: {}, objects: o: `+configMap("b", "")+`}
components: c: {dependsOn: b: {}, objects: o: `+configMap("c", "")+`}
`)
	w.mustRun()
	w.mustRun()
	counted := &countedEvaluations{Program: w.program}
	e := &rollout.Engine{Package: counted, Cluster: w.cluster, Reach: w.program.Reach(), Parallel: 4}
	result, err := e.Run(t.Context(), rollout.Input{Owner: w.owner, CR: w.cr(), Inventory: w.inventory})
	if err != nil || !result.Completion.Ready() {
		t.Fatalf("states %v, error %v", states(result), err)
	}
	if n := counted.n.Load(); n != 1 {
		t.Errorf("the package was evaluated %d times, want once", n)
	}
}
