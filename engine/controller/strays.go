package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/flowcontrol"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/program"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Strays says what is done about strays: resources that are being deleted, that wait
// for the engine, and whose package is not served. It is gone, or was broken when the
// process started.
type Strays string

// What is done about strays.
const (
	// StraysTeardown tears them down from their inventories.
	StraysTeardown Strays = "teardown"
	// StraysLeave leaves them to other processes.
	StraysLeave Strays = "leave"
)

// strays tears strays down. Their kinds are found by the label of their definitions,
// once: a resource that is created later has no objects before its package is served.
// A kind is watched only if it has a resource that waits for the engine when it is
// deleted, until its package is served.
//
// The kinds of a package that is broken are watched whole: each of their resources says so.
type strays struct {
	manager *Manager
	log     logr.Logger
	// pace is that of what is said of broken packages.
	pace flowcontrol.RateLimiter

	settled chan struct{}
	settle  func()
	// changed says that what is known of broken packages has changed.
	changed chan struct{}

	mu        sync.Mutex
	attended  map[schema.GroupKind]*attendant
	broken    map[string]*brokenPackage // by their folders
	attending sync.WaitGroup
}

// An attendant is a running watch of one kind.
type attendant struct {
	stop context.CancelFunc
	done chan struct{}
	// wake looks at every resource once more; nil for a kind whose package is not broken.
	wake waker
}

// A waker looks at every resource of a kind, until it is not watched any more.
type waker func(ctx context.Context, done <-chan struct{})

func newStrays(m *Manager) *strays {
	s := &strays{
		manager: m, log: m.options.Log, settled: make(chan struct{}), attended: map[schema.GroupKind]*attendant{},
		changed: make(chan struct{}, 1), broken: map[string]*brokenPackage{},
		pace: flowcontrol.NewTokenBucketRateLimiter(statusPace, 1),
	}
	s.settle = sync.OnceFunc(func() { close(s.settled) })
	return s
}

// statusPace is how many statuses are written in a second when all resources of a package
// are told of something at once.
const statusPace = 200

// Start implements manager.Runnable.
func (s *strays) Start(ctx context.Context) error {
	var following sync.WaitGroup
	following.Go(func() { s.followBroken(ctx) })
	select {
	case <-s.settled:
		if s.tearDown() {
			s.lookForWaiting(ctx)
		}
		<-ctx.Done()
	case <-ctx.Done():
	}
	following.Wait()
	s.attending.Wait()
	return nil
}

// tearDown reports whether deleted resources are torn down, and not left to others.
func (s *strays) tearDown() bool { return s.manager.options.Strays != StraysLeave }

// lookForWaiting attends to the kinds that have resources which wait for the engine.
func (s *strays) lookForWaiting(ctx context.Context) {
	var found []strayKind
	s.insist(ctx, func() (err error) { found, err = s.find(ctx); return err })
	var names []string
	for _, k := range found {
		if s.attend(ctx, k) {
			names = append(names, k.pkg)
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		s.log.Info("deletions that nobody else completes are completed here, for resources of packages that do not run here", "packages", slices.Compact(names))
	}
}

// insist tries something until it succeeds or the context ends.
func (s *strays) insist(ctx context.Context, try func() error) {
	again := wait.Backoff{Duration: firstRetry, Factor: 2, Steps: 10, Cap: lastRetry}
	_ = again.DelayFunc().Until(ctx, true, false, func(context.Context) (bool, error) {
		err := try()
		if err != nil {
			s.log.Info("looking for resources without their package failed, trying again", "error", err.Error())
		}
		return err == nil, nil
	})
}

// beyond reports whether a kind is served, or outside of what the manager may look at.
func (s *strays) beyond(k strayKind) bool {
	return s.manager.serves(k.GroupKind()) || s.manager.options.CustomResourceNamespace != "" && !k.namespaced
}

// find returns the kinds of packages that are not served and have a resource that
// waits for the engine when it is deleted.
func (s *strays) find(ctx context.Context) ([]strayKind, error) {
	kinds, err := s.kinds(ctx)
	if err != nil {
		return nil, err
	}
	var out []strayKind
	for _, k := range kinds {
		if s.beyond(k) {
			continue
		}
		waiting, err := s.hasWaiting(ctx, k)
		switch {
		case apierrors.IsForbidden(err):
			s.log.Info("resources without their package are not looked at: the operator may not list them", "package", k.pkg, "kind", k.GroupKind().String())
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, err
		case waiting:
			out = append(out, k)
		}
	}
	return out, nil
}

// kinds returns the kinds of all packages.
func (s *strays) kinds(ctx context.Context) ([]strayKind, error) {
	definitions := &metav1.PartialObjectMetadataList{}
	definitions.SetGroupVersionKind(definitionKind.GroupVersion().WithKind(definitionKind.Kind + "List"))
	err := s.manager.children.direct.List(ctx, definitions, client.HasLabels{crd.PackageLabel})
	if apierrors.IsForbidden(err) {
		s.log.Info("resources without their package are not looked for: the operator may not list CustomResourceDefinitions")
		return nil, nil
	}
	if err != nil || len(definitions.Items) == 0 {
		return nil, err
	}
	resources, err := cluster.Resources(s.manager.manager.GetConfig())
	if err != nil {
		return nil, err
	}
	return kindsDefined(definitions.Items, resources), nil
}

// A strayKind is the kind of a package.
type strayKind struct {
	schema.GroupVersionKind
	pkg        string
	namespaced bool
	// reach is what the definition says of where the objects of its resources may be; nil
	// is nothing that can be read, as of a definition from before that was said.
	reach *program.Reach
}

// kindsDefined returns the kinds of definitions in the versions that the cluster
// prefers. A definition that is not served yet has no resources.
func kindsDefined(definitions []metav1.PartialObjectMetadata, served []*metav1.APIResourceList) []strayKind {
	defined := map[string]metav1.PartialObjectMetadata{}
	for _, d := range definitions {
		defined[d.Name] = d
	}
	var out []strayKind
	for _, list := range served {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			d, ours := defined[r.Name+"."+gv.Group]
			if ours && !strings.Contains(r.Name, "/") {
				out = append(out, strayKind{GroupVersionKind: gv.WithKind(r.Kind), pkg: d.Labels[crd.PackageLabel], namespaced: r.Namespaced, reach: reachOf(d)})
			}
		}
	}
	return out
}

// reachOf returns what a definition says of the reach of its package, or nil.
func reachOf(definition metav1.PartialObjectMetadata) *program.Reach {
	text, said := definition.Annotations[crd.ReachAnnotation]
	reach, err := program.ParseReach(text)
	if !said || err != nil {
		return nil
	}
	return &reach
}

// page is how many resources are listed at once.
const page = 500

// hasWaiting reports whether a kind has a resource with the engine's finalizer.
func (s *strays) hasWaiting(ctx context.Context, k strayKind) (bool, error) {
	list := &metav1.PartialObjectMetadataList{}
	for {
		next := list.Continue
		list = &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
		err := s.manager.children.direct.List(ctx, list, client.InNamespace(s.manager.options.CustomResourceNamespace), client.Limit(page), client.Continue(next))
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			if waits(&list.Items[i]) {
				return true, nil
			}
		}
		if list.Continue == "" {
			return false, nil
		}
	}
}

// VersionsServed returns the digests of the packages that the resources of a kind were last
// reconciled with. It asks the API server, and errors when the kind cannot be listed.
func (m *Manager) VersionsServed(ctx context.Context, kind schema.GroupVersionKind) (map[string]bool, error) {
	out := map[string]bool{}
	list := newList(kind)
	for {
		next := list.GetContinue()
		list = newList(kind)
		err := m.children.direct.List(ctx, list, client.InNamespace(m.options.CustomResourceNamespace), client.Limit(page), client.Continue(next))
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", kind.GroupKind(), err)
		}
		for i := range list.Items {
			digest, _, _ := unstructured.NestedString(list.Items[i].Object, "status", "package", "digest")
			if digest != "" {
				out[digest] = true
			}
		}
		if list.GetContinue() == "" {
			return out, nil
		}
	}
}

// attend watches the deletions of a kind, unless it is watched or its package is served by
// now, and reports whether it does.
func (s *strays) attend(ctx context.Context, k strayKind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.attended[k.GroupKind()] != nil || s.manager.serves(k.GroupKind()) {
		return false
	}
	watch, err := s.control(k)
	if err != nil {
		s.log.Error(err, "resources without their package cannot be watched", "package", k.pkg, "kind", k.GroupKind().String())
		return false
	}
	s.run(ctx, k.GroupKind(), watch)
	return true
}

// attendBroken watches all resources of a kind whose package is broken.
func (s *strays) attendBroken(ctx context.Context, k strayKind) {
	s.release(k.GroupKind()) // it may be watched for deletions already
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.manager.serves(k.GroupKind()) {
		return
	}
	watch, wake, err := s.controlBroken(k)
	if err != nil {
		s.log.Error(err, "resources of a broken package cannot be watched", "package", k.pkg, "kind", k.GroupKind().String())
		return
	}
	s.run(ctx, k.GroupKind(), watch)
	s.attended[k.GroupKind()].wake = wake
}

// run begins to watch a kind. The caller holds the lock.
func (s *strays) run(ctx context.Context, kind schema.GroupKind, watch func(context.Context)) {
	ctx, stop := context.WithCancel(ctx)
	a := &attendant{stop: stop, done: make(chan struct{})}
	s.attended[kind] = a
	s.attending.Go(func() {
		defer close(a.done)
		watch(ctx)
	})
}

// release ends the watch of a kind whose package is served from now on, and returns
// when no step for it is under way any more: two must not act on one resource.
func (s *strays) release(kind schema.GroupKind) {
	s.mu.Lock()
	a := s.attended[kind]
	delete(s.attended, kind)
	s.mu.Unlock()
	if a == nil {
		return
	}
	a.stop()
	<-a.done
}
