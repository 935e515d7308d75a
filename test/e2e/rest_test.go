package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
)

// forced is how many reconciles D1 asks for.
const forced = 100

func TestD1ForcedReconcilesAtRestCostNoRequest(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	o := s.operate(packageOf("webapp"))
	s.create(s.webapp("shop", everything()))
	s.expectReady("shop")
	s.settle()
	versions, from, count, began := s.versions(), mark(t), o.reconciles("webapp.example.com"), time.Now()
	for range forced {
		s.reconcileOnce("shop")
	}
	done := o.reconciles("webapp.example.com") - count
	all := s.operatorRequests(from)
	t.Logf("%d reconciles in %s; requests: %s", done, since(began), all)
	if done < forced {
		t.Errorf("there were %d reconciles, not %d", done, forced)
	}
	if asked := all.only(func(e controlplane.AuditEvent) bool { return e.Verb != "watch" }); len(asked) > 0 {
		t.Errorf("the operator asked for something at rest: %s", asked)
	}
	if watches := all.verbs("watch"); len(watches) > len(kinds)+1 {
		t.Errorf("%d watches were opened: %s", len(watches), watches)
	}
	for object, version := range s.versions() {
		if object != "WebApp shop" && versions[object] != version {
			t.Errorf("%s changed", object)
		}
	}
}

// versions returns the resourceVersion of each object of the site's WebApps, and of
// the WebApps themselves. An autoscaler counts by its generation and metadata: its
// controller writes to its status at any time.
func (s *site) versions() map[string]string {
	s.t.Helper()
	out := map[string]string{}
	for _, kind := range append([]string{"WebApp"}, kinds...) {
		for _, u := range s.list(apiVersions[kind], kind) {
			if kind == "WebApp" || len(u.GetOwnerReferences()) > 0 {
				out[kind+" "+u.GetName()] = version(&u)
			}
		}
	}
	return out
}

func version(u *unstructured.Unstructured) string {
	if u.GetKind() == "HorizontalPodAutoscaler" {
		return fmt.Sprint(u.GetUID(), u.GetGeneration(), u.GetLabels(), u.GetAnnotations(), len(u.GetOwnerReferences()), field(u, "spec"))
	}
	return u.GetResourceVersion()
}

// crowd is how many settled custom resources D2 restarts with.
const crowd = 50

func TestD2RestartWithSettledResourcesOnlyListsAndWatches(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	o := s.operate(packageOf("webapp"))
	began := time.Now()
	var all sync.WaitGroup
	for i := range crowd {
		all.Go(func() {
			spec := everything()
			spec["autoscaling"] = map[string]any{"enabled": i%2 == 0}
			spec["replicas"] = int64(1)
			if err := world.admin.Create(t.Context(), s.webapp(fmt.Sprintf("shop-%02d", i), spec)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for i := range crowd {
		s.expectReady(fmt.Sprintf("shop-%02d", i))
	}
	t.Logf("%d resources ready after %s", crowd, since(began))
	s.settle()
	versions := s.versions()
	o.stop()

	from, began := mark(t), time.Now()
	o = s.operate(packageOf("webapp"))
	eventually(t, "a reconcile of each resource", func() error {
		if n := o.reconciles("webapp.example.com"); n < crowd {
			return fmt.Errorf("there were %d", n)
		}
		return nil
	})
	t.Logf("all reconciled %s after the restart", since(began))
	s.settle()
	s.expectOnlyListsAndWatches(from)
	after := s.versions()
	changed := 0
	for object, version := range versions {
		if after[object] != version {
			changed++
			t.Errorf("%s changed", object)
		}
	}
	t.Logf("%d of %d objects changed", changed, len(versions))
}

// expectOnlyListsAndWatches looks at what a start of the operator has cost. Left
// out are discovery (which is about no resource) and the installation of the
// CustomResourceDefinitions of the package and of patches, each one apply that changes
// nothing and a look whether it is served. The kinds of packages that do not run here
// cost one list of definitions, and each of them one of metadata, in which resources
// that wait for the engine would be found. Nothing else is left out.
func (s *site) expectOnlyListsAndWatches(from controlplane.AuditMark) {
	s.t.Helper()
	all := s.operatorRequests(from)
	crds := all.about("customresourcedefinitions")
	rest := all.only(func(e controlplane.AuditEvent) bool { return e.Resource != "customresourcedefinitions" })
	s.t.Logf("CustomResourceDefinition: %s; everything else: %s", crds, rest)
	if other := rest.only(func(e controlplane.AuditEvent) bool { return e.Verb != "list" && e.Verb != "watch" }); len(other) > 0 {
		s.t.Errorf("the restart cost more than lists and watches: %s", other)
	}
	if len(crds.verbs("patch")) > 2 || len(crds.verbs("list")) > 1 || len(crds.verbs("patch", "get", "list")) != len(crds) {
		s.t.Errorf("the CustomResourceDefinition cost %s", crds)
	}
	once := map[string]bool{}
	for _, e := range rest.only(ofAnotherPackage) {
		if once[e.Group+e.Resource] || e.Verb != "list" {
			s.t.Errorf("%s of %s: a kind of another package costs more than one list", e.Verb, e.Group)
		}
		once[e.Group+e.Resource] = true
	}
	own := rest.only(func(e controlplane.AuditEvent) bool { return !ofAnotherPackage(e) })
	if lists := own.verbs("list"); len(lists) > len(kinds)+3 {
		s.t.Errorf("%d lists, not one for each of %d kinds and the resource itself, and two of patches: %s", len(lists), len(kinds), lists)
	}
}

// ofAnotherPackage tells what is about the kinds of packages of other tests.
func ofAnotherPackage(e controlplane.AuditEvent) bool {
	return strings.HasSuffix(e.Group, ".example.com")
}

// progressEvery is how often the progress of a resource may be written.
const progressEvery = 3 * time.Second

func TestI7CreationCostsOneWritePerObjectAndThree(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]map[string]any{
		"the example": {"image": "nginx:1.25"},
		"everything":  everything(),
		"everything without an autoscaler to wait for": func() map[string]any {
			s := everything()
			s["autoscaling"] = map[string]any{"enabled": true, "minReplicas": int64(1)}
			return s
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.operate(packageOf("webapp"))
			from, began := mark(t), time.Now()
			s.create(s.webapp("shop", spec))
			s.expectReady("shop")
			took := since(began)
			s.settle()
			all := s.operatorRequests(from)
			writes := all.mutating()
			objects := 0
			for _, kind := range kinds {
				if u, err := s.find(kind, "shop"); u != nil && err == nil {
					objects++
				}
			}
			t.Logf("%d objects, ready after %s: %d writes (%s), %d Events; reads: %s",
				objects, took, len(writes), writes, len(all.events()), all.verbs("get", "list"))
			// Whoever waits is told how it goes, now and then.
			progress := int(took / progressEvery)
			if len(writes) > objects+3+progress {
				t.Errorf("%d writes for %d objects, more than one each, three, and %d of progress", len(writes), objects, progress)
			}
		})
	}
}
