package reconcile_test

import (
	"testing"
	"time"

	"operetta.dev/engine/status"
	"operetta.dev/test/machine"
)

const slow = `
components: web: {
	timeout: "5m"
	objects: deployment: {apiVersion: "apps/v1", kind: "Deployment", metadata: name: "web", spec: replicas: cr.spec.size}
}
components: after: {dependsOn: web: {}, objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "after"}}
hooks: afterVerifyUnsuccessful: alarm: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "alarm"}
`

func TestAComponentHasTheTimeThatItsTimeoutGives(t *testing.T) {
	t.Parallel()
	b := newBench(t, slow)
	start := b.now
	again := b.rest()
	b.expect("it has time", "False NotReady", "web: Deployment default/web")
	if left := start.Add(5 * time.Minute).Sub(b.now); again < left-10*time.Second || again > left+10*time.Second {
		t.Errorf("it wants to come again after %s, want about %s", again, left)
	}
	b.restart()
	b.now = b.now.Add(again)
	b.rest()
	b.expect("a restart does not start the clock anew", "False TimedOut", "web: not ready within 5m0s: Deployment default/web")
	if got, _ := b.condition(status.ConditionStalled); got != "True TimedOut" {
		t.Errorf("Stalled is %q", got)
	}
	alarms := 0
	for _, u := range b.memory.Objects() {
		if u.GetKind() == "ConfigMap" {
			alarms++
		}
	}
	if alarms != 1 {
		t.Errorf("%d ConfigMaps, want that of the hook for what could not be verified", alarms)
	}

	b.heal("web", 1)
	b.rest()
	b.expect("it recovers by itself", "True Ready")

	b.heal("web", 0)
	b.rest()
	b.expect("a regress has its own time", "False NotReady")
}

func TestANewGenerationStartsANewClock(t *testing.T) {
	t.Parallel()
	b := newBench(t, slow)
	b.rest()
	b.now = b.now.Add(4 * time.Minute)
	act(t, b.memory, map[string]any{"size": int64(2)})
	b.rest()
	b.now = b.now.Add(2 * time.Minute)
	b.rest()
	b.expect("six minutes after the first, two after the second", "False NotReady")
	b.now = b.now.Add(3 * time.Minute)
	b.rest()
	b.expect("five after the second", "False TimedOut")
}

func TestTheTimeOfAComponentIsThatOfWhatItWaitsForNow(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	const gated = `
components: gate: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "gate"}
components: gate: verify: open: live.gate.o.data.open == "yes"
` + slow + `
components: web: dependsOn: gate: {}
`
	open := func(b *bench) {
		gate := b.find("ConfigMap", "gate")
		gate.Object["data"] = map[string]any{"open": "yes"}
		b.put(gate.Object)
	}
	causes := map[string]struct {
		reason, body, waits string
		begin, end          func(*bench)
	}{
		"refused": {
			"a quota", slow, "False TimedOut",
			func(b *bench) { b.refuse("Deployment", "web", errRefused) },
			func(b *bench) { b.memory.SetAdmission(nil) },
		},
		"failed": {
			"somebody else's object is in the way", slow, "False OwnedByAnother",
			func(b *bench) {
				b.put(map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": shopKey.Namespace, "name": "web"}})
			},
			func(b *bench) { b.remove("Deployment", "web") },
		},
		"waiting": {
			"another component comes first", gated, "False TimedOut",
			func(*bench) {}, open,
		},
	}
	for name, row := range causes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, row.body)
			row.begin(b)
			b.pass(time.Hour)
			b.expect(row.reason+" for an hour", row.waits)
			row.end(b)
			b.rest()
			b.expect("it has its whole time", "False NotReady", "web: ")
			b.pass(4 * time.Minute)
			b.expect("it has time still", "False NotReady", "web: ")
			b.pass(2 * time.Minute)
			b.expect("and then it had it", "False TimedOut", "web: not ready within 5m0s: Deployment default/web")
		})
	}
}

func TestAKindThatIsNotServedIsLookedForAlsoWhenTheTimeIsOver(t *testing.T) {
	t.Parallel()
	b := newBench(t, `components: web: {timeout: "1m", objects: o: {apiVersion: "example.com/v1", kind: "Widget", metadata: name: "w"}}`)
	b.rest()
	b.pass(time.Hour)
	b.expect("its time is over", "False TimedOut", "web: not ready within 1m0s: object o: ")
	if again := b.rest(); again == 0 || again > 10*time.Second {
		t.Errorf("it looks again after %s, want 10 s at most: no watch reports the kind", again)
	}
}
