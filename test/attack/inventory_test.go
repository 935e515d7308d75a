package attack

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
)

// createVictims creates objects that the attacker does not own: a Secret and a Deployment of another
// tenant, a ClusterRole, a Namespace, and a ConfigMap in the namespace of the attacker's resource.
func createVictims(s *harness.Env, far string) []*unstructured.Unstructured {
	s.T.Helper()
	labels := map[string]any{"app": "victim"}
	deployment := harness.Object("apps/v1", "Deployment", far, "victim")
	deployment.Object["spec"] = map[string]any{
		"replicas": int64(0), "selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": []any{map[string]any{"name": "main", "image": "main:1"}}}},
	}
	out := []*unstructured.Unstructured{
		harness.Object("v1", "Secret", far, "victim"),
		harness.Object("v1", "Namespace", "", s.Namespace+"-victim"),
		harness.Object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "victim-"+s.Namespace),
		deployment,
		s.ConfigMap("victim", map[string]any{"text": "mine"}),
	}
	for i, u := range out {
		out[i] = s.Create(u)
	}
	return out
}

// forgedStatus returns a status whose inventory names objects, as an attacker writes it who once has
// read their UIDs. An object without a namespace gets that of the resource.
func forgedStatus(namespace string, truthful bool, objects ...*unstructured.Unstructured) map[string]any {
	var entries []any
	for i, u := range objects {
		e := map[string]any{"object": fmt.Sprintf("o%d", i), "apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "name": u.GetName(), "uid": string(u.GetUID())[:8]}
		switch at := u.GetNamespace(); {
		case at == "" && truthful:
			e["clusterScoped"] = true
		case at != namespace && at != "":
			e["namespace"] = at
		}
		entries = append(entries, e)
	}
	return map[string]any{"status": map[string]any{"inventory": []any{map[string]any{"component": "old", "objects": entries}}}}
}

// expectUnharmed expects that the objects exist and are not being deleted.
func expectUnharmed(s *harness.Env, when string, objects ...*unstructured.Unstructured) {
	s.T.Helper()
	for _, u := range objects {
		got, err := harness.GetOrNil(s.T.Context(), u)
		if err != nil || got == nil || got.GetUID() != u.GetUID() || got.GetDeletionTimestamp() != nil {
			s.T.Errorf("%s, %s %s is gone or about to go: %v", when, u.GetKind(), u.GetName(), err)
		}
	}
}

// waitUntilNotInInventory waits until the inventory of a resource has no forged component.
func waitUntilNotInInventory(s *harness.Env, cr *unstructured.Unstructured) {
	s.T.Helper()
	s.ExpectObject(cr, "to forget what was forged", func(u *unstructured.Unstructured) error {
		list, _ := harness.Field(u, "status", "inventory").([]any)
		if len(list) == 0 || strings.Contains(string(harness.Encode(s.T, list)), `"old"`) {
			return fmt.Errorf("it has %s", harness.Encode(s.T, list))
		}
		return nil
	})
}

// TestAttackWhoWritesAStatusDeletesNothing: mallory has all rights on the kind of a package that owns
// ConfigMaps in the namespace of the resource, and no other rights. A status that she writes must not
// make the operator delete objects.
func TestAttackWhoWritesAStatusDeletesNothing(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "forgery", helloBody)
	o := s.StartOperator(p.Dir)
	far := s.OtherNamespace()
	all := createVictims(s, far)
	mallory := s.Tenant("mallory", s.Namespace, things(p))
	cr := mallory.Create(p.Thing(s, "shop", nil))
	s.ExpectResourceReady(cr)

	for _, truthful := range []bool{true, false} {
		if err := mallory.PatchStatus(cr, forgedStatus(s.Namespace, truthful, all...)); err != nil {
			t.Fatal(err)
		}
		if err := mallory.Patch(cr, harness.Annotation("operetta.dev/reconcile-at", fmt.Sprint(truthful))); err != nil {
			t.Fatal(err)
		}
		waitUntilNotInInventory(s, cr)
		s.ExpectResourceReady(cr)
		expectUnharmed(s, fmt.Sprintf("pruned by an inventory (truthful %v)", truthful), all...)
	}
	t.Log(s.ExpectEvent("shop", "OutOfReach", "Secret "+far+"/victim", "ClusterRole victim-"+s.Namespace))
	t.Log(s.ExpectEvent("shop", "Kept", "ConfigMap "+s.Namespace+"/victim"))

	// The resource is deleted with the operator's finalizer, so that it is torn down.
	tearDown := func(when, name string) {
		cr := mallory.Create(p.Thing(s, name, nil))
		s.ExpectResourceReady(cr)
		o.Stop()
		if err := mallory.PatchStatus(cr, forgedStatus(s.Namespace, true, all...)); err != nil {
			t.Fatal(err)
		}
		if err := mallory.Patch(cr, map[string]any{"metadata": map[string]any{"finalizers": []any{"operetta.dev/teardown"}}}); err != nil {
			t.Fatal(err)
		}
		if err := mallory.Client.Delete(t.Context(), cr.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		if when == "torn down" {
			o = s.StartOperator(p.Dir)
		} else {
			s.StartOperator(harness.NewTestPackage(t, "forgeryby", strings.ReplaceAll(helloBody, "cr.metadata.name", `"by-\(cr.metadata.name)"`)).Dir)
		}
		s.ExpectGone(cr)
		expectUnharmed(s, when, all...)
	}
	tearDown("torn down", "second")
	tearDown("torn down without its package", "third")
}

// TestAttackForgedKindsThatAreNotServedOpenNoWatches: an inventory lists an object of each of 40 kinds that the
// API server does not know. They take no place of a watch from others: there are only so many.
func TestAttackForgedKindsThatAreNotServedOpenNoWatches(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "manykinds", helloBody)
	o := s.StartOperator(p.Dir)
	mallory := s.Tenant("mallory", s.Namespace, things(p))
	cr := mallory.Create(p.Thing(s, "shop", nil))
	s.ExpectResourceReady(cr)
	var forged []*unstructured.Unstructured
	for i := range 40 {
		u := harness.Object("example.org/v1", fmt.Sprintf("Forged%d", i), s.Namespace, "old")
		u.SetUID("00000000-0000-0000-0000-000000000000")
		forged = append(forged, u)
	}
	from := harness.MarkAudit(t)
	if err := mallory.PatchStatus(cr, forgedStatus(s.Namespace, true, forged...)); err != nil {
		t.Fatal(err)
	}
	if err := mallory.Patch(cr, harness.Annotation("operetta.dev/reconcile-at", "now")); err != nil {
		t.Fatal(err)
	}
	waitUntilNotInInventory(s, cr)
	s.ExpectResourceReady(cr)
	if requests := s.OperatorRequests(from).Filter(func(e controlplane.AuditEvent) bool { return strings.HasPrefix(e.Resource, "forged") }); len(requests) > 0 {
		t.Errorf("kinds that are not served cost %s", requests)
	}
	if strings.Contains(o.Log.From(0), "too many kinds") {
		t.Error("kinds that are not served take the places of watches")
	}
}

// TestAttackAnInventoryIsOnlyBelievedOfWhatTheObjectConfirms: an object whose owner labels were removed
// gets them again while it is rendered, and is left when it is not.
func TestAttackAnInventoryIsOnlyBelievedOfWhatTheObjectConfirms(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "hearsay", helloBody+`
reach: ConfigMap: namespaces: "*": true
`)
	s.StartOperator(p.Dir, harness.Everywhere, harness.Alone)
	far := s.OtherNamespace()
	mallory := s.Tenant("mallory", s.Namespace, things(p))
	theirs := harness.Object("v1", "ConfigMap", far, "theirs")
	theirs.Object["data"] = map[string]any{"text": "theirs"}
	named := harness.Object("v1", "ConfigMap", far, "named")
	cr := mallory.Create(p.Thing(s, "shop", nil))
	s.ExpectResourceReady(cr)
	// The name of a resource is no secret. An object that an older engine has marked with only the name
	// is confirmed by its UID in the inventory.
	withOwnerMarks(named, p, s.Namespace, "shop", nil)
	for _, u := range []*unstructured.Unstructured{theirs, named} {
		s.Create(u)
	}
	unconfirmed := named.DeepCopy()
	unconfirmed.SetUID("00000000-0000-0000-0000-000000000000")
	if err := mallory.PatchStatus(cr, forgedStatus(s.Namespace, true, theirs, unconfirmed)); err != nil {
		t.Fatal(err)
	}
	if err := mallory.Patch(cr, harness.Annotation("operetta.dev/reconcile-at", "now")); err != nil {
		t.Fatal(err)
	}
	waitUntilNotInInventory(s, cr)
	s.ExpectResourceReady(cr)
	expectUnharmed(s, "where the package reaches", theirs, named)
	if slices.ContainsFunc(harness.Field(s.ExpectObject(cr, "to be there", harness.Exists), "status", "inventory").([]any), func(g any) bool {
		return strings.Contains(string(harness.Encode(t, g)), "theirs")
	}) {
		t.Error("the inventory still names what is somebody else's")
	}
}

// TestAttackAnInventoryOfThousandsOfObjectsIsForgotten: an inventory lists as many objects as its status has room for, in place of
// those that there are. It left the resource without room for its own, and each of them was looked for at once.
func TestAttackAnInventoryOfThousandsOfObjectsIsForgotten(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "thousands", helloBody)
	s.StartOperator(p.Dir)
	mallory := s.Tenant("mallory", s.Namespace, things(p), configMaps())
	for name, row := range map[string]struct {
		entries, name int
	}{
		"that take a fraction of the room": {800, 40},
		"that take all of the room":        {2500, 250},
	} {
		cr := mallory.Create(p.Thing(s, fmt.Sprint("shop-", row.name), nil))
		s.ExpectResourceReady(cr)
		theirs := mallory.Create(s.ConfigMap(fmt.Sprint("theirs-", row.name), nil))
		forged := []*unstructured.Unstructured{theirs}
		for i := range row.entries {
			u := s.ConfigMap(fmt.Sprintf("%s%d", strings.Repeat("x", row.name-8), i), nil)
			u.SetUID("00000000-0000-0000-0000-000000000000")
			forged = append(forged, u)
		}
		from := harness.MarkAudit(t)
		if err := mallory.PatchStatus(cr, forgedStatus(s.Namespace, true, forged...)); err != nil {
			t.Fatal(err)
		}
		if err := mallory.Patch(cr, harness.Spec(map[string]any{"text": "changed"})); err != nil {
			t.Fatal(err)
		}
		s.ExpectData(cr.GetName(), "text", "changed")
		first := s.OperatorRequests(from).Filter(func(e controlplane.AuditEvent) bool { return e.Verb == "get" && e.Resource == "configmaps" })
		if len(first) > 2*400+10 {
			t.Errorf("%s: %d objects are read before the resource has what its spec says", name, len(first))
		}
		waitUntilNotInInventory(s, cr)
		s.ExpectResourceReady(cr)
		expectUnharmed(s, name, theirs)
		all := s.OperatorRequests(from).Filter(func(e controlplane.AuditEvent) bool { return e.Verb == "get" && e.Resource == "configmaps" })
		t.Logf("%s: %d reads up to the first write, and %d of %d entries", name, len(first), len(all), row.entries)
		if len(all) > row.entries+500 {
			t.Errorf("%s: %d reads of %d entries", name, len(all), row.entries)
		}
	}
}
