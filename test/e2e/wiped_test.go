package e2e

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const layered = `
#Spec: text: string | *"a"

components: base: objects: settings: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: "base-\(cr.metadata.name)"
	data: text: cr.spec.text
}
components: middle: {
	dependsOn: base: {}
	objects: settings: {
		apiVersion: "v1"
		kind:       "ServiceAccount"
		metadata: name: "middle-\(cr.metadata.name)"
	}
}
components: top: {
	dependsOn: middle: {}
	objects: settings: {
		apiVersion: "v1"
		kind:       "Secret"
		metadata: name: "top-\(cr.metadata.name)-\(cr.spec.text)"
	}
}
`

// layeredKinds are the kinds of the objects of layered.
var layeredKinds = []string{"ConfigMap", "ServiceAccount", "Secret"}

func TestStatusThatWasWipedWhileTheOperatorWasAwayIsRebuiltFromLabels(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "wiped", layered)
	o := s.operate(p.dir)
	cr := s.create(p.thing(s, "shop", map[string]any{"text": "a"}))
	before := s.expectAllReady(cr)
	s.get("Secret", "top-shop-a")
	o.stop()
	s.wipeStatus(p, "shop")
	s.patch(cr, spec(map[string]any{"text": "b"}))
	s.operate(p.dir)
	after := s.expectAllReady(cr)
	s.get("Secret", "top-shop-b")
	s.expectGone(s.ref("Secret", "top-shop-a"))
	if n, m := inventorySize(after), inventorySize(before); n != m || n == 0 {
		t.Errorf("the inventory has %d components, %d before", n, m)
	}

	// The order of deletion is known again as well, even right after another loss.
	s.operator.stop()
	s.wipeStatus(p, "shop")
	from := mark(t)
	s.delete(cr)
	s.operate(p.dir)
	s.expectFinished(cr, layeredKinds...)
	s.expectDeleted(from, "secrets", "serviceaccounts", "configmaps")
}

// wipeStatus empties the status of a resource as a bad restore of a backup does.
func (s *site) wipeStatus(p *small, name string) {
	s.t.Helper()
	u := p.thing(s, name, nil)
	patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op": "replace", "path": "/status", "value": {}}]`))
	if err := world.admin.Status().Patch(s.t.Context(), u, patch); err != nil {
		s.t.Fatal(err)
	}
	if left := field(u, "status", "inventory"); left != nil {
		s.t.Fatalf("the status was not wiped: %v", left)
	}
}

func inventorySize(cr interface{ UnstructuredContent() map[string]any }) int {
	status, _ := cr.UnstructuredContent()["status"].(map[string]any)
	list, _ := status["inventory"].([]any)
	return len(list)
}
