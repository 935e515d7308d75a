package e2e

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

// claimingBody is a package with a StatefulSet whose claim is never bound, and components beside and
// after it.
const claimingBody = `#Spec: replicas: int
live: _
_set: {
	_name:      string
	apiVersion: "apps/v1"
	kind:       "StatefulSet"
	metadata: name: _name
	spec: {
		serviceName: _name
		selector: matchLabels: app: _name
		template: metadata: labels: app: _name
		template: spec: containers: [{name: "main", image: "main:1"}]
		...
	}
}
components: plain: objects: set: _set & {
	_name: "\(cr.metadata.name)-plain"
	spec: replicas: cr.spec.replicas
}
components: after: {
	dependsOn: plain: {}
	objects: map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.metadata.name}
}
components: data: objects: set: _set & {
	_name: cr.metadata.name
	spec: volumeClaimTemplates: [{
		metadata: name: "data"
		spec: {
			accessModes: ["ReadWriteOnce"]
			storageClassName: "nobody"
			resources: requests: storage: "1Gi"
		}
	}]
}
`

func TestStatefulSetThatIsNotReadySaysThatItsClaimIsUnbound(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "claiming", claimingBody)
	s.StartOperator(p.Dir)
	from := harness.MarkAudit(t)
	cr := s.Create(p.Thing(s.Env, "db", map[string]any{"replicas": int64(1)}))
	message := s.ExpectNotReady(cr, "NotReady", "StatefulSet "+s.Namespace+"/db", "Pod db-0", "PersistentVolumeClaim data-db-0 is Pending")
	t.Logf("Ready: %s", message)
	if looks := s.OperatorRequests(from).OfResource("pods"); len(looks) != 1 {
		t.Errorf("the pods were looked at %d times: %s", len(looks), looks)
	}

	// A component that only waits for one that is being scaled counts as ready.
	tallies := s.watchValues(cr, func(u *unstructured.Unstructured) string {
		tally, _ := harness.Field(u, "status", "componentsReady").(string)
		return tally
	})
	s.Patch(cr, harness.Spec(map[string]any{"replicas": int64(4)}))
	s.ExpectObject(harness.Object("apps/v1", "StatefulSet", s.Namespace, "db-plain"), "to have four replicas", func(u *unstructured.Unstructured) error {
		if n := harness.Field(u, "status", "readyReplicas"); n != int64(4) {
			return fmt.Errorf("it has %v", n)
		}
		return nil
	})
	s.ExpectObject(cr, "to have seen it", func(u *unstructured.Unstructured) error {
		if tally := harness.Field(u, "status", "componentsReady"); tally != "2/3" || harness.Field(u, "status", "observedGeneration") != u.GetGeneration() {
			return fmt.Errorf("%v are ready", tally)
		}
		return nil
	})
	if had := tallies()["db"]; slices.Contains(had, "0/3") {
		t.Errorf("a component that runs untouched was counted as not ready: %v", had)
	}
}
