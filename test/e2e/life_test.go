package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"operetta.dev/test/controlplane"
)

// fixture returns the folder of a package that was written for these tests. They are
// such as people write: the files life_*_test.go have their lives.
func fixture(name string) string { return filepath.Join(world.root, fixtures, name) }

// fixtures is where these packages are in the repository.
const fixtures = "test/e2e/packages"

// allFixtures returns the folders of all these packages.
func allFixtures() []string {
	var out []string
	for _, name := range []string{"queue", "postgres", "kafka", "kafkatopic", "team", "platform"} {
		out = append(out, fixture(name))
	}
	return out
}

// sample returns the sample resource of such a package in the site's namespace.
func (s *site) sample(name string) *unstructured.Unstructured {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(fixture(name), "sample.yaml"))
	if err != nil {
		s.t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(b, &u.Object); err != nil {
		s.t.Fatal(err)
	}
	u.SetNamespace(s.namespace)
	return u
}

// A step is what happens to a resource in its life, and what is expected of it then.
type step struct {
	name string
	do   func(s *site)
}

// live goes through steps one after the other, and ends with the first that fails.
func (s *site) live(steps ...step) {
	s.t.Helper()
	for _, next := range steps {
		if !s.t.Run(next.name, func(t *testing.T) {
			here, operator := *s, *s.operator
			here.t, operator.t, here.operator = t, t, &operator
			next.do(&here)
		}) {
			return
		}
	}
}

// objectsOf returns the identities of the objects in a resource's inventory.
func (s *site) objectsOf(cr *unstructured.Unstructured) []*unstructured.Unstructured {
	s.t.Helper()
	got := s.expectThat(cr, "to exist", exists)
	var out []*unstructured.Unstructured
	groups, _ := field(got, "status", "inventory").([]any)
	for _, g := range groups {
		entries, _ := g.(map[string]any)["objects"].([]any)
		for _, e := range entries {
			at := e.(map[string]any)
			text := func(key string) string { value, _ := at[key].(string); return value }
			namespace := text("namespace")
			if scoped, _ := at["clusterScoped"].(bool); namespace == "" && !scoped {
				namespace = cr.GetNamespace()
			}
			out = append(out, object(text("apiVersion"), text("kind"), namespace, text("name")))
		}
	}
	if len(out) == 0 {
		s.t.Errorf("%s %s has no objects", cr.GetKind(), cr.GetName())
	}
	return out
}

// expectBudget does something that ends when resources are Ready, and expects the
// operator to have written each of their objects once at most, and three times to each
// resource, besides progress. It returns the requests.
func (s *site) expectBudget(act func(), crs ...*unstructured.Unstructured) requests {
	s.t.Helper()
	from, began := mark(s.t), time.Now()
	act()
	took := since(began)
	all := s.operatorRequests(from)
	objects := 0
	for _, cr := range crs {
		objects += len(s.objectsOf(cr))
	}
	writes, reads := all.writes(), all.verbs("get", "list")
	s.t.Logf("%d objects, %s: %d writes (%s), %d Events; reads: %s", objects, took, len(writes), writes, len(all.events()), reads)
	// What a Job was made with and how it has ended is stored at once: it may remove itself.
	endings := 2 * len(writes.about("jobs"))
	limit := objects + endings + len(crs)*(3+int(took/progressEvery))
	if len(writes) > limit {
		s.t.Errorf("%d writes of %d objects, not %d", len(writes), objects, limit)
	}
	// Whether something that was deleted is gone has to be asked.
	if gets := reads.verbs("get"); len(gets) > objects && len(writes.verbs("delete")) == 0 {
		s.t.Errorf("%d single reads for %d objects: %s", len(gets), objects, gets)
	}
	return all
}

// expectWritten expects the operator to have written objects of some resources, as in
// "statefulsets", each once, and no others but the custom resources.
func (s *site) expectWritten(all requests, resources ...string) {
	s.t.Helper()
	var got []string
	for _, e := range all.writes() {
		if !strings.HasSuffix(e.Group, "example.com") {
			got = append(got, e.Resource)
		}
	}
	slices.Sort(got)
	slices.Sort(resources)
	if !slices.Equal(got, resources) {
		s.t.Errorf("written were %q, not %q", got, resources)
	}
}

// expectRefused changes a resource in a way that the API server refuses, and expects
// its answer to say why, and the operator to have nothing to do with it.
func (s *site) expectRefused(cr *unstructured.Unstructured, change map[string]any, parts ...string) {
	s.t.Helper()
	before, from := s.expectThat(cr, "to exist", exists), mark(s.t)
	_, err := kubectl(s.t.Context(), "--namespace="+s.namespace, "patch", resourceOf(cr), cr.GetName(), "--type=merge", "--patch="+string(encode(s.t, change)))
	if err == nil || !containsAll(err.Error(), parts) {
		s.t.Errorf("the change was answered with %v, which has not %q", err, parts)
	}
	if after := s.expectThat(cr, "to exist", exists); after.GetGeneration() != before.GetGeneration() {
		s.t.Error("the resource was changed")
	}
	if asked := s.operatorRequests(from).mutating(); len(asked) > 0 {
		s.t.Errorf("the operator wrote: %s", asked)
	}
}

// resourceOf returns how kubectl knows the kind of an object.
func resourceOf(u *unstructured.Unstructured) string {
	kind := u.GroupVersionKind()
	return strings.ToLower(kind.Kind) + "." + kind.Version + "." + kind.Group
}

// expectUndone changes an object by hand, and expects it to be as before in time, and
// then to be left alone.
func (s *site) expectUndone(u *unstructured.Unstructured, change map[string]any) {
	s.t.Helper()
	before := content(s.expectThat(u, "to exist", exists))
	began := time.Now()
	if changed := s.patch(u, change); cmp.Equal(before, content(changed)) {
		s.t.Errorf("%s %s is not changed by %s", u.GetKind(), u.GetName(), encode(s.t, change))
	}
	took := within(s.t, repairLimit*tries, fmt.Sprintf("%s %s to be as before", u.GetKind(), u.GetName()), func() error {
		got, err := read(s.t.Context(), u)
		if err != nil || got == nil {
			return fmt.Errorf("reading it: %v, %w", got, err)
		}
		if diff := cmp.Diff(before, content(got)); diff != "" {
			return fmt.Errorf("(-before +after):\n%s", diff)
		}
		return nil
	})
	s.t.Logf("%s %s was as before %s after the change, looked at for %s", u.GetKind(), u.GetName(), took.Round(time.Millisecond), since(began))
}

// content is what somebody wants of an object, and not what the API server and
// controllers say about it.
func content(u *unstructured.Unstructured) map[string]any {
	out := maps.Clone(u.Object)
	delete(out, "status")
	annotations := maps.Clone(u.GetAnnotations())
	maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.Contains(key, "kubernetes.io/") })
	out["metadata"] = map[string]any{"labels": u.GetLabels(), "annotations": annotations, "owners": u.GetOwnerReferences()}
	return out
}

// expectRestored deletes an object by hand, and expects another one in time.
func (s *site) expectRestored(u *unstructured.Unstructured) {
	s.t.Helper()
	before := s.expectThat(u, "to exist", exists)
	s.delete(u)
	took := within(s.t, repairLimit*tries, fmt.Sprintf("%s %s to return", u.GetKind(), u.GetName()), func() error {
		got, err := read(s.t.Context(), u)
		if err == nil && (got == nil || got.GetUID() == before.GetUID()) {
			err = errNotYet
		}
		return err
	})
	s.t.Logf("%s %s was back after %s", u.GetKind(), u.GetName(), took.Round(time.Millisecond))
}

// expectNothingLeft deletes resources, and expects all their objects to go but those
// that are kept. It returns what the operator deleted, as in "services shop", in order.
func (s *site) expectNothingLeft(crs []*unstructured.Unstructured, kept ...*unstructured.Unstructured) []string {
	s.t.Helper()
	var objects []*unstructured.Unstructured
	for _, cr := range crs {
		objects = append(objects, s.objectsOf(cr)...)
	}
	from, began := mark(s.t), time.Now()
	for _, cr := range crs {
		s.delete(cr)
	}
	for _, cr := range crs {
		s.expectGone(cr)
	}
	s.t.Logf("%d resources with %d objects were gone after %s", len(crs), len(objects), since(began))
	for _, u := range objects {
		if !slices.ContainsFunc(kept, func(k *unstructured.Unstructured) bool { return identity(k) == identity(u) }) {
			s.expectGone(u)
		}
	}
	for _, k := range kept {
		if got := s.expectThat(k, "to be kept", exists); got.GetDeletionTimestamp() != nil {
			s.t.Errorf("%s is being deleted", identity(k))
		}
	}
	var order []string
	for _, e := range s.operatorRequests(from).verbs("delete").only(func(e controlplane.AuditEvent) bool { return e.Code == 200 }) {
		order = append(order, e.Resource+" "+e.Name)
	}
	return order
}

// identity is what tells an object from all others, for people.
func identity(u *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s/%s", u.GroupVersionKind(), u.GetNamespace(), u.GetName())
}

// expectBefore expects that each of some things happened, in their order.
func (s *site) expectBefore(happened []string, wanted ...string) {
	s.t.Helper()
	last := -1
	for _, what := range wanted {
		at := slices.Index(happened, what)
		if at <= last {
			s.t.Errorf("%q is in the wrong place, or not at all; wanted the order %q, got %q", what, wanted, happened)
			return
		}
		last = at
	}
}

// An operator that was refused for good is watched for a time, in which it may ask for
// a few things.
const (
	refusedFor = 10 * time.Second
	few        = 4
)

// expectFewRequests expects an operator that was refused for good to leave it at that:
// besides watches it asks for next to nothing for a while.
func (s *site) expectFewRequests() {
	s.t.Helper()
	from, began := mark(s.t), time.Now()
	eventually(s.t, "the end of the watch", func() error {
		if time.Since(began) < refusedFor {
			return errNotYet
		}
		return nil
	})
	asked := s.operatorRequests(from).unlisted()
	s.t.Logf("within %s after the refusal: %s", since(began), asked)
	if len(asked) > few {
		s.t.Errorf("within %s the operator asked %d times, not %d: %s", since(began), len(asked), few, asked)
	}
}

// dying starts an operator, does something, and ends the operator at the nth write of
// that as a crash would. Another operator takes over.
func (s *site) dying(nth int, act func(), packages ...string) {
	s.t.Helper()
	direct := s.kubeconfig
	between := s.behindProxy()
	between.arm(s.operate(packages...), fault{nth, killed})
	act()
	between.await()
	s.t.Logf("killed at write %d: %s", nth, strings.Join(between.counted(), ", "))
	s.kubeconfig = direct
	s.operate(packages...)
}

// expectSurvived creates a resource of a fixture, and deletes it once it and others
// that come with it are Ready. The operator is killed at the nth write of both. It
// expects each object to have been created once, and nothing to be left in the end but
// what is kept.
func (s *site) expectSurvived(cr *unstructured.Unstructured, created, deleted int, kept []*unstructured.Unstructured, packages ...string) {
	s.t.Helper()
	from := mark(s.t)
	s.dying(created, func() { s.create(cr.DeepCopy()) }, packages...)
	s.expectAllReady(cr)
	objects := s.objectsOf(cr)
	for _, u := range objects {
		s.expectThat(u, "to exist", exists)
	}
	s.operator.kill()
	s.dying(deleted, func() { s.delete(cr) }, packages...)
	s.expectGone(cr)
	for _, u := range objects {
		if !slices.ContainsFunc(kept, func(k *unstructured.Unstructured) bool { return identity(k) == identity(u) }) {
			s.expectGone(u)
		}
	}
	for _, k := range kept {
		s.expectThat(k, "to be kept", exists)
	}
	times := map[string]int{}
	for _, e := range s.operatorRequests(from).writes() {
		if e.Code == 201 {
			times[e.Resource+" "+e.Namespace+"/"+e.Name]++
		}
	}
	maps.DeleteFunc(times, func(_ string, n int) bool { return n == 1 })
	if len(times) > 0 {
		s.t.Errorf("created more than once: %v", times)
	}
}
