package check_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/check"
)

// TestAFieldOfTheSpecThatFlowsIntoAnImmutableFieldIsFound: each row is a package whose resource stays refused after a change, or one with a way out.
func TestAFieldOfTheSpecThatFlowsIntoAnImmutableFieldIsFound(t *testing.T) {
	t.Parallel()
	const (
		mode       = `mode: "plain" | "strict" | *"plain"`
		frozen     = "components: web: objects: cm: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"web\"\nimmutable: true\ndata: mode: cr.spec.mode}"
		deployment = "components: web: objects: d: {apiVersion: \"apps/v1\", kind: \"Deployment\", metadata: name: \"web\", spec: {\nselector: matchLabels: app: cr.spec.mode\ntemplate: {metadata: labels: app: cr.spec.mode, spec: containers: [{name: \"web\", image: \"nginx\"}]}}}"
		job        = `components: web: objects: job: {apiVersion: "batch/v1", kind: "Job", metadata: name: "web", spec: {template: spec: {restartPolicy: "Never", containers: [{name: "web", image: cr.spec.mode}]}}}`
		claim      = `components: web: objects: pvc: {apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: name: "web", spec: {accessModes: ["ReadWriteOnce"], resources: requests: storage: cr.spec.size}}`
		changed    = `a user may change spec.mode from "strict" to "plain", but from then on the API server refuses the object: the field is immutable`
		forbid     = "@crd(immutable) on the field of the spec, or a rule with oldSelf, forbids the change"
		hint       = `: apply: "recreateOnImmutable" deletes the object and recreates it; ` + forbid + `)`
	)
	for name, row := range map[string]struct {
		reason     string
		spec, more string
		want       []string
		resource   map[string]any
	}{
		"the data of an immutable ConfigMap": {
			"the API server refuses the change for ever", mode + ", other: bool | *false", frozen,
			[]string{"shop/shop.cue:22: components.web.objects.cm.data: " + changed + ` (policy: cm` + hint},
			map[string]any{"mode": "strict"},
		},
		"the selector of a Deployment": {
			"the API server refuses the change for ever", mode, deployment,
			[]string{"shop/shop.cue:21: components.web.objects.d.spec.selector: " + changed + ` (policy: d` + hint},
			map[string]any{"mode": "strict"},
		},
		"two fields that change together": {
			"the schema allows neither of the changes alone", mode + `, on: bool | *false, @crd(rule="self.on == (self.mode == 'strict')", message="strict is on")`, frozen,
			[]string{`shop/shop.cue:22: components.web.objects.cm.data: a user may change spec.mode from "strict" to "plain" and spec.on from true to false, but from then on the API server refuses the object: the field is immutable (policy: cm` + hint},
			map[string]any{"mode": "strict", "on": true},
		},
		"an object that is immutable in the simplest case": {
			"the way there is allowed, and only the way back is not", `thawed: bool | *false`,
			"components: web: objects: cm: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"web\"\nimmutable: !cr.spec.thawed\ndata: mode: \"x\"}",
			[]string{"shop/shop.cue:21: components.web.objects.cm.immutable: a user may change spec.thawed from false to true, but from then on the API server refuses the object: the field is immutable (policy: cm" + hint},
			map[string]any{"thawed": true},
		},
		"a claim that is made smaller": {
			"a claim that is recreated has lost its data", `size: "1Gi" | "2Gi" | *"1Gi"`, claim,
			[]string{`shop/shop.cue:20: components.web.objects.pvc.spec: a user may change spec.size from "2Gi" to "1Gi", but from then on the API server refuses the object: the field is immutable (` + forbid + ")"},
			map[string]any{"size": "2Gi"},
		},
		"a Job": {
			"its template is immutable, as long as it is there", mode, job,
			[]string{"shop/shop.cue:20: components.web.objects.job.spec.template: " + changed + ` (policy: job` + hint},
			map[string]any{"mode": "strict"},
		},
		"a Job that vanishes":          {"it is created anew once it is gone", mode, job + "\ncomponents: web: objects: job: spec: ttlSecondsAfterFinished: 60", nil, nil},
		"with the policy":              {"the operator recreates the object", mode, frozen + "\ncomponents: web: policy: cm: apply: \"recreateOnImmutable\"", nil, nil},
		"an object only to be created": {"the operator never changes it", mode, frozen + "\ncomponents: web: policy: cm: apply: \"createOnly\"", nil, nil},
		"a field that stays":           {"the schema forbids the change", mode + " @crd(immutable)", frozen, nil, nil},
		"an object of another name":    {"it is another object", mode, `components: web: objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web-\(cr.spec.mode)", immutable: true, data: mode: cr.spec.mode}`, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, err := check.Run(t.Context(), largePackage(t, row.spec, "", row.more), check.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			var resource map[string]any
			for _, c := range report.Counterexamples {
				got = append(got, c.Fault.Error())
				resource, _ = c.Resource["spec"].(map[string]any)
				if len(c.Live) > 0 {
					t.Errorf("%s: no object has to be there, but got %v", row.reason, c.Live)
				}
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
			if diff := cmp.Diff(row.resource, resource); diff != "" {
				t.Errorf("%s: the resource (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}
