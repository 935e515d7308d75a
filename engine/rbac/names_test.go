package rbac_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"operetta.dev/engine/cluster"
	"operetta.dev/engine/rbac"
	"operetta.dev/engine/vet"
)

// identities returns kind, namespace and name of each object that an operator's roles consist of.
func identities(o rbac.Options) map[string]bool {
	kind := schema.GroupKind{Group: "example.com", Kind: "Shop"}
	p := rbac.Package{Kind: kind, Plural: "shops", Uses: vet.Uses{
		Kinds: []vet.Use{
			{GroupKind: schema.GroupKind{Kind: "Service"}, Scope: cluster.Namespaced, Writes: true, Elsewhere: []string{"shared"}},
			{GroupKind: schema.GroupKind{Kind: "Namespace"}, Scope: cluster.ClusterScoped, Writes: true},
		},
		Binds: []vet.BoundRole{{Role: "view"}, {Role: "view", Place: vet.Place{Namespace: "shared"}}, {Role: "view", Place: vet.Place{Everywhere: true}}},
	}}
	out := map[string]bool{}
	for _, object := range rbac.Roles([]rbac.Package{p}, rbac.Plurals{}, nil, o) {
		about := object.(metav1.ObjectMetaAccessor).GetObjectMeta()
		out[fmt.Sprintf("%T %s/%s", object, about.GetNamespace(), about.GetName())] = true
	}
	return out
}

// many returns so many namespaces.
func many(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("team-%02d", i))
	}
	return out
}

func TestRolesOfTwoOperatorsNeverHaveTheSameName(t *testing.T) {
	t.Parallel()
	account := func(namespace, name string, serves ...string) rbac.Options {
		return rbac.Options{OperatorNamespace: namespace, ServiceAccount: name, Namespaces: serves, LeaderElectionID: "lease"}
	}
	for name, tc := range map[string]struct {
		reason string
		a, b   rbac.Options
	}{
		"OneNamespace":  {"two teams may share a namespace", account("a", "one", "a"), account("a", "two", "a")},
		"Everywhere":    {"two operators of other packages may serve all namespaces", account("a", "one"), account("b", "one")},
		"Dashes":        {"where the namespace ends must be clear", account("a-b", "c"), account("a", "b-c")},
		"TwoNamespaces": {"one account may serve two namespaces by two processes", account("a", "one", "b"), account("a", "one", "c")},
		"Overlapping":   {"one account may serve a namespace with one package by a process, and with another one by another", account("a", "one", "b"), account("a", "one", "b", "c")},
		"Prefix":        {"where a name ends must be clear", account("a", "one", "b", "c"), account("a", "one", "b-c")},
		"Many":          {"a long list has a short name, and others are not named alike", account("a", "one", many(40)...), account("a", "one", many(41)...)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			others := identities(tc.b)
			for one := range identities(tc.a) {
				if others[one] {
					t.Errorf("%s: both have %s", tc.reason, one)
				}
			}
		})
	}
}
