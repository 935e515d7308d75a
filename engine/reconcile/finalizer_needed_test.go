package reconcile_test

import "testing"

// Garbage collection deletes the objects of a resource unless they have an order, are out of
// its reach, or hooks have to run first. A finalizer where it is not needed would make a
// deletion wait for an operator that may be gone.
func TestAFinalizerIsThereOnlyWhereGarbageCollectionIsNotEnough(t *testing.T) {
	t.Parallel()
	const one = `
components: a: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "a"}`
	for _, test := range []struct {
		name, body string
		want       int
	}{
		{"objects of one component", one, 0},
		{"two components without an order", one + `
components: b: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "b"}`, 0},
		{"an order", one + `
components: b: {dependsOn: a: {}, objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "b"}}`, 1},
		{"an object in another namespace", one + `
reach: ConfigMap: namespaces: elsewhere: true
components: b: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: {name: "b", namespace: "elsewhere"}}`, 1},
		{"a cluster-scoped object", one + `
reach: "ClusterRole.rbac.authorization.k8s.io": {}
components: b: objects: o: {apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: name: "b", rules: []}`, 1},
		{"a hook before deletion", one + `
hooks: beforeDelete: bye: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "bye"}`, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, test.body)
			b.rest()
			if got := b.find("Shop", shopKey.Name).GetFinalizers(); len(got) != test.want {
				t.Errorf("the finalizers are %v, want %d", got, test.want)
			}
		})
	}
}

// TestAFinalizerThatOthersRemoveComesBackInGrowingPauses: without it, the deletion would leave objects behind and run no hook.
func TestAFinalizerThatOthersRemoveComesBackInGrowingPauses(t *testing.T) {
	t.Parallel()
	b := newBench(t, `
components: a: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "a"}
components: b: {dependsOn: a: {}, objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "b"}}`)
	b.rest()
	remove := func() bool {
		u := b.find("Shop", shopKey.Name)
		if len(u.GetFinalizers()) == 0 {
			return false
		}
		u.SetFinalizers(nil)
		if _, err := b.memory.Put("rival", u); err != nil {
			t.Fatal(err)
		}
		return true
	}
	remove()
	b.rest()
	if got := b.find("Shop", shopKey.Name).GetFinalizers(); len(got) != 1 {
		t.Fatalf("the finalizers are %v after one removal", got)
	}
	const minutes = 10
	got := b.live(minutes, remove)
	t.Log(got)
	if first, last := got[0].statuses, got[minutes-1].statuses; first < 5 || first > 20 || last > 1 {
		t.Errorf("it was written %d times in the first minute, and %d times in the last", first, last)
	}
	b.live(minutes, func() bool { return false })
	if got := b.find("Shop", shopKey.Name).GetFinalizers(); len(got) != 1 {
		t.Errorf("the finalizers are %v once nobody removes them", got)
	}
}
