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
