package rollout_test

import (
	"fmt"
	"strings"
	"testing"

	"operetta.dev/engine/status"
	"operetta.dev/test/machine"
)

func TestARolloutEndsWhateverItsAnswersReveal(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	configMap := `objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: `
	for name, body := range map[string]string{
		"another name each time": `components: "c\(len(live))": ` + configMap + `"c\(len(live))"}`,
		"one more each time":     "import \"list\"\n" + `components: {for i in list.Range(0, len(live)+1, 1) {"c\(i)": ` + configMap + `"c\(i)"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, body)
			got := w.mustRun().Completion.Fault
			if got.Reason != status.ReasonInvalidPackage || !strings.Contains(got.Message, "must not depend on what was applied") {
				t.Errorf("got %+v", got)
			}
			if wrote := w.wrote(); len(wrote) != 100 {
				t.Errorf("it wrote %d objects before it was stopped, want 100", len(wrote))
			}
		})
	}
}

// TestARolloutWhoseGatesOpenAndCloseEnds: each component waits until the one before is there and closes the gates of all others, so each
// pass over the layers applies one of them.
func TestARolloutWhoseGatesOpenAndCloseEnds(t *testing.T) {
	t.Parallel()
	const components = 12
	var body strings.Builder
	for i := range components {
		// Names in descending order: what is tried first is applied last.
		fmt.Fprintf(&body, `components: "c%02d": {objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "c%02d"}, requires: turn: len(live) == %d}`+"\n",
			components-i, components-i, i)
	}
	w := newWorld(t, body.String())
	result := w.mustRun()
	if wrote := w.wrote(); len(wrote) != components {
		t.Errorf("one rollout wrote %q, want each of %d components", wrote, components)
	}
	w.mustRun()
	w.expectWrites("nothing is left to be done")
	if result.Completion.Fault.Reason != "" {
		t.Errorf("the fault is %+v", result.Completion.Fault)
	}
}

// TestWhatDependsOnAComponentThatIsTriedAgainWaitsForIt: an answer opens the gate of a component, and the one that depends on it is not
// one of a package that names a component that does not exist.
func TestWhatDependsOnAComponentThatIsTriedAgainWaitsForIt(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"directly":              "components: y: {dependsOn: x: {}, objects: o: " + configMap("y", "") + "}\n",
		"through a third":       "components: y: {dependsOn: v: {}, objects: o: " + configMap("y", "") + "}\ncomponents: v: {dependsOn: x: {}, objects: o: " + configMap("v", "") + "}\n",
		"and on what it is for": "components: y: {dependsOn: {x: {}, z: {}}, objects: o: " + configMap("y", "") + "}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "components: x: {requires: turn: len(live) >= 1, objects: o: "+configMap("x", "")+"}\n"+body+
				"components: z: objects: o: "+configMap("z", "")+"\nhooks: afterDeployUnsuccessful: alarm: objects: o: "+configMap("alarm", "")+"\n")
			result := w.mustRun()
			if !result.Completion.Ready() {
				t.Errorf("after one rollout: %v", states(result))
			}
			if w.object("ConfigMap", "alarm") != nil {
				t.Error("the hook for what goes wrong has run")
			}
			w.wrote()
			w.mustRun()
			w.expectWrites("nothing is left to be done")
		})
	}
}
