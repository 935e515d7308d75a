package rollout_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/redact"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// fixedBackoff delays one object of a component by one delay.
type fixedBackoff struct {
	component, object string
	delay             rollout.WriteDelay
}

// Delay implements rollout.WriteBackoff.
func (b fixedBackoff) Delay(component, object string, _ rollout.Need) rollout.WriteDelay {
	if component != b.component || object != b.object {
		return rollout.WriteDelay{}
	}
	return b.delay
}

// Wrote implements rollout.WriteBackoff.
func (fixedBackoff) Wrote(string, string, rollout.WriteCause) {}

// causes delays nothing, and has the causes of writes.
type causes struct {
	fixedBackoff

	all []rollout.WriteCause
}

// Wrote implements rollout.WriteBackoff.
func (c *causes) Wrote(_, _ string, why rollout.WriteCause) { c.all = append(c.all, why) }

// runDelayed runs one rollout that must delay writes.
func (w *world) runDelayed(by rollout.WriteBackoff) rollout.Result {
	w.t.Helper()
	ctx, cancel := w.deadline()
	defer cancel()
	e := &rollout.Engine{Package: w.program, Cluster: w.cluster, Reach: w.program.Reach(), Parallel: 4}
	result, err := e.Run(ctx, rollout.Input{
		Owner: w.owner, CR: w.cr(), Inventory: w.inventory, WriteBackoff: by, Redactor: redact.New(),
		StoreWriteAhead: func(_ context.Context, p rollout.WriteAhead) error {
			w.inventory = p.Inventory
			return nil
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

func TestWhenOneUpdateIsDelayedTheOthersOfItsComponentWaitWithIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
components: pair: objects: {
	a: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "a", data: size: "\(cr.spec.size)"}
	b: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "b", data: size: "\(cr.spec.size)"}
}
`)
	w.mustRun()
	w.wrote()
	w.spec["size"] = int64(2)
	delay := rollout.WriteDelay{Times: 12, Why: rollout.WriteCause{Decision: ownership.Update}, Wait: time.Minute, Longest: time.Hour}
	result := w.runDelayed(fixedBackoff{"pair", "b", delay})
	w.expectWrites("all objects of a component are changed, or none")
	expectStates(t, result, "pair: Retrying KeepsChanging")
	if result.RequeueAfter != time.Minute {
		t.Errorf("it comes again after %s, want when the delay ends", result.RequeueAfter)
	}

	w.spec["size"] = int64(1)
	w.change("ConfigMap", "a", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "9", "data", "size")
	})
	w.runDelayed(fixedBackoff{"pair", "b", delay})
	w.expectWrites("a repair waits for no other object", "update ConfigMap a")
}

// Later rollouts repeat the cause of a write, and may not know the Secret any more.
func TestTheCauseOfAWriteHasNoContentOfASecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `inputs: token: {apiVersion: "v1", kind: "Secret", name: "token"}
components: one: objects: a: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "a", data: (inputs.token.object.data.n): "\(cr.spec.size)"}`)
	w.put("kubectl", &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "token", "namespace": w.site.Namespace}, "data": map[string]any{"n": "aHVudGVyMi9odW50ZXIy"},
	}})
	w.mustRun()
	w.spec["size"] = int64(2)
	by := &causes{}
	w.runDelayed(by)
	if len(by.all) != 1 || by.all[0].Decision != ownership.Update || !strings.Contains(by.all[0].Field, "data") || strings.Contains(by.all[0].Field, "aHVudGVyMi9odW50ZXIy") {
		t.Errorf("the causes are %+v, want one of data without the content", by.all)
	}
}

// The number changes by orders of magnitude, so that the status is not written with each write.
func TestWhatIsWrittenTooOftenSaysWhyAndAboutHowOften(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		delay  rollout.WriteDelay
		want   string
	}{
		"an unknown field":    {"the object is named all the same", rollout.WriteDelay{Times: 10, Why: rollout.WriteCause{Decision: ownership.Update}}, ": it is rendered differently each time, from something that keeps changing, at least 10 times in a row"},
		"a field":             {"it is known", rollout.WriteDelay{Times: 19, Why: rollout.WriteCause{Decision: ownership.Update, Field: "data.size"}}, ": data.size is rendered differently each time, from something that keeps changing, at least 10 times"},
		"another manager":     {"it is known", rollout.WriteDelay{Times: 200, Why: rollout.WriteCause{Decision: ownership.Repair, Field: "data.size", Manager: "rival"}}, ": data.size is changed by manager rival each time it was corrected, at least 200 times"},
		"nobody in the marks": {"somebody it is", rollout.WriteDelay{Times: 9, Why: rollout.WriteCause{Decision: ownership.Repair, Field: "data.size"}}, ": data.size is changed by somebody else each time it was corrected, at least 5 times"},
		"a deletion":          {"it is gone each time", rollout.WriteDelay{Times: 99, Why: rollout.WriteCause{Decision: ownership.Create}}, ": it is deleted each time it was created, at least 50 times"},
		"an adoption":         {"two want it", rollout.WriteDelay{Times: 1, Why: rollout.WriteCause{Decision: ownership.Adopt}}, ": it is taken by somebody else each time it was adopted, at least 1 times"},
		"new objects":         {"each has another name", rollout.WriteDelay{Times: 5, Why: rollout.WriteCause{Decision: ownership.Create, Grows: true}}, ": its component has another new object each time, from something that keeps changing, at least 5 times"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, `components: one: objects: a: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "a", data: size: "\(cr.spec.size)"}`)
			w.mustRun()
			w.spec["size"] = int64(2)
			row.delay.Wait, row.delay.Longest = time.Minute, time.Hour
			result := w.runDelayed(fixedBackoff{"one", "a", row.delay})
			if got := message(result, "one"); !strings.Contains(got, row.want) {
				t.Errorf("%s: it says %q, want %q", row.reason, got, row.want)
			}
			if got := result.Completion.Components[0].State; got != status.Retrying {
				t.Errorf("the component is %s", got)
			}
		})
	}
}
