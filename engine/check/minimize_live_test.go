package check_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/check"
	"operetta.dev/engine/render"
)

// lively is a package with objects that a fault does not need, and a fault that shows once the Deployment is available.
const lively = `
components: web: objects: deployment: {
	apiVersion: "apps/v1", kind: "Deployment"
	metadata: name: cr.metadata.name
	spec: {replicas: 2, selector: matchLabels: app: "web", template: {metadata: labels: app: "web", spec: containers: [{name: "web", image: "web:1"}]}}
}
components: {for i in ["a", "b", "c", "d"] {"other-\(i)": objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(cr.metadata.name)-\(i)", data: {x: "1", y: "2"}}}}
components: late: objects: cm: {
	apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(cr.metadata.name)-late"
	data: n: "\(live.web.deployment.status.availableReplicas)" & ("0" | "1")
}
`

func TestAFaultOfALiveStateShowsWithTheFewestObjectsAndFields(t *testing.T) {
	t.Parallel()
	p := largePackage(t, "size: 1 | 2", "", lively)
	report, err := check.Run(t.Context(), p, check.Options{})
	if err != nil || len(report.Counterexamples) != 1 {
		t.Fatalf("%v, %v", report.Counterexamples, err)
	}
	f := report.Counterexamples[0]
	want := []map[string]any{{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "example", "namespace": "default"},
		"status": map[string]any{"availableReplicas": int64(2)},
	}}
	if diff := cmp.Diff(want, f.Live); diff != "" {
		t.Errorf("the live objects (-want +got):\n%s", diff)
	}
	out, err := render.Render(t.Context(), p, render.Input{CR: f.Resource, Manifests: f.Live})
	if err != nil || len(out.Faults) != 1 || out.Faults[0].Message != f.Fault.Message {
		t.Errorf("render shows %v and not %v (%v)", out.Faults, f.Fault, err)
	}
}
