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
	"operetta.dev/test/harness"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const layeredBody = `
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
	s := newEnv(t)
	p := newTestPackage(t, "wiped", layeredBody)
	o := s.StartOperator(p.Dir)
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{"text": "a"}))
	before := s.ExpectResourceReady(cr)
	s.Get("Secret", "top-shop-a")
	o.Stop()
	s.wipeStatus(p, "shop")
	s.Patch(cr, harness.Spec(map[string]any{"text": "b"}))
	s.StartOperator(p.Dir)
	after := s.ExpectResourceReady(cr)
	s.Get("Secret", "top-shop-b")
	s.ExpectGone(s.Ref("Secret", "top-shop-a"))
	if n, m := inventorySize(after), inventorySize(before); n != m || n == 0 {
		t.Errorf("the inventory has %d components, %d before", n, m)
	}

	// The order of deletion is restored, too, even right after another loss.
	s.Operator.Stop()
	s.wipeStatus(p, "shop")
	from := harness.MarkAudit(t)
	s.Delete(cr)
	s.StartOperator(p.Dir)
	s.ExpectFinished(cr, layeredKinds...)
	s.expectDeleted(from, "secrets", "serviceaccounts", "configmaps")
}

func TestAnUnreadableInventoryStopsEverythingUntilItIsRemoved(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "garbled", layeredBody)
	s.StartOperator(p.Dir)
	cr, other := s.Create(p.Thing(s.Env, "shop", map[string]any{})), s.Create(p.Thing(s.Env, "store", map[string]any{}))
	before := s.ExpectResourceReady(cr)
	s.ExpectResourceReady(other)
	for _, name := range []string{"shop", "store"} {
		s.corruptInventory(p, name)
	}
	s.WaitUntilIdle()

	// Whatever happens, the operator writes nothing, and keeps the unreadable status.
	from := harness.MarkAudit(t)
	s.Patch(cr, harness.Spec(map[string]any{"text": "b"}))
	t.Log(s.ExpectNotReady(cr, "StatusUnreadable", "status.inventory[0].objects[0].apiVersion", `"a/b/c"`, "remove status.inventory"))
	t.Log(s.Kubectl("get", "things."+p.Name+".example.com", "shop"))
	s.Delete(s.Ref("Secret", "top-shop-a"))
	s.Delete(other)
	held := s.ExpectObject(other, "to be held", func(u *unstructured.Unstructured) error {
		if harness.Field(u, "status", "phase") != "Deleting" || harness.Condition(u, "Stalled")["reason"] != "StatusUnreadable" {
			return fmt.Errorf("its status is %s", harness.Encode(t, harness.Field(u, "status")))
		}
		return nil
	})
	s.WaitUntilIdle()
	if got := harness.Field(held, "status", "inventory"); !strings.Contains(string(harness.Encode(t, got)), "a/b/c") {
		t.Errorf("what could not be read was written over: %s", harness.Encode(t, got))
	}
	if wrote := s.OperatorRequests(from).Mutating().Filter(func(e controlplane.AuditEvent) bool { return e.Resource != "things" || e.Subresource != "status" }); len(wrote) > 0 {
		t.Errorf("the operator wrote more than the status: %s", wrote)
	}
	s.Get("ConfigMap", "base-store")

	// The remedy takes effect immediately, although it does not change the generation.
	for _, name := range []string{"shop", "store"} {
		s.Kubectl("patch", "things."+p.Name+".example.com", name, "--subresource=status", "--type=json", `-p=[{"op": "remove", "path": "/status/inventory"}]`)
	}
	began := time.Now()
	after := s.ExpectResourceReady(cr)
	t.Logf("ready %s after the remedy", harness.Elapsed(began))
	s.Get("Secret", "top-shop-b")
	if n, m := inventorySize(after), inventorySize(before); n != m {
		t.Errorf("the inventory has %d components, %d before", n, m)
	}
	s.ExpectGone(other)
	s.ExpectGone(s.Ref("ConfigMap", "base-store"))
}

// corruptInventory makes the inventory of a resource unreadable, within its schema.
func (s *env) corruptInventory(p *testPackage, name string) {
	s.T.Helper()
	u, err := harness.GetOrNil(s.T.Context(), p.Thing(s.Env, name, nil))
	if err != nil {
		s.T.Fatal(err)
	}
	of := func(op, path string, value any) client.Patch {
		return client.RawPatch(types.JSONPatchType, harness.Encode(s.T, []any{map[string]any{"op": op, "path": path, "value": value}}))
	}
	if err := harness.Suite.Admin.Status().Patch(s.T.Context(), u.DeepCopy(), of("replace", "/status/inventory", "nothing")); !apierrors.IsInvalid(err) {
		s.T.Errorf("the schema takes an inventory that is a text: %v", err)
	}
	if err := harness.Suite.Admin.Status().Patch(s.T.Context(), u, of("replace", "/status/inventory/0/objects/0/apiVersion", "a/b/c")); err != nil {
		s.T.Fatal(err)
	}
}

func TestAStatusThatIsWipedWhileTheOperatorRunsIsRebuiltAtOnce(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "wipedrunning", layeredBody)
	s.StartOperator(p.Dir)
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{}))
	before := s.ExpectResourceReady(cr)
	s.wipeStatus(p, "shop")
	began := time.Now()
	after := s.ExpectResourceReady(cr)
	t.Logf("rebuilt after %s", harness.Elapsed(began))
	if n, m := inventorySize(after), inventorySize(before); n != m || n == 0 {
		t.Errorf("the inventory has %d components, %d before", n, m)
	}
}

// wipeStatus empties the status of a resource, like a restore of a backup without statuses.
func (s *env) wipeStatus(p *testPackage, name string) {
	s.T.Helper()
	u := p.Thing(s.Env, name, nil)
	patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op": "replace", "path": "/status", "value": {}}]`))
	if err := harness.Suite.Admin.Status().Patch(s.T.Context(), u, patch); err != nil {
		s.T.Fatal(err)
	}
	if left := harness.Field(u, "status", "inventory"); left != nil {
		s.T.Fatalf("the status was not wiped: %v", left)
	}
}

func inventorySize(cr interface{ UnstructuredContent() map[string]any }) int {
	status, _ := cr.UnstructuredContent()["status"].(map[string]any)
	list, _ := status["inventory"].([]any)
	return len(list)
}
