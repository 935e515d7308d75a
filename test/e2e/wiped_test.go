package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/test/controlplane"
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

func TestAnUnreadableInventoryStopsEverythingUntilItIsRemoved(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "garbled", layered)
	s.operate(p.dir)
	cr, other := s.create(p.thing(s, "shop", map[string]any{})), s.create(p.thing(s, "store", map[string]any{}))
	before := s.expectAllReady(cr)
	s.expectAllReady(other)
	for _, name := range []string{"shop", "store"} {
		s.garble(p, name)
	}
	s.settle()

	// Whatever is asked of it, nothing is done, and what cannot be read is kept.
	from := mark(t)
	s.patch(cr, spec(map[string]any{"text": "b"}))
	t.Log(s.expectNotReady(cr, "StatusUnreadable", "status.inventory[0].objects[0].apiVersion", `"a/b/c"`, "remove status.inventory"))
	t.Log(s.kubectl("get", "things."+p.name+".example.com", "shop"))
	s.delete(s.ref("Secret", "top-shop-a"))
	s.delete(other)
	held := s.expectThat(other, "to be held", func(u *unstructured.Unstructured) error {
		if field(u, "status", "phase") != "Deleting" || condition(u, "Stalled")["reason"] != "StatusUnreadable" {
			return fmt.Errorf("its status is %s", encode(t, field(u, "status")))
		}
		return nil
	})
	s.settle()
	if got := field(held, "status", "inventory"); !strings.Contains(string(encode(t, got)), "a/b/c") {
		t.Errorf("what could not be read was written over: %s", encode(t, got))
	}
	if wrote := s.operatorRequests(from).mutating().only(func(e controlplane.AuditEvent) bool { return e.Resource != "things" || e.Subresource != "status" }); len(wrote) > 0 {
		t.Errorf("the operator wrote more than the status: %s", wrote)
	}
	s.get("ConfigMap", "base-store")

	// The remedy acts at once, although it changes no generation.
	for _, name := range []string{"shop", "store"} {
		s.kubectl("patch", "things."+p.name+".example.com", name, "--subresource=status", "--type=json", `-p=[{"op": "remove", "path": "/status/inventory"}]`)
	}
	began := time.Now()
	after := s.expectAllReady(cr)
	t.Logf("ready %s after the remedy", since(began))
	s.get("Secret", "top-shop-b")
	if n, m := inventorySize(after), inventorySize(before); n != m {
		t.Errorf("the inventory has %d components, %d before", n, m)
	}
	s.expectGone(other)
	s.expectGone(s.ref("ConfigMap", "base-store"))
}

// garble makes the inventory of a resource unreadable, as far as its schema allows.
func (s *site) garble(p *small, name string) {
	s.t.Helper()
	u, err := read(s.t.Context(), p.thing(s, name, nil))
	if err != nil {
		s.t.Fatal(err)
	}
	of := func(op, path string, value any) client.Patch {
		return client.RawPatch(types.JSONPatchType, encode(s.t, []any{map[string]any{"op": op, "path": path, "value": value}}))
	}
	if err := world.admin.Status().Patch(s.t.Context(), u.DeepCopy(), of("replace", "/status/inventory", "nothing")); !apierrors.IsInvalid(err) {
		s.t.Errorf("the schema takes an inventory that is a text: %v", err)
	}
	if err := world.admin.Status().Patch(s.t.Context(), u, of("replace", "/status/inventory/0/objects/0/apiVersion", "a/b/c")); err != nil {
		s.t.Fatal(err)
	}
}

func TestAStatusThatIsWipedWhileTheOperatorRunsIsRebuiltAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "wipedrunning", layered)
	s.operate(p.dir)
	cr := s.create(p.thing(s, "shop", map[string]any{}))
	before := s.expectAllReady(cr)
	s.wipeStatus(p, "shop")
	began := time.Now()
	after := s.expectAllReady(cr)
	t.Logf("rebuilt after %s", since(began))
	if n, m := inventorySize(after), inventorySize(before); n != m || n == 0 {
		t.Errorf("the inventory has %d components, %d before", n, m)
	}
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
