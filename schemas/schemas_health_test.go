package schemas_test

import (
	"fmt"
	"maps"
	"testing"

	"cuelang.org/go/cue"

	"operetta.dev/schemas"
	"operetta.dev/test/machine"
)

// A predicate of a package comes to one of these.
const (
	isTrue    = "true"
	isFalse   = "false"
	isUnknown = "unknown" // incomplete: something is not there yet
	isBroken  = "broken"  // never to be decided
)

// kinds are the definitions of package health, with what else they have to be given.
var kinds = map[string]string{
	"Observed": "", "Deployment": "", "StatefulSet": "", "DaemonSet": "", "Job": "", "Pod": "",
	"Service": "", "Ingress": "", "PersistentVolumeClaim": "", "HorizontalPodAutoscaler": "",
	"Condition": `, type: "Ready"`,
}

// failing are those that can fail for good.
var failing = map[string]bool{"Deployment": true, "Job": true, "Pod": true, "PersistentVolumeClaim": true}

func TestHealthOfWhatIsNotThereIsUnknown(t *testing.T) {
	machine.Serial(t)
	cases := map[string]struct {
		reason string
		live   any
	}{
		"NothingIsLive":      {"The first evaluation of a package has no live objects at all.", nil},
		"NoComponent":        {"Nothing of any component exists.", map[string]any{}},
		"NoObject":           {"Another object of the component exists.", map[string]any{"web": map[string]any{}}},
		"EmptyObject":        {"No API server serves this, but it is no error.", liveObject(map[string]any{})},
		"NoNameAndSpec":      {"The same, one level below.", liveObject(map[string]any{"metadata": map[string]any{}})},
		"NothingButMetadata": {"The same, with labels.", liveObject(map[string]any{"metadata": map[string]any{"labels": map[string]any{}}})},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for kind := range kinds {
				ready, failed := judge(t, kind, tc.live)
				if ready != isUnknown || (failing[kind] && failed != isUnknown) {
					t.Errorf("%s\n#%s is %s, failed is %s", tc.reason, kind, ready, failed)
				}
			}
		})
	}
}

func TestHealthOfWhatIsThereIsDecided(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(object map[string]any)
		ready  string
		except map[string]string // kinds that come to something else
	}{
		"RolledOut": {
			reason: "Everything is as it should be.",
			change: func(map[string]any) {},
			ready:  isTrue,
		},
		"NoStatus": {
			reason: "The object was just created.",
			change: func(o map[string]any) { delete(o, "status") },
			ready:  isFalse,
			except: map[string]string{"Service": isFalse},
		},
		"OldStatus": {
			reason: "The status is about an earlier spec. Every field of it may look well.",
			change: func(o map[string]any) { o["metadata"].(map[string]any)["generation"] = 3 },
			ready:  isFalse,
		},
		"OddConditions": {
			reason: "A condition without fields is nobody's, and does no harm.",
			change: func(o map[string]any) {
				status := o["status"].(map[string]any)
				status["conditions"] = append([]any{map[string]any{}}, status["conditions"].([]any)...)
			},
			ready: isTrue,
		},
		"NoConditions": {
			reason: "An empty list has no first item.",
			change: func(o map[string]any) { o["status"].(map[string]any)["conditions"] = []any{} },
			ready:  isFalse,
			except: map[string]string{
				"Observed": isTrue, "Deployment": isTrue, "StatefulSet": isTrue, "DaemonSet": isTrue,
				"Service": isTrue, "Ingress": isTrue, "PersistentVolumeClaim": isTrue,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for kind := range kinds {
				object := rolledOut(kind, 2)
				tc.change(object)
				want := tc.ready
				if other, ok := tc.except[kind]; ok {
					want = other
				}
				ready, failed := judge(t, kind, liveObject(object))
				if ready != want || (failing[kind] && failed != isFalse) {
					t.Errorf("%s\n#%s is %s, want %s; failed is %s", tc.reason, kind, ready, want, failed)
				}
			}
		})
	}
}

func TestHealthOfNonsenseIsBroken(t *testing.T) {
	for kind := range kinds {
		if ready, _ := judge(t, kind, liveObject("text")); ready != isBroken {
			t.Errorf("#%s of text is %s", kind, ready)
		}
	}
	object := rolledOut("Deployment", 1)
	object["status"].(map[string]any)["availableReplicas"] = "3"
	if ready, _ := judge(t, "Deployment", liveObject(object)); ready != isBroken {
		t.Errorf("a count that is text is %s", ready)
	}
}

// judge evaluates ready and failed of one definition as a package would, with the engine's way to fill in
// what is live.
func judge(t *testing.T, kind string, live any) (ready, failed string) {
	t.Helper()
	v := build(t, schemas.Light(), fmt.Sprintf(`package author
		import "operetta.dev/schemas/health"
		live: _
		_health: health.#%s & {object: live.web.deployment%s}
		ready: _health.ready
		failed: _health.failed`, kind, kinds[kind]))
	if live != nil {
		v = v.FillPath(cue.ParsePath("live"), live)
	}
	return verdict(v.LookupPath(cue.ParsePath("ready"))), verdict(v.LookupPath(cue.ParsePath("failed")))
}

// verdict is what a predicate comes to, by the rule that the engine follows.
func verdict(v cue.Value) string {
	b, err := v.Bool()
	switch {
	case err == nil && b:
		return isTrue
	case err == nil:
		return isFalse
	case v.Validate() == nil:
		return isUnknown
	default:
		return isBroken
	}
}

// liveObject is what the engine fills in for one object.
func liveObject(object any) map[string]any {
	return map[string]any{"web": map[string]any{"deployment": object}}
}

// rolledOut is a healthy object of any kind, in this generation. It is a Deployment and a Pod and a Job
// and the rest at once, which no predicate minds.
func rolledOut(kind string, generation int) map[string]any {
	phase := "Running"
	if kind == "PersistentVolumeClaim" {
		phase = "Bound"
	}
	var conditions []any
	for _, c := range []string{"Ready", "Complete", "AbleToScale", "ScalingActive", "Available", "Progressing"} {
		conditions = append(conditions, map[string]any{"type": c, "status": "True", "reason": "AsPlanned"})
	}
	counts := map[string]any{}
	for _, count := range []string{
		"replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
		"desiredNumberScheduled", "updatedNumberScheduled", "numberAvailable",
	} {
		counts[count] = 3
	}
	status := map[string]any{
		"observedGeneration": generation,
		"phase":              phase,
		"conditions":         conditions,
		"loadBalancer":       map[string]any{"ingress": []any{map[string]any{"ip": "192.0.2.1"}}},
	}
	maps.Copy(status, counts)
	return map[string]any{
		"metadata": map[string]any{"name": "web", "generation": generation},
		"spec":     map[string]any{"replicas": 3, "type": "LoadBalancer"},
		"status":   status,
	}
}
