package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
)

// inNamespaces creates a resource of a package in each of some namespaces.
func (s *env) inNamespaces(p *harness.TestPackage, name string, labels map[string]string, namespaces ...string) []*unstructured.Unstructured {
	s.T.Helper()
	var out []*unstructured.Unstructured
	for _, namespace := range namespaces {
		cr := p.Thing(s.Env, name, map[string]any{"text": "a"})
		cr.SetNamespace(namespace)
		cr.SetLabels(labels)
		out = append(out, s.Create(cr))
	}
	return out
}

func TestShardsAndASelectorDivideSeveralNamespaces(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	far, third := s.Namespace+"-far", s.Namespace+"-third"
	for _, namespace := range []string{far, third} {
		s.Create(harness.Object("v1", "Namespace", "", namespace))
	}
	p := newTestPackage(t, "sharednamespaces", note("a"))
	from := harness.MarkAudit(t)
	var users []string
	for shard := range 2 {
		one := s.As(fmt.Sprint("shard-", shard))
		users = append(users, one.User)
		one.StartOperator(p.Dir, "--namespace="+s.Namespace, "--namespace="+far, "--selector", "served=yes",
			"--leader-elect", "--leader-elect-namespace", s.Namespace, "--shards", "2", "--shard", strconv.Itoa(shard))
	}
	const each = 6
	var served, left []*unstructured.Unstructured
	for i := range each {
		served = append(served, s.inNamespaces(p.TestPackage, fmt.Sprint("shop-", i), map[string]string{"served": "yes"}, s.Namespace, far)...)
	}
	left = append(left, s.inNamespaces(p.TestPackage, "other", nil, s.Namespace, far)...)
	left = append(left, s.inNamespaces(p.TestPackage, "other", map[string]string{"served": "yes"}, third)...)
	for _, cr := range served {
		s.ExpectResourceReady(cr)
	}
	by := map[string]string{}
	for _, e := range s.RequestsOf(from, users...).Filter(func(e controlplane.AuditEvent) bool { return e.Resource == "configmaps" && e.Verb == "patch" }) {
		key := e.Namespace + "/" + e.Name
		if other := by[key]; other != "" && other != e.User {
			t.Errorf("%s was written by both", key)
		}
		by[key] = e.User
	}
	writers := map[string]int{}
	for _, user := range by {
		writers[user]++
	}
	if len(by) != len(served) || len(writers) != len(users) {
		t.Errorf("%d resources were written, by %v", len(by), writers)
	}
	for _, cr := range left {
		if u := s.ExpectObject(cr, "to exist", harness.Exists); u.Object["status"] != nil {
			t.Errorf("%s/%s is not served, and has a status", u.GetNamespace(), u.GetName())
		}
	}
}

func TestAPackageOfTheClusterIsServedInSeveralNamespaces(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	far, third := s.Namespace+"-far", s.Namespace+"-third"
	for _, namespace := range []string{far, third} {
		s.Create(harness.Object("v1", "Namespace", "", namespace))
	}
	s.StartPackageOperator("--namespace="+s.Namespace+","+far, "--package-missing=teardown")
	p := s.NewPackageObject("severalnamespaces")
	p.Apply(p.InlineBody(note("a")))
	p.Expect("Ready", "True", "Served")
	served := s.inNamespaces(p.TestPackage, "shop", nil, s.Namespace, far)
	other := s.inNamespaces(p.TestPackage, "shop", nil, third)[0]
	for _, cr := range served {
		s.ExpectResourceReady(cr)
	}
	s.ExpectObject(p.Ref(), "to count the resources of both namespaces", func(u *unstructured.Unstructured) error {
		revisions, _ := harness.Field(u, "status", "revisions").([]any)
		counts := fmt.Sprint(revisions)
		if !strings.Contains(counts, "resources:2") {
			return fmt.Errorf("it has %v", u.Object["status"])
		}
		return nil
	})
	p.Apply(p.InlineBody(note("b")))
	for _, cr := range served {
		s.ExpectObject(harness.Object("v1", "ConfigMap", cr.GetNamespace(), "note-shop"), "to have the new version", func(u *unstructured.Unstructured) error {
			if got := harness.Field(u, "data", "version"); got != "b" {
				return fmt.Errorf("it is %v", got)
			}
			return nil
		})
	}
	if u := s.ExpectObject(other, "to exist", harness.Exists); u.Object["status"] != nil {
		t.Errorf("the resource in the third namespace has a status: %v", u.Object["status"])
	}
	objects := slices.Collect(slices.Values(served))
	for _, cr := range objects {
		s.Delete(cr)
		s.ExpectGone(cr)
	}
}
