package shadow

import (
	"context"
	"crypto/sha256"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/workqueue"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/object"
	"operetta.dev/engine/plan"
)

// A Printer is told what a Shadow finds. It is called by one goroutine at a time.
type Printer interface {
	// Resource is called when a resource compares otherwise than before.
	Resource(r Resource)
	// Gone is called when a resource does not exist any more.
	Gone(kind schema.GroupKind, namespace, name string)
	// Summary is called when the counts have changed and nothing is being compared.
	Summary(s Summary)
	// Note is called with what keeps a Shadow from seeing something.
	Note(text string)
}

// Options say what a Shadow compares.
type Options struct {
	// Cluster reads objects; it is never written.
	Cluster *cluster.Live
	// Metadata follows the metadata of objects.
	Metadata metadata.Interface
	Mapper   meta.RESTMapper
	// Namespaces are those whose resources are compared.
	Namespaces object.Namespaces
	// ConfigMap names the operator's configuration; its zero value is none.
	ConfigMap types.NamespacedName
	// Concurrency is how many resources are compared at once; 0 is one.
	Concurrency int
	// Ignore are objects that only the other operator needs.
	Ignore []Ignored
	// UntilSame ends a Shadow once all resources are the same.
	UntilSame bool
	Printer   Printer
}

// A Shadow compares the resources of packages as they change.
type Shadow struct {
	Options

	index   *index
	tracker *tracker
	queue   workqueue.TypedDelayingInterface[cluster.Ref]

	mu     sync.Mutex
	served map[schema.GroupKind]plan.Version
	// outdated are the kinds whose package has a next version that is broken.
	outdated map[schema.GroupKind]bool
	found    map[cluster.Ref]*resourceState
	// changes counts what was told of resources, and scanned is what it was when the last scan began.
	changes, scanned int
	// notListed says which kinds the last scan could not list, or is "".
	notListed string
	noted     map[place]string
	shown     Summary
	shownAt   time.Time
	scans     chan struct{}
	// ready is closed once everything has been listed for the first time.
	ready  chan struct{}
	done   func()
	follow func(plan.Version)
	// print makes one call to the printer at a time.
	print sync.Mutex
}

// A resourceState is what is known of one resource.
type resourceState struct {
	state State
	// digest tells whether a comparison says the same as the one before.
	digest [sha256.Size]byte
	// waiting says that it is in the queue, and running that it is being compared.
	waiting, running bool
	// at is when it was compared last.
	at time.Time
}

// New returns a Shadow of no package.
func New(o Options) *Shadow {
	s := &Shadow{
		Options: o, index: newIndex(), queue: workqueue.NewTypedDelayingQueue[cluster.Ref](),
		served: map[schema.GroupKind]plan.Version{}, outdated: map[schema.GroupKind]bool{}, found: map[cluster.Ref]*resourceState{}, scanned: -1,
		noted: map[place]string{}, scans: make(chan struct{}, 1), ready: make(chan struct{}),
	}
	s.tracker = &tracker{client: o.Metadata, mapper: o.Mapper, index: s.index, namespaces: o.Namespaces, concerns: s.enqueue, note: s.noteUnseen, watches: map[place]watchState{}}
	return s
}

// Serve compares the resources of a package from now on, or those of its next version.
func (s *Shadow) Serve(v plan.Version) {
	kind := v.Program.GroupVersionKind()
	s.index.serve(kind.GroupKind())
	s.mu.Lock()
	s.served[kind.GroupKind()] = v
	delete(s.outdated, kind.GroupKind())
	follow := s.follow
	s.mu.Unlock()
	if follow != nil {
		follow(v)
	}
	s.enqueue(s.index.of(kind.GroupKind()))
}

// Outdated says that the next version of a package is broken. The one before goes on being compared, and the Shadow does
// not end by itself.
func (s *Shadow) Outdated(kind schema.GroupKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outdated[kind] = true
}

// Withdraw ends the comparison of the resources of a kind: its package has another one now.
func (s *Shadow) Withdraw(kind schema.GroupKind) {
	s.mu.Lock()
	delete(s.served, kind)
	delete(s.outdated, kind)
	s.mu.Unlock()
	for _, ref := range s.index.withdraw(kind) {
		s.mu.Lock()
		delete(s.found, ref)
		s.mu.Unlock()
	}
}

// homes are where the resources of a package are.
func (s *Shadow) homes(v plan.Version) []place {
	if v.Program.Meta().ClusterScoped {
		return []place{{kind: v.Program.GroupVersionKind()}}
	}
	var out []place
	for _, namespace := range s.Namespaces.Lists() {
		out = append(out, place{v.Program.GroupVersionKind(), namespace})
	}
	return out
}

// Run follows the resources until the context ends, or, with UntilSame, all are the same. It returns the last
// summary.
func (s *Shadow) Run(ctx context.Context) Summary {
	ctx, s.done = context.WithCancel(ctx)
	defer s.done()
	s.mu.Lock()
	s.follow = func(v plan.Version) {
		for _, at := range s.homes(v) {
			s.tracker.follow(ctx, at)
		}
	}
	served := slices.Collect(maps.Values(s.served))
	s.mu.Unlock()
	for _, v := range served {
		s.follow(v)
	}
	var workers sync.WaitGroup
	workers.Go(func() { s.scanAll(ctx) })
	for range max(1, s.Concurrency) {
		workers.Go(func() { s.work(ctx) })
	}
	workers.Go(func() { <-ctx.Done(); s.queue.ShutDown() })
	workers.Wait()
	out, _ := s.count()
	return out
}
